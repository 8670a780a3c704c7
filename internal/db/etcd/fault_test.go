package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	servers "stroppy/internal/cluster"
	cluster "stroppy/internal/cluster/etcd"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/kvtest"
)

// homedAt returns a session of d whose first node is node i. Sessions get their nodes round robin.
func homedAt(t testing.TB, c *cluster.Cluster, timeout string, i int) db.KVSession {
	t.Helper()
	all := c.Endpoints()
	d := drivertest.Open(t, etcd.Open, "etcd://"+strings.Join(append(all[i:len(all):len(all)], all[:i]...), ",")+"?timeout="+timeout)
	return newSession(t, d, "")
}

func TestCommitOutcomesUnderNodeFaults(t *testing.T) {
	c := startCluster(t, 3, nil)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster.Cluster)
	}{
		{"leader killed", testLeaderKilled}, {"node paused", testPaused}, {"majority lost", testMajorityLost},
		{"unreachable", testUnreachable},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// testLeaderKilled lets six sessions append to their own chains of keys while the leader is killed. Every commit that
// was acknowledged must be present.
func testLeaderKilled(t *testing.T, c *cluster.Cluster) {
	const sessions, afterwards = 6, 20
	d := drivertest.Open(t, etcd.Open, c.URL()+"?timeout=2s")
	var killed atomic.Bool
	var started, done sync.WaitGroup
	acknowledged := make([]int, sessions)
	started.Add(sessions)
	for i := range sessions {
		s := newSession(t, d, "")
		done.Go(func() {
			after := 0
			for n := 0; after < afterwards; {
				key := fmt.Appendf(nil, "lk/%d/%06d", i, n)
				counted := killed.Load()
				applied, err := kvtest.AppendOnce(t.Context(), s, key)
				switch {
				case err == nil && applied:
					if n++; n == 10 {
						started.Done()
					}
					if acknowledged[i] = n; counted {
						after++
					}
				case err == nil:
					n++ // an earlier try with an unknown outcome was applied
				case db.ClassOf(err) == db.Unknown || db.ClassOf(err) == db.Unavailable:
					kvtest.ResetUntil(t, s)
				case db.ClassOf(err) != db.Aborted:
					t.Errorf("session %d: class %v: %v", i, db.ClassOf(err), err)
					return
				}
				if t.Context().Err() != nil {
					return
				}
			}
		})
	}
	started.Wait()
	leader, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := servers.LocalNodes(c)[leader].Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	killed.Store(true)
	done.Wait()
	s := newSession(t, d, "")
	for i, n := range acknowledged {
		found := 0
		from, to := fmt.Appendf(nil, "lk/%d/", i), fmt.Appendf(nil, "lk/%d/%06d", i, n)
		if err := s.Scan(t.Context(), from, to, func(_, _ []byte) error { found++; return nil }); err != nil {
			t.Fatal(err)
		}
		if found != n {
			t.Errorf("session %d: %d of %d commits that were acknowledged are there", i, found, n)
		}
	}
	restart(t, c, leader)
}

func restart(t testing.TB, c *cluster.Cluster, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	n := servers.LocalNodes(c)[i]
	if err := errors.Join(n.Kill(ctx), n.Restart(ctx)); err != nil {
		t.Fatal(err)
	}
}

// testPaused checks that a commit to a frozen node is unknown, and that a read from it is not. Reset moves to another
// node.
func testPaused(t *testing.T, c *cluster.Cluster) {
	leader, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	frozen := (leader + 1) % len(c.Nodes())
	writer, reader := homedAt(t, c, "300ms", frozen), homedAt(t, c, "300ms", frozen)
	kvtest.Begin(t, writer)
	kvtest.ExpectRead(t, writer, "-", "pa/a")
	if err := servers.LocalNodes(c)[frozen].Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	writer.Set([]byte("pa/a"), []byte("1"))
	err = writer.Commit(t.Context())
	if db.ClassOf(err) != db.Unknown || !strings.Contains(err.Error(), c.Endpoints()[frozen]) {
		t.Errorf("commit to a frozen node: class %v: %v", db.ClassOf(err), err)
	}
	if err := writer.Begin(t.Context(), false); db.ClassOf(err) != db.Unavailable {
		t.Errorf("begin before reset: %v", err)
	}
	kvtest.Begin(t, reader)
	if err := reader.Read(t.Context(), kvtest.Keys("pa/a"), make([]db.Entry, 1)); db.ClassOf(err) != db.Unavailable {
		t.Errorf("read of a frozen node: class %v: %v", db.ClassOf(err), err)
	}
	kvtest.ResetUntil(t, writer)
	kvtest.Begin(t, writer)
	kvtest.Values(t, writer, "pa/b")
	writer.Set([]byte("pa/b"), []byte("1"))
	kvtest.Commit(t, writer)

	// A session that is opened now begins with the frozen node and gets the next one.
	late := homedAt(t, c, "300ms", frozen)
	kvtest.Begin(t, late)
	kvtest.ExpectRead(t, late, "1", "pa/b")
	if err := servers.LocalNodes(c)[frozen].Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// testMajorityLost checks that a member without a leader refuses commits at once, as not applied. It answers only
// reads=serializable, from its own state.
func testMajorityLost(t *testing.T, c *cluster.Cluster) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := homedAt(t, c, "1s", 0)
	old := newSession(t, drivertest.Open(t, etcd.Open, c.URL()+"?reads=serializable"), "")
	for _, i := range []int{1, 2} {
		if err := servers.LocalNodes(c)[i].Kill(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// A commit may be unknown until the member has noticed that the majority is lost.
	for err := error(nil); db.ClassOf(err) != db.Unavailable; {
		if ctx.Err() != nil {
			t.Fatalf("the isolated member never refused; at last: %v", err)
		}
		applied := false
		if applied, err = kvtest.AppendOnce(ctx, s, []byte("ml/a")); err == nil && applied {
			t.Fatal("a commit without a majority was acknowledged")
		}
		if db.ClassOf(err) == db.Unknown {
			_ = s.Reset(ctx) // it may fail; Begin then returns the error
		}
	}
	if err := s.Reset(ctx); db.ClassOf(err) != db.Unavailable {
		t.Errorf("reset without a majority: %v", err)
	}
	if err := old.Begin(ctx, true); err != nil {
		t.Fatal(err)
	}
	if err := old.Read(ctx, kvtest.Keys("ml/a", "ml/b"), make([]db.Entry, 2)); err != nil {
		t.Errorf("a serializable read without a majority: %v", err)
	}
	if err := old.Scan(ctx, nil, nil, func(_, _ []byte) error { return nil }); db.ClassOf(err) != db.Unavailable {
		t.Errorf("a scan without a majority gives %v: it must not be old", err)
	}
	restart(t, c, 1)
	restart(t, c, 2)
	kvtest.ResetUntil(t, s)
}

func testUnreachable(t *testing.T, c *cluster.Cluster) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	listener.Close()
	_, err = etcd.Open(t.Context(), "etcd://me:hunter2@"+nobody)
	if db.ClassOf(err) != db.Unavailable || !strings.Contains(err.Error(), nobody) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("nobody listens: class %v: %v", db.ClassOf(err), err)
	}
	if _, err := etcd.Open(t.Context(), "etcd://"+nobody+"?retries=3"); db.ClassOf(err) != db.Fatal {
		t.Errorf("an unknown parameter: %v", err)
	}
	// One dead node among others does no harm.
	d := drivertest.Open(t, etcd.Open, "etcd://"+nobody+","+c.Endpoints()[0])
	s := newSession(t, d, "")
	kvtest.Begin(t, s)
	s.Set([]byte("un/a"), []byte("1"))
	kvtest.Commit(t, s)
	if info, err := d.Info(t.Context()); err != nil || !strings.Contains(fmt.Sprint(info.Settings), "2 in the URL, 1 answered") {
		t.Errorf("Info with a dead node: %+v, %v", info, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Reset(t.Context()); err == nil {
		t.Error("a closed database was reset")
	}
}

// enableAuthentication creates the user teller with the password hunter2@, who may use the keys that begin with b/.
// Then it enables authentication.
func enableAuthentication(t *testing.T, admin *clientv3.Client) {
	t.Helper()
	ctx := t.Context()
	for _, step := range []func() error{
		func() error { _, err := admin.RoleAdd(ctx, "root"); return err },
		func() error { _, err := admin.UserAdd(ctx, "root", "r00t"); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := admin.RoleAdd(ctx, "bank"); return err },
		func() error {
			_, err := admin.RoleGrantPermission(ctx, "bank", "b/", "b0", clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := admin.UserAdd(ctx, "teller", "hunter2@"); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "teller", "bank"); return err },
		func() error { _, err := admin.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAuthenticationErrorsAreClassified(t *testing.T) {
	c := startCluster(t, 1, nil)
	host := c.Endpoints()[0]
	ctx := t.Context()
	enableAuthentication(t, client(t, host, "", ""))

	// On a loaded machine an authentication may take longer than a call may take.
	answered := func(url string) (d *etcd.Database, err error) {
		for {
			if d, err = etcd.Open(ctx, url); db.ClassOf(err) != db.Unavailable || ctx.Err() != nil {
				return d, err
			}
		}
	}
	_, err := answered("etcd://teller:hunter3%40@" + host)
	if db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "password") || strings.Contains(err.Error(), "hunter3") {
		t.Errorf("a wrong password: class %v: %v", db.ClassOf(err), err)
	}
	_, err = answered(c.URL())
	if db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "user:password") {
		t.Errorf("no user: class %v: %v", db.ClassOf(err), err)
	}

	d := drivertest.Open(t, func(_ context.Context, url string) (*etcd.Database, error) { return answered(url) }, "etcd://teller:hunter2%40@"+host+"?timeout=10s")
	s := newSession(t, d, "")
	transfer := func() error {
		if err := s.Begin(ctx, false); err != nil {
			return err
		}
		if err := s.Read(ctx, kvtest.Keys("b/1", "b/2"), make([]db.Entry, 2)); err != nil {
			return err
		}
		s.Set([]byte("b/1"), []byte("1"))
		return s.Commit(ctx)
	}
	if err := transfer(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Info(ctx); err != nil {
		t.Errorf("Info: %v", err)
	}
	kvtest.Begin(t, s)
	if err := s.Read(ctx, kvtest.Keys("other"), make([]db.Entry, 1)); db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "missing right") {
		t.Errorf("read without the right: class %v: %v", db.ClassOf(err), err)
	}
	kvtest.Begin(t, s)
	s.Set([]byte("other"), nil)
	if err := s.Commit(ctx); db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "missing right") {
		t.Errorf("write without the right: class %v: %v", db.ClassOf(err), err)
	}

	// A restarted server has forgotten its tokens. The commit is not applied, and the next try gets a new token.
	time.Sleep(time.Second)
	restart(t, c, 0)
	for tries := 0; ; tries++ {
		err := transfer()
		if err == nil {
			break
		}
		if class := db.ClassOf(err); tries == 20 || class == db.Fatal {
			t.Fatalf("after a restart, try %d: class %v: %v", tries, class, err)
		} else if class != db.Aborted {
			kvtest.ResetUntil(t, s)
		}
	}
}

func TestFullDatabaseNamesTheQuotaFlag(t *testing.T) {
	c := startCluster(t, 1, url.Values{"set.quota-backend-bytes": {"262144"}})
	s := newSession(t, drivertest.Open(t, etcd.Open, c.URL()), "")
	// etcd checks the size that its file had when it was last written, every 100 ms.
	for i := range 5000 {
		kvtest.Begin(t, s)
		s.Set(fmt.Appendf(nil, "qu/%d", i), make([]byte, 10_000))
		if err := s.Commit(t.Context()); err != nil {
			if db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "--quota-backend-bytes") {
				t.Errorf("a full database: class %v: %v", db.ClassOf(err), err)
			}
			return
		}
	}
	t.Error("50 megabytes went into a quarter of one")
}
