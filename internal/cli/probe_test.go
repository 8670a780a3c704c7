//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/cluster/postgres/pgbouncer"
	postgres "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/cluster/redis"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/pgwire"
	postgresdb "stroppy/internal/db/postgres"
)

// page is the JSON of a probe.
type page struct {
	Schema                 int
	Database, Version, URL string
	Facts                  []struct{ Name, Value, Level, Advice string }
	RoundTrip              *struct {
		Count    int
		MedianMS float64 `json:"median_ms"`
		P99MS    float64 `json:"p99_ms"`
	} `json:"round_trip"`
	Clock *struct {
		OffsetMS      float64 `json:"offset_ms"`
		UncertaintyMS float64 `json:"uncertainty_ms"`
	}
}

// probed returns the page of a probe as JSON.
func probed(t *testing.T, url string) *page {
	t.Helper()
	code, stdout, stderr := call(t, "probe", "--db", url, "--json")
	p := new(page)
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(p); err != nil || code != 0 || p.Schema != 1 {
		t.Fatalf("the probe of %s ended with %d, %v: %s%s", url, code, err, stdout, stderr)
	}
	if strings.Contains(stdout+stderr, password) {
		t.Errorf("the page shows the password: %s", stdout)
	}
	return p
}

// has checks the level of a fact, a part of its value and a part of its advice.
func (p *page) has(t *testing.T, name, value, level, advice string) {
	t.Helper()
	for _, f := range p.Facts {
		if f.Name != name {
			continue
		}
		if !strings.Contains(f.Value, value) || f.Level != level || !strings.Contains(f.Advice, advice) || (level == "" || level == "ok") != (f.Advice == "") {
			t.Errorf("%s is %+v, not %q with %s %q", name, f, value, level, advice)
		}
		return
	}
	t.Errorf("no fact is %s: %+v", name, p.Facts)
}

// measured checks that the round trip and, unless hidden, the clock were measured.
func (p *page) measured(t *testing.T, clock bool) {
	t.Helper()
	if r := p.RoundTrip; r == nil || r.Count < 1 || r.MedianMS <= 0 || r.P99MS < r.MedianMS {
		t.Errorf("the round trip is %+v", r)
	}
	if c := p.Clock; clock != (c != nil) || clock && (c.UncertaintyMS <= 0 || c.OffsetMS > 1000+c.UncertaintyMS || c.OffsetMS < -1000-c.UncertaintyMS) {
		t.Errorf("the clock of this machine is %+v", c)
	}
}

// queryText returns the only value of a query on PostgreSQL.
func queryText(t *testing.T, url, query string) (value string) {
	t.Helper()
	d, err := postgresdb.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Control(t.Context(), "ask", func(ctx context.Context, c *pgwire.Control) error {
		row, err := c.Row(ctx, query)
		if err == nil {
			value = row[0]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestProbeFindsSettingsThatLoseData(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	server, err := postgres.Start(t.Context(), cluster.Alone(map[string]string{"fsync": "off", "full_page_writes": "off", "statement_timeout": "30s"}))
	server = started(t, "postgres", server, err)
	execute(t, server.URL(), "ALTER ROLE "+postgres.Superuser+" SET synchronous_commit = off")
	const next = "SELECT txid_snapshot_xmax(txid_current_snapshot())"
	before := queryText(t, server.URL(), next)
	p := probed(t, server.URL())
	if after := queryText(t, server.URL(), next); after != before {
		t.Errorf("the probe has written: the next transaction is %s, not %s", after, before)
	}
	p.measured(t, true)
	p.has(t, "fsync", "off", "warning", "cure: fsync=on")
	p.has(t, "synchronous_commit", "off", "warning", "may be lost if the database should crash; cure: synchronous_commit=on")
	p.has(t, "full_page_writes", "off", "warning", "set it to on")
	p.has(t, "statement_timeout", "30s", "note", "set it to 0")
	p.has(t, "lock_timeout", "0", "ok", "")
	p.has(t, "default isolation", "read committed, which claims read-committed", "", "")
	p.has(t, "role", "primary", "ok", "")
	p.has(t, "right to create tables", "yes", "ok", "")
	p.has(t, "free connections", "max_connections = 100", "ok", "")

	code, stdout, stderr := call(t, "probe", "--db", server.URL())
	first, rest, _ := strings.Cut(stdout, "\n\n")
	problems, facts, _ := strings.Cut(rest, "\n\n")
	if code != 0 || !strings.HasPrefix(first, "PostgreSQL ") || strings.Count(problems, "\n") != 3 || !strings.HasPrefix(problems, "warning  ") ||
		!strings.Contains(problems, "warning  synchronous_commit is off: ") || !strings.Contains(facts, "round trip") {
		t.Errorf("the page ended with %d: %s%s", code, stdout, stderr)
	}
}

func TestProbeNamesMissingRights(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	execute(t, server.URL(), "CREATE ROLE teller LOGIN; REVOKE CREATE ON SCHEMA public FROM public", "CREATE SCHEMA own AUTHORIZATION teller",
		"CREATE ROLE reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on", "ALTER ROLE reader SET search_path = nowhere")
	as := func(user, more string) string { return server.URLFor(user, "", "postgres") + more }
	p := probed(t, as("teller", ""))
	p.has(t, "right to create tables", "no", "warning", "GRANT CREATE ON SCHEMA public TO teller")
	p = probed(t, as("teller", "&search_path=own"))
	p.has(t, "right to create tables", "yes", "ok", "")
	p.has(t, "search_path", "own", "", "")
	p = probed(t, as("reader", ""))
	p.has(t, "schema", "none", "warning", "search_path names no schema")
	p.has(t, "default_transaction_read_only", "on", "warning", "a run writes")
}

func TestProbeSeesPoolerAndStandby(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(server.Port()))
	pooler, err := pgbouncer.Start(t.Context(), at, postgres.Superuser, map[string]string{"default_pool_size": "5"})
	pooler = started(t, "pgbouncer", pooler, err)
	p := probed(t, pooler.URL("anybody", "postgres", ""))
	p.has(t, "pooler", "pool_mode transaction", "note", "add prepare=true")
	p.has(t, "free connections", "not known", "", "")
	p.measured(t, true)

	data := queryText(t, server.URL(), "SHOW data_directory")
	if err := server.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	signal := filepath.Join(data, "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	drivertest.GiveTo(t, data, signal)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = probed(t, server.URL())
	p.has(t, "role", "standby", "warning", "target_session_attrs=read-write")
}

func TestProbeOfMariaDB(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	server, err := mysqlcluster.Start(t.Context(), cluster.Alone(map[string]string{"innodb-flush-log-at-trx-commit": "2", "log-bin": "bin", "sync-binlog": "0"}))
	server = started(t, "mariadb", server, err)
	if _, err := server.SQL(t.Context(), "CREATE USER teller IDENTIFIED BY '"+password+"'; GRANT SELECT, INSERT ON test.* TO teller"); err != nil {
		t.Fatal(err)
	}
	p := probed(t, server.URL())
	p.measured(t, true)
	p.has(t, "innodb_flush_log_at_trx_commit", "2", "warning", "innodb_flush_log_at_trx_commit=1")
	p.has(t, "sync_binlog", "0", "warning", "set it to 1")
	p.has(t, "rights", "all that a run needs", "ok", "")
	p.has(t, "role", "takes writes", "ok", "")
	p = probed(t, server.URLFor("teller", password, "test"))
	p.has(t, "rights", "missing: UPDATE, DELETE, CREATE, DROP, ALTER", "warning", "GRANT UPDATE, DELETE, CREATE, DROP, ALTER ON `test`.* TO 'teller'@'%'")
	p.has(t, "role", "not known", "note", "SLAVE MONITOR")
}

func TestProbeOfRedis(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	nodes, err := redis.StartCluster(t.Context(), cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Unsupervised: true})
	nodes = started(t, "redis", nodes, err)
	u, err := url.Parse(nodes.URL())
	if err != nil {
		t.Fatal(err)
	}
	p := probed(t, nodes.URL())
	p.measured(t, true)
	p.has(t, "appendonly", "yes", "", "")
	p.has(t, "maxmemory-policy", "noeviction", "ok", "")
	p.has(t, "rights", "all that a run needs", "ok", "")
	inline(t, u.Host, "CONFIG SET appendonly no maxmemory-policy allkeys-lru",
		"ACL SETUSER teller on >"+password+" ~* +@connection +@read +role +info +config|get +acl|whoami +acl|dryrun +time")
	p = probed(t, "redis://teller:"+password+"@"+u.Host)
	p.has(t, "appendonly", "no", "warning", "appendonly=yes")
	p.has(t, "maxmemory-policy", "allkeys-lru", "warning", "noeviction")
	p.has(t, "rights", "missing: SET, DEL, EVAL, SCRIPT", "warning", "ACL SETUSER teller")
}

func TestProbeOfEtcd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	nodes, err := etcd.Start(t.Context(), cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Unsupervised: true})
	nodes = started(t, "etcd", nodes, err)
	p := probed(t, nodes.URL())
	p.measured(t, false)
	p.has(t, "alarms", "none", "ok", "")
	p.has(t, "members", "1", "note", "three members")
	p.has(t, "leader", "term", "ok", "")
	p.has(t, "default isolation", "serializable snapshot, which claims strict-serializable", "", "")
}

// TestProbeLeavesFilesAlone checks that the probe neither makes an SQLite file nor changes its journal.
func TestProbeLeavesFilesAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bank.db")
	code, _, stderr := call(t, "probe", "--db", "sqlite:"+file)
	refused(t, code, 3, stderr, "there is no such file")
	if _, err := os.Stat(file); err == nil {
		t.Error("the probe has made the file")
	}
	if code, _, stderr := call(t, "load", "--db", "sqlite:"+file+"?journal=delete", "--accounts", "10"); code != 0 {
		t.Fatal(stderr)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := probed(t, "sqlite:"+file+"?synchronous=off")
	p.measured(t, false)
	p.has(t, "journal_mode", "delete", "note", "a run changes it to wal")
	p.has(t, "synchronous", "off", "warning", "synchronous=FULL")
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the probe has changed the file: %v", err)
	}
	p = probed(t, "memory:")
	p.measured(t, false)
	p.has(t, "default isolation", "strict-serializable", "", "")
}

func TestProbeOfNothing(t *testing.T) {
	t.Parallel()
	silent := drivertest.Serve(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<10)); <-t.Context().Done() })
	for _, one := range []struct {
		code int
		db   string
		says string
	}{
		{3, "postgres://me@127.0.0.1:1/test", "connection refused"},
		{3, "postgres://me@" + silent + "/test?sslmode=disable", ""},
		{2, "postgres://me@localhost:port/test", "port"},
		{2, "postgre://me@localhost/test", "the nearest scheme is postgres:"},
		{2, "", "db"},
	} {
		code, stdout, stderr := call(t, "probe", "--db", one.db)
		refused(t, code, one.code, stderr, one.says)
		if stdout != "" {
			t.Errorf("%s: %s", one.db, stdout)
		}
	}
	code, _, stderr := call(t, "probe")
	refused(t, code, 2, stderr, "needs a database: name it with --db or STROPPY_DB")
}
