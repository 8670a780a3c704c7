package etcd_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	servers "stroppy/internal/cluster"
	cluster "stroppy/internal/cluster/etcd"
	"stroppy/internal/db"
	"stroppy/internal/db/etcd"
)

func startCluster(t testing.TB, nodes int, params url.Values) *cluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := cluster.Start(ctx, servers.Options{Nodes: nodes, InMemory: true, Loopback: true, Params: params})
	var missing servers.MissingError
	if errors.As(err, &missing) {
		t.Skip("skipped engine: etcd: install the Debian package etcd-server")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func open(t testing.TB, url string) *etcd.Database {
	t.Helper()
	d, err := etcd.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func newSession(t testing.TB, d *etcd.Database, name string) db.KVSession {
	t.Helper()
	s, err := d.KVSession(t.Context(), db.SessionOptions{Isolation: name})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// client is etcd's own, for what the driver has no use for.
func client(t testing.TB, endpoint, user, password string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Username: user, Password: password, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func keys(names ...string) (all [][]byte) {
	for _, n := range names {
		all = append(all, []byte(n))
	}
	return all
}

func mustBegin(t testing.TB, s db.KVSession) {
	t.Helper()
	if err := s.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
}

// mustRead returns the values as text, "-" for an absent key.
func mustRead(t testing.TB, s db.KVSession, names ...string) []string {
	t.Helper()
	out := make([]db.Entry, len(names))
	if err := s.Read(t.Context(), keys(names...), out); err != nil {
		t.Fatal(err)
	}
	values := make([]string, len(out))
	for i, e := range out {
		values[i] = "-"
		if e.Found {
			values[i] = string(e.Value)
		}
	}
	return values
}

func expectRead(t testing.TB, s db.KVSession, want string, names ...string) {
	t.Helper()
	if got := strings.Join(mustRead(t, s, names...), " "); got != want {
		t.Errorf("read %v: %q, want %q", names, got, want)
	}
}

func expectCommit(t testing.TB, s db.KVSession) {
	t.Helper()
	if err := s.Commit(t.Context()); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func expectAborted(t testing.TB, s db.KVSession) {
	t.Helper()
	if err := s.Commit(t.Context()); db.ClassOf(err) != db.Aborted || err == nil {
		t.Fatalf("commit gives %v, want class aborted", err)
	}
}

// put writes outside the session under test.
func put(t testing.TB, d *etcd.Database, pairs ...string) {
	t.Helper()
	s := newSession(t, d, "")
	mustBegin(t, s)
	for i := 0; i < len(pairs); i += 2 {
		s.Set([]byte(pairs[i]), []byte(pairs[i+1]))
	}
	expectCommit(t, s)
}
