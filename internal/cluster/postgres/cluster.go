package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// Cluster is a running primary with its standbys.
type Cluster struct {
	params    params
	layer     bool                // a file system of ours is under the data
	clock     bool                // the clocks can be steered
	attr      *syscall.Credential // whom the servers run as; nil for the caller
	programs  programs
	dir       string
	temporary bool            // StartCluster made dir
	socketDir string          // dir, unless its path is too long for sockets
	record    *cluster.Record // of what a later start clears if this program is killed
	network   *cluster.Network

	life   context.Context // ends with the cluster
	retire context.CancelCauseFunc
	tasks  sync.WaitGroup // what goes on by itself

	changing lock // held while nodes come or go
	hosts    int  // made so far, which is the next node's number

	// roles is held while it is decided, and made true, who leads and on which
	// standby the primary waits.
	roles lock

	mu         sync.Mutex // guards what follows, and each node's state; held for moments only
	nodes      []*node    // that belong to the cluster
	primary    *node
	standby    *node // on which the primary was told to wait; nil: on nobody
	registered bool  // the standby has all that was acknowledged and that will be
	barrier    int64 // what the standby has to replay to be registered; 0 before that is known
	events     []Event
	listener   func(Event)

	supervision // of the supervisor alone
	stop        sync.Once
	stopErr     error
}

var (
	_ cluster.Cluster = (*Cluster)(nil)
	_ cluster.Mover   = (*Cluster)(nil)
	_ cluster.Resizer = (*Cluster)(nil)
	_ cluster.Node    = (*node)(nil)
)

// programs are the paths of PostgreSQL's programs.
type programs struct{ initdb, postgres, basebackup, isready, controldata string }

func findPrograms() (p programs, err error) {
	for name, path := range map[string]*string{
		"initdb": &p.initdb, "postgres": &p.postgres, "pg_basebackup": &p.basebackup,
		"pg_isready": &p.isready, "pg_controldata": &p.controldata,
	} {
		if *path, err = PGBin(name); err != nil {
			return p, err
		}
	}
	return p, nil
}

// startAttempts bounds the tries to start all nodes: on loopback, a port that
// was free when it was chosen may be taken when PostgreSQL binds it.
const startAttempts = 3

// StartCluster starts a primary, node 0, and its standbys, and returns when all
// have the same data and, unless it is told sync=off, the primary waits for a
// standby at every commit. An error leaves nothing behind; it is a
// cluster.MissingError where PostgreSQL is not installed, and a
// *cluster.ParamError for a parameter. The parameters are:
//
//	sync=off         commits wait for no standby, and any standby may be
//	                 promoted: a fail-over can lose what was acknowledged
//	strict=on        a primary whose standby is lost lets commits wait until
//	                 there is another; without it, it goes on alone
//	timeout=1s       how long a server that does not answer is waited for
//	fsync=off        PostgreSQL's own setting of that name
//	set.NAME=VALUE   any other of its settings, on all nodes; one that weakens
//	                 synchronous_commit takes the meaning from sync=on
func StartCluster(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params)
	switch {
	case err != nil:
		return nil, err
	case o.Nodes < 1:
		return nil, fmt.Errorf("start a PostgreSQL cluster: %d nodes asked for, at least 1 is needed", o.Nodes)
	}
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c := &Cluster{params: params, layer: o.Layer, clock: o.Clock, programs: programs, changing: newLock(), roles: newLock()}
		c.life, c.retire = context.WithCancelCause(context.Background())
		err := c.start(ctx, o)
		if err == nil {
			return c, nil
		}
		err = fmt.Errorf("start a PostgreSQL cluster of %d nodes: %w", o.Nodes, errors.Join(err, c.Stop()))
		if attempt == startAttempts || !strings.Contains(err.Error(), "could not create any TCP/IP sockets") {
			return nil, err
		}
	}
}

func (c *Cluster) start(ctx context.Context, o cluster.Options) (err error) {
	if c.attr, err = cluster.Credential("nobody", "postgres"); err != nil {
		return err
	}
	if c.record, err = cluster.NewRecord(fmt.Sprintf("postgres:%d", o.Nodes)); err != nil {
		return err
	}
	if err = c.makeFolders(o); err != nil {
		return err
	}
	if c.network, err = cluster.NewNetwork(ctx, o.Nodes, o.Loopback); err != nil {
		return err
	}
	for ; c.hosts < o.Nodes; c.hosts++ {
		n, err := c.newNode(ctx, c.hosts, c.network.Host(c.hosts))
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.nodes = append(c.nodes, n)
		c.mu.Unlock()
	}
	if err = c.startAll(ctx); err != nil {
		return err
	}
	c.tasks.Go(c.supervise)
	if err = c.Whole(ctx); err != nil {
		return err
	}
	return c.record.SetURL(c.URL())
}

func (c *Cluster) makeFolders(o cluster.Options) (err error) {
	if o.Dir == "" {
		c.temporary = true
		c.dir, err = c.record.TempFolder(temporary(o.InMemory))
	} else if c.dir, err = filepath.Abs(o.Dir); err == nil {
		err = os.MkdirAll(c.dir, 0o755)
	}
	if err != nil {
		return err
	}
	c.socketDir = c.dir
	if len(filepath.Join(c.dir, "n00")) > maxSocketPath {
		if c.socketDir, err = c.record.TempFolder(os.TempDir()); err != nil {
			return err
		}
	}
	return enterable(filepath.Join(c.dir, "n0"), c.attr)
}

// temporary returns the folder for temporary folders.
func temporary(inMemory bool) string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); inMemory && err == nil && info.IsDir() {
		return shm
	}
	return os.TempDir()
}

// startAll makes the data of all nodes from those of the first and starts them.
func (c *Cluster) startAll(ctx context.Context) error {
	first := c.nodes[0]
	c.primary = first
	if err := initialize(ctx, c.programs.initdb, first.Dir(), c.attr); err != nil {
		return err
	}
	return errors.Join(
		c.each(func(n *node) error {
			if n == first {
				return nil
			}
			if out, err := exec.CommandContext(ctx, "cp", "-a", first.Dir(), n.Dir()).CombinedOutput(); err != nil {
				return fmt.Errorf("copy the first data to %s: %w: %s", n.Name(), err, lastLines(out))
			}
			return nil
		}),
		c.each(func(n *node) error {
			c.attend(n)
			if n == first {
				return n.lead(ctx)
			}
			return n.follow(ctx)
		}))
}

// each does something to all nodes at once.
func (c *Cluster) each(do func(*node) error) error {
	nodes := c.list()
	errs := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() { errs[i] = do(n) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// attend begins to watch the health of a node.
func (c *Cluster) attend(n *node) {
	c.tasks.Go(func() { n.health.watch(n.life, n.Running) })
}

// hbaText trusts the cluster's own network, in which there is nobody else.
func (c *Cluster) hbaText() []byte {
	from := "samenet"
	if c.network.Loopback() != "" {
		from = "127.0.0.1/32"
	}
	var text strings.Builder
	for _, database := range []string{"all", "replication"} {
		fmt.Fprintf(&text, "local %s all trust\nhost %s all %s trust\n", database, database, from)
	}
	return []byte(text.String())
}

// give makes a file or folder the servers' user's own.
func (c *Cluster) give(path string) error {
	if c.attr == nil {
		return nil
	}
	return os.Chown(path, int(c.attr.Uid), int(c.attr.Gid))
}

// list returns the nodes that belong to the cluster now.
func (c *Cluster) list() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// node returns the node of a number.
func (c *Cluster) node(number int) (*node, error) {
	for _, n := range c.list() {
		if n.Number() == number {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the PostgreSQL cluster has no node %d", number)
}

// Nodes are the nodes that belong to the cluster now, dead ones included. Each
// has also a method Fenced() bool.
func (c *Cluster) Nodes() []cluster.Node {
	var nodes []cluster.Node
	for _, n := range c.list() {
		nodes = append(nodes, n)
	}
	return nodes
}

// URL names all nodes; a client that connects to it finds the primary. One that
// was opened before a node was added does not know that node.
func (c *Cluster) URL() string {
	var addresses []string
	for _, n := range c.list() {
		addresses = append(addresses, n.address())
	}
	u := url.URL{
		Scheme: "postgres", User: url.User(Superuser), Host: strings.Join(addresses, ","), Path: "/" + Superuser,
		RawQuery: "target_session_attrs=read-write&connect_timeout=1&sslmode=disable",
	}
	return u.String()
}

// NodeURL is the address of node i alone; empty if there is none.
func (c *Cluster) NodeURL(i int) string {
	n, err := c.node(i)
	if err != nil {
		return ""
	}
	return n.url()
}

// Network joins the nodes.
func (c *Cluster) Network() *cluster.Network { return c.network }

// Event is something that the supervisor saw or did.
type Event struct {
	Time time.Time
	Text string
}

// Events are all events so far, the oldest first.
func (c *Cluster) Events() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// OnEvent has f called with every event from here on, one at a time and in
// order, in place of an f that was given before. f must return at once and must
// not call the cluster.
func (c *Cluster) OnEvent(f func(Event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener = f
}

// note records an event, unless it is the last one again.
func (c *Cluster) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := Event{Time: time.Now(), Text: fmt.Sprintf(format, args...)}
	if last := len(c.events) - 1; last >= 0 && c.events[last].Text == e.Text {
		return
	}
	c.events = append(c.events, e)
	if c.listener != nil {
		c.listener(e)
	}
}

// Stop ends all nodes with SIGKILL and removes all that StartCluster made, the
// nodes' folders in a folder of the caller's included. It may be called again.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.retire(errStopped) // all that waits for a node gives up
		c.tasks.Wait()
		errs := []error{c.each((*node).erase)}
		if c.network != nil {
			errs = append(errs, c.network.Close())
		}
		if c.socketDir != c.dir {
			errs = append(errs, os.RemoveAll(c.socketDir))
		}
		if c.temporary && c.dir != "" {
			errs = append(errs, os.RemoveAll(c.dir))
		}
		err := errors.Join(errs...)
		if err == nil && c.record != nil {
			err = c.record.Close()
		}
		if err != nil {
			c.stopErr = fmt.Errorf("stop the PostgreSQL cluster: %w", err)
		}
	})
	return c.stopErr
}

// erase ends the node for good and removes what was made for it. What is being
// done to it ends by itself, for its life is over.
func (n *node) erase() error {
	if err := n.busy.acquire(context.Background()); err != nil {
		return err
	}
	defer n.busy.release()
	n.orders.close()
	n.waiter.close()
	return errors.Join(n.Server.Close(), releaseMemory(n.Dir()), os.RemoveAll(n.folder), os.RemoveAll(n.sockets))
}
