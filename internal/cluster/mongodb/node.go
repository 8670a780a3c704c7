package mongodb

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

const (
	// shutdownLimit bounds a clean shutdown, in which a primary first steps down and waits 10 s for a secondary with
	// all data (src/mongo/db/mongod_main, 4.2).
	shutdownLimit = 30 * time.Second
	// oplogMB is the size of the log from which a node gets the changes that it missed: some minutes at 1,000
	// transfers per second.
	oplogMB = 256
)

// node is a member of a replica set, or a mongos. Its folder and address stay; its process changes.
type node struct {
	*host.Server
	servers *servers
	set     *set // nil: a mongos
	address netip.AddrPort
	// mute is set while the node has no vote: because its data were removed, or because it is new.
	mute atomic.Bool
}

// newNode describes a node.
func (c *servers) newNode(number int, _ *host.Host) (*node, cluster.Design) {
	n := &node{servers: c, set: c.place(number)}
	n.mute.Store(n.set != nil && n.set.formed.Load())
	return n, cluster.Design{
		Server: &n.Server, Ports: map[int]*netip.AddrPort{27017: &n.address}, Program: host.Program{
			Command: n.command, Ready: n.ready, Join: func(ctx context.Context) error { return n.vote(ctx, 0) },
			Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit,
			FaultFS: true, Clock: true,
		},
		// A replaced node has no vote until it has copied all data. Otherwise, after it has forgotten its
		// acknowledgements, it could elect a node without the acknowledged writes.
		Expendable: n.expendable, Leave: func(context.Context) error { n.mute.Store(true); return nil },
		Back: func(ctx context.Context) error { return n.vote(ctx, 1) },
	}
}

// command returns the command that starts mongod or mongos.
func (n *node) command(context.Context) (*exec.Cmd, error) {
	args := []string{
		"--nounixsocket", "--quiet", "--bind_ip", n.address.Addr().String(), "--port", strconv.Itoa(int(n.address.Port())),
	}
	if n.set == nil {
		config := n.servers.sets[len(n.servers.sets)-1]
		return exec.Command(n.servers.mongos, append(args, "--configdb", config.members())...), nil
	}
	args = append(args, "--replSet", n.set.name, "--dbpath", n.Dir(),
		"--wiredTigerCacheSizeGB", n.servers.params.cache, "--oplogSize", strconv.Itoa(oplogMB),
		"--setParameter", "diagnosticDataCollectionEnabled=false")
	if n.set.role != "" {
		args = append(args, n.set.role)
	}
	for _, setting := range n.servers.params.settings {
		args = append(args, "--setParameter", setting)
	}
	return exec.Command(n.servers.mongod, args...), nil
}

// ready waits until the node answers and, if it belongs to a set, is primary or secondary. A killed node may go
// through a rollback first, and an empty node copies all data.
func (n *node) ready(ctx context.Context) error {
	return wait.Retry(ctx, func() error {
		serves, err := n.server().serves(ctx, false)
		if err == nil && !serves && (n.set == nil || n.set.formed.Load()) {
			err = errors.New("it is neither primary nor secondary, nor a mongos")
		}
		return err
	})
}

// Restart starts the node on its own data, unless it runs, and returns when it is primary or secondary. A node whose
// replacement failed gets its vote back.
func (n *node) Restart(ctx context.Context) error {
	ctx, cancel := n.Bound(ctx)
	defer cancel()
	if err := n.Server.Restart(ctx); err != nil || !n.mute.Load() {
		return err
	}
	done, err := n.servers.Change(ctx)
	if err == nil {
		defer done()
		err = n.vote(ctx, 1)
	}
	if err != nil {
		return fmt.Errorf("restart %s: %w", n.Name(), err)
	}
	return nil
}

// expendable returns nil if a majority of the set answers without the node.
func (n *node) expendable(ctx context.Context) error {
	return n.servers.Readmits(ctx, n, len(n.set.nodes()), func(ctx context.Context, m *node) bool {
		serves, err := m.server().serves(ctx, false)
		return m.set == n.set && m.Awake() && err == nil && serves
	})
}

// vote sets the vote of the node, 1 or 0, through the present primary. A node that is not a member becomes one.
func (n *node) vote(ctx context.Context, votes int) error {
	err := wait.Retry(ctx, func() error {
		primary, err := n.set.primary(ctx)
		if err != nil {
			return err
		}
		return primary.server().reconfigure(ctx, func(c *config) bool { return c.vote(n, votes) })
	})
	if err != nil {
		return fmt.Errorf("change the vote of %s in the replica set %s: %w", n.Name(), n.set.name, err)
	}
	n.mute.Store(votes == 0)
	return nil
}
