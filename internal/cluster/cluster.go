// Package cluster starts real database servers on this machine, for runs, tests and benchmarks. It holds the contract
// of a cluster and NodeSet, the base of every kind. Package host runs the servers, and package netem joins them. Each
// other folder holds one kind of server. Package clustertest holds the tests that every kind must pass.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/netem"
)

// Cluster is a running database of one or more nodes. Its methods may be called from several goroutines. Nodes are
// numbered from 0 in the order in which they joined, and a number is never used again.
type Cluster interface {
	// URL returns the address of the whole cluster in the form that --db takes.
	URL() string
	// NodeURL returns the address of node i alone, for reading its copy of the data. It is empty if the node has no
	// such address, or if no node holds all data.
	NodeURL(i int) string
	// Nodes returns the current members, dead ones included.
	Nodes() []Node
	// Leader returns the number of the node that accepts writes. During an election it waits until ctx ends. It
	// returns ErrNoLeader if nodes of this kind are equal.
	Leader(ctx context.Context) (int, error)
	// WaitHealthy waits until the database reports that all nodes are members, have caught up, and answer. When ctx
	// ends, the error names the nodes that did not.
	WaitHealthy(ctx context.Context) error
	// Stop ends all nodes and removes all that Start made. It may be called again.
	Stop() error
}

// Local is a cluster on this machine. Each of its nodes is a LocalNode.
type Local interface {
	Cluster
	// Network returns the network that joins the nodes.
	Network() *netem.Network
}

// LocalNodes returns the nodes of a cluster on this machine.
func LocalNodes(c Local) []LocalNode {
	nodes := c.Nodes()
	list := make([]LocalNode, len(nodes))
	for i, n := range nodes {
		list[i] = n.(LocalNode)
	}
	return list
}

// AsLocal converts the results of a start. If err is not nil, the interface is nil, and does not hold a nil pointer.
func AsLocal[C Local](c C, err error) (Local, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// ErrNoLeader is returned by Leader if all nodes are equal.
var ErrNoLeader = errors.New("the nodes of this cluster are equal: none of them leads")

// Node is one node of a cluster on any machine. A node has more methods if it supports faults; package nemesis names
// them as capabilities.
type Node interface {
	Number() int
	Name() string // n0, n1 …
	// Running reports whether the server exists now, paused or not.
	Running() bool
}

// Auxiliary is a process beside the database servers that holds no data, such as a failover agent. A *Server is an
// Auxiliary. A call that returns nil has verified its effect.
type Auxiliary interface {
	Name() string
	Running() bool
	Kill(ctx context.Context) error
	Restart(ctx context.Context) error
	Pause(ctx context.Context) error
	StillPaused(ctx context.Context) error
	Resume(ctx context.Context) error
}

// LocalNode is a node whose server runs on this machine. A call that returns nil has verified its effect. A call
// succeeds if the node is already in the requested state.
type LocalNode interface {
	Node
	Host() *host.Host
	Dir() string // folder of the data
	PIDs() []int // its processes; none if it is down

	Kill(ctx context.Context) error        // sends SIGKILL to all processes at once and returns when they are gone, even after ctx has ended
	Terminate(ctx context.Context) error   // the clean shutdown of the server's manual
	Restart(ctx context.Context) error     // starts it on its own data and returns when it answers
	Pause(ctx context.Context) error       // SIGSTOP; returns when all processes are stopped
	StillPaused(ctx context.Context) error // returns why it runs although nobody has resumed it
	Resume(ctx context.Context) error      // SIGCONT; returns when no process is stopped
	// Replace kills the node, removes its data and lets it join again empty, as an operator does after the loss of a
	// machine. It returns when the node answers.
	Replace(ctx context.Context) error
}

// Mover is a cluster that can hand leadership over in an orderly way.
type Mover interface {
	MoveLeader(ctx context.Context, to int) error
}

// Resizer is a cluster that can grow and shrink while it works.
type Resizer interface {
	Add(ctx context.Context) (int, error)
	Remove(ctx context.Context, node int) error
}

// Options describe the cluster to start.
type Options struct {
	Nodes int
	// Dir gets one folder per node. If it is empty, a temporary folder is used, which Stop removes.
	Dir string
	// InMemory puts the temporary folder into /dev/shm. Then fsync costs nothing and guarantees nothing.
	InMemory bool
	// Loopback keeps all nodes on 127.0.0.1 even if namespaces are available.
	Loopback bool
	// FaultFS puts a file system under every node's data that can lose unsynced writes, fill up, and be slow. It
	// costs speed.
	FaultFS bool
	// Clock lets the clock of every node be changed, if the program allows it. It costs speed.
	Clock bool
	// Unsupervised leaves a node down after it has ended by itself.
	Unsupervised bool
	// Connections is the number of connections that the clients open at once; 0 means unknown. Servers with a limit
	// are started with at least as many, plus a reserve.
	Connections int
	// Params are the parameters after the question mark of --cluster KIND:N?…. A kind returns an error for an unknown
	// parameter. Every kind with programs knows bin, the folder of its programs.
	Params url.Values
	// DryRun starts and makes nothing. The error is a *PlannedError if the parameters are right.
	DryRun bool
}

// PlannedError is returned by a start that went as far as a dry run goes.
type PlannedError struct {
	// Cluster is the cluster that would have been started. Only the properties that follow from its kind, options and
	// parameters may be asked.
	Cluster   Cluster
	Uncounted bool  // it exists already, so its number of nodes is unknown
	Lacks     error // a MissingError if this machine lacks a program; otherwise nil
}

func (*PlannedError) Error() string { return "a dry run starts nothing" }

// startAttempts bounds the tries to start a cluster.
const startAttempts = 3

// Kind describes a kind of cluster to Launch.
type Kind struct {
	Name      string   // as in --cluster NAME:N
	PortTaken string   // the server's message for a port in use
	Further   int      // number of servers beside the requested nodes, such as routers
	Users     []string // the first that exists runs servers that refuse root; none: the caller runs them
	Product   string   // the servers' name if there are Users
	Lacks     error    // why its programs cannot be run; nil if they can
	NoFaultFS string   // why its nodes cannot have disk faults; empty: they can
}

// launched is a cluster with a NodeSet inside.
type launched interface {
	Cluster
	Open(ctx context.Context, k Kind, o Options) error
	Plan(k Kind, o Options)
	Logged(text string) bool
}

// Launch makes the nodes of a cluster, starts their servers through start, and returns when all are healthy. After an
// error nothing is left behind. A free port may be taken before the server binds it; then Launch starts anew.
func Launch[C launched](ctx context.Context, k Kind, o Options, describe func() C, start func(C, context.Context) error) (none C, err error) {
	if o.Nodes < 1 {
		return none, fmt.Errorf("start %s: %d nodes requested, at least 1 is needed", k.Name, o.Nodes)
	}
	if o.FaultFS && k.NoFaultFS != "" {
		return none, &ParamError{Param: "layer", Reason: k.NoFaultFS}
	}
	if o.DryRun && (k.Lacks == nil || errors.As(k.Lacks, new(host.MissingError))) {
		c := describe()
		c.Plan(k, o)
		return none, &PlannedError{Cluster: c, Lacks: k.Lacks}
	}
	if k.Lacks != nil {
		return none, k.Lacks
	}
	for attempt := 1; ; attempt++ {
		c := describe()
		if err = c.Open(ctx, k, o); err == nil {
			err = start(c, ctx)
		}
		if err == nil {
			err = c.WaitHealthy(ctx)
		}
		if err == nil {
			return c, nil
		}
		again := attempt < startAttempts && ctx.Err() == nil && (strings.Contains(err.Error(), k.PortTaken) || c.Logged(k.PortTaken))
		if err = fmt.Errorf("start %s:%d: %w", k.Name, o.Nodes, errors.Join(err, c.Stop())); !again {
			return none, err
		}
	}
}

// SpareConnections is the number of server connections reserved for others than the clients: people, supervisors and
// the server itself.
const SpareConnections = 50

// MaxConnections returns the connection limit to start a server with; usual is the limit if nothing else is known.
func (o *Options) MaxConnections(usual int) int { return max(usual, o.Connections+SpareConnections) }

// Alone returns the options of a single server on 127.0.0.1 with its own settings and without a supervisor.
func Alone(settings map[string]string) Options {
	o := Options{Nodes: 1, Loopback: true, Unsupervised: true, Params: url.Values{}}
	for name, value := range settings {
		o.Params.Set(paramSet+name, value)
	}
	return o
}

// Single is the only node of a cluster that was started with the options of Alone. Its methods may be called from
// several goroutines.
type Single struct {
	LocalNode
	address url.URL // of the clients' database, for the superuser
	stop    func() error
}

// NewSingle returns the only node of a cluster; database is the one that its clients use.
func NewSingle(c Local, database string) (*Single, error) {
	u, err := url.Parse(c.NodeURL(0))
	if err != nil {
		return nil, fmt.Errorf("read the address of the only node: %w", err)
	}
	u.Path = "/" + database
	return &Single{LocalNodes(c)[0], *u, c.Stop}, nil
}

// Stop ends the server and removes all that was made for it.
func (s *Single) Stop() error { return s.stop() }

// Restart shuts the server down cleanly if it runs, and starts it again with the same data.
func (s *Single) Restart(ctx context.Context) error {
	if err := s.Terminate(ctx); err != nil {
		return err
	}
	return s.LocalNode.Restart(ctx)
}

// Port returns the server's TCP port on 127.0.0.1.
func (s *Single) Port() int {
	port, _ := strconv.Atoi(s.address.Port()) // the port was made from a number
	return port
}

// URL returns the address of the clients' database for the superuser.
func (s *Single) URL() string { return s.address.String() }

// URLFor returns the address of a database for a user; an empty password is left out.
func (s *Single) URLFor(user, password, database string) string {
	u := s.address
	u.User, u.Path = url.User(user), "/"+database
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// Find is like the function Find. If the parameter bin names a folder, only this folder is searched, and the error is
// a *ParamError.
func (o Options) Find(program, debianPackage string, patterns ...string) (string, error) {
	found, err := o.FindAll([]string{program}, debianPackage, patterns...)
	return found[program], err
}

// FindAll is like Find for programs that must have the same version and so must be in one folder; see host.FindAll.
func (o Options) FindAll(programs []string, debianPackage string, patterns ...string) (map[string]string, error) {
	bin, err := o.Bin()
	if err != nil {
		return nil, err
	}
	if bin != "" {
		found, lacks := host.ProgramsIn(bin, programs)
		if len(lacks) > 0 {
			return nil, &ParamError{Param: paramBin, Reason: fmt.Sprintf("%s has no %s: name the folder of the programs", bin, strings.Join(lacks, ", "))}
		}
		return found, nil
	}
	return host.FindAll(programs, debianPackage, patterns...)
}

// Bin returns the folder of the parameter bin as an absolute path, or "" if the parameter is not given.
func (o Options) Bin() (string, error) {
	if !o.Params.Has(paramBin) {
		return "", nil
	}
	bin, err := filepath.Abs(o.Params.Get(paramBin))
	if err != nil {
		return "", &ParamError{Param: paramBin, Reason: err.Error()}
	}
	if info, err := os.Stat(bin); err != nil || !info.IsDir() {
		return "", &ParamError{Param: paramBin, Reason: fmt.Sprintf("there is no folder %s: name the one that has the programs", bin)}
	}
	return bin, nil
}
