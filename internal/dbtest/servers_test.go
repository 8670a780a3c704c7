package dbtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/disk"
	dqlitecluster "stroppy/internal/cluster/dqlite"
	etcdcluster "stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	mysqlcluster "stroppy/internal/cluster/mysql"
	postgrescluster "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/postgres"
)

// servers holds the real servers that the tests of this package share. The first test that needs a server starts it,
// and TestMain stops it.
type servers struct {
	mu          sync.Mutex // guards the following fields
	postgres    *postgrescluster.Server
	postgresErr error
	mariadb     *mysqlcluster.Server
	mariadbErr  error
	etcd        *etcdcluster.Cluster
	etcdErr     error
	databases   atomic.Int64
	etcdUse     sync.Mutex // held by the test that uses the cluster
}

// shared is set once by TestMain, before any test.
var shared *servers

// TestMain runs the tests and stops the shared servers. The program also serves a fault-injecting file system or a
// node of dqlite, if a test starts it for that.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == host.FaultFSCommand { // a test has started this program to serve a file system
		if err := disk.Serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == dqlitecluster.NodeCommand { // a test has started this program as a node of dqlite
		if err := dqlitecluster.Serve(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	shared = &servers{}
	flag.Parse()
	if err := runMore(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if left, err := os.ReadDir("stroppy-runs"); err == nil && len(left) > 0 { // a command without --out writes there
		fmt.Fprintf(os.Stderr, "%d runs were left in the folder of the tests, such as %s\n", len(left), left[0].Name())
		code = max(code, 1)
	}
	os.Exit(code)
}

// runMore increases the number of parallel tests by half, because most tests wait for servers or for time.
func runMore() error {
	parallel := flag.Lookup("test.parallel")
	n, err := strconv.Atoi(parallel.Value.String())
	if err != nil {
		return err
	}
	return parallel.Value.Set(strconv.Itoa(n + n/2))
}

// stop stops the servers that were started.
func (s *servers) stop() error {
	var errs []error
	if s.postgres != nil {
		errs = append(errs, s.postgres.Stop())
	}
	if s.mariadb != nil {
		errs = append(errs, s.mariadb.Stop())
	}
	if s.etcd != nil {
		errs = append(errs, s.etcd.Stop())
	}
	return errors.Join(errs...)
}

// served ends or skips the test if a server could not be started, and stops the server after the test.
func served[S interface{ Stop() error }](t *testing.T, engine string, s S, err error) S {
	t.Helper()
	skipMissing(t, engine, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// startedCluster is a running cluster of any kind.
type startedCluster interface {
	URL() string
	Stop() error
}

// namedOrStarted returns the address in an environment variable. If it is not set, namedOrStarted starts a cluster of
// one node for the test.
func namedOrStarted[C startedCluster](t *testing.T, engine, variable string, start func(context.Context, cluster.Options) (C, error), params url.Values) string {
	t.Helper()
	needsTime(t)
	if server := os.Getenv(variable); server != "" {
		return server
	}
	c, err := start(t.Context(), cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Params: params})
	return served(t, engine, c, err).URL()
}

// onNode opens the server that an environment variable names, or starts a cluster of one node.
func onNode[C startedCluster, D db.Database](engine, variable string,
	start func(context.Context, cluster.Options) (C, error), params url.Values, open func(context.Context, string) (D, error),
) func(t *testing.T) opener {
	return func(t *testing.T) opener {
		server := namedOrStarted(t, engine, variable, start, params)
		return func(t *testing.T) (db.Database, string) {
			d, err := open(t.Context(), server)
			return opened(t, d, err), server
		}
	}
}

// skipMissing skips the test if a package of the engine is not installed. Any other error ends the test.
func skipMissing(t *testing.T, engine string, err error) {
	t.Helper()
	if missing, ok := errors.AsType[host.MissingError](err); ok {
		t.Skip("skipped engine: " + engine + ": " + missing.Advice())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// opened ends the test if a database could not be opened, and closes it after the test.
func opened[D interface{ Close() error }](t *testing.T, d D, err error) D {
	t.Helper()
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

// needsTime skips the test in short mode.
func needsTime(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers, or takes many seconds")
	}
}

const startLimit = 3 * time.Minute

// postgresServer returns the shared PostgreSQL server.
func postgresServer(t *testing.T) *postgrescluster.Server {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestMatrix/") { // TestMatrix chooses its short cells itself
		needsTime(t)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.postgres == nil && shared.postgresErr == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		// With the default of one second, each deadlock would delay a test.
		alone := cluster.Alone(map[string]string{"deadlock_timeout": "20ms"})
		alone.InMemory = true
		shared.postgres, shared.postgresErr = postgrescluster.Start(ctx, alone)
	}
	skipMissing(t, "postgres", shared.postgresErr)
	return shared.postgres
}

// newPostgresDatabase creates an empty database on the shared server and returns its URL.
func newPostgresDatabase(t *testing.T) string {
	t.Helper()
	s := postgresServer(t)
	name := fmt.Sprintf("bank%d", shared.databases.Add(1))
	psql(t, s.URL(), "CREATE DATABASE "+name)
	return s.URLFor(postgrescluster.Superuser, "", name)
}

// psql executes SQL by PostgreSQL's own client, as another program would. It avoids Debian's wrapper script on PATH,
// which takes ten times as long.
func psql(t *testing.T, url, sql string) string {
	t.Helper()
	program, err := host.FindFile("psql", postgrescluster.DebianPackage, postgrescluster.Folders...)
	if err != nil {
		program, err = postgrescluster.PGBin("psql")
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, url).CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v: %s", err, out)
	}
	return string(out)
}

// openPostgres opens a new, empty database on the shared server.
func openPostgres(t *testing.T) (*postgres.Database, string) {
	t.Helper()
	url := newPostgresDatabase(t)
	return openPostgresURL(t, url), url
}

// openPostgresURL opens the PostgreSQL database at a URL.
func openPostgresURL(t *testing.T, url string) *postgres.Database {
	t.Helper()
	d, err := postgres.Open(t.Context(), url)
	return opened(t, d, err)
}

// useEtcd reserves the shared etcd cluster until the test ends.
func useEtcd(t *testing.T) {
	shared.etcdUse.Lock()
	t.Cleanup(shared.etcdUse.Unlock)
}

// openEtcd opens the shared etcd cluster of three nodes, which the test has reserved. The data of the preceding test
// is still there.
func openEtcd(t *testing.T) *etcd.Database {
	t.Helper()
	needsTime(t)
	startEtcd()
	skipMissing(t, "etcd", shared.etcdErr)
	d, err := etcd.Open(t.Context(), shared.etcd.URL())
	return opened(t, d, err)
}

// startEtcd starts the shared etcd cluster.
func startEtcd() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.etcd == nil && shared.etcdErr == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		shared.etcd, shared.etcdErr = etcdcluster.Start(ctx, cluster.Options{Nodes: 3, InMemory: true, Loopback: true})
	}
}
