// Package cluster starts real database servers on this machine, for tests, for
// benchmarks and for the command that shows a cluster. One folder below it holds
// one kind of server. This package holds what they share: finding programs, a
// free port, and processes that leave nothing behind; a NodeSet, which every kind's
// cluster stands on; Alone, for a single server. What every kind
// has to stand is in clustertest.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Cluster is a running database of one or more nodes. Its
// methods may be called from several goroutines. Nodes are numbered from 0 in
// the order in which they came; a number is never used again.
type Cluster interface {
	// URL is the address of the whole cluster as --db takes it.
	URL() string
	// NodeURL is the address of node i alone, to read what it holds; empty where there
	// is none, or no node holds everything.
	NodeURL(i int) string
	// Nodes are the nodes that belong to the cluster now, dead ones included.
	Nodes() []Node
	// Leader returns the number of the node that takes the writes. While an
	// election is going on it waits until ctx ends. ErrNoLeader: nodes of this
	// kind are equal.
	Leader(ctx context.Context) (int, error)
	// WaitHealthy returns when the database itself says that all nodes are members,
	// have caught up, and answer; the error at the end of ctx says which did not.
	WaitHealthy(ctx context.Context) error
	// Stop ends all nodes and takes away all that Start made. It may be called
	// again.
	Stop() error
}

// Local is a cluster on this machine: its nodes are each a LocalNode.
type Local interface {
	Cluster
	// Network joins the nodes.
	Network() *Network
}

// LocalNodes are the nodes of a cluster on this machine.
func LocalNodes(c Local) []LocalNode {
	nodes := c.Nodes()
	list := make([]LocalNode, len(nodes))
	for i, n := range nodes {
		list[i] = n.(LocalNode)
	}
	return list
}

// AsLocal returns a nil interface with an error, and not a nil pointer in one.
func AsLocal[C Local](c C, err error) (Local, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// ErrNoLeader is what Leader gives where all nodes are equal.
var ErrNoLeader = errors.New("the nodes of this cluster are equal: none of them leads")

// Node is one node of a cluster, wherever it runs. What can be done to it are the
// methods that it has beside these: the package nemesis names them as capabilities.
type Node interface {
	Number() int
	Name() string // n0, n1 …
	// Running reports whether its server is there now, paused or not.
	Running() bool
}

// Auxiliary is a process beside the servers of the database that has none of its data, such
// as an agent that fails over. A *Server is one. A call that returns nil has seen its effect.
type Auxiliary interface {
	Name() string
	Running() bool
	Kill(ctx context.Context) error
	Restart(ctx context.Context) error
	Pause(ctx context.Context) error
	StillPaused(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Usage is what a server elsewhere has used of its machine since it began, as who looks after it
// says.
type Usage struct {
	Of          string    // what has used it; another one began at nothing
	At          time.Time // when that was looked at, by the clock there
	CPUSeconds  float64   // user and system
	MemoryBytes int64     // at that time
	Traffic     *Traffic  // nil: not known
	StoredBytes *int64    // on its volumes at that time; nil: not known
}

// Traffic is what a server has received and sent since it began.
type Traffic struct {
	At             time.Time // when that was looked at, by the clock there
	Received, Sent int64     // bytes
}

// LocalNode is a node whose server runs on this machine. A call that fails says
// so; a node that is already as asked is no error. What returns nil has seen its
// effect.
type LocalNode interface {
	Node
	Host() *Host
	Dir() string // where its data are
	PIDs() []int // of its processes; none when it is down

	Kill(ctx context.Context) error        // SIGKILL to all its processes at once, whatever ctx says; returns when they are gone
	Terminate(ctx context.Context) error   // the shutdown in good order that the server's manual names
	Restart(ctx context.Context) error     // starts it on its own data; returns when it answers
	Pause(ctx context.Context) error       // SIGSTOP; returns when all its processes are stopped
	StillPaused(ctx context.Context) error // says why it goes on although nobody has resumed it
	Resume(ctx context.Context) error      // SIGCONT; returns when none of its processes is stopped
	// Replace kills the node, takes its data away, and lets it join again
	// empty, as an operator that lost a machine does. It returns when it answers.
	Replace(ctx context.Context) error
}

// Effect is a fault that is in effect, which was seen.
type Effect struct {
	Seen string // how it was seen
	// Still says why the effect is not there any more although nobody has healed
	// it. Nil: it is not known.
	Still func(ctx context.Context) error
	// Heal undoes the fault, sees that its effect has ended, and says how. It may be
	// called again when it fails. Nil: there is nothing to undo.
	Heal func(ctx context.Context) (seen string, err error)
	// EndsItself is set where Heal undoes nothing, but waits for an end that comes by itself.
	EndsItself bool
}

// healing is the Heal of an Effect: it undoes the fault and sees within a limit that
// its effect has ended.
func healing(limit time.Duration, heal func() error, ended func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (seen string, err error) {
		if err := Until(ctx, SeenWithin, heal); err != nil {
			return "", err
		}
		err = Until(ctx, limit, func() (err error) { seen, err = ended(ctx); return err })
		return seen, err
	}
}

// Mover is a cluster that can hand the lead over in good order.
type Mover interface {
	MoveLeader(ctx context.Context, to int) error
}

// Resizer is a cluster that can grow and shrink while it works.
type Resizer interface {
	Add(ctx context.Context) (int, error)
	Remove(ctx context.Context, node int) error
}

// Options say what cluster to start.
type Options struct {
	Nodes int
	// Dir gets one folder a node. Empty: a new temporary folder, which Stop
	// removes.
	Dir string
	// InMemory takes the temporary folder from /dev/shm, which takes away the
	// cost of fsync and, with it, its meaning.
	InMemory bool
	// Loopback keeps all nodes on 127.0.0.1 even where namespaces could be had.
	Loopback bool
	// FaultFS puts a file system under every node's data that can lose what was
	// not synced, fill up, and be slow. It costs speed.
	FaultFS bool
	// Clock lets the clock of every node be steered, where its program allows it.
	// It costs speed.
	Clock bool
	// Unsupervised leaves a node down that has ended by itself.
	Unsupervised bool
	// Connections is how many the clients open at once; 0: it is not known. Servers that bound
	// them are started with as many as that, and some for others.
	Connections int
	// Params are what stands behind the question mark of --cluster KIND:N?….
	// A kind refuses those that it does not know; bin, the folder of the programs, is
	// known to every kind that has some.
	Params url.Values
	// DryRun starts and makes nothing: the error is a *PlannedError where the parameters are
	// right.
	DryRun bool
}

// PlannedError says that a start went as far as a dry run goes.
type PlannedError struct {
	// Cluster is what would have been started, which can be asked what its kind, its options
	// and its parameters decide, and for nothing else.
	Cluster   Cluster
	Uncounted bool  // it is there already, so that how many nodes it has is not known
	Lacks     error // a MissingError where a program is not on this machine; else nil
}

func (*PlannedError) Error() string { return "a dry run starts nothing" }

// startAttempts bounds the tries to start a cluster.
const startAttempts = 3

// Kind is what Launch knows of a kind of cluster.
type Kind struct {
	Name      string   // as in --cluster NAME:N
	PortTaken string   // what a server says when somebody else has its port
	Further   int      // servers beside the nodes asked for, such as a router
	Users     []string // of whom the first that exists runs servers that refuse root; none: the caller does
	Product   string   // the servers' name where there are Users
	Lacks     error    // why its programs cannot be run; nil: they can
}

// launched is a cluster with a NodeSet inside.
type launched interface {
	Cluster
	Open(ctx context.Context, k Kind, o Options) error
	Plan(ctx context.Context, k Kind, o Options) error
	Logged(text string) bool
}

// Launch describes a cluster, makes its nodes, starts their servers by start, and
// returns when all is healthy. An error leaves nothing behind. A port that was free
// when it was chosen may be taken when the server binds it: then all is made anew.
func Launch[C launched](ctx context.Context, k Kind, o Options, describe func() C, start func(C) error) (none C, err error) {
	if o.Nodes < 1 {
		return none, fmt.Errorf("start %s: %d nodes asked for, at least 1 is needed", k.Name, o.Nodes)
	}
	if o.DryRun && (k.Lacks == nil || errors.As(k.Lacks, new(MissingError))) {
		c := describe()
		if err := c.Plan(ctx, k, o); err != nil {
			return none, fmt.Errorf("plan %s:%d: %w", k.Name, o.Nodes, err)
		}
		return none, &PlannedError{Cluster: c, Lacks: k.Lacks}
	}
	if k.Lacks != nil {
		return none, k.Lacks
	}
	for attempt := 1; ; attempt++ {
		c := describe()
		if err = c.Open(ctx, k, o); err == nil {
			err = start(c)
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

// SpareConnections are those of a server that are for others than its clients: people,
// supervisors, and those that the server reserves.
const SpareConnections = 50

// MaxConnections is how many connections a server is started with that takes usual ones
// where nothing is known.
func (o *Options) MaxConnections(usual int) int { return max(usual, o.Connections+SpareConnections) }

// Alone are the options of one server on 127.0.0.1 with settings of its own, of which
// nobody asks anything.
func Alone(settings map[string]string) Options {
	o := Options{Nodes: 1, Loopback: true, Unsupervised: true, Params: url.Values{}}
	for name, value := range settings {
		o.Params.Set(paramSet+name, value)
	}
	return o
}

// Single is a server alone: the one node of a cluster that Alone describes. Its methods
// may be called from several goroutines.
type Single struct {
	LocalNode
	address url.URL // of the database that its clients use, for its superuser
	stop    func() error
}

// NewSingle is the one node of a cluster, whose clients use a database of it.
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

// Restart shuts the server down in good order if it runs, and starts it again with the
// same data.
func (s *Single) Restart(ctx context.Context) error {
	if err := s.Terminate(ctx); err != nil {
		return err
	}
	return s.LocalNode.Restart(ctx)
}

// Port is the server's TCP port on 127.0.0.1.
func (s *Single) Port() int {
	port, _ := strconv.Atoi(s.address.Port()) // which it was made with
	return port
}

// URL is the address of the clients' database for the superuser.
func (s *Single) URL() string { return s.address.String() }

// URLFor is the address of a database for a user; an empty password is left out.
func (s *Single) URLFor(user, password, database string) string {
	u := s.address
	u.User, u.Path = url.User(user), "/"+database
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// MissingError says that a program that a server needs is not on this machine,
// and which Debian package brings it, if one does.
type MissingError struct {
	Program string // the file that was looked for, such as initdb; empty: this build has no such cluster
	Package string // the Debian package, such as postgresql; empty: no package has it
	Hint    string // what to do where neither a package nor PATH is the answer
}

func (e MissingError) Error() string {
	if e.Program == "" {
		return e.Hint
	}
	return fmt.Sprintf("the program %s is not on this machine: %s", e.Program, e.Advice())
}

// Advice says how the program gets there.
func (e MissingError) Advice() string {
	switch {
	case e.Hint != "":
		return e.Hint
	case e.Package == "":
		return "put " + e.Program + " on PATH, for no Debian package has it"
	}
	return "install the Debian package " + e.Package
}

// Find returns the path of a program: the first on PATH, or else that in the newest
// of the folders that match the patterns, which is where distributions keep several
// versions. If there is none the error is a MissingError that names debianPackage.
func Find(program, debianPackage string, patterns ...string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		if path, err = FindFile(program, debianPackage, patterns...); err == nil {
			path, err = exec.LookPath(path)
		}
	}
	if err != nil {
		return "", MissingError{Program: program, Package: debianPackage}
	}
	return filepath.Abs(path)
}

// Find is the function Find, unless the parameter bin names a folder: then the program
// is taken from there, or the error is a *ParamError.
func (o Options) Find(program, debianPackage string, patterns ...string) (string, error) {
	found, err := o.FindAll([]string{program}, debianPackage, patterns...)
	return found[program], err
}

// FindAll is Find for programs that are of one version only if they are in one folder:
// that of bin, else the first on PATH that has all of them, else the newest that matches
// the patterns.
func (o Options) FindAll(programs []string, debianPackage string, patterns ...string) (map[string]string, error) {
	bin, err := o.Bin()
	if err != nil {
		return nil, err
	}
	if bin != "" {
		found, lacks := programsIn(bin, programs)
		if len(lacks) > 0 {
			return nil, &ParamError{Param: paramBin, Reason: fmt.Sprintf("%s has no %s: name the folder of the programs", bin, strings.Join(lacks, ", "))}
		}
		return found, nil
	}
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		if found, lacks := programsIn(folder, programs); filepath.IsAbs(folder) && len(lacks) == 0 {
			return found, nil
		}
	}
	found := map[string]string{}
	for _, name := range programs {
		path, err := FindFile(name, debianPackage, patterns...)
		if err == nil {
			path, err = exec.LookPath(path)
		}
		if err != nil {
			return nil, MissingError{Program: name, Package: debianPackage}
		}
		found[name] = path
	}
	return found, nil
}

// Bin is the folder that the parameter bin names, as an absolute path; empty if it is
// not given.
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

// programsIn returns the paths of the programs that a folder has, and the names of those
// that it lacks.
func programsIn(folder string, programs []string) (found map[string]string, lacks []string) {
	found = map[string]string{}
	for _, name := range programs {
		path, err := exec.LookPath(filepath.Join(folder, name))
		if err != nil {
			lacks = append(lacks, name)
			continue
		}
		found[name] = path
	}
	return found, lacks
}

// FindFile is Find for a file that is no program, and on no path.
func FindFile(name, debianPackage string, patterns ...string) (string, error) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(pattern, name))
		if err != nil {
			return "", fmt.Errorf("look for %s in %s: %w", name, pattern, err)
		}
		if len(found) > 0 {
			return slices.MaxFunc(found, compareVersions), nil
		}
	}
	return "", MissingError{Program: name, Package: debianPackage}
}

// compareVersions orders paths that differ in a number, 9 before 15.
func compareVersions(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return slices.Compare([]byte(a), []byte(b))
}

// Ports are taken below 32768, where Linux begins to give out ephemeral ports
// (net.ipv4.ip_local_port_range), so that no outgoing connection takes the port
// of a server while it is down.
const firstPort, lastPort = 20000, 32767

// FreePort returns a TCP port of 127.0.0.1 on which nobody listens now.
func FreePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	for range 200 {
		port := firstPort + rand.N(lastPort-firstPort+1)
		l, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		switch {
		case err == nil:
			return port, l.Close()
		case ctx.Err() != nil, !errors.Is(err, syscall.EADDRINUSE):
			return 0, fmt.Errorf("look for a free port of 127.0.0.1: %w", err)
		}
	}
	return 0, fmt.Errorf("look for a free port of 127.0.0.1: 200 ports between %d and %d were all taken", firstPort, lastPort)
}
