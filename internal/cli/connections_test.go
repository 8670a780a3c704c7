package cli_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/cluster/postgres/pgbouncer"
	postgres "stroppy/internal/cluster/postgres/server"
	postgresdb "stroppy/internal/db/postgres"
)

// few runs a few clients for as short a time as possible.
func few(t *testing.T, clients int, args ...string) []string {
	return append(args, "--clients", fmt.Sprint(clients), "--count", "300", "--out", filepath.Join(t.TempDir(), "run"))
}

// started ends the test if a server could not start, and skips the test if the server is not installed.
func started[S interface{ Stop() error }](t *testing.T, engine string, server S, err error) S {
	t.Helper()
	if missing := (host.MissingError{}); errors.As(err, &missing) {
		t.Skipf("skipped engine: %s: install the Debian package %s", engine, missing.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// narrowAll is the number of connections of narrow, and narrowFree the number of free ones. The test's own sessions
// use the others.
const narrowAll, narrowFree = 20, 18

// narrow starts a PostgreSQL server with few connections.
func narrow(t *testing.T) *postgres.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	server, err := postgres.Start(t.Context(), cluster.Alone(map[string]string{"fsync": "off", "max_connections": fmt.Sprint(narrowAll)}))
	return started(t, "postgres", server, err)
}

// atRest waits until the server no longer counts connections that have ended.
func atRest(t *testing.T, url string) {
	t.Helper()
	d, err := postgresdb.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const look = "DO $$ BEGIN IF (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) > %d THEN RAISE 'not yet'; END IF; END $$"
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(50 * time.Millisecond) {
		err := d.Exec(t.Context(), fmt.Sprintf(look, narrowAll-narrowFree))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestTooManyClientsAreRefused checks that a run is refused before the load if the server has too few connections. The
// error states the limit, and a run with this number of clients succeeds.
func TestTooManyClientsAreRefused(t *testing.T) {
	t.Parallel()
	server := narrow(t)
	url := server.URL()
	for _, workload := range []struct {
		name string
		own  int // connections beside the clients'
		args []string
	}{
		{"bank", 2, []string{"--accounts", "100"}},
		{"bank", 1, []string{"--accounts", "100", "--audits", "0"}},
		{"tpcb", 1, []string{"--scale", "1"}},
		{"kv", 1, []string{"--records", "100", "--in-flight", "4"}},
		{"events", 1, nil},
		{"append", 1, nil},
	} {
		args, most := append([]string{"run", workload.name, "--db", url}, workload.args...), narrowFree-workload.own
		atRest(t, url)
		code, _, stderr := call(t, few(t, most+1, args...)...)
		refused(t, code, 2, stderr, fmt.Sprintf("run %d clients on PostgreSQL at 127.0.0.1:%d: that takes %d connections, %d of them stroppy's own, and it has room for %d more (max_connections = %d): give at most %d --clients, raise max_connections, or connect through a pooler",
			most+1, server.Port(), narrowFree+1, workload.own, narrowFree, narrowAll, most))
		if code, _, stderr := call(t, few(t, most, args...)...); code != 0 {
			t.Errorf("%s with all connections that there are ended with %d: %s", workload.name, code, stderr)
		}
	}
}

// TestPoolerTakesMoreClientsThanTheServer checks that the server's limit does not apply behind a pooler.
func TestPoolerTakesMoreClientsThanTheServer(t *testing.T) {
	t.Parallel()
	server := narrow(t)
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(server.Port()))
	pooler, err := pgbouncer.Start(t.Context(), at, postgres.Superuser, map[string]string{"default_pool_size": "5"})
	pooler = started(t, "pgbouncer", pooler, err)
	args := []string{"run", "bank", "--db", pooler.URL("anybody", "postgres", "prepare=false"), "--accounts", "100"}
	if code, _, stderr := call(t, few(t, 60, args...)...); code != 0 {
		t.Errorf("60 clients on 5 of a server's 20 connections ended with %d: %s", code, stderr)
	}
}

// TestSeriesWithTooManyClientsIsRefused checks that a sweep is refused for its largest step and a comparison for any
// scenario, before anything is created. A run of loaded data is refused like any other.
func TestSeriesWithTooManyClientsIsRefused(t *testing.T) {
	t.Parallel()
	url := narrow(t).URL()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	atRest(t, url)
	code, _, stderr := call(t, "sweep", "bank", "--db", url, "--accounts", "100", "--over", "clients=1,2,40", "--count", "100", "--out", out)
	refused(t, code, 2, stderr, "run 40 clients on PostgreSQL", "it has room for 18 more", "leave out the steps with more than 16 clients, raise max_connections")
	for name, clients := range map[string]int{"small.yaml": 2, "large.yaml": 50} {
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "workload: bank\nclients: %d\naccounts: 100\ncount: 100\n", clients), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	large := filepath.Join(dir, "large.yaml")
	atRest(t, url)
	code, _, stderr = call(t, "compare", filepath.Join(dir, "small.yaml"), large, "--db", url, "--out", out)
	refused(t, code, 2, stderr, "run 50 clients on PostgreSQL", "set clients to at most 16 in "+large)
	if code, _, stderr = call(t, "pop", "--db", url, "--accounts", "100"); code != 0 {
		t.Fatal(stderr)
	}
	atRest(t, url)
	code, _, stderr = call(t, "pay", "--db", url, "--clients", "30", "--duration", "1s", "--out", out)
	refused(t, code, 2, stderr, "run 30 clients on PostgreSQL", "give at most 16 --clients")
	if _, err := os.Stat(out); err == nil {
		t.Error("what was refused has left a directory")
	}
}

// TestMariaDBRefusesTooManyClients checks the same for MariaDB.
func TestMariaDBRefusesTooManyClients(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	server, err := mysqlcluster.Start(t.Context(), cluster.Alone(map[string]string{"max-connections": "20"}))
	server = started(t, "mariadb", server, err)
	args := []string{"run", "bank", "--db", server.URL(), "--accounts", "100"}
	code, _, stderr := call(t, few(t, 19, args...)...)
	refused(t, code, 2, stderr, fmt.Sprintf("run 19 clients on MariaDB at 127.0.0.1:%d: that takes 21 connections, 2 of them stroppy's own, and it has room for 20 more (max_connections = 20): give at most 18 --clients, or raise max_connections", server.Port()))
	if code, _, stderr := call(t, few(t, 18, args...)...); code != 0 {
		t.Errorf("all connections that there are ended with %d: %s", code, stderr)
	}
}

// TestStartedServersHaveEnoughConnections checks that servers that are started for a run accept its connections.
func TestStartedServersHaveEnoughConnections(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	for _, kind := range []string{"postgres:1?loopback=on&memory=on", "mariadb:1?loopback=on&memory=on"} {
		code, _, stderr := call(t, few(t, 600, "run", "bank", "--cluster", kind, "--accounts", "1000")...)
		if code == 3 && strings.Contains(stderr, "install the Debian package") {
			t.Skip("skipped engine: " + kind + ": " + stderr)
		}
		if code != 0 {
			t.Errorf("600 clients on %s ended with %d: %s", kind, code, stderr)
		}
	}
}
