//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	postgres "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db"
	etcddb "stroppy/internal/db/etcd"
	postgresdb "stroppy/internal/db/postgres"
	"stroppy/internal/report"
)

func startPostgres(t *testing.T) *postgres.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	server, err := postgres.Start(t.Context(), cluster.Alone(map[string]string{"fsync": "off"}))
	if missing := (host.MissingError{}); errors.As(err, &missing) {
		t.Skipf("skipped engine: postgres: install the Debian package %s", missing.Package)
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

// execute runs SQL as another program would.
func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	d, err := postgresdb.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, s := range statements {
		if err := d.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBadInputOnPostgreSQLIsExplained checks the errors for settings that the server refuses and for unsuitable data
// on it.
func TestBadInputOnPostgreSQLIsExplained(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	databases := 0
	database := func(t *testing.T) string {
		databases++
		name := fmt.Sprintf("bad%d", databases)
		execute(t, server.URL(), "CREATE DATABASE "+name)
		return name
	}
	as := func(user, name string) string { return server.URLFor(user, "", name) }
	owner := func(name string) string { return as(postgres.Superuser, name) }
	execute(t, server.URL(), "CREATE ROLE weak LOGIN", "CREATE ROLE reader LOGIN", "CREATE ROLE payer LOGIN")

	t.Run("password", func(t *testing.T) { testPassword(t, server, database(t)) })
	t.Run("no bank", func(t *testing.T) { testNoBank(t, owner(database(t))) })
	t.Run("rights", func(t *testing.T) {
		name := database(t)
		testRights(t, owner(name), as("weak", name), as("reader", name))
	})
	t.Run("another bank", func(t *testing.T) { testOtherBank(t, owner(database(t))) })
	t.Run("killed load", func(t *testing.T) { testKilledLoad(t, owner(database(t)), 400_000) })
	t.Run("two machines", func(t *testing.T) { testTwoMachines(t, owner(database(t))) })
	t.Run("interrupts", func(t *testing.T) { testInterrupts(t, server, owner(database(t))) })
	t.Run("commands to paste", func(t *testing.T) { testPaste(t, server.URLFor(postgres.Superuser, "Tr0ub4dor-3", database(t))) })
	t.Run("restart", func(t *testing.T) { testRestart(t, server, owner(database(t))) })
}

// testPassword checks that a wrong password is reported, and that no password is printed or stored.
func testPassword(t *testing.T, server *postgres.Server, name string) {
	const secret = "Tr0ub4dor-3"
	execute(t, server.URL(), "SET password_encryption = 'scram-sha-256'; ALTER ROLE payer PASSWORD '"+secret+"'", "ALTER DATABASE "+name+" OWNER TO payer")
	hba := filepath.Join(filepath.Dir(server.Dir()), "pg_hba.conf")
	rules := read(t, hba)
	if err := os.WriteFile(hba, []byte("host all payer 127.0.0.1/32 scram-sha-256\n"+rules), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server.PIDs()[0], syscall.SIGHUP); err != nil { // it reads its rules again
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	try := func(password string) (int, string, string) {
		return call(t, "run", "--db", server.URLFor("payer", password, name), "--accounts", "100", "--clients", "2", "--count", "300", "--audits", "0", "--out", dir)
	}
	var code int
	var stdout, stderr string
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); { // the server takes its rules anew when it comes to it
		code, stdout, stderr = try("wrong-" + secret)
		if code != 0 {
			break
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, code, 3, stderr, "password authentication failed", "check the user and the password in the URL")
	if _, err := os.Stat(dir); err == nil || strings.Contains(stdout+stderr, secret) {
		t.Errorf("%v, and printed: %s%s", err, stdout, stderr)
	}
	code, stdout, stderr = try(secret)
	if code != 0 || strings.Contains(stdout+stderr, secret) {
		t.Fatalf("with the right password it ended with %d: %s%s", code, stderr, stdout)
	}
	if err := walk(os.DirFS(dir), func(path string, data []byte) {
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s has the password in it", path)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func testNoBank(t *testing.T, url string) {
	dir := filepath.Join(t.TempDir(), "run")
	code, _, stderr := call(t, "run", "--db", url+"&nosuch=1", "--out", dir)
	refused(t, code, 3, stderr, `"nosuch"`, "check the parameters in the URL")
	code, _, stderr = call(t, "run", "--db", url, "--clients", "500", "--out", dir)
	refused(t, code, 2, stderr, "run 500 clients on PostgreSQL at", "and it has room for", "--clients, raise max_connections, or connect through a pooler")
	for _, command := range []string{"pay", "check"} {
		code, _, stderr := call(t, command, "--db", url, "--out", dir)
		refused(t, code, 3, stderr, "there is no bank in this database", "run `stroppy load` first")
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s has left %s", command, dir)
		}
	}
}

func testRights(t *testing.T, owner, weak, reader string) {
	code, _, stderr := call(t, "pop", "--db", weak)
	refused(t, code, 3, stderr, "CREATE TABLE", "permission denied for schema public", "give this user the right")
	if code, _, stderr = call(t, "pop", "--db", owner, "--accounts", "100"); code != 0 {
		t.Fatal(stderr)
	}
	dir := filepath.Join(t.TempDir(), "run")
	pay := []string{"pay", "--db", reader, "--clients", "2", "--count", "100", "--read-only-share", "0", "--out", dir}
	code, _, stderr = call(t, pay...)
	refused(t, code, 3, stderr, "permission denied for table stroppy_meta")
	execute(t, owner, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
	code, _, stderr = call(t, pay...)
	refused(t, code, 3, stderr, "run number", "permission denied for table stroppy_meta", "give this user the right")
	if _, err := os.Stat(dir); err == nil {
		t.Error("a run that never began has left its directory")
	}
	execute(t, owner, "GRANT UPDATE ON stroppy_meta TO reader")
	code, _, stderr = call(t, pay...)
	refused(t, code, 3, stderr, "transaction 1-", "permission denied for table stroppy_account", "give this user the right")

	// The transactions before the error are recorded, and the bank is unchanged.
	if code, stdout, stderr := call(t, "check", dir, "--db", owner, "--json"); code != 4 || !strings.Contains(stderr, "othing was committed") {
		t.Errorf("its check ended with %d: %s%s", code, stderr, stdout)
	}
}

func testOtherBank(t *testing.T, url string) {
	dir := filepath.Join(t.TempDir(), "run")
	if code, _, stderr := call(t, "pop", "--db", url, "--accounts", "100", "--seed", "5"); code != 0 {
		t.Fatal(stderr)
	}
	code, _, stderr := call(t, "pay", "--db", url, "--seed", "6", "--out", dir)
	refused(t, code, 2, stderr, "was loaded with seed 5, and seed 6 is asked for")
	code, _, stderr = call(t, "run", "--no-load", "--db", url, "--accounts", "50", "--out", dir)
	refused(t, code, 2, stderr, "has 100 accounts, and 50 are asked for")

	execute(t, url, "UPDATE stroppy_meta SET value = '3' WHERE name = 'schema'")
	for _, command := range []string{"pay", "check", "run", "pop"} {
		args := []string{command, "--db", url}
		if command != "pop" {
			args = append(args, "--out", dir)
		}
		code, _, stderr = call(t, args...)
		refused(t, code, 3, stderr, "schema version 3 and this program reads 2")
		if _, err := os.Stat(dir); err == nil || strings.Contains(stderr, "repeat with") {
			t.Errorf("%s: %v, %s", command, err, stderr)
		}
	}
	execute(t, url, "UPDATE stroppy_meta SET value = '2' WHERE name = 'schema'")
	if code, _, stderr = call(t, "pay", "--db", url, "--count", "100", "--out", dir); code != 0 {
		t.Errorf("what was refused is not as it was: %d: %s", code, stderr)
	}
}

// testKilledLoad kills a load with SIGKILL. The incomplete data must be refused, and a second load must complete it.
func testKilledLoad(t *testing.T, url string, accounts int, loaded ...func() bool) {
	load := []string{"pop", "--db", url, "--seed", "5", "--json", "--accounts"}
	p := start(t, append(load, fmt.Sprint(accounts))...)
	half := func() bool {
		_, _, stderr := call(t, "pay", "--db", url, "--out", filepath.Join(t.TempDir(), "none"))
		return strings.Contains(stderr, "not finished")
	}
	for _, far := range loaded {
		p.goesOn(t, far)
	}
	p.goesOn(t, func() bool {
		p.signal(t, syscall.SIGSTOP) // so that the load cannot end while it is looked at
		found := half()
		if !found {
			p.signal(t, syscall.SIGCONT)
		}
		return found
	})
	p.signal(t, syscall.SIGKILL)
	if code, _, _ := p.wait(t); code != -1 {
		t.Fatalf("the load ended with %d before it was killed", code)
	}
	dir := filepath.Join(t.TempDir(), "run")
	for _, command := range []string{"pay", "check"} {
		code, _, stderr := call(t, command, "--db", url, "--out", dir)
		refused(t, code, 3, stderr, "the load was not finished: run `stroppy load` again")
	}

	again := accounts
	if len(loaded) == 0 { // what is loaded all or not at all is begun anew, here with fewer
		again = 2000
	}
	code, stdout, stderr := call(t, append(load, fmt.Sprint(again))...)
	if code != 0 || len(loaded) > 0 == strings.Contains(stdout, `"resumed": 0`) {
		t.Fatalf("pop again ended with %d: %s%s", code, stderr, stdout)
	}
	if code, _, stderr = call(t, "pay", "--db", url, "--clients", "4", "--count", "1500", "--audits", "5", "--out", dir); code != 0 {
		t.Fatal(stderr)
	}
	if code, stdout, stderr = call(t, "check", dir, "--db", url); code != 0 || !strings.HasPrefix(stdout, "VALID") {
		t.Errorf("the check ended with %d: %s%s", code, stderr, stdout)
	}
}

func TestKilledLoadIsNotUsed(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		testKilledLoad(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db"), 2_000_000)
	})
	t.Run("etcd", func(t *testing.T) {
		if testing.Short() {
			t.Skip("starts a server")
		}
		nodes, err := etcd.Start(t.Context(), cluster.Options{Nodes: 1, InMemory: true, Loopback: true})
		if missing := (host.MissingError{}); errors.As(err, &missing) {
			t.Skipf("skipped engine: etcd: install the Debian package %s", missing.Package)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := nodes.Stop(); err != nil {
				t.Error(err)
			}
		})
		d, err := etcddb.Open(t.Context(), nodes.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		s, err := d.KVSession(t.Context(), db.SessionOptions{Mode: db.Pipelined})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		testKilledLoad(t, nodes.URL(), 30_000, func() bool {
			keys := 0
			err := s.Scan(t.Context(), []byte("stroppy_account/"), []byte("stroppy_account0"), func(_, _ []byte) error {
				keys++
				return nil
			})
			return err == nil && keys > 0
		})
	})
}

// testTwoMachines runs each step in its own process and working directory, with only the URL of the database.
func testTwoMachines(t *testing.T, url string) {
	if code, _, stderr := start(t, "pop", "--db", url, "--accounts", "300", "--seed", "11").wait(t); code != 0 {
		t.Fatal(stderr)
	}
	paying := start(t, "pay", "--db", url, "--clients", "4", "--count", "2000", "--audits", "5", "--out", "paid")
	if code, _, stderr := paying.wait(t); code != 0 {
		t.Fatal(stderr)
	}
	paid := filepath.Join(paying.dir, "paid")
	code, stdout, stderr := start(t, "check", paid, "--db", url, "--json").wait(t)
	r, err := report.Parse([]byte(stdout))
	if err != nil || code != 0 || r.Verdict != "valid" || r.Seed != 11 || r.Load.Accounts != 300 {
		t.Fatalf("the check ended with %d, %v: %s%s", code, err, stderr, stdout)
	}
	if i := slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == "total" }); !strings.Contains(strings.ReplaceAll(r.Checks[i].Detail, ",", ""), r.Load.Total) {
		t.Errorf("the load's total is %s, and the check says %s", r.Load.Total, r.Checks[i].Detail)
	}

	// A check on a third machine has no history and reports this.
	code, stdout, stderr = start(t, "check", "--db", url, "--json", "--out", "alone").wait(t)
	refused(t, code, 4, stderr, "give the run directory of drive")
	alone, err := report.Parse([]byte(stdout))
	if err != nil || alone.Seed != 11 || alone.Load.Accounts != 300 || alone.Load.Total != r.Load.Total || status(alone, "total") != "valid" {
		t.Errorf("without a history: %v, %s", err, stdout)
	}
}

// testInterrupts sends signals to a run. The first SIGINT ends the load phase and starts the check. The second ends
// the process, and the recorded transactions can be checked.
func testInterrupts(t *testing.T, server *postgres.Server, url string) {
	args := []string{"run", "--db", url, "--accounts", "200", "--clients", "4", "--duration", "10m", "--rate", "200", "--audits", "5", "--out"}
	p := start(t, append(args, "early")...)
	p.drives(t, "early")
	p.signal(t, syscall.SIGINT)
	if code, stdout, stderr := p.wait(t); code != 0 || !strings.HasPrefix(stdout, "VALID") || !strings.Contains(stdout, "ended early by the user") {
		t.Errorf("one interrupt: %d: %s%s", code, stderr, stdout)
	}

	p = start(t, append(args, "twice")...)
	p.drives(t, "twice")
	if err := server.Pause(t.Context()); err != nil { // so that the drive cannot end by itself
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGINT)
	p.goesOn(t, func() bool { return strings.Contains(read(t, p.stderr), "One more interrupt ends everything") })
	p.signal(t, syscall.SIGINT)
	code, _, stderr := p.wait(t)
	refused(t, code, 3, stderr, "interrupted: the recording so far is kept: `stroppy check ", "twice --db ", "` checks it")
	if err := server.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(p.dir, "twice")
	code, _, stderr = call(t, "check", dir)
	refused(t, code, 4, stderr, "unknown: ")
	if code, stdout, stderr := call(t, "check", dir, "--db", url); code != 0 {
		t.Errorf("checked with the database it ended with %d: %s%s", code, stderr, stdout)
	}
}

// testRestart kills and restarts the server during a run. The outage must be measured and printed, and nothing may be
// lost.
func testRestart(t *testing.T, server *postgres.Server, url string) {
	const away = 1200 * time.Millisecond
	p := start(t, "run", "--db", url, "--accounts", "200", "--clients", "4", "--duration", "5s", "--rate", "200", "--audits", "5", "--json", "--out", "run")
	p.drives(t, "run")
	if err := server.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(away)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := p.wait(t)
	r, err := report.Parse([]byte(stdout))
	if err != nil || code != 0 || r.Verdict != "valid" {
		t.Fatalf("it ended with %d, %v: %s%s", code, err, stderr, stdout)
	}
	if r.Drive.Reconnects == 0 || r.Drive.Outage == nil || r.Drive.Outage.Seconds < away.Seconds() || len(r.Drive.Errors) == 0 {
		t.Errorf("%d reconnects, an outage of %+v, errors %+v", r.Drive.Reconnects, r.Drive.Outage, r.Drive.Errors)
	}
	code, stdout, stderr = call(t, "report", filepath.Join(p.dir, "run"), "--verbose")
	if code != 0 || !strings.Contains(stdout, "longest gap without a commit") || !strings.Contains(stdout, "Errors that the database reported") {
		t.Errorf("the report does not show the outage: %d %s%s", code, stderr, stdout)
	}
}

// TestSilentHostEndsTheCallInTime checks that a host that accepts no connection, or does not answer, ends the call in
// bounded time.
func TestSilentHostEndsTheCallInTime(t *testing.T) {
	mute, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	for name, address := range map[string]string{"mute": mute.Addr().String(), "packets swallowed": swallowing(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, url := range []string{"postgres://u@" + address + "/d?connect_timeout=1&sslmode=disable", "etcd://" + address + "?timeout=1s"} {
				code, stdout, stderr := call(t, "run", "--json", "--db", url, "--out", filepath.Join(t.TempDir(), "run"))
				refused(t, code, 3, stderr, address, "no answer in time", "check the address, and whether a server runs there")
				if stdout != "" {
					t.Errorf("printed %q", stdout)
				}
			}
		})
	}
}

// swallowing returns an address whose connection queue is full. The kernel drops every further packet that would open
// a connection (listen(2), backlog).
func swallowing(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	err = errors.Join(syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(socket, 0))
	if err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	for range 100 {
		conn, err := net.DialTimeout("tcp4", address, 200*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the queue never fills")
	return ""
}
