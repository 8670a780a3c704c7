package etcd

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

// shutdownLimit bounds a clean shutdown, in which a leader first hands leadership over.
const shutdownLimit = 15 * time.Second

// node is a member of the cluster. Its folder and addresses stay; its process and its member id change.
type node struct {
	*host.Server
	cluster      *Cluster
	client, peer netip.AddrPort
	id           atomic.Uint64 // member id, 0 before it has answered
	joined       atomic.Bool   // the cluster has a member for the present or future data of the folder
}

// newNode describes a node.
func (c *Cluster) newNode(int, *host.Host) (*node, cluster.Design) {
	n := &node{cluster: c}
	return n, cluster.Design{
		Server: &n.Server, Ports: map[int]*netip.AddrPort{2379: &n.client, 2380: &n.peer}, Program: host.Program{
			Command: n.command, Ready: n.ready, Join: n.join,
			Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit,
			FaultFS: true, Clock: true,
		},
		Expendable: n.expendable, Leave: func(context.Context) error { n.joined.Store(false); return nil },
	}
}

// command returns the command that starts etcd. A node with data ignores the flags of the first start.
func (n *node) command(ctx context.Context) (*exec.Cmd, error) {
	c := n.cluster
	state := "new"
	if c.formed.Load() {
		state = "existing"
		if !n.joined.Load() {
			if err := n.join(ctx); err != nil {
				return nil, err
			}
		}
	}
	n.joined.Store(true)
	// While a node joins, no other node comes or goes, so the list equals etcd's list.
	members := c.Addresses(func(m *node) string { return m.Name() + "=http://" + m.peer.String() })
	own := Member{Name: n.Name(), Dir: n.Dir(), Client: n.client, Peer: n.peer}
	return own.Command(c.binary, members, state, c.token, c.flags...), context.Cause(ctx)
}

// Member is one server of an etcd cluster.
type Member struct {
	Name, Dir    string
	Client, Peer netip.AddrPort
}

// Command returns the command that starts the member. members are NAME=URL of all members, separated by commas. state
// is new or existing.
func (m Member) Command(binary, members, state, token string, flags ...string) *exec.Cmd {
	cmd := exec.Command(binary, append([]string{
		"--name", m.Name,
		"--data-dir", m.Dir,
		"--listen-client-urls", "http://" + m.Client.String(),
		"--advertise-client-urls", "http://" + m.Client.String(),
		"--listen-peer-urls", "http://" + m.Peer.String(),
		"--initial-advertise-peer-urls", "http://" + m.Peer.String(),
		"--initial-cluster", members,
		"--initial-cluster-state", state,
		"--initial-cluster-token", token,
		"--heartbeat-interval", "50",
		"--election-timeout", "500",
		"--logger", "zap", "--log-level", "warn", "--log-outputs", "stderr",
	}, flags...)...)
	// etcd reads every ETCD_… variable as a flag, so the environment contains only the one that 3.4 requires outside
	// amd64.
	cmd.Env = []string{"ETCD_UNSUPPORTED_ARCH=" + runtime.GOARCH}
	return cmd
}

// ready waits until the node answers a linearizable read.
func (n *node) ready(ctx context.Context) error {
	return wait.Retry(ctx, func() error {
		if err := n.read(ctx); err != nil {
			return err
		}
		s, err := n.status(ctx)
		if err == nil {
			n.id.Store(s.Header.MemberId)
		}
		return err
	})
}

// Restart starts the node on its own data, unless it runs, and returns when it answers a linearizable read. A node
// whose replacement failed joins first.
func (n *node) Restart(ctx context.Context) error {
	ctx, cancel := n.Bound(ctx)
	defer cancel()
	if n.cluster.formed.Load() && !n.joined.Load() {
		done, err := n.cluster.Change(ctx)
		if err != nil {
			return fmt.Errorf("restart %s: %w", n.Name(), err)
		}
		defer done()
	}
	return n.Server.Restart(ctx)
}

// expendable returns nil if a majority answers without the node. A replaced node is a new member at the old address.
func (n *node) expendable(ctx context.Context) error {
	answers := func(ctx context.Context, m *node) bool { return m.Awake() && m.read(ctx) == nil }
	return n.cluster.Readmits(ctx, n, len(n.cluster.List()), answers)
}
