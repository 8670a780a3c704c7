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

// servers are the real servers that the tests of this package share; each is
// started by the first test that needs it and stopped when all are done.
type servers struct {
	mu          sync.Mutex // of what follows
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

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == host.FaultFSCommand { // this program, started to serve a node's disk
		if err := disk.Serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == dqlitecluster.NodeCommand { // or to be a node of dqlite
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
	if left, err := os.ReadDir("stroppy-runs"); err == nil && len(left) > 0 { // what a command makes by default, where it was given no --out
		fmt.Fprintf(os.Stderr, "%d runs were left in the folder of the tests, such as %s\n", len(left), left[0].Name())
		code = max(code, 1)
	}
	os.Exit(code)
}

// runMore has half as many more tests run side by side: most of these wait for servers or
// for time, and processors would be idle.
func runMore() error {
	parallel := flag.Lookup("test.parallel")
	n, err := strconv.Atoi(parallel.Value.String())
	if err != nil {
		return err
	}
	return parallel.Value.Set(strconv.Itoa(n + n/2))
}

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

// served is a server of a test's own that was started, and is stopped after it.
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

// startedCluster is a cluster of any kind.
type startedCluster interface {
	URL() string
	Stop() error
}

// namedOrStarted is the address of the server that a variable of the environment names, or
// that of a cluster of one node which ends with the test.
func namedOrStarted[C startedCluster](t *testing.T, engine, variable string, start func(context.Context, cluster.Options) (C, error), params url.Values) string {
	t.Helper()
	needsTime(t)
	if server := os.Getenv(variable); server != "" {
		return server
	}
	c, err := start(t.Context(), cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Params: params})
	return served(t, engine, c, err).URL()
}

// onNode takes a cluster of one node, or what a variable of the environment names.
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

// skipMissing skips the test where an engine could not be started for want of its
// package; any other error ends it.
func skipMissing(t *testing.T, engine string, err error) {
	t.Helper()
	if missing, ok := errors.AsType[host.MissingError](err); ok {
		t.Skip("skipped engine: " + engine + ": " + missing.Advice())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// opened is a database that was opened, and is closed after the test.
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

// needsTime skips what is no short test.
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
	if !strings.HasPrefix(t.Name(), "TestMatrix/") { // which chooses its short cells itself
		needsTime(t)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.postgres == nil && shared.postgresErr == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		// Where transactions wait for each other in a ring, tests would wait for the default of a second.
		alone := cluster.Alone(map[string]string{"deadlock_timeout": "20ms"})
		alone.InMemory = true
		shared.postgres, shared.postgresErr = postgrescluster.Start(ctx, alone)
	}
	skipMissing(t, "postgres", shared.postgresErr)
	return shared.postgres
}

// newPostgresDatabase makes an empty database on the shared server and returns
// its URL.
func newPostgresDatabase(t *testing.T) string {
	t.Helper()
	s := postgresServer(t)
	name := fmt.Sprintf("bank%d", shared.databases.Add(1))
	psql(t, s.URL(), "CREATE DATABASE "+name)
	return s.URLFor(postgrescluster.Superuser, "", name)
}

// psql runs SQL by PostgreSQL's own client, as somebody else's hand would. What Debian has on PATH
// is a script that looks for it, which takes ten times as long.
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

func openPostgresURL(t *testing.T, url string) *postgres.Database {
	t.Helper()
	d, err := postgres.Open(t.Context(), url)
	return opened(t, d, err)
}

// useEtcd has the shared etcd cluster for a test alone, until it ends.
func useEtcd(t *testing.T) {
	shared.etcdUse.Lock()
	t.Cleanup(shared.etcdUse.Unlock)
}

// openEtcd opens the shared etcd cluster of three nodes, which the test uses alone. Its
// data are those of the test before.
func openEtcd(t *testing.T) *etcd.Database {
	t.Helper()
	needsTime(t)
	startEtcd()
	skipMissing(t, "etcd", shared.etcdErr)
	d, err := etcd.Open(t.Context(), shared.etcd.URL())
	return opened(t, d, err)
}

func startEtcd() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.etcd == nil && shared.etcdErr == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		shared.etcd, shared.etcdErr = etcdcluster.Start(ctx, cluster.Options{Nodes: 3, InMemory: true, Loopback: true})
	}
}
