package cockroach

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

	"github.com/jackc/pgx/v5"

	"stroppy/internal/cluster"
)

const (
	askTimeout    = 3 * time.Second  // of a question to one node, which may hang
	changeTimeout = 20 * time.Second // of a change of the nodes
	// insist is when the signal to shut down comes again, which ends a node at once: one
	// that has lost its majority meanwhile would try for ever to hand its leases over
	// (pkg/cli/start.go, "a second interrupt will skip graceful shutdown").
	insist, shutdownLimit = 20 * time.Second, 40 * time.Second
)

// node is a member of the cluster: its folder and addresses stay, its process, its store
// and the id that it has for CockroachDB come and go.
type node struct {
	*cluster.Server
	cluster   *Cluster
	sql, http netip.AddrPort
	id        atomic.Int64 // that CockroachDB gave to its store; 0 before it has answered
	gone      atomic.Int64 // the id of a store that was taken away, until the cluster knows it; 0: none
}

// cacheSize is that of the cache of blocks, in which Pebble (20.1.5) also reserves 64 MiB
// for each table in memory: with 64 MiB in all, the second one makes its cache look for room
// for ever, and the node hangs after some ten megabytes of writes.
const cacheSize = "256MiB"

// newNode makes the folder of a node and describes its server.
func (c *Cluster) newNode(ctx context.Context, number int, host *cluster.Host) (*node, error) {
	n := &node{cluster: c}
	if err := c.TakeEndpoints(ctx, host, map[int]*netip.AddrPort{26257: &n.sql, 8080: &n.http}); err != nil {
		return nil, err
	}
	dir := c.Folder(number)
	n.Server = c.NewServer(number, host, dir, dir+".log", cluster.Program{
		Command: n.command, Ready: n.ready, Join: func(context.Context) error { return nil }, // a node without data joins by its start
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit, Insist: insist,
		FaultFS: c.Options.FaultFS, Clock: c.Options.Clock, Now: n.now,
	})
	return n, c.MakeFolder(dir, number, 0o700)
}

// command makes the command that starts the node. Replicas are looked after every ten
// seconds and with little rest in between, so that a new cluster, or one that lost a node,
// has all of them in seconds and not in half a minute.
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
	// CockroachDB takes many COCKROACH_… variables, so it gets none but these.
	cmd.Env = []string{
		"COCKROACH_SCAN_INTERVAL=10s", "COCKROACH_SCAN_MAX_IDLE_TIME=5ms",
		"COCKROACH_SKIP_ENABLING_DIAGNOSTIC_REPORTING=true",
	}
	if c.params.ticks > 0 {
		cmd.Env = append(cmd.Env, "COCKROACH_RAFT_ELECTION_TIMEOUT_TICKS="+strconv.Itoa(c.params.ticks))
	}
	return cmd, nil
}

// ready returns when the node answers a query, for which it has to be part of a cluster.
func (n *node) ready(ctx context.Context) error {
	return cluster.RetryEvery(ctx, 50*time.Millisecond, func() error {
		id, err := n.ask(ctx)
		if err == nil {
			n.id.Store(id)
		}
		return err
	})
}

// Replace kills the node, takes its store away, and lets it join as a new node at the old
// address. The store goes when the others have a majority of every range, not before. The
// cluster learns that the old one never comes back, so that its replicas are made anew.
func (n *node) Replace(ctx context.Context) error {
	ctx, cancel := n.Bound(ctx)
	defer cancel()
	c := n.cluster
	if nodes := len(c.List()); nodes < replicas {
		return fmt.Errorf("replace %s: a cluster of %d has no majority without it to take it in again: take %d nodes or more", n.Name(), nodes, replicas)
	}
	return c.ReplaceWhen(ctx, n, func(ctx context.Context) error { return c.expendable(ctx, n) }, func(ctx context.Context) error {
		if id := n.id.Swap(0); id != 0 {
			n.gone.Store(id)
		}
		err := n.Server.Replace(ctx)
		if err == nil {
			err = n.forget(ctx)
		}
		return err
	})
}

// with connects to the node for one question, so that no connection outlives the process
// at its other end.
func (n *node) with(ctx context.Context, limit time.Duration, question func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	config, err := pgx.ParseConfig("user=root sslmode=disable dbname=" + database + " host=" + n.sql.Addr().String() + " port=" + strconv.Itoa(int(n.sql.Port())))
	if err != nil {
		return errors.New("describe a connection to CockroachDB: one of the variables of the environment that begin with PG is wrong")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		err = question(ctx, conn)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
		defer cancel()
		_ = conn.Close(closing) // the question is answered, and the server drops what is left
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", n.Name(), err)
	}
	return nil
}

func (n *node) exec(ctx context.Context, statement string) error {
	return n.with(ctx, changeTimeout, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, statement)
		return err
	})
}

// ask reads something by the node, and returns the id that CockroachDB gave to it.
func (n *node) ask(ctx context.Context) (id int64, err error) {
	err = n.with(ctx, askTimeout, func(ctx context.Context, c *pgx.Conn) error {
		var text string
		if err := c.QueryRow(ctx, "SHOW node_id").Scan(&text); err != nil {
			return err
		}
		if id, err = strconv.ParseInt(text, 10, 64); err != nil {
			return err
		}
		_, err = c.Exec(ctx, "SELECT count(*) FROM system.namespace")
		return err
	})
	return id, err
}

// alive returns the ids of the nodes that this one takes for alive.
func (n *node) alive(ctx context.Context) (ids []int64, err error) {
	return collect[int64](ctx, n, "SELECT node_id FROM crdb_internal.gossip_nodes WHERE is_live", pgx.RowTo[int64])
}

// ranges returns all ranges as the node finds them.
func (n *node) ranges(ctx context.Context) ([]replicated, error) {
	return collect(ctx, n, "SELECT range_id, replicas FROM crdb_internal.ranges_no_leases", func(row pgx.CollectableRow) (r replicated, err error) {
		err = row.Scan(&r.id, &r.replicas)
		return r, err
	})
}

func collect[T any](ctx context.Context, n *node, query string, one pgx.RowToFunc[T]) (list []T, err error) {
	err = n.with(ctx, askTimeout, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, query)
		if err == nil {
			list, err = pgx.CollectRows(rows, one)
		}
		return err
	})
	return list, err
}

func (n *node) now(ctx context.Context) (now time.Time, err error) {
	err = n.with(ctx, askTimeout, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	})
	return now, err
}
