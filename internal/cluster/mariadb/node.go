package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// patience bounds the shutdown in good order, which writes all dirty pages.
const patience = 30 * time.Second

// node is a server of the cluster: its folder and addresses stay, its process
// comes and goes.
type node struct {
	*cluster.Server
	cluster         *Cluster
	address         string // host:port where it takes clients
	group, ist, sst string // where it takes the other nodes: messages, missing transactions, whole data
	scratch         string // its temporary tables
	db              *sql.DB

	// Guarded by the cluster's mu.
	starting int       // calls that start it now
	known    *position // of its data while it is down or starting; nil if nobody has looked
}

// newNode makes the folders of a node and adds it to the list.
func (c *Cluster) newNode(ctx context.Context, number int, clock bool) (err error) {
	host := c.network.Host(number)
	n := &node{cluster: c}
	for _, use := range []struct {
		port    int
		address *string
	}{{3306, &n.address}, {4567, &n.group}, {4568, &n.ist}, {4444, &n.sst}} {
		if *use.address, err = c.endpoint(ctx, n, host, use.port); err != nil {
			return err
		}
	}
	dir := filepath.Join(c.dir, fmt.Sprintf("n%d", number))
	n.scratch = dir + ".tmp"
	program := cluster.Program{
		Command: n.command, Ready: n.ready, Now: n.now, Clock: clock,
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, Patience: patience,
	}
	if c.galera() {
		program.Join = func(context.Context) error { return nil } // a server without data asks the others for them
	}
	n.Server = cluster.NewServer(number, host, dir, dir+".log", program)
	if n.db, err = open(n.address, askLimit); err != nil {
		return err
	}
	for _, folder := range []string{dir, n.scratch} {
		if err = os.Mkdir(folder, 0o700); err != nil {
			return errors.Join(fmt.Errorf("make the folder of %s, take another folder if it is there: %w", n.Name(), err), n.db.Close())
		}
		if c.attr != nil {
			if err = os.Chown(folder, int(c.attr.Uid), int(c.attr.Gid)); err != nil {
				return errors.Join(err, n.db.Close(), os.RemoveAll(dir), os.RemoveAll(n.scratch))
			}
		}
	}
	c.nodes = append(c.nodes, n)
	return nil
}

// endpoint returns an address of the host that no node has.
func (c *Cluster) endpoint(ctx context.Context, own *node, host *cluster.Host, standard int) (string, error) {
	for {
		port, err := host.Port(ctx, standard)
		if err != nil {
			return "", err
		}
		address := netip.AddrPortFrom(host.Addr(), uint16(port)).String()
		if !slices.ContainsFunc(append(slices.Clone(c.nodes), own), func(n *node) bool {
			return n.address == address || n.group == address || n.ist == address || n.sst == address
		}) {
			return address, nil
		}
	}
}

// newCommand makes a command that runs as the servers' user.
func newCommand(ctx context.Context, path string, attr *syscall.Credential, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: attr}
	return cmd
}

// server makes the command of the server with further flags.
func (n *node) server(more ...string) *exec.Cmd {
	cmd := newCommand(context.Background(), n.cluster.programs.server, n.cluster.attr, append(n.flags(), more...)...)
	cmd.Dir = n.Dir()
	cmd.Env = append(os.Environ(), "TMPDIR="+n.scratch) // for the scripts of Galera
	return cmd
}

// flags are those that the server has at every start, the caller's after ours.
func (n *node) flags() []string {
	at := netip.MustParseAddrPort(n.address)
	flags := []string{
		"--no-defaults",
		"--datadir=" + n.Dir(),
		"--tmpdir=" + n.scratch,
		"--bind-address=" + at.Addr().String(),
		"--port=" + strconv.Itoa(int(at.Port())),
		"--socket=server.sock", // below datadir, where the server goes: a long path would not fit into a socket's name
		"--pid-file=server.pid",
		"--skip-name-resolve",
		"--max-connect-errors=4294967295", // faults break connections, and 100 of them would lock this machine out
		"--max-connections=500",
	}
	if n.cluster.galera() {
		flags = append(flags, n.galeraFlags()...)
	}
	return append(flags, n.cluster.params.flags...)
}

// command makes the command that starts the server.
func (n *node) command(ctx context.Context) (*exec.Cmd, error) {
	if !n.cluster.galera() {
		return n.server(), nil
	}
	more, err := n.role(ctx)
	if err != nil {
		return nil, err
	}
	return n.server(more...), nil
}

// ready returns when the server answers and, with Galera, is synchronized.
func (n *node) ready(ctx context.Context) error {
	looks := 0
	return persist(ctx, func() error {
		if !n.cluster.galera() {
			return n.ping(ctx)
		}
		s, err := n.status(ctx)
		if err == nil {
			err = s.synced()
		}
		if looks++; err != nil && looks%reformEvery == 0 {
			err = errors.Join(err, n.cluster.reform(ctx, n))
		}
		return err
	})
}

const pollEvery = 50 * time.Millisecond

// persist calls do until it succeeds; when ctx ends the error says why and what
// do said before that.
func persist(ctx context.Context, do func() error) error {
	var last error
	for {
		err := do()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", context.Cause(ctx), last)
		case <-time.After(pollEvery):
		}
	}
}

// Restart starts the node on its own data, unless it runs, and returns when it
// is as Nodes says.
func (n *node) Restart(ctx context.Context) error {
	ctx, done := n.begin(ctx)
	defer done()
	return n.Server.Restart(ctx)
}

// Replace kills the node, takes its data away, and lets it get those of another
// node. The data go when another node has them for sure, not before.
func (n *node) Replace(ctx context.Context) error {
	ctx, done := n.begin(ctx)
	defer done()
	if !n.cluster.galera() {
		return n.Server.Replace(ctx)
	}
	if err := acquire(ctx, n.cluster.changing); err != nil {
		return fmt.Errorf("replace %s: %w", n.Name(), err)
	}
	defer release(n.cluster.changing)
	if err := persist(ctx, func() error { return n.expendable(ctx) }); err != nil {
		return fmt.Errorf("replace %s: %w", n.Name(), err)
	}
	n.cluster.mu.Lock()
	n.known = &position{} // nobody shall look into a folder that is being emptied
	n.cluster.mu.Unlock()
	return n.Server.Replace(ctx)
}

// expendable is nil when another node is synchronized in a primary component.
func (n *node) expendable(ctx context.Context) error {
	for _, m := range n.cluster.nodes {
		if m == n || !m.Running() || m.Paused() {
			continue
		}
		if s, err := m.status(ctx); err == nil && s.synced() == nil {
			return nil
		}
	}
	return errors.New("no other node is synchronized, and one is needed to give it the data again")
}

// begin returns a context that ends also when the cluster is stopped, for a call
// that may start the node; done ends the call.
func (n *node) begin(ctx context.Context) (_ context.Context, done func()) {
	c := n.cluster
	c.mu.Lock()
	n.starting++
	c.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	give := func() { cancel(context.Cause(c.life)) }
	if c.life.Err() != nil {
		give()
	}
	release := context.AfterFunc(c.life, give)
	return ctx, func() {
		release()
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		if n.starting--; n.starting > 0 {
			return
		}
		n.known = nil
		if c.founder == n {
			c.founder = nil
		}
	}
}

// acquire takes a lock unless ctx ends first.
func acquire(ctx context.Context, lock chan struct{}) error {
	select {
	case lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func release(lock chan struct{}) { <-lock }

// erase ends the node for good and removes what was made for it.
func (n *node) erase() error {
	return errors.Join(n.Close(), n.db.Close(), os.RemoveAll(n.Dir()), os.RemoveAll(n.scratch), os.RemoveAll(n.Log()))
}
