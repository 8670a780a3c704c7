package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

const (
	// orderLimit bounds one question to a server by its Unix socket.
	orderLimit = 500 * time.Millisecond
	// shutdownLimit bounds a fast shutdown, which ends all sessions, writes a
	// checkpoint, and sends the rest of the log to the standbys.
	shutdownLimit = 10 * time.Second
)

// node is one server of a Cluster: a place with a folder and a port, which stay
// when its data are taken away.
type node struct {
	*cluster.SupervisedNode
	cluster  *Cluster
	folder   string // with the configuration, the log, the socket, and the data below it
	sockets  string // the folder of the Unix socket
	endpoint netip.AddrPort

	orders *Session // by the Unix socket, as somebody on the machine would: no fault of the network is in its way
	waiter *Session // the same, whose commits wait for the standby
	over   *Session // the network, as a client

	// What the cluster knows and wants of it, guarded by the cluster's Mu.
	stale     bool  // its data may hold what the primary never had: they must not be used again
	cut       bool  // its receiver was stopped on purpose
	following *node // whom its server is configured to follow; nil: nobody

	// What the primary said of it as a standby, guarded likewise.
	streamed *node     // the primary that it followed last; nil once it has led
	replayed int64     // the position up to which it has replayed, in bytes of the log
	advanced time.Time // when it last moved or had everything
	parted   time.Time // when it was first seen not to follow; zero while it follows
}

// newNode makes the folder of a node and describes its server. One that comes later
// has no data yet.
func (c *Cluster) newNode(ctx context.Context, number int, host *cluster.Host) (_ *node, err error) {
	n := &node{cluster: c, folder: c.Folder(number)}
	if err = c.TakeEndpoints(ctx, host, map[int]*netip.AddrPort{5432: &n.endpoint}); err != nil {
		return nil, err
	}
	if err = c.MakeFolder(n.folder, number, 0o755); err != nil {
		return nil, err
	}
	if err = n.describe(number, host); err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.folder))
	}
	return n, nil
}

// describe says how the node is started and asked.
func (n *node) describe(number int, host *cluster.Host) (err error) {
	c := n.cluster
	if n.sockets, err = c.sockets(number); err != nil {
		return err
	}
	if err = c.WriteFile(n.hba(), strings.Join(Trust(c.Network()), "\n")+"\n"); err != nil {
		return fmt.Errorf("say who may connect to n%d: %w", number, err)
	}
	n.SupervisedNode = c.NewSupervisedNode(n, c.NewServer(number, host, filepath.Join(n.folder, "data"), filepath.Join(n.folder, "server.log"), cluster.Program{
		Command: n.command, Ready: n.ready, Join: n.join,
		// SIGQUIT is the immediate shutdown, in which the postmaster takes its
		// children along; SIGINT is the fast one.
		Death: syscall.SIGQUIT, Shutdown: syscall.SIGINT, ShutdownLimit: shutdownLimit,
		FaultFS: c.Options.FaultFS, Clock: c.Options.Clock, Now: n.now,
	}))
	n.stale = n.Held == cluster.Joining
	var errs [3]error
	port := n.endpoint.Port()
	n.orders, errs[0] = NewSession(n.sockets, port, "local", orderLimit)
	n.waiter, errs[1] = NewSession(n.sockets, port, "remote_apply", orderLimit)
	n.over, errs[2] = NewSession(host.Addr().String(), port, "local", c.params.timeout)
	return errors.Join(errs[:]...)
}

func (n *node) address() string { return n.endpoint.String() }

func (n *node) port() string { return strconv.Itoa(int(n.endpoint.Port())) }

// URL is the address of the node alone.
func (n *node) URL() string { return NodeURL(n.address()) }

// command makes the command that starts the server. Its configuration is beside
// the data and not in them, so that no copy of the data and no loss of what was
// not synced changes a role.
func (n *node) command(context.Context) (*exec.Cmd, error) {
	c := n.cluster
	return c.User.Command(context.Background(), n.folder, c.programs["postgres"], "-D", n.Dir(),
		"-c", "config_file="+n.conf(), "-c", "hba_file="+n.hba()), nil
}

func (n *node) now(ctx context.Context) (time.Time, error) {
	return One[time.Time](ctx, n.orders, "SELECT clock_timestamp()")
}

// ready returns when the server answers queries.
func (n *node) ready(ctx context.Context) error {
	err := cluster.Retry(ctx, func() error { return n.orders.Ask(ctx, "SELECT") })
	if err == nil {
		n.Answered()
	}
	return err
}

// join fills the empty data folder with a copy of the primary's data, made by
// pg_basebackup from the node's own host, for a standby.
func (n *node) join(ctx context.Context) error {
	c := n.cluster
	p := c.Leading()
	if p == n {
		return fmt.Errorf("%s leads: it cannot take its data from itself", n.Name())
	}
	if err := os.Mkdir(n.Dir(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := c.User.Give(n.Dir()); err != nil {
		return err
	}
	args := []string{"-D", n.Dir(), "-d", p.conninfo("backup_for_" + n.Name()), "-X", "stream", "-c", "fast", "--no-sync"}
	if _, err := n.run(ctx, "pg_basebackup", args...); err != nil {
		return fmt.Errorf("copy the data of %s: %w", p.Name(), err)
	}
	if err := n.markStandby(); err != nil {
		return err
	}
	c.Mu.Lock()
	if c.Primary != p {
		c.Mu.Unlock()
		return fmt.Errorf("%s does not lead any more, so the copy of its data is of no use", p.Name())
	}
	n.stale = false
	c.Mu.Unlock()
	return n.configure()
}

// run runs a program on the node's host to its end and returns its output.
func (n *node) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := n.cluster.User.Command(context.Background(), n.folder, n.cluster.programs[program], args...)
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")} // no variable of libpq's
	return n.Host().Run(ctx, cmd)
}

// StartReplica starts the node, unless it runs, on its own data as a standby, and one that
// was fenced on a new copy of the primary's.
func (n *node) StartReplica(ctx context.Context) (done bool, err error) {
	n.cluster.Mu.Lock()
	stale := n.stale
	n.cluster.Mu.Unlock()
	switch {
	case stale:
		return false, n.rejoin(ctx)
	case n.Running():
		return true, nil
	default:
		return false, n.follow(ctx)
	}
}

// StartPrimary starts the primary on its own data, unless it runs; the roles are held.
func (n *node) StartPrimary(ctx context.Context) error {
	if n.Running() {
		return nil
	}
	if err := n.configure(); err != nil {
		return err
	}
	return n.Server.Restart(ctx)
}

// follow starts the node on its own data as a standby of the present primary,
// which need not run.
func (n *node) follow(ctx context.Context) error {
	err := n.markStandby()
	if err == nil {
		err = n.configure()
	}
	if err == nil {
		err = n.Server.Restart(ctx)
	}
	return err
}

// rejoin takes the node's data away and gives it a copy of the primary's, as
// soon as there is a primary that answers; Busy is held. That the data go is
// noted first, so that nobody relies on them.
func (n *node) rejoin(ctx context.Context) error {
	c := n.cluster
	if err := c.WithRoles(ctx, func() error { return c.discard(ctx, n) }); err != nil {
		return err
	}
	err := cluster.RetryEvery(ctx, 200*time.Millisecond, func() error {
		if err := c.AwaitPrimary(ctx, n); err != nil {
			return err
		}
		if err := errors.Join(n.Server.Kill(ctx), ReleaseMemory(n.Dir())); err != nil {
			return err
		}
		return n.Server.Replace(ctx)
	})
	if err == nil {
		c.Note("%s has a new copy of the data of %s and follows it", n.Name(), c.Leading().Name())
	}
	return err
}

// Replace kills the node, takes its data away, and lets it join again with a
// copy of the primary's. A node that leads is replaced when the supervisor has
// promoted another; one whose data nobody else has is not: that is an error, and
// it comes back on its data.
func (n *node) Replace(ctx context.Context) error {
	c := n.cluster
	return c.ReplaceNode(ctx, n, func(context.Context) error { return c.expendable(n) }, n.rejoin)
}

// signalFile is there in the data of a server that starts as a standby.
const signalFile = "standby.signal"

// markStandby makes the server start as a standby. The file is synced: it has to
// be there when what was not is lost.
func (n *node) markStandby() error {
	path := filepath.Join(n.Dir(), signalFile)
	err := os.WriteFile(path, nil, 0o600)
	if err == nil {
		err = errors.Join(n.cluster.User.Give(path), syncPath(path), syncPath(n.Dir()))
	}
	if err != nil {
		return fmt.Errorf("make %s a standby: %w", n.Name(), err)
	}
	return nil
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
