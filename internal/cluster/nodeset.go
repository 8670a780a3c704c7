package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/netem"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/cluster/wrap"
)

var (
	// ErrStopped is the error of a wait for a node of a stopped cluster.
	ErrStopped = errors.New("the cluster is stopped")
	// ErrRemoved is the error of a wait for a node that was removed.
	ErrRemoved = errors.New("the node was removed from the cluster")
)

// Member is a node of one kind of database, with a Server inside.
type Member interface {
	comparable
	LocalNode
	// Log returns the path of the file with the server's output.
	Log() string
	// URL returns the address of the node alone.
	URL() string
	// Erase ends the node for good and removes all that was made for it.
	Erase() error

	Awake() bool
	Absent() error
	Retire(why error)
	Ended() bool
	RestartEnded(ctx context.Context) error
}

// NodeSet is the base of a cluster of any kind: its folder, its hosts, their nodes, and its end. A kind's cluster
// embeds a NodeSet. Create it with NewNodeSet.
type NodeSet[N Member] struct {
	// User runs the servers.
	User host.User
	// Life ends with the cluster.
	Life context.Context
	// Tasks are background tasks, for which Stop waits.
	Tasks sync.WaitGroup
	// Mu guards the list of nodes and the fields that a kind declares as guarded. It is held only for moments.
	Mu sync.Mutex

	// Options are the options that opened the cluster, and Dir is its folder.
	Options Options
	Dir     string

	name    string // for errors, as in "the etcd cluster"
	found   func(number int, on *host.Host) (N, Design)
	healthy func() func(ctx context.Context) error
	leader  string // for errors, as in "the primary of the group"
	leads   func(ctx context.Context) (N, error)

	record  *host.Record // for cleanup if this program is killed
	network *netem.Network
	given   map[netip.AddrPort]bool // addresses of nodes
	made    int                     // number of nodes so far, and the next one's number
	nodes   []N                     // current members

	changing wait.Lock // held while nodes join or leave, and after the stop
	end      context.CancelCauseFunc
	stop     sync.Once
	stopErr  error
}

// Design describes a node to its NodeSet: what it needs on its host, and its server. A dry run reads it and makes
// nothing.
type Design struct {
	Ports   map[int]*netip.AddrPort // addresses that no node has had, by their standard ports
	Folder  string                  // parent of the other folders, which all users may read; empty: none
	Folders []string                // nil: the folder of the server's data
	// Make prepares the rest when the node has its addresses and folders; nil: nothing is left.
	Make func() error

	Server  **host.Server // is set to the new server; nil: the node has one already
	Dir     string        // folder of the server's data; empty: NodeSet.Folder
	Log     string        // file of the server's output; empty: beside that folder
	Program host.Program  // Clock and FaultFS declare abilities, which the options of the cluster may turn off

	// Expendable returns nil if the node's data may be removed, because the others have them. Before a replacement it is
	// called until then, or until it returns an error of Refuse; nil: the node is replaced at once.
	Expendable func(ctx context.Context) error
	// Leave prepares the cluster for the loss of the node, and Back is called when the new one answers; nil: nothing is
	// done.
	Leave, Back func(ctx context.Context) error
}

// Refuse returns an error of Design.Expendable for a node that can never be replaced.
func Refuse(format string, args ...any) error { return &refusedError{fmt.Errorf(format, args...)} }

type refusedError struct{ error }

// NewNodeSet describes a cluster without nodes. Errors use name, as in "the etcd cluster". found describes a node on a
// host. healthy begins a wait. While all nodes run, its result is called until it returns nil; its error is the reason
// why the cluster is not healthy.
func NewNodeSet[N Member](
	name string, found func(number int, on *host.Host) (N, Design), healthy func() func(ctx context.Context) error,
) *NodeSet[N] {
	f := &NodeSet[N]{name: name, found: found, healthy: healthy, given: map[netip.AddrPort]bool{}}
	f.changing = wait.NewLock()
	f.Life, f.end = context.WithCancelCause(context.Background())
	return f
}

// Logged reports whether a node's log contains a text.
func (f *NodeSet[N]) Logged(text string) bool {
	return slices.ContainsFunc(f.List(), func(n N) bool {
		log, err := os.ReadFile(n.Log())
		return err == nil && strings.Contains(string(log), text)
	})
}

// Open makes the cluster's folder, its hosts and a node on each, but does not start the nodes.
func (f *NodeSet[N]) Open(ctx context.Context, k Kind, o Options) (err error) {
	f.Options = o
	if len(k.Users) > 0 {
		if f.User, err = host.UserFor(k.Product, k.Users...); err != nil {
			return err
		}
	}
	if f.record, err = host.NewRecord(fmt.Sprintf("%s:%d", k.Name, o.Nodes)); err != nil {
		return err
	}
	if o.Dir == "" {
		f.Dir, err = f.TempFolder(TempDir(o.InMemory))
	} else if f.Dir, err = filepath.Abs(o.Dir); err == nil {
		err = os.MkdirAll(f.Dir, 0o755)
	}
	if err != nil {
		return err
	}
	if err = f.User.Enters(f.Folder(0)); err != nil {
		return err
	}
	if bin, _ := o.Bin(); bin != "" { // Find has reported its error
		if err = f.User.Enters(filepath.Join(bin, "program")); err != nil {
			return &ParamError{Param: paramBin, Reason: err.Error()}
		}
	}
	if f.network, err = netem.New(ctx, o.Nodes+k.Further, o.Loopback); err != nil {
		return err
	}
	for i := range o.Nodes + k.Further {
		if _, err = f.enlist(ctx, f.network.Host(i)); err != nil {
			return err
		}
	}
	return nil
}

// Plan describes the nodes as Open does, but makes nothing on this machine.
func (f *NodeSet[N]) Plan(k Kind, o Options) {
	f.Options, f.Dir, f.network = o, nowhere, netem.Planned(o.Nodes+k.Further, o.Loopback)
	for i := range o.Nodes + k.Further {
		n, _ := f.describe(f.network.Host(i))
		f.nodes = append(f.nodes, n)
	}
}

// nowhere is the folder of a planned cluster: no file can be below it.
const nowhere = os.DevNull

// TempDir returns the parent for temporary folders.
func TempDir(inMemory bool) string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); inMemory && err == nil && info.IsDir() {
		return shm
	}
	return os.TempDir()
}

func (f *NodeSet[N]) TempFolder(parent string) (string, error) { return f.record.TempFolder(parent) }

// Folder returns the path of a node's folder.
func (f *NodeSet[N]) Folder(number int) string {
	return filepath.Join(f.Dir, fmt.Sprintf("n%d", number))
}

// MakeFolder makes a folder of a node and gives it to the servers' user.
func (f *NodeSet[N]) MakeFolder(path string, number int, mode os.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil {
		return fmt.Errorf("make the folder of n%d: %w; if it exists, name another folder", number, err)
	}
	if err := f.User.Give(path); err != nil {
		return errors.Join(err, os.RemoveAll(path))
	}
	return nil
}

// WriteFile writes a file for the servers and gives it to their user.
func (f *NodeSet[N]) WriteFile(path, text string) error {
	return errors.Join(os.WriteFile(path, []byte(text), 0o644), f.User.Give(path))
}

// takeEndpoints sets addresses of a host that no node has had, by their standard ports.
func (f *NodeSet[N]) takeEndpoints(ctx context.Context, on *host.Host, addresses map[int]*netip.AddrPort) error {
	for standard, address := range addresses {
		for !address.IsValid() || f.given[*address] {
			port, err := on.Port(ctx, standard)
			if err != nil {
				return err
			}
			*address = netip.AddrPortFrom(on.Addr(), uint16(port))
		}
		f.given[*address] = true
	}
	return nil
}

// NewServer is like host.NewServer. The server's life ends with the node's membership.
func (f *NodeSet[N]) NewServer(number int, on *host.Host, dir, log string, program host.Program) *host.Server {
	program.Clock = program.Clock && f.Options.Clock
	program.FaultFS = program.FaultFS && f.Options.FaultFS
	return host.NewServer(f.Life, number, on, dir, log, program)
}

// Change begins a change of the members, of which only one is made at a time; done ends it.
func (f *NodeSet[N]) Change(ctx context.Context) (done func(), err error) {
	ctx, cancel := host.Bound(ctx, f.Life)
	defer cancel()
	if err := f.changing.Acquire(ctx); err != nil {
		if f.Life.Err() != nil {
			return nil, context.Cause(f.Life)
		}
		return nil, fmt.Errorf("wait for the end of another change of the nodes: %w", err)
	}
	return f.changing.Release, nil
}

// AddNode makes one more host with a node, which start brings up, in a Change. Clients that were opened before do not
// know the node. After an error, undo reverts start.
func (f *NodeSet[N]) AddNode(ctx context.Context, start, undo func(context.Context, N) error) (number int, err error) {
	defer wrap.Error(&err, "add a node to %s", f.name)
	done, err := f.Change(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	on, err := f.network.Add(ctx)
	if err != nil {
		return 0, err
	}
	n, err := f.enlist(ctx, on)
	if err != nil {
		return 0, err
	}
	if err := start(ctx, n); err != nil {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
		defer cancel()
		return 0, errors.Join(err, undo(limited, n), f.Drop(n))
	}
	return n.Number(), nil
}

// undoLimit bounds the cleanup after a node that could not be added.
const undoLimit = 10 * time.Second

// RemoveNode removes a node from the cluster through leave, ends it and removes its data, in a Change. The last node
// cannot be removed.
func (f *NodeSet[N]) RemoveNode(ctx context.Context, number int, leave func(context.Context, N) error) (err error) {
	defer wrap.Error(&err, "remove node %d of %s", number, f.name)
	ctx, cancel := host.Bound(ctx, f.Life)
	defer cancel()
	done, err := f.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	n, err := f.Node(number)
	switch {
	case err != nil:
		return err
	case len(f.List()) == 1:
		return errors.New("it is the last one")
	}
	if err := leave(ctx, n); err != nil {
		return err
	}
	return f.Drop(n)
}

// describe describes the next node, and makes nothing.
func (f *NodeSet[N]) describe(on *host.Host) (N, Design) {
	number := f.made
	f.made++
	n, d := f.found(number, on)
	d.Dir = cmp.Or(d.Dir, f.Folder(number))
	if d.Folders == nil {
		d.Folders = []string{d.Dir}
	}
	if d.Expendable != nil {
		d.Program.Replacing = func(ctx context.Context, replace func(context.Context) error) error {
			return f.replace(ctx, n, d, replace)
		}
	}
	if d.Server != nil {
		*d.Server = f.NewServer(number, on, d.Dir, cmp.Or(d.Log, d.Dir+".log"), d.Program)
	}
	return n, d
}

// enlist makes the next node and adds it to the list. After an error it leaves nothing behind.
func (f *NodeSet[N]) enlist(ctx context.Context, on *host.Host) (N, error) {
	n, d := f.describe(on)
	err := f.takeEndpoints(ctx, on, d.Ports)
	var made []string
	mkdir := func(path string, mode os.FileMode) {
		if err == nil && path != "" {
			if err = f.MakeFolder(path, n.Number(), mode); err == nil {
				made = append(made, path)
			}
		}
	}
	mkdir(d.Folder, 0o755)
	for _, path := range d.Folders {
		mkdir(path, 0o700)
	}
	if err == nil && d.Make != nil {
		err = d.Make()
	}
	if err != nil {
		for _, path := range made {
			err = errors.Join(err, os.RemoveAll(path))
		}
		return n, err
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.nodes = append(f.nodes, n)
	return n, nil
}

// Drop removes a node from the list and all that was made for it.
func (f *NodeSet[N]) Drop(n N) error {
	f.Mu.Lock()
	f.nodes = slices.DeleteFunc(f.nodes, func(m N) bool { return m == n })
	f.Mu.Unlock()
	n.Retire(ErrRemoved)
	return n.Erase()
}

// List returns the current members.
func (f *NodeSet[N]) List() []N {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return slices.Clone(f.nodes)
}

// Others returns the current members except one.
func (f *NodeSet[N]) Others(n N) []N {
	return slices.DeleteFunc(f.List(), func(m N) bool { return m == n })
}

// Nodes returns the current members, dead ones included.
func (f *NodeSet[N]) Nodes() []Node { return NodesOf(f.List()) }

// NodesOf returns members of one kind as nodes.
func NodesOf[N Node](members []N) []Node {
	nodes := make([]Node, len(members))
	for i, n := range members {
		nodes[i] = n
	}
	return nodes
}

// Numbers returns the numbers of nodes.
func Numbers[N Node](nodes []N) (numbers []int) {
	for _, n := range nodes {
		numbers = append(numbers, n.Number())
	}
	return numbers
}

func (f *NodeSet[N]) Node(number int) (n N, err error) {
	for _, n := range f.List() {
		if n.Number() == number {
			return n, nil
		}
	}
	return n, fmt.Errorf("%s has no node %d", f.name, number)
}

// NodeURL returns the address of a node alone, or "" if it has none.
func (f *NodeSet[N]) NodeURL(number int) string {
	n, err := f.Node(number)
	if err != nil {
		return ""
	}
	return n.URL()
}

// Named asks all nodes at once for the leader and its term. It returns the node that more than half of them name, if
// is confirms it; otherwise ErrNobodyLeads. A node that does not answer, or knows no leader, names the zero value of
// L. Named waits only for as many answers as it needs.
func Named[N Member, L comparable](ctx context.Context, nodes []N, ask func(context.Context, N) L, is func(N, L) bool) (leader N, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan L, len(nodes))
	for _, n := range nodes {
		go func() { answers <- ask(ctx, n) }()
	}
	var nobody L
	votes := map[L]int{}
	for range nodes {
		l := <-answers
		if votes[l]++; l == nobody || votes[l] <= len(nodes)/2 {
			continue
		}
		if at := slices.IndexFunc(nodes, func(n N) bool { return is(n, l) }); at >= 0 {
			return nodes[at], nil
		}
	}
	return leader, ErrNobodyLeads
}

// LedBy sets how the leader is found; without it all nodes are equal. leads looks once. Errors use leader, as in "the
// primary of the group".
func (f *NodeSet[N]) LedBy(leader string, leads func(ctx context.Context) (N, error)) {
	f.leader, f.leads = leader, leads
}

// Leader looks for the leader until there is one, and returns its number. It looks for nobody if ctx has ended.
func (f *NodeSet[N]) Leader(ctx context.Context) (number int, err error) {
	if f.leads == nil {
		return 0, ErrNoLeader
	}
	defer wrap.Error(&err, "find %s", f.leader)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = wait.Retry(ctx, func() error {
		found, err := f.leads(ctx)
		if err == nil {
			number = found.Number()
		}
		return err
	})
	return number, err
}

// RestartAll starts nodes at once. The first error ends the other starts.
func RestartAll[N Member](ctx context.Context, nodes []N) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		group.Go(func() error { return n.Restart(ctx) })
	}
	return group.Wait()
}

// ErrNobodyLeads is returned by Named if no node that runs is named.
var ErrNobodyLeads = errors.New("no running node leads")

// handOverLimit bounds one attempt to hand leadership over.
const handOverLimit = 20 * time.Second

// HandOver hands leadership over to a node, unless it leads already. leads looks once for the leader. attempt returns
// nil if the target leads; otherwise all is repeated.
func (f *NodeSet[N]) HandOver(
	ctx context.Context, to int, leads func(context.Context) (N, error), attempt func(ctx context.Context, leader, target N) error,
) (err error) {
	defer wrap.Error(&err, "move the lead of %s to node %d", f.name, to)
	target, err := f.Node(to)
	if err != nil {
		return err
	}
	if !target.Awake() {
		return fmt.Errorf("%s does not run", target.Name())
	}
	return wait.Retry(ctx, func() error {
		leader, err := leads(ctx)
		if err != nil || leader == target {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, handOverLimit)
		defer cancel()
		return attempt(limited, leader, target)
	})
}

// AwaitLead waits until a node leads.
func (f *NodeSet[N]) AwaitLead(ctx context.Context, n N) error {
	return wait.Retry(ctx, func() error {
		now, err := f.leads(ctx)
		if err == nil && now != n {
			err = fmt.Errorf("%s leads", now.Name())
		}
		return err
	})
}

// replace replaces a node, in a Change, as soon as its data are expendable. Until then they may be the only copy.
func (f *NodeSet[N]) replace(ctx context.Context, n N, d Design, replace func(ctx context.Context) error) error {
	done, err := f.Change(ctx)
	if err == nil {
		defer done()
		err = f.release(ctx, d)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", n.Name(), err)
	}
	if err = replace(ctx); err == nil && d.Back != nil {
		err = d.Back(ctx)
	}
	return err
}

// release waits until a node's data are expendable, and prepares the cluster for their loss.
func (f *NodeSet[N]) release(ctx context.Context, d Design) error {
	var refused *refusedError
	err := wait.Retry(ctx, func() error {
		err := d.Expendable(ctx)
		if errors.As(err, &refused) {
			return nil
		}
		return err
	})
	switch {
	case refused != nil:
		return refused
	case err == nil && d.Leave != nil:
		err = d.Leave(ctx)
	}
	return err
}

// Readmits returns nil if the others can readmit a node that has lost its data, for which a majority of voters must
// answer. answers reports whether a voter is available.
func (f *NodeSet[N]) Readmits(ctx context.Context, n N, voters int, answers func(context.Context, N) bool) error {
	if nodes := min(voters, len(f.List())); nodes < 3 {
		return Refuse("a cluster of %d has no majority without it to take it in again: take 3 nodes or more", nodes)
	}
	answered := len(slices.DeleteFunc(f.Others(n), func(m N) bool { return !answers(ctx, m) }))
	if most := voters/2 + 1; answered < most {
		return fmt.Errorf("%d nodes answer without it, and %d of %d are needed to take it in again", answered, most, voters)
	}
	return nil
}

// Depose kills a node, and returns when another one leads. If none takes over, the node is started on its data.
func (f *NodeSet[N]) Depose(ctx context.Context, n N) error {
	err := n.Kill(ctx)
	if err == nil {
		err = wait.Retry(ctx, func() error {
			if leader, err := f.leads(ctx); err != nil || leader == n {
				return errors.Join(ErrNobodyLeads, err)
			}
			return nil
		})
	}
	if err != nil {
		err = errors.Join(err, n.Restart(context.WithoutCancel(ctx)))
	}
	return err
}

// Each calls do for all nodes at once.
func (f *NodeSet[N]) Each(do func(N) error) error {
	nodes := f.List()
	errs := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() { errs[i] = do(n) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Addresses joins the results of a function of each node with commas, in the order of Nodes.
func (f *NodeSet[N]) Addresses(of func(N) string) string { return Join(f.List(), of) }

// Join joins the results of a function of each node with commas.
func Join[N any](nodes []N, of func(N) string) string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = of(n)
	}
	return strings.Join(all, ",")
}

// Network returns the network that joins the nodes.
func (f *NodeSet[N]) Network() *netem.Network { return f.network }

// WaitHealthy waits until all nodes run and the database itself reports that nothing is wrong.
func (f *NodeSet[N]) WaitHealthy(ctx context.Context) (err error) {
	defer wrap.Error(&err, "wait until %s is healthy", f.name)
	check := f.healthy()
	return wait.Retry(ctx, func() error {
		for _, n := range f.List() {
			if !n.Awake() {
				return n.Absent()
			}
		}
		return check(ctx)
	})
}

// Stop ends all nodes with SIGKILL and removes all that was made for them, even in a folder that the caller named. It
// may be called again.
func (f *NodeSet[N]) Stop() error {
	f.stop.Do(func() {
		defer wrap.Error(&f.stopErr, "stop %s", f.name)
		f.end(ErrStopped) // ends all waits for a node
		acquired := f.changing.Acquire(context.Background())
		f.Tasks.Wait()
		f.stopErr = errors.Join(acquired, f.Each(N.Erase))
		if f.network != nil {
			f.stopErr = errors.Join(f.stopErr, f.network.Close())
		}
		if f.stopErr == nil && f.record != nil {
			f.stopErr = f.record.Close()
		}
	})
	return f.stopErr
}

// endedEvery is the interval between two checks for servers that ended by themselves. endedAgain is the interval
// between two attempts to start one.
const endedEvery, endedAgain = 50 * time.Millisecond, time.Second

// RestartEnded restarts servers that end by themselves, until the cluster is stopped, unless the options forbid it.
// Several are restarted at once, because one may need another. The log notes each start and each failure.
func (f *NodeSet[N]) RestartEnded(log *EventLog) {
	if f.Options.Unsupervised {
		return
	}
	for _, n := range f.List() {
		f.Tasks.Go(func() {
			for every := endedEvery; wait.Sleep(f.Life, every) == nil; {
				every = endedEvery
				if !n.Ended() {
					continue
				}
				log.Note("%s has ended by itself, and is started on its own data", n.Name())
				if err := n.RestartEnded(f.Life); err != nil && f.Life.Err() == nil {
					log.Note("%s did not start: %v", n.Name(), err)
					every = endedAgain
				}
			}
		})
	}
}
