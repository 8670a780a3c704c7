package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// patience bounds the shutdown in good order, in which a leader hands its lead
// over first.
const patience = 15 * time.Second

// node is a member of the cluster: its folder and addresses stay, its process
// and its member id come and go.
type node struct {
	*cluster.Server
	cluster      *Cluster
	client, peer string        // host:port
	id           atomic.Uint64 // of the member, 0 before it has answered
	joined       atomic.Bool   // the cluster has a member for the data that the folder holds or will hold

	life   context.Context // ends when the node is removed or the cluster is stopped
	retire context.CancelCauseFunc
}

// newNode makes the folder of a node and adds it to the list.
func (c *Cluster) newNode(ctx context.Context, host *cluster.Host) (*node, error) {
	n := &node{cluster: c}
	n.life, n.retire = context.WithCancelCause(c.life)
	var err error
	if n.client, err = c.endpoint(ctx, host, 2379); err != nil {
		return nil, err
	}
	for n.peer == "" || n.peer == n.client {
		if n.peer, err = c.endpoint(ctx, host, 2380); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	program := cluster.Program{
		Command: n.command, Ready: n.ready, Join: n.join,
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, Patience: patience,
		Layer: c.layer, Clock: c.clock,
	}
	dir := filepath.Join(c.dir, fmt.Sprintf("n%d", c.hosts))
	n.Server = cluster.NewServer(c.hosts, host, dir, dir+".log", program)
	if err = os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of %s, take another folder if it is there: %w", n.Name(), err)
	}
	c.nodes = append(c.nodes, n)
	return n, nil
}

// endpoint returns an address of the host that no node has.
func (c *Cluster) endpoint(ctx context.Context, host *cluster.Host, standard int) (string, error) {
	for {
		port, err := host.Port(ctx, standard)
		if err != nil {
			return "", err
		}
		address := netip.AddrPortFrom(host.Addr(), uint16(port)).String()
		taken := false
		for _, n := range c.list() {
			taken = taken || n.client == address || n.peer == address
		}
		if !taken {
			return address, nil
		}
	}
}

// command makes the command that starts etcd. The flags of the first start mean
// nothing to a node that has data.
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
	// While a node joins, no other comes or goes, so the list is what etcd has.
	var members []string
	for _, m := range c.list() {
		members = append(members, m.Name()+"=http://"+m.peer)
	}
	cmd := exec.Command(c.binary, append([]string{
		"--name", n.Name(),
		"--data-dir", n.Dir(),
		"--listen-client-urls", "http://" + n.client,
		"--advertise-client-urls", "http://" + n.client,
		"--listen-peer-urls", "http://" + n.peer,
		"--initial-advertise-peer-urls", "http://" + n.peer,
		"--initial-cluster", strings.Join(members, ","),
		"--initial-cluster-state", state,
		"--initial-cluster-token", c.token,
		"--heartbeat-interval", "50",
		"--election-timeout", "500",
		"--logger", "zap", "--log-level", "warn", "--log-outputs", "stderr",
	}, c.flags...)...)
	// etcd takes every ETCD_… variable as a flag, so it gets none but the one
	// that 3.4 asks for outside amd64.
	cmd.Env = []string{"ETCD_UNSUPPORTED_ARCH=" + runtime.GOARCH}
	return cmd, context.Cause(ctx)
}

// ready returns when the node answers a linearizable read.
func (n *node) ready(ctx context.Context) error {
	return persist(ctx, func() error {
		if err := n.read(ctx); err != nil {
			return err
		}
		s, err := n.status(ctx)
		if err == nil {
			n.id.Store(s.Header.MemberID)
		}
		return err
	})
}

// Restart starts the node on its own data, unless it runs, and returns when it
// answers a linearizable read. A node whose replacement failed joins first.
func (n *node) Restart(ctx context.Context) error {
	ctx, cancel := n.bound(ctx)
	defer cancel()
	if n.cluster.formed.Load() && !n.joined.Load() {
		if err := n.cluster.lock(ctx); err != nil {
			return fmt.Errorf("restart %s: %w", n.Name(), err)
		}
		defer n.cluster.unlock()
	}
	return n.Server.Restart(ctx)
}

// Replace kills the node, takes its data away, and makes it a new member at the
// old address. The data go when a majority answers without it and no other node
// is being replaced, not before: until then they may be the only copy.
func (n *node) Replace(ctx context.Context) error {
	ctx, cancel := n.bound(ctx)
	defer cancel()
	if nodes := len(n.cluster.list()); nodes < 3 {
		return fmt.Errorf("replace %s: a cluster of %d has no majority without it to take it in again: take 3 nodes or more", n.Name(), nodes)
	}
	if err := n.cluster.lock(ctx); err != nil {
		return fmt.Errorf("replace %s: %w", n.Name(), err)
	}
	defer n.cluster.unlock()
	if err := persist(ctx, func() error { return n.expendable(ctx) }); err != nil {
		return fmt.Errorf("replace %s: %w", n.Name(), err)
	}
	n.joined.Store(false)
	return n.Server.Replace(ctx)
}

// expendable is nil when a majority answers without the node.
func (n *node) expendable(ctx context.Context) error {
	nodes, answered := n.cluster.list(), 0
	for _, m := range nodes {
		if m != n && m.awake() && m.read(ctx) == nil {
			answered++
		}
	}
	if most := len(nodes)/2 + 1; answered < most {
		return fmt.Errorf("%d nodes answer without it, and %d of %d are needed to take it in again", answered, most, len(nodes))
	}
	return nil
}

// awake says that the node's process runs and is not paused.
func (n *node) awake() bool { return n.Running() && !n.Paused() }

// bound returns a context that ends also when the node does for good.
func (n *node) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	give := func() { cancel(context.Cause(n.life)) }
	if n.life.Err() != nil {
		give()
	}
	release := context.AfterFunc(n.life, give)
	return ctx, func() {
		release()
		cancel(nil)
	}
}

// erase ends the node for good and removes what was made for it.
func (n *node) erase() error {
	return errors.Join(n.Server.Close(), os.RemoveAll(n.Dir()), os.RemoveAll(n.Log()))
}
