package mysql

import (
	"context"
	"database/sql"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

// shutdownLimit bounds a clean shutdown, which writes all dirty pages.
const shutdownLimit = 30 * time.Second

// node is a server of the cluster. Its folder and addresses stay; its process changes.
type node struct {
	*host.Server
	cluster         *Cluster
	address         netip.AddrPort // for clients
	group, ist, sst netip.AddrPort // for other nodes: messages, missing transactions, all data
	scratch         string         // folder of temporary tables
	db              *sql.DB

	// Guarded by the cluster's Mu.
	starting int       // number of calls that are starting it
	known    *position // position of its data while it is down or starting; nil if not known
}

// newNode describes a node.
func (c *Cluster) newNode(number int, _ *host.Host) (*node, cluster.Design) {
	n := &node{cluster: c, scratch: c.Folder(number) + ".tmp"}
	program := host.Program{
		Command: n.command, Ready: n.ready, Now: n.now, Clock: true, FaultFS: true,
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit,
	}
	if c.galera() {
		program.Join = func(context.Context) error { return nil } // an empty server asks the others for the data
	}
	return n, cluster.Design{
		Server: &n.Server, Program: program, Folders: []string{c.Folder(number), n.scratch},
		Expendable: n.expendable, Leave: n.release,
		Ports: map[int]*netip.AddrPort{3306: &n.address, 4567: &n.group, 4568: &n.ist, 4444: &n.sst},
		Make: func() (err error) {
			n.db, err = open(n.address.String(), askLimit)
			return err
		},
	}
}

// server returns the command of the server with further flags.
func (n *node) server(more ...string) *exec.Cmd {
	c := n.cluster
	cmd := c.User.Command(context.Background(), n.Dir(), c.programs.server, append(n.flags(), more...)...)
	cmd.Env = c.programs.environment(n.scratch)
	return cmd
}

// flags returns the flags of every start; the user's flags come last.
func (n *node) flags() []string {
	flags := usualFlags(n.Dir(), n.scratch, n.address, &n.cluster.Options, n.cluster.programs)
	if n.cluster.galera() {
		flags = append(flags, n.galeraFlags()...)
	}
	return append(flags, n.cluster.params.flags...)
}

// usualFlags returns the flags of every server.
func usualFlags(dir, scratch string, address netip.AddrPort, o *cluster.Options, programs programs) []string {
	return append([]string{
		"--no-defaults", "--datadir=" + dir, "--tmpdir=" + scratch,
		"--bind-address=" + address.Addr().String(), "--port=" + strconv.Itoa(int(address.Port())),
		"--socket=server.sock", // below datadir, because a socket's path must be short
		"--pid-file=server.pid",
		"--skip-name-resolve",
		"--max-connect-errors=4294967295", // faults break connections, and 100 of them would lock this machine out
		"--max-connections=" + strconv.Itoa(o.MaxConnections(500)),
	}, programs.basedir()...)
}

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

// ready waits until the server answers and, with Galera, is synchronized. A server that leaves its group meanwhile,
// or that the group does not take in, must be started again.
func (n *node) ready(ctx context.Context) error {
	if !n.cluster.galera() {
		return retry(ctx, func() error { return n.ping(ctx) })
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	looks, left, outside := 0, 0, 0
	return retry(ctx, func() error {
		s, err := n.status(ctx)
		if left++; err != nil || s.connected {
			left = 0
		}
		if left == reformEvery {
			giveUp(host.ErrStartAgain)
		}
		if err == nil {
			err = s.synced()
		}
		if looks++; err != nil && looks%reformEvery == 0 {
			err = errors.Join(err, n.cluster.reform(ctx))
			if outside++; !n.shutOut(ctx) {
				outside = 0
			}
			if outside == shutOutLimit {
				giveUp(host.ErrStartAgain)
			}
		}
		return err
	})
}

// shutOutLimit is the number of checks in a row after which a node outside of the primary component is started again.
// There is a check after every reformEvery looks. Nodes that joined while the component formed can forget each other's
// addresses, and then never connect.
const shutOutLimit = 15

// shutOut reports whether another node is in a primary component that does not have this node as a member.
func (n *node) shutOut(ctx context.Context) bool {
	for _, m := range n.cluster.Others(n) {
		if !m.Awake() {
			continue
		}
		if s, err := m.status(ctx); err == nil && s.primary() {
			return !slices.Contains(strings.Split(s.members, ","), n.address.String())
		}
	}
	return false
}

// pollEvery is the interval of queries during a wait: each has its own connection.
const pollEvery = 50 * time.Millisecond

func retry(ctx context.Context, try func() error) error {
	return wait.RetryEvery(ctx, pollEvery, try)
}

// Restart starts the node on its own data, unless it runs, and returns when it is synchronized. A running node that
// has left its group is restarted. Then the other nodes that have left it are restarted too.
func (n *node) Restart(ctx context.Context) error {
	err := n.restart(ctx)
	if err == nil && n.cluster.galera() {
		n.cluster.bringBack(ctx)
	}
	return err
}

func (n *node) restart(ctx context.Context) error {
	ctx, done := n.begin(ctx)
	defer done()
	if err := n.Renew(ctx, func() bool { return n.hasLeft(ctx) }); err != nil {
		return err
	}
	return n.Server.Restart(ctx)
}

// Replace kills the node, removes its data, and lets it copy another node's data.
func (n *node) Replace(ctx context.Context) error {
	ctx, done := n.begin(ctx)
	defer done()
	return n.Server.Replace(ctx)
}

// release notes that the folder will be emptied, so nobody may look into it.
func (n *node) release(context.Context) error {
	n.cluster.Mu.Lock()
	defer n.cluster.Mu.Unlock()
	n.known = &position{}
	return nil
}

// expendable returns nil if another node is synchronized in a primary component.
func (n *node) expendable(ctx context.Context) error {
	for _, m := range n.cluster.Others(n) {
		if !m.Awake() {
			continue
		}
		if s, err := m.status(ctx); err == nil && s.synced() == nil {
			return nil
		}
	}
	return errors.New("no other node is synchronized, so none could give it the data again")
}

// begin returns a context that also ends when the cluster is stopped, for a call that may start the node; done ends
// the call.
func (n *node) begin(ctx context.Context) (_ context.Context, done func()) {
	c := n.cluster
	c.Mu.Lock()
	n.starting++
	c.Mu.Unlock()
	ctx, cancel := n.Bound(ctx)
	return ctx, func() {
		cancel()
		n.started()
	}
}

// started ends a call that may have started the node.
func (n *node) started() {
	c := n.cluster
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if n.starting--; n.starting > 0 {
		return
	}
	n.known = nil
	if c.founder == n {
		c.founder = nil
	}
}

// Erase ends the node for good and removes all that was made for it. Nobody reads its folder meanwhile or later,
// because its life is over.
func (n *node) Erase() error {
	if err := n.cluster.forming.Acquire(context.Background()); err != nil {
		return err
	}
	defer n.cluster.forming.Release()
	return errors.Join(n.Server.Erase(), n.db.Close(), os.RemoveAll(n.scratch))
}
