//go:build linux

package disk

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	postgres "stroppy/internal/cluster/postgres/server"
)

// weak is a node whose disk can fail.
type weak interface {
	cluster.LocalNode
	Sync() error
	LoseUnsynced() error
	Fill(ctx context.Context) (heal func() error, err error)
	Slow(ctx context.Context, perCall time.Duration) (heal func() error, err error)
}

// startKind starts a cluster on the file system, of one node unless o asks for more.
func startKind[C cluster.Local](t testing.TB, engine string, start func(context.Context, cluster.Options) (C, error), o cluster.Options) (C, weak) {
	t.Helper()
	needFUSE(t)
	o.Nodes, o.Loopback = max(o.Nodes, 1), true
	c, err := start(t.Context(), o)
	var missing host.MissingError
	if errors.As(err, &missing) {
		t.Skipf("skipped engine: %s: install the Debian package %s", engine, missing.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		folder := filepath.Dir(cluster.LocalNodes(c)[0].Dir())
		for _, n := range cluster.LocalNodes(c) {
			silent(t, n)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if mounts := mountsIn(t, folder); len(mounts) > 0 {
			t.Errorf("mounts after Stop: %v", mounts)
		}
	})
	if !o.FaultFS {
		return c, nil
	}
	n, ok := cluster.LocalNodes(c)[0].(weak)
	if !ok {
		t.Fatalf("%T has no disk that can fail", cluster.LocalNodes(c)[0])
	}
	return c, n
}

func connect(t testing.TB, c cluster.Local) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.ConnectTimeout = time.Minute // the URL allows a second, which a busy machine may exceed
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func do(t testing.TB, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// acknowledged lets several clients insert rows until the server is gone, and returns the acknowledged ids.
func acknowledged(t *testing.T, c cluster.Local, round int, kill func()) (ids []int) {
	t.Helper()
	const clients = 4
	var mu sync.Mutex
	var group sync.WaitGroup
	for k := range clients {
		conn := connect(t, c)
		group.Go(func() {
			for i := k; ; i += clients {
				id := round*1_000_000 + i
				if _, err := conn.Exec(t.Context(), "INSERT INTO rows VALUES ($1, repeat('x', 500))", id); err != nil {
					return
				}
				mu.Lock()
				ids = append(ids, id)
				mu.Unlock()
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	kill()
	group.Wait()
	if len(ids) == 0 {
		t.Fatal("no row was acknowledged")
	}
	return ids
}

// missing returns the ids that the table does not have.
func missing(t *testing.T, c cluster.Local, ids []int) (lost []int) {
	t.Helper()
	rows, err := connect(t, c).Query(t.Context(), "SELECT id FROM rows")
	if err != nil {
		t.Fatal(err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	have := map[int]bool{}
	for _, id := range there {
		have[id] = true
	}
	for _, id := range ids {
		if !have[id] {
			lost = append(lost, id)
		}
	}
	return lost
}

// TestPostgresKeepsRowsAfterLossOfUnsynced checks that PostgreSQL keeps every acknowledged row after repeated
// losses of unsynced writes.
func TestPostgresKeepsRowsAfterLossOfUnsynced(t *testing.T) {
	t.Parallel()
	c, n := startKind(t, "postgres", postgres.StartCluster, cluster.Options{FaultFS: true, InMemory: true, Params: url.Values{"set.checkpoint_timeout": {"30s"}}})
	do(t, connect(t, c), "CREATE TABLE rows (id int PRIMARY KEY, text text)")
	var all []int
	for round := range 4 {
		ids := acknowledged(t, c, round, func() {
			if round%2 == 1 {
				go connect(t, c).Exec(t.Context(), "CHECKPOINT") // the loss happens during it
				time.Sleep(5 * time.Millisecond)
			}
			if err := n.Kill(t.Context()); err != nil {
				t.Error(err)
			}
		})
		all = append(all, ids...)
		if err := errors.Join(n.LoseUnsynced(), n.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		if lost := missing(t, c, all); len(lost) > 0 {
			t.Fatalf("round %d: %d of %d acknowledged rows are lost: %v …", round, len(lost), len(all), lost[:min(5, len(lost))])
		}
		t.Logf("round %d: all of %d acknowledged rows are there", round, len(all))
	}
}

// TestPostgresLosesRowsWithoutFsync checks that acknowledged rows are lost with fsync=off.
func TestPostgresLosesRowsWithoutFsync(t *testing.T) {
	c, n := startKind(t, "postgres", postgres.StartCluster, cluster.Options{FaultFS: true, InMemory: true, Params: url.Values{"fsync": {"off"}}})
	do(t, connect(t, c), "CREATE TABLE rows (id int PRIMARY KEY, text text)")
	do(t, connect(t, c), "INSERT INTO rows VALUES (-1)")
	if err := n.Sync(); err != nil {
		t.Fatal(err)
	}
	ids := acknowledged(t, c, 0, func() {
		if err := n.Kill(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if err := n.LoseUnsynced(); err != nil {
		t.Fatal(err)
	}
	if err := n.Restart(t.Context()); err != nil {
		t.Logf("of %d acknowledged rows all are lost: the server does not start: %v", len(ids), err)
		return
	}
	lost := missing(t, c, append(ids, -1))
	if len(lost) != len(ids) {
		t.Errorf("%d of %d acknowledged rows are lost, want all but the one that was there at Sync: fsync=off was to lose what was not synced", len(lost), len(ids))
	}
	t.Logf("%d of %d acknowledged rows are lost", len(lost), len(ids))
}

// TestPostgresContinuesAfterFullDisk checks that PostgreSQL rejects writes on a full disk, and continues when
// there is space again, by itself or after a restart.
func TestPostgresContinuesAfterFullDisk(t *testing.T) {
	c, n := startKind(t, "postgres", postgres.StartCluster, cluster.Options{FaultFS: true, InMemory: true})
	conn := connect(t, c)
	do(t, conn, "CREATE TABLE rows (id int PRIMARY KEY, text text)")
	do(t, conn, "INSERT INTO rows VALUES (-1)")
	heal, err := n.Fill(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "INSERT INTO rows SELECT i, repeat('x', 500) FROM generate_series(1, 10000) i")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "53100" { // disk_full, https://www.postgresql.org/docs/current/errcodes-appendix.html
		t.Errorf("an insertion on a full disk: %v, want disk_full", err)
	}
	var count int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM rows").Scan(&count); err != nil || count != 1 {
		t.Errorf("a query on a full disk: %d rows, %v", count, err)
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	do(t, conn, "INSERT INTO rows SELECT i, repeat('x', 500) FROM generate_series(1, 10000) i")
}

// TestPostgresCommitWaitsForSlowDisk checks that a commit waits for a slow disk.
func TestPostgresCommitWaitsForSlowDisk(t *testing.T) {
	const perCall = 50 * time.Millisecond
	c, n := startKind(t, "postgres", postgres.StartCluster, cluster.Options{FaultFS: true, InMemory: true})
	conn := connect(t, c)
	do(t, conn, "CREATE TABLE rows (id int PRIMARY KEY, text text)")
	heal, err := n.Slow(t.Context(), perCall)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	do(t, conn, "INSERT INTO rows VALUES (1)")
	if took := time.Since(began); took < 2*perCall { // a write and a sync
		t.Errorf("a commit took %v", took)
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	do(t, conn, "INSERT INTO rows VALUES (2)")
}

// TestEtcdKeepsKeysAfterLossOfUnsynced checks that etcd keeps every acknowledged key after repeated losses of
// unsynced writes.
func TestEtcdKeepsKeysAfterLossOfUnsynced(t *testing.T) {
	t.Parallel()
	c, n := startKind(t, "etcd", etcd.Start, cluster.Options{FaultFS: true, InMemory: true, Params: url.Values{"set.snapshot-count": {"500"}}})
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(strings.TrimPrefix(c.URL(), "etcd://"), ","), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	acked := map[string]bool{}
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var group sync.WaitGroup
		for k := range 8 {
			group.Go(func() {
				for i := 0; ; i++ {
					key := fmt.Sprintf("%d-%d-%d", round, k, i)
					if _, err := client.Put(ctx, key, strings.Repeat("x", 1000)); err != nil {
						return
					}
					mu.Lock()
					acked[key] = true
					mu.Unlock()
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		err := n.Kill(ctx)
		cancel()
		group.Wait()
		if err := errors.Join(err, n.LoseUnsynced(), n.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		answer, err := client.Get(t.Context(), "", clientv3.WithFromKey(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]bool{}
		for _, kv := range answer.Kvs {
			have[string(kv.Key)] = true
		}
		for key := range acked {
			if !have[key] {
				t.Errorf("round %d: the acknowledged key %s is lost", round, key)
			}
		}
		t.Logf("round %d: all of %d acknowledged keys were looked for", round, len(acked))
	}
}
