package cockroach

import (
	"context"
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
	// insist is the interval at which the shutdown signal is repeated. The second signal ends a node at once
	// (pkg/cli/start.go, "a second interrupt will skip graceful shutdown"). Without it a node that has lost its
	// majority would try for ever to hand its leases over.
	insist, shutdownLimit = 20 * time.Second, 40 * time.Second
)

// node is a member of the cluster. Its folder and addresses stay; its process, its store and its CockroachDB id
// change.
type node struct {
	*host.Server
	cluster   *Cluster
	sql, http netip.AddrPort
	id        atomic.Int64 // CockroachDB's id of its store; 0 before it has answered
	gone      atomic.Int64 // id of a removed store, until the cluster knows; 0: none
}

// cacheSize is the size of the block cache, in which Pebble (20.1.5) also reserves 64 MiB for each memtable. With
// only 64 MiB, the second memtable makes the cache look for space for ever, and the node hangs after some ten
// megabytes of writes.
const cacheSize = "256MiB"

// newNode describes a node.
func (c *Cluster) newNode(int, *host.Host) (*node, cluster.Design) {
	n := &node{cluster: c}
	return n, cluster.Design{
		Server: &n.Server, Ports: map[int]*netip.AddrPort{26257: &n.sql, 8080: &n.http}, Program: host.Program{
			Command: n.command, Ready: n.ready, Join: func(context.Context) error { return nil },
			Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit, Insist: insist,
			FaultFS: true, Clock: true, Now: func(ctx context.Context) (time.Time, error) { return n.server().Now(ctx) },
		},
		Expendable: n.expendable, Leave: n.leave, Back: n.forget,
	}
}

// command returns the command that starts the node. It shortens the scan of replicas to ten seconds with few pauses.
// So a new cluster, or one that has lost a node, has all replicas in seconds instead of half a minute.
func (n *node) command(context.Context) (*exec.Cmd, error) {
	c := n.cluster
	args := []string{
		"start", "--insecure", "--listen-addr=" + n.sql.String(), "--http-addr=" + n.http.String(),
		"--join=" + c.Addresses(func(m *node) string { return m.sql.String() }),
		"--store=" + n.Dir(), "--cache=" + cacheSize, "--max-sql-memory=128MiB",
	}
	if c.params.maxOffset > 0 {
		args = append(args, "--max-offset="+c.params.maxOffset.String())
	}
	cmd := exec.Command(c.binary, args...)
	// CockroachDB reads many COCKROACH_… variables, so the environment contains only these.
	cmd.Env = []string{
		"COCKROACH_SCAN_INTERVAL=10s", "COCKROACH_SCAN_MAX_IDLE_TIME=5ms",
		"COCKROACH_SKIP_ENABLING_DIAGNOSTIC_REPORTING=true",
	}
	if c.params.ticks > 0 {
		cmd.Env = append(cmd.Env, "COCKROACH_RAFT_ELECTION_TIMEOUT_TICKS="+strconv.Itoa(c.params.ticks))
	}
	return cmd, nil
}

// ready waits until the node answers a query, which needs a formed cluster.
func (n *node) ready(ctx context.Context) error {
	return wait.RetryEvery(ctx, 50*time.Millisecond, func() error {
		id, err := n.server().ask(ctx)
		if err == nil {
			n.id.Store(id)
		}
		return err
	})
}

// leave notes the id of the store that will be lost. forget tells the cluster, so it makes new replicas.
func (n *node) leave(context.Context) error {
	if id := n.id.Swap(0); id != 0 {
		n.gone.Store(id)
	}
	return nil
}

// server returns the node as a Server.
func (n *node) server() Server { return Server{Name: n.Name(), Address: n.sql.String()} }
