package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// standardPort is PostgreSQL's.
const standardPort = 5432

const (
	// orderLimit bounds one question to a server by its Unix socket.
	orderLimit = 500 * time.Millisecond
	// patience bounds a fast shutdown, which ends all sessions, writes a
	// checkpoint, and sends the rest of the log to the standbys.
	patience = 10 * time.Second
)

// node is one server of a Cluster: a place with a folder and a port, which stay
// when its data are taken away.
type node struct {
	*cluster.Server
	cluster *Cluster
	folder  string // with the configuration, the log, the socket, and the data below it
	sockets string // the folder of the Unix socket
	port    int

	orders *session // by the Unix socket, as somebody on the machine would: no fault of the network is in its way
	waiter *session // the same, whose commits wait for the standby
	health *health  // over the network, as a client

	life   context.Context // ends when the node is removed or the cluster is stopped
	retire context.CancelCauseFunc
	busy   lock // held while the server is started, rejoined or replaced

	state // guarded by cluster.mu
}

// state is what the cluster knows and wants of a node.
type state struct {
	held    hold                    // who ended or paused it on purpose, so that the supervisor leaves it alone
	cancel  context.CancelCauseFunc // ends what is being done to it; nil if nothing is
	fenced  bool                    // the supervisor ended it, and it has not come back since
	stale   bool                    // its data may hold what the primary never had: they must not be used again
	cut     bool                    // its receiver was stopped by StopReceiver
	names   string                  // its synchronous_standby_names
	source  *node                   // whom its configuration names as the primary; nil: nobody
	untold  bool                    // its server has not been told yet
	retryAt time.Time               // when the next try may be made to bring it back

	// What the primary said of it as a standby.
	streamed *node     // the primary to which it was connected last
	replayed int64     // the position up to which it has replayed, in bytes of the log
	advanced time.Time // when it last moved or had everything
	parted   time.Time // when it was first seen without a connection; zero while it has one
}

// hold says who holds a node.
type hold string

const (
	unheld  hold = ""
	killed  hold = "killed"
	stopped hold = "stopped"
	paused  hold = "paused"
	joining hold = "joining"
)

var (
	errStopped = errors.New("the cluster is stopped")
	errRemoved = errors.New("the node was removed from the cluster")
	errHurt    = errors.New("the node was killed, stopped or replaced meanwhile")
)

// newNode makes the folder of a node and describes its server. The node is not
// in the cluster yet.
func (c *Cluster) newNode(ctx context.Context, number int, host *cluster.Host) (*node, error) {
	n := &node{cluster: c, busy: newLock()}
	n.life, n.retire = context.WithCancelCause(c.life)
	name := "n" + strconv.Itoa(number)
	n.folder = filepath.Join(c.dir, name)
	n.sockets = filepath.Join(c.socketDir, name)
	for _, dir := range slices.Compact([]string{n.folder, n.sockets}) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make the folder of %s, take another folder if it is there: %w", name, err)
		}
		if err := c.give(dir); err != nil {
			return nil, err
		}
	}
	err := os.WriteFile(n.hba(), c.hbaText(), 0o644)
	if err != nil {
		return nil, fmt.Errorf("say who may connect to %s: %w", name, err)
	}
	if n.port, err = c.freePort(ctx, host); err != nil {
		return nil, err
	}
	n.Server = cluster.NewServer(number, host, filepath.Join(n.folder, "data"), filepath.Join(n.folder, "server.log"), cluster.Program{
		Command: n.command, Ready: n.ready, Join: n.join,
		// SIGQUIT is the immediate shutdown, in which the postmaster takes its
		// children along; SIGINT is the fast one.
		Death: syscall.SIGQUIT, Shutdown: syscall.SIGINT, Patience: patience,
		Layer: c.layer, Clock: c.clock, Now: n.now,
	})
	if n.orders, err = newSession(n.sockets, n.port, "local", orderLimit); err != nil {
		return nil, err
	}
	if n.waiter, err = newSession(n.sockets, n.port, "remote_apply", orderLimit); err != nil {
		return nil, err
	}
	over, err := newSession(host.Addr().String(), n.port, "local", c.params.patience)
	if err != nil {
		return nil, err
	}
	n.health = &health{session: over}
	n.names = c.alone()
	return n, nil
}

// freePort returns a port of the host that no node has.
func (c *Cluster) freePort(ctx context.Context, host *cluster.Host) (int, error) {
	for {
		port, err := host.Port(ctx, standardPort)
		if err != nil {
			return 0, err
		}
		taken := false
		for _, n := range c.list() {
			taken = taken || n.port == port && n.Host().Addr() == host.Addr()
		}
		if !taken {
			return port, nil
		}
	}
}

func (n *node) address() string {
	return net.JoinHostPort(n.Host().Addr().String(), strconv.Itoa(n.port))
}

func (n *node) url() string {
	u := url.URL{
		Scheme: "postgres", User: url.User(Superuser), Host: n.address(), Path: "/" + Superuser,
		RawQuery: "sslmode=disable&connect_timeout=1",
	}
	return u.String()
}

// command makes the command that starts the server. Its configuration is beside
// the data and not in them, so that no copy of the data and no loss of what was
// not synced changes a role.
func (n *node) command(ctx context.Context) (*exec.Cmd, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	cmd := exec.Command(n.cluster.programs.postgres, "-D", n.Dir(),
		"-c", "config_file="+n.conf(), "-c", "hba_file="+n.hba())
	cmd.Dir = n.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: n.cluster.attr}
	return cmd, nil
}

// now is the time that the server says it is.
func (n *node) now(ctx context.Context) (time.Time, error) {
	rows, err := n.orders.ask(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
	if err != nil {
		return time.Time{}, err
	}
	micros, err := strconv.ParseInt(rows[0][0], 10, 64)
	return time.UnixMicro(micros), err
}

// ready returns when the server answers queries.
func (n *node) ready(ctx context.Context) error {
	for {
		_, err := n.orders.ask(ctx, "SELECT")
		if err == nil {
			n.health.reset()
			return nil
		}
		if waited := pause(ctx, 10*time.Millisecond); waited != nil {
			return errors.Join(waited, err)
		}
	}
}

func (n *node) conf() string { return filepath.Join(n.folder, "postgresql.conf") }

// hba is the file that says who may connect.
func (n *node) hba() string { return filepath.Join(n.folder, "pg_hba.conf") }

// configure writes the server's configuration as names and source say. A running
// server has to be told to read it.
func (n *node) configure() error {
	c := n.cluster
	c.mu.Lock()
	names, source := n.names, n.source
	c.mu.Unlock()
	all := map[string]string{
		"listen_addresses":             n.Host().Addr().String(),
		"port":                         strconv.Itoa(n.port),
		"unix_socket_directories":      n.sockets,
		"cluster_name":                 n.Name(),
		"hot_standby":                  "on",
		"max_connections":              "500",
		"dynamic_shared_memory_type":   "mmap", // files of the data folder, which a kill does not leave elsewhere
		"hot_standby_feedback":         "on",   // a look at a standby shall not stop its replay
		"wal_receiver_status_interval": "1s",
		"wal_receiver_timeout":         "3s",
		"wal_sender_timeout":           "3s",
		"wal_retrieve_retry_interval":  "100ms",
		"wal_keep_size":                "1GB",
		"synchronous_commit":           "local",
		"synchronous_standby_names":    names,
		"primary_conninfo":             "",
	}
	if c.params.synchronous {
		all["synchronous_commit"] = "remote_apply"
	}
	if source != nil {
		all["primary_conninfo"] = source.conninfo(n.Name())
	}
	maps.Copy(all, c.params.settings)
	text := append([]byte("include "+quoted(filepath.Join(n.Dir(), "postgresql.conf"))+"\n"), settingsText(all)...)
	draft := n.conf() + ".new"
	if err := os.WriteFile(draft, text, 0o644); err != nil {
		return fmt.Errorf("configure %s: %w", n.Name(), err)
	}
	if err := os.Rename(draft, n.conf()); err != nil {
		return fmt.Errorf("configure %s: %w", n.Name(), err)
	}
	return nil
}

// reconfigure is configure for a running server.
func (n *node) reconfigure(ctx context.Context) error {
	if err := n.configure(); err != nil {
		return err
	}
	if _, err := n.orders.ask(ctx, "SELECT pg_reload_conf()"); err != nil {
		return fmt.Errorf("have %s read its configuration again: %w", n.Name(), err)
	}
	return nil
}

// conninfo is how a standby of this name reaches the node.
func (n *node) conninfo(standby string) string {
	return fmt.Sprintf("host=%s port=%d user=%s application_name=%s connect_timeout=2 sslmode=disable gssencmode=disable",
		n.Host().Addr(), n.port, Superuser, standby)
}

// signalFile is there in the data of a server that starts as a standby.
const signalFile = "standby.signal"

// markStandby makes the server start as a standby. The file is synced: it has to
// be there when what was not is lost.
func (n *node) markStandby() error {
	path := filepath.Join(n.Dir(), signalFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close(), n.cluster.give(path), syncFolder(n.Dir()))
	}
	if err != nil {
		return fmt.Errorf("make %s a standby: %w", n.Name(), err)
	}
	return nil
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// join fills the empty data folder with a copy of the primary's data, made by
// pg_basebackup from the node's own host, for a standby.
func (n *node) join(ctx context.Context) error {
	c := n.cluster
	p := c.leading()
	if p == n {
		return fmt.Errorf("%s leads: it cannot take its data from itself", n.Name())
	}
	if err := os.Mkdir(n.Dir(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := c.give(n.Dir()); err != nil {
		return err
	}
	args := []string{"-D", n.Dir(), "-d", p.conninfo("backup_for_" + n.Name()), "-X", "stream", "-c", "fast", "--no-sync"}
	if _, err := n.run(ctx, c.programs.basebackup, args...); err != nil {
		return fmt.Errorf("copy the data of %s: %w", p.Name(), err)
	}
	if err := n.markStandby(); err != nil {
		return err
	}
	c.mu.Lock()
	if c.primary != p {
		c.mu.Unlock()
		return fmt.Errorf("%s does not lead any more, so the copy of its data is of no use", p.Name())
	}
	n.stale, n.fenced, n.names = false, false, c.alone()
	c.aim(n)
	n.untold = false // the server reads it when it starts
	c.mu.Unlock()
	return n.configure()
}

// run runs a program on the node's host to its end and returns its output.
func (n *node) run(ctx context.Context, program string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Dir = n.folder
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")} // no variable of libpq's
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: n.cluster.attr}
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := n.Host().Start(cmd, syscall.SIGKILL)
	if err != nil {
		return "", err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), p.Kill())
	}
	if err := p.Err(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(program), err, lastLines(out.Bytes()))
	}
	return out.String(), nil
}
