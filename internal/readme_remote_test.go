package internal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/pgbouncer"
	postgres "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db/drivertest"
	postgresdb "stroppy/internal/db/postgres"
)

// remotePassword has all printable characters of ASCII that are no letters and no digits.
const remotePassword = "a !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~z"

// remotePostgres starts a server as providers have them, and returns its URL. The user is no superuser and has a schema of
// its own, time-outs, and 100 connections. Clients meet PgBouncer in transaction mode, with TLS and a password.
func remotePostgres(t *testing.T) string {
	t.Helper()
	server, err := postgres.Start(t.Context(), cluster.Alone(map[string]string{"fsync": "off"}))
	skipMissing(t, "postgres", err)
	t.Cleanup(func() { drivertest.Must(t, server.Stop()) })
	d, err := postgresdb.Open(t.Context(), server.URL())
	drivertest.Must(t, err)
	defer d.Close()
	for _, statement := range []string{
		"CREATE ROLE bank LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE", "CREATE DATABASE bank",
		"REVOKE ALL ON DATABASE bank FROM public", "GRANT CONNECT, TEMPORARY ON DATABASE bank TO bank",
		"ALTER ROLE bank SET search_path = own", "ALTER ROLE bank SET statement_timeout = '30s'",
		"ALTER ROLE bank SET idle_in_transaction_session_timeout = '60s'",
	} {
		drivertest.Must(t, d.Exec(t.Context(), statement))
	}
	within, err := postgresdb.Open(t.Context(), server.URLFor(postgres.Superuser, "", "bank"))
	drivertest.Must(t, err)
	defer within.Close()
	for _, statement := range []string{"REVOKE ALL ON SCHEMA public FROM public", "CREATE SCHEMA own AUTHORIZATION bank"} {
		drivertest.Must(t, within.Exec(t.Context(), statement))
	}
	authority := drivertest.NewAuthority(t)
	certificate, key := authority.Issue("pooler", "localhost", "127.0.0.1")
	users := filepath.Join(filepath.Dir(authority.File), "users.txt")
	quote := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	drivertest.Must(t, os.WriteFile(users, []byte(quote("bank")+" "+quote(remotePassword)+"\n"), 0o644))
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(server.Port()))
	pooler, err := pgbouncer.Start(t.Context(), at, "bank", map[string]string{
		"auth_type": "scram-sha-256", "auth_file": users, "client_tls_sslmode": "require", "client_tls_cert_file": certificate,
		"client_tls_key_file": key, "client_tls_ca_file": authority.File, "max_client_conn": "100", "default_pool_size": "15",
	})
	skipMissing(t, "pgbouncer", err)
	t.Cleanup(func() { drivertest.Must(t, pooler.Stop()) })
	address, err := url.Parse(pooler.URL("bank", "bank", ""))
	drivertest.Must(t, err)
	return fmt.Sprintf("postgres://%s@localhost:%s/bank?sslmode=verify-full&sslrootcert=%s", url.UserPassword("bank", remotePassword), address.Port(), authority.File)
}

// TestManagedDatabasePage runs the commands of the page about managed databases on a server as providers have them. No
// file, no log and no output has a form of the password.
func TestManagedDatabasePage(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	t.Parallel()
	address := remotePostgres(t)
	stroppy := buildStroppy(t)
	sh := newShell(t, stroppy, &sharedPostgres{t: t})
	sh.servers.remote = address
	const page = "../docs/how-to/test-a-managed-database.md"
	list, err := commands(page, read(t, page))
	drivertest.Must(t, err)
	for _, c := range list {
		t.Run(fmt.Sprintf("line %d", c.line), func(t *testing.T) { sh.try(t, c) })
	}
	validateResults(t, sh.dir)
	encoded := strings.TrimPrefix(url.UserPassword("", remotePassword).String(), ":")
	forms := []string{remotePassword, encoded, strings.ReplaceAll(encoded, "%20", "+")}
	for _, c := range []struct {
		code int
		call string
		says string
	}{
		{0, "run tpcb --ratio 1:10:100 --count 100 --db '" + address + "'", "VALID"},
		{0, "run tpcb --no-load --mode procedure --count 100 --db '" + address + "'", "VALID"},
		{0, "run script --builtin simple-update --no-load --clients 4 --count 100 --db '" + address + "'", "VALID"},
		{0, "run kv --records 100 --clients 60 --count 500 --isolation 'repeatable read' --db '" + address + "'", "VALID"},
		{0, "run bank --dry-run --db '" + address + "'", "localhost"},
		{0, "probe --json --db '" + address + "'", "statement_timeout"},
		{0, "init --db '" + address + "'", "pgbench_accounts"},
		{3, "run bank --accounts 100 --clients 200 --db '" + address + "&connect_timeout=5'", "take fewer clients, or raise PgBouncer's max_client_conn"},
		{3, "run bank --db '" + strings.Replace(address, "@localhost", "@127.0.0.2", 1) + "&connect_timeout=5'", "127.0.0.2"},
		{3, "run bank --db '" + strings.Replace(address, "a%20", "b%20", 1) + "'", "wrong user or password"},
		{3, "run bank --db '" + address + "&search_path=public'", "set it for the user (ALTER ROLE"},
	} {
		code, stdout, stderr := sh.run(t, "stroppy "+c.call)
		if code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s ended with %d, not %d: %s%s", strings.ReplaceAll(c.call, address, "URL"), code, c.code, stdout, stderr)
		}
		for _, form := range forms {
			if strings.Contains(stdout+stderr, form) {
				t.Errorf("%s printed the password", c.call[:20])
			}
		}
	}
	files := 0
	err = filepath.WalkDir(sh.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, form := range forms {
			if strings.Contains(string(text), form) {
				t.Errorf("%s has the password", path)
			}
		}
		files++
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were searched: %v", files, err)
	}
}

// skipMissing ends the test if a server could not be started. It skips the test if the server is not installed.
func skipMissing(t *testing.T, engine string, err error) {
	t.Helper()
	if lacks := (host.MissingError{}); errors.As(err, &lacks) {
		t.Skipf("skipped engine: %s: install the Debian package %s", engine, lacks.Package)
	}
	drivertest.Must(t, err)
}
