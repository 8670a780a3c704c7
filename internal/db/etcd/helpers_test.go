package etcd_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	servers "stroppy/internal/cluster"
	cluster "stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	"stroppy/internal/db"
	"stroppy/internal/db/etcd"
)

func startCluster(t testing.TB, nodes int, params url.Values) *cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := cluster.Start(ctx, servers.Options{Nodes: nodes, InMemory: true, Loopback: true, Params: params})
	var missing host.MissingError
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

func newSession(t testing.TB, d *etcd.Database, name string) db.KVSession {
	t.Helper()
	s, err := d.KVSession(t.Context(), db.SessionOptions{Isolation: name})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// client opens etcd's own client, for requests that the driver does not have.
func client(t testing.TB, endpoint, user, password string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Username: user, Password: password, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func expectAborted(t testing.TB, s db.KVSession) {
	t.Helper()
	if err := s.Commit(t.Context()); db.ClassOf(err) != db.Aborted || err == nil {
		t.Fatalf("commit gives %v, want class aborted", err)
	}
}
