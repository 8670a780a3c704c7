//go:build fdb

package foundationdb

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	servers "stroppy/internal/cluster"
	cluster "stroppy/internal/cluster/foundationdb"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
)

func TestCommitOutcomesUnderNodeFaults(t *testing.T) {
	c := startCluster(t, 3)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster.Cluster)
	}{
		{"controller killed", testControllerKilled}, {"all paused", testPaused}, {"majority lost", testMajorityLost},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// testControllerKilled kills and restarts each node while sessions append to their own chains of keys. Every
// acknowledged commit must be there, and every unknown commit is looked up.
func testControllerKilled(t *testing.T, c *cluster.Cluster) {
	const sessions = 16
	d := openDatabase(t, c.URL())
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	var over atomic.Bool
	var done sync.WaitGroup
	var unknown, applied atomic.Int32
	acknowledged := make([]int, sessions)
	for i := range sessions {
		s := newSession(t, d, "")
		done.Go(func() {
			for n := 0; !over.Load() && ctx.Err() == nil; {
				key := fmt.Appendf(nil, at+"lk/%d/%06d", i, n)
				made, err := kvtest.AppendOnce(ctx, s, key)
				switch {
				case err == nil:
					if !made {
						applied.Add(1)
					}
					n++
					acknowledged[i] = n
				case db.ClassOf(err) == db.Unknown:
					unknown.Add(1)
					kvtest.ResetUntil(t, s)
				case db.ClassOf(err) == db.Unavailable:
					kvtest.ResetUntil(t, s)
				case db.ClassOf(err) != db.Aborted:
					t.Errorf("session %d: class %v: %v", i, db.ClassOf(err), err)
					return
				}
			}
		})
	}
	for range 3 {
		time.Sleep(time.Second)
		number, err := c.Leader(ctx)
		drivertest.Must(t, err)
		n := servers.LocalNodes(c)[number]
		drivertest.Must(t, n.Kill(ctx))
		time.Sleep(5 * time.Second)
		drivertest.Must(t, n.Restart(ctx))
		drivertest.Must(t, c.WaitHealthy(ctx))
	}
	over.Store(true)
	done.Wait()
	s := newSession(t, d, "")
	for i, n := range acknowledged {
		found := 0
		from, to := fmt.Appendf(nil, at+"lk/%d/", i), fmt.Appendf(nil, at+"lk/%d/%06d", i, n)
		drivertest.Must(t, s.Scan(ctx, from, to, func(_, _ []byte) error { found++; return nil }))
		if found != n || n == 0 {
			t.Errorf("session %d: %d of %d commits that were acknowledged are there", i, found, n)
		}
	}
	t.Logf("%d commits were unknown, of which %d had been applied", unknown.Load(), applied.Load())
}

// testPaused checks calls to frozen servers. A commit ends with the time-out and is unknown. A read has a known
// outcome. A reset fails until the servers go on.
func testPaused(t *testing.T, c *cluster.Cluster) {
	ctx := t.Context()
	d := openDatabase(t, c.URL()+"?timeout=2s")
	writer, reader := newSession(t, d, ""), newSession(t, d, "")
	kvtest.Begin(t, writer)
	kvtest.ExpectRead(t, writer, "-", at+"pa")
	for _, n := range servers.LocalNodes(c) {
		drivertest.Must(t, n.Pause(ctx))
	}
	writer.Set([]byte(at+"pa"), []byte("1"))
	err := writer.Commit(ctx)
	if db.ClassOf(err) != db.Unknown || !strings.Contains(err.Error(), "1031") {
		t.Errorf("commit to frozen servers: class %v: %v", db.ClassOf(err), err)
	}
	kvtest.Begin(t, reader)
	if err := reader.Read(ctx, kvtest.Keys(at+"pa"), make([]db.Entry, 1)); db.ClassOf(err) != db.Unavailable {
		t.Errorf("read of frozen servers: class %v: %v", db.ClassOf(err), err)
	}
	if err := writer.Begin(ctx, false); db.ClassOf(err) != db.Unavailable {
		t.Errorf("begin before reset: %v", err)
	}
	if err := writer.Reset(ctx); db.ClassOf(err) != db.Unavailable {
		t.Errorf("reset with frozen servers: %v", err)
	}
	began := time.Now()
	if _, err := Open(ctx, c.URL()); db.ClassOf(err) != db.Unavailable || time.Since(began) > 10*time.Second || !strings.Contains(err.Error(), "3 of its 3 coordinators") {
		t.Errorf("open with frozen servers: %v after %v", err, time.Since(began))
	}
	for _, n := range servers.LocalNodes(c) {
		drivertest.Must(t, n.Resume(ctx))
	}
	kvtest.ResetUntil(t, writer)
	kvtest.Begin(t, writer)
	kvtest.Values(t, writer, at+"pa")
	writer.Set([]byte(at+"pa"), []byte("2"))
	if err := writer.Commit(ctx); err != nil && db.ClassOf(err) != db.Aborted {
		t.Error(err)
	}
}

// testMajorityLost checks that there is no database without a majority of the coordinators.
func testMajorityLost(t *testing.T, c *cluster.Cluster) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	nodes := servers.LocalNodes(c)
	for _, n := range nodes[:2] {
		drivertest.Must(t, n.Kill(ctx))
	}
	began := time.Now()
	_, err := Open(ctx, c.URL())
	if db.ClassOf(err) != db.Unavailable || time.Since(began) > 10*time.Second || !strings.Contains(err.Error(), "1 of its 3 coordinators") {
		t.Errorf("open without a majority: %v after %v", err, time.Since(began))
	}
	var wg sync.WaitGroup
	for _, n := range nodes[:2] {
		wg.Go(func() {
			if err := n.Restart(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	drivertest.Must(t, c.WaitHealthy(ctx))
	kvtest.Put(t, openDatabase(t, c.URL()), at+"again", "1")
}

// TestUnreachableClusterIsReportedInTime checks that a cluster file without a running FoundationDB server gives
// one sentence within the time limit.
func TestUnreachableClusterIsReportedInTime(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	drivertest.Must(t, err)
	defer l.Close()
	closed, err := net.Listen("tcp4", "127.0.0.1:0")
	drivertest.Must(t, err)
	closed.Close()
	for address, says := range map[string]string{l.Addr().String(): "1 of its 1 coordinators", closed.Addr().String(): "0 of its 1 coordinators"} {
		file := filepath.Join(t.TempDir(), "fdb.cluster")
		drivertest.Must(t, os.WriteFile(file, []byte("a:b@"+address), 0o600))
		began := time.Now()
		_, err := Open(t.Context(), "fdb:"+file)
		if took := time.Since(began); db.ClassOf(err) != db.Unavailable || took > 10*time.Second || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v after %v", address, err, took)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "fdb.cluster")
	drivertest.Must(t, os.WriteFile(file, []byte("a:b@"+closed.Addr().String()), 0o600))
	if _, err := Open(ctx, "fdb:"+file); err == nil {
		t.Error("opened with a context that has ended")
	}
}
