package redis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

// server is a host of a Cluster; its folder and its ports stay. It has a server, a Sentinel, or both. If it has only
// a Sentinel, the Sentinel is its Server.
type server struct {
	*host.Server
	endpoint
	cluster    *Cluster
	folder     string // with the configuration, the log, and the data and the Sentinel below it
	sentinelAt endpoint
	sentinel   *host.Server

	orders, role       *session // with the server
	sentinelS, watched *session // with the Sentinel
}

// newServer describes a host and its processes.
func (c *Cluster) newServer(number int, on *host.Host) (*server, cluster.Design) {
	n := &server{cluster: c, folder: c.Folder(number)}
	d := cluster.Design{
		Server: &n.Server, Ports: map[int]*netip.AddrPort{6379: &n.endpoint.at, 26379: &n.sentinelAt.at},
		Dir: filepath.Join(n.folder, "data"), Log: filepath.Join(n.folder, "server.log"), Make: n.openSessions,
		Program: host.Program{
			Command: n.command, Ready: func(ctx context.Context) error { return n.orders.awaitPong(ctx) }, Join: n.join,
			Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit, Insist: insist, FaultFS: true,
		},
		Expendable: func(ctx context.Context) error { return c.expendable(ctx, n) },
		Leave:      func(ctx context.Context) error { return c.Depose(ctx, n) },
	}
	d.Folders = []string{n.folder, d.Dir}
	if !c.params.sentinel {
		return n, d
	}
	own := filepath.Join(n.folder, "sentinel")
	d.Folders = append(d.Folders, own)
	n.sentinel = c.NewServer(number, on, own, filepath.Join(n.folder, "sentinel.log"), host.Program{
		Command: func(context.Context) (*exec.Cmd, error) {
			return exec.Command(c.program, filepath.Join(own, "sentinel.conf"), "--sentinel"), nil
		},
		Ready: func(ctx context.Context) error { return n.sentinelS.awaitPong(ctx) },
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit,
	})
	if number >= c.data {
		n.Server, d.Server = n.sentinel, nil
	}
	return n, d
}

// openSessions describes the connections to the processes that the host has.
func (n *server) openSessions() error {
	if n.sentinel != nil {
		n.sentinelS, n.watched = newSession(n.sentinelAt.address(), askLimit), newSession(n.sentinelAt.address(), askLimit)
	}
	if !n.witness() {
		n.orders, n.role = newSession(n.address(), askLimit), newSession(n.address(), roleLimit)
	}
	return nil
}

// witness reports whether the host has a Sentinel and no data.
func (n *server) witness() bool { return n.Number() >= n.cluster.data }

// URL returns the address of the node alone, or "" if it has no data.
func (n *server) URL() string {
	if n.witness() {
		return ""
	}
	return n.endpoint.URL()
}

func (n *server) askedSentinel() *session { return n.sentinelS }

func (n *server) conf() string { return filepath.Join(n.folder, confFile) }

// configure writes the configuration of an empty node. Then the server and the Sentinels maintain it: it records
// promotions and the followed primary.
func (n *server) configure(primary *server) error {
	settings := n.cluster.params.serverSettings(n.endpoint, n.Dir(), n.cluster.Options)
	for name, value := range map[string]string{
		diskless:                   "yes",
		"repl-diskless-sync-delay": "0",
		"replica-announce-ip":      n.host(),
		"replica-announce-port":    n.port(),
	} {
		if _, given := n.cluster.params.settings[name]; !given {
			settings[name] = value
		}
	}
	if primary != n {
		settings["replicaof"] = primary.host() + " " + primary.port()
	}
	return writeConf(n.conf(), n.Name(), settings)
}

// command returns the command that starts the server in the role of its configuration. A killed primary returns as a
// primary, and the Sentinels make it a replica some seconds later.
func (n *server) command(context.Context) (*exec.Cmd, error) {
	if _, err := os.Stat(n.conf()); errors.Is(err, fs.ErrNotExist) {
		if err := n.configure(n.cluster.servers()[0]); err != nil {
			return nil, err
		}
	}
	// The changes of a move of leadership do not survive the server.
	cmd := exec.Command(n.cluster.program, n.conf(), "--replica-priority", usualPriority)
	cmd.Dir = n.folder
	return cmd, nil
}

// join makes an empty node follow the present primary.
func (n *server) join(ctx context.Context) error {
	p := n.cluster.named(ctx, (*server).askedSentinel)
	if p == nil || p == n {
		return errNoPrimary
	}
	return n.configure(p)
}

// startSentinel configures and starts the Sentinel, for a primary that has its replicas.
func (n *server) startSentinel(ctx context.Context, primary *server) error {
	c := n.cluster
	text := fmt.Sprintf(`bind %[1]s
port %[2]s
dir %[3]s
protected-mode no
sentinel announce-ip %[1]s
sentinel announce-port %[2]s
sentinel monitor %[4]s %[5]s %[6]s %[7]d
sentinel down-after-milliseconds %[4]s %[8]d
sentinel failover-timeout %[4]s %[9]d
sentinel parallel-syncs %[4]s %[10]d
`, n.sentinelAt.host(), n.sentinelAt.port(), n.sentinel.Dir(), master, primary.host(), primary.port(), c.quorum(),
		c.params.downAfter.Milliseconds(), c.params.failoverTimeout.Milliseconds(), parallelSyncs)
	if err := os.WriteFile(filepath.Join(n.sentinel.Dir(), "sentinel.conf"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("configure the Sentinel of %s: %w", n.Name(), err)
	}
	if err := n.sentinel.Restart(ctx); err != nil {
		return fmt.Errorf("start a Sentinel: %w", err)
	}
	return nil
}

// agent is the Sentinel of a node, which fails over.
type agent struct{ *host.Server }

func (a agent) Name() string { return "the Sentinel of " + a.Server.Name() }

// Steered returns why the node's clock cannot be changed.
func (*server) Steered() error { return errSteered }

// Erase ends the node for good and removes all that was made for it.
func (n *server) Erase() error {
	err := n.Server.Close()
	if n.sentinel != nil {
		err = errors.Join(err, n.sentinel.Close())
	}
	for _, s := range []*session{n.orders, n.role, n.sentinelS, n.watched} {
		if s != nil {
			s.close()
		}
	}
	return errors.Join(err, os.RemoveAll(n.folder))
}

// Retire ends all operations on the node and its Sentinel, with a cause.
func (n *server) Retire(why error) {
	n.Server.Retire(why)
	if n.sentinel != nil {
		n.sentinel.Retire(why)
	}
}

// expendable returns why a node's data must not be removed, or nil.
func (c *Cluster) expendable(ctx context.Context, n *server) error {
	if !c.params.sentinel && n == c.servers()[0] {
		return cluster.Refuse("it leads, and no other node takes over: restart it")
	}
	if p := c.named(ctx, (*server).askedSentinel); p != nil && p != n {
		return nil
	}
	for _, m := range c.servers() {
		if m == n || !m.Awake() {
			continue
		}
		if v, err := look(ctx, m.orders); err == nil && v.follows(n.address()) && !v.syncing && (v.up || !n.Awake()) {
			return nil
		}
	}
	return errors.New("the Sentinels name no other primary, and no replica that answers has its data")
}

// history returns the server's view of its data, if it answers.
func (n *server) history(ctx context.Context) view {
	v, _ := look(ctx, n.orders)
	return v
}
