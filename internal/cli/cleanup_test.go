package cli_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/cluster/redis"
)

// TestCleanupRemovesAllLoads checks that cleanup removes the data of all workloads, and that a second cleanup finds
// nothing.
func TestCleanupRemovesAllLoads(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	for kind, start := range map[string]func(context.Context) (cluster.Cluster, error){
		"etcd": func(ctx context.Context) (cluster.Cluster, error) {
			return etcd.Start(ctx, cluster.Options{Nodes: 1, InMemory: true, Loopback: true})
		},
		"mariadb": func(ctx context.Context) (cluster.Cluster, error) {
			return mysqlcluster.StartMariaDB(ctx, cluster.Options{Nodes: 1, InMemory: true, Loopback: true})
		},
		"redis": func(ctx context.Context) (cluster.Cluster, error) {
			return redis.StartCluster(ctx, cluster.Options{Nodes: 2, InMemory: true, Loopback: true})
		},
		"postgres": nil,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if start == nil {
				cleaned(t, startPostgres(t).URL())
				return
			}
			c, err := start(t.Context())
			if missing := (host.MissingError{}); errors.As(err, &missing) {
				t.Skipf("skipped engine: %s: install the Debian package %s", kind, missing.Package)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Stop(); err != nil {
					t.Error(err)
				}
			})
			cleaned(t, c.URL())
		})
	}
}

// cleaned runs every workload on a database and cleans it up.
func cleaned(t *testing.T, url string) {
	t.Helper()
	for _, w := range [][]string{{"bank", "--accounts", "200"}, {"tpcb", "--ratio", "1:10:1000"}, {"kv", "--records", "2000"}, {"events"}, {"append"}} {
		args := append([]string{"run"}, append(w, "--db", url, "--count", "50", "--clients", "2", "--out", filepath.Join(t.TempDir(), w[0]))...)
		if code, stdout, stderr := call(t, args...); code != 0 {
			t.Fatalf("%v ended with %d: %s\n%s", args, code, stderr, stdout)
		}
	}
	code, stdout, stderr := call(t, "cleanup", "--db", url)
	t.Log(stdout)
	if code != 0 || strings.Count(stdout, "removed the ") != 5 || !strings.Contains(stdout, "removed the bank of 200 accounts") {
		t.Errorf("cleanup ended with %d: %s\n%s", code, stderr, stdout)
	}
	code, stdout, stderr = call(t, "cleanup", "--db", url)
	if code != 0 || !strings.HasPrefix(stdout, "nothing to remove: ") {
		t.Errorf("the second cleanup ended with %d: %s\n%s", code, stderr, stdout)
	}
}
