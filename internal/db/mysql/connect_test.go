package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
	"stroppy/internal/db/wire"
)

func TestURLIsParsedWithoutRevealingPassword(t *testing.T) {
	for _, url := range []string{
		"postgres://u:" + secret + "@h/d",
		"mysql://u:" + secret + "@h",
		"mysql://u:" + secret + "@h/",
		"mysql://h/d",
		"mysql://u:s3cr3t/w0rd@h/d",
		"mysql://u:s3cr3t?w0rd@h/d",
		"mysql://u:s3cr3t#w0rd@h/d",
		"mysql://u:" + secret + "%zz@h/d",
		"mysql://u:" + secret + "@h:/d",
		"mysql://u:" + secret + "@:1/d",
		"mysql://u:" + secret + "@[::1/d",
		"mysql://u:" + secret + "@h1,,h2/d",
		"mysql://u:" + secret + "@h/d?timeout=soon",
		"mysql://u:" + secret + "@h/d?timeout=-1s",
		"mysql://u:" + secret + "@h/d?answer_timeout=10",
		"mysql://u:" + secret + "@h/d?spread=perhaps",
		"mysql://u:" + secret + "@h/d?tls=perhaps",
		"mysql://u:" + secret + "@h/d?compress=perhaps",
		"mysql://u:" + secret + "@h/d?multiStatements=false",
		"mysql://u:" + secret + "@h/d?allowAllFiles=true",
		"mysql://u:" + secret + "@h/d?autocommit=1&autocommit=0",
		"mysql://u:" + secret + "@h/d?a;b",
	} {
		_, err := Open(t.Context(), url)
		sqltest.WantError(t, url, err, db.Fatal, "")
	}
	a, err := parseURL("mysql://u%40x:a%2Fb@c@h1:1,h2,[::1]:3/d?timeout=3s&tx_isolation='SERIALIZABLE'&spread=true&answer_timeout=5s")
	if err != nil {
		t.Fatal(err)
	}
	c := a.hosts[1]
	if a.where() != "h1:1,h2:3306,[::1]:3" || a.connect != 3*time.Second || a.answer != 5*time.Second || !a.spread || c.Params["innodb_lock_wait_timeout"] != "4" || c.User != "u@x" || c.Passwd != "a/b@c" || c.DBName != "d" ||
		c.Params["tx_isolation"] != "'SERIALIZABLE'" || c.Params["autocommit"] != "1" || !c.ClientFoundRows || !c.MultiStatements || c.AllowAllFiles {
		t.Errorf("%v %+v %+v", a.where(), a, c)
	}
}

func TestInfoReportsSettings(t *testing.T) {
	_, url := fresh(t)
	d := drivertest.Open(t, Open, url+"?tx_isolation='SERIALIZABLE'")
	info, err := d.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Name != "MariaDB" || !strings.Contains(info.Version, "MariaDB") {
		t.Errorf("%+v", info)
	}
	values := map[string]string{}
	for _, s := range info.Settings {
		values[s.Name] = s.Value
	}
	for name, want := range map[string]string{
		"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0", "tx_isolation": "SERIALIZABLE", "innodb_snapshot_isolation": "OFF",
	} {
		if values[name] != want {
			t.Errorf("%s is %q, want %q", name, values[name], want)
		}
	}
	if _, there := values["wsrep_on"]; there {
		t.Errorf("a plain server shows Galera's settings: %v", info.Settings)
	}
	if c, err := d.Claim(""); err != nil || c.Isolation != serializable {
		t.Errorf("the default is %+v, %v", c, err)
	}
	if dialect := d.Dialect(); !dialect.AddConstraint || dialect.Returning || dialect.TextType(8) != "VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin" {
		t.Errorf("%+v", dialect)
	}
}

func TestFootprintGrowsWithTheData(t *testing.T) {
	m, url := fresh(t)
	d := drivertest.Open(t, Open, url)
	size := func(d *Database) int64 {
		bytes, err := d.Footprint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	if empty := size(d); empty != 0 {
		t.Errorf("an empty database takes %d bytes", empty)
	}
	bank.Make(t, d, 20_000)
	full := size(d)
	if full < 20_000*60 {
		t.Errorf("20,000 accounts take %d bytes", full)
	}
	name := url[strings.LastIndex(url, "/")+1:]
	sqltest.Execute(t, d, "CREATE USER IF NOT EXISTS counter", "GRANT ALL ON "+name+".* TO counter", "ANALYZE TABLE accounts")
	if estimate := size(drivertest.Open(t, Open, m.URLFor("counter", "", name))); estimate < full/2 {
		t.Errorf("without the right PROCESS: %d bytes, with it %d", estimate, full)
	}
}

func TestConnectionErrorsAreClassified(t *testing.T) {
	m := start(t, map[string]string{"max-connections": "12", "wait-timeout": "28800"})
	d := drivertest.Open(t, Open, m.URL())
	sqltest.Execute(t, d, "CREATE USER reader IDENTIFIED BY '"+secret+"'", "CREATE DATABASE closed", "CREATE TABLE hidden (n INT)",
		"CREATE TABLE seen (n INT)", "GRANT SELECT ON test.seen TO reader")
	ctx := t.Context()
	fails := func(what, url string, class db.Class, code string) {
		t.Helper()
		_, err := Open(ctx, url)
		sqltest.WantError(t, what, err, class, code)
	}
	fails("wrong password", m.URLFor("reader", "wrong-"+secret, "test"), db.Fatal, "1045")
	fails("missing database", m.URLFor(mysqlcluster.Superuser, "", "nowhere"), db.Fatal, "1049")
	fails("no right to the database", m.URLFor("reader", secret, "closed"), db.Fatal, "1044")
	fails("no TLS", m.URL()+"?tls=true", db.Fatal, "")
	fails("a variable that is not there", m.URL()+"?no_such_variable=1", db.Fatal, "1193")
	for query, code := range map[string]string{
		"tx_isolation='never'": "1231", "innodb_lock_wait_timeout=soon": "1232", "innodb_flush_log_at_trx_commit=0": "1229",
		"version=10": "1238", "time_zone=Nowhere/City": "1298", "time_zone=(": "1064",
	} {
		_, err := Open(ctx, m.URL()+"?"+query)
		sqltest.WantError(t, query, err, db.Fatal, code)
		if !strings.HasSuffix(err.Error(), ": check the parameters in the URL (code "+code+")") {
			t.Errorf("%s: %v", query, err)
		}
	}
	unusual := drivertest.Open(t, Open, m.URL()+"?sql_mode=&time_zone=-05:00")
	if got := ask(t, unusual, "SELECT CONCAT(@@sql_mode, '|', @@time_zone)"); got != "|-05:00" {
		t.Errorf("sql_mode and time_zone are %s", got)
	}

	reader := drivertest.Open(t, Open, m.URLFor("reader", secret, "test"))
	sqltest.WantError(t, "DDL without the right", reader.Exec(ctx, "CREATE TABLE t (n INT)"), db.Fatal, "1142")
	s := newSession(t, reader, db.Pipelined, "")
	hidden := &db.Statement{SQL: "SELECT n FROM hidden", Columns: []db.Type{db.Integer}}
	sqltest.WantError(t, "reading without the right", sqltest.Transact(ctx, s, true, false, sqltest.With(hidden, nil)), db.Fatal, "1142")
	_, err := d.Session(ctx, db.SessionOptions{Isolation: "never", Mode: db.Pipelined})
	sqltest.WantError(t, "an isolation that is not there", err, db.Fatal, "")
	_, err = d.Session(ctx, db.SessionOptions{Mode: 9})
	sqltest.WantError(t, "a mode that is not there", err, db.Fatal, "")

	full := false
	for range 20 {
		s, err := reader.Session(ctx, db.SessionOptions{Mode: db.Pipelined})
		if err != nil {
			sqltest.WantError(t, "too many connections", err, db.Unavailable, "1040")
			full = true
			break
		}
		defer s.Close()
	}
	if !full {
		t.Error("20 connections to a server that takes 12")
	}
}

func TestSilentServersAreReportedInTime(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "mysql://u:" + secret + "@" + l.Addr().String() + "/d"
	_, err = Open(t.Context(), url+"?timeout=50ms")
	sqltest.WantError(t, "a server that says nothing", err, db.Unavailable, "")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = Open(ctx, url)
	if sqltest.WantError(t, "cancelled", err, db.Unavailable, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	hangUp := make(chan struct{})
	go func() {
		defer close(hangUp)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	_, err = Open(t.Context(), url)
	sqltest.WantError(t, "a server that hangs up", err, db.Unavailable, "")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	<-hangUp
	_, err = Open(t.Context(), url)
	sqltest.WantError(t, "no server", err, db.Unavailable, "")
}

// hostOf returns the address of a server for a URL.
func hostOf(m *mysqlcluster.Server) string { return fmt.Sprintf("127.0.0.1:%d", m.Port()) }

// TestSessionsUseThePrimaryOfSeveralHosts uses two independent servers as a primary and its replica.
func TestSessionsUseThePrimaryOfSeveralHosts(t *testing.T) {
	a, b := start(t, map[string]string{"server-id": "1"}), start(t, map[string]string{"server-id": "2"})
	url := "mysql://plain:" + secret + "@" + hostOf(a) + "," + hostOf(b) + "/test?timeout=1s"
	for _, m := range []*mysqlcluster.Server{a, b} {
		if _, err := m.SQL(t.Context(), "CREATE USER plain IDENTIFIED BY '"+secret+"'; GRANT ALL ON test.* TO plain"); err != nil {
			t.Fatal(err)
		}
	}
	at := func(s *session) string {
		t.Helper()
		row, err := s.row("SELECT @@server_id")
		if err != nil {
			t.Fatal(err)
		}
		return row[0]
	}
	d := drivertest.Open(t, Open, url)
	s := newSession(t, d, db.Pipelined, "")
	if got := at(s); got != "1" {
		t.Errorf("the first session is on server %s", got)
	}
	if _, err := a.SQL(t.Context(), "SET GLOBAL read_only = ON"); err != nil {
		t.Fatal(err)
	}
	one := &db.Statement{SQL: "SELECT 1", Columns: []db.Type{db.Integer}}
	sqltest.WantError(t, "a primary that was demoted", sqltest.Transact(t.Context(), s, false, false, sqltest.With(one, nil)), db.Unavailable, "1290")
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := at(s); got != "2" {
		t.Errorf("after the demotion it is on server %s", got)
	}
	if got := ask(t, d, "SELECT @@server_id"); got != "2" {
		t.Errorf("a new connection goes to server %s", got)
	}
	if err := b.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := s.Reset(t.Context())
	if sqltest.WantError(t, "one down, one read-only", err, db.Unavailable, ""); !strings.Contains(err.Error(), hostOf(a)) || !strings.Contains(err.Error(), hostOf(b)) {
		t.Error(err)
	}
	if _, err := a.SQL(t.Context(), "SET GLOBAL read_only = OFF"); err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := at(s); got != "1" {
		t.Errorf("after the fail-over it is on server %s", got)
	}
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	spread := drivertest.Open(t, Open, url+"&spread=true")
	var places []string
	for range 4 {
		places = append(places, at(newSession(t, spread, db.Pipelined, "")))
	}
	if slices.Sort(places); strings.Join(places, "") != "1122" {
		t.Errorf("four sessions are on the servers %v", places)
	}
}

func TestTLSAndCompressionFollowTheURL(t *testing.T) {
	certificate, key := drivertest.Certificate(t)
	m := start(t, map[string]string{"ssl-cert": certificate, "ssl-key": key})
	_, err := Open(t.Context(), m.URL()+"?tls=true")
	sqltest.WantError(t, "a certificate that nobody trusts", err, db.Fatal, "")
	for i, parameter := range []string{"tls=skip-verify", "compress=true"} {
		d := drivertest.Open(t, Open, m.URL()+"?"+parameter)
		if i == 0 {
			bank.Make(t, d, 3)
		}
		sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
			s := newSession(t, d, mode, "")
			row, err := s.row("SHOW STATUS LIKE 'Ssl_cipher'")
			if err != nil || (row[1] != "") != (i == 0) {
				t.Errorf("%s: %v %v", parameter, row, err)
			}
			if err := sqltest.Transact(t.Context(), s, false, false, bank.Touch(0, 1), bank.See(0)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * wire.RestTime)
			if err := sqltest.Transact(t.Context(), s, false, false, bank.Touch(0, 1), bank.See(0)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.row("SELECT CONNECTION_ID()"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestGaleraIsDetected checks that a cluster of one node is distinguished from a plain server.
func TestGaleraIsDetected(t *testing.T) {
	const library = "/usr/lib/galera/libgalera_smm.so"
	if _, err := os.Stat(library); err != nil {
		t.Skip("skipped engine: galera: install the Debian package galera-4")
	}
	m := start(t, map[string]string{
		"wsrep-on": "ON", "wsrep-provider": library, "wsrep-cluster-address": "gcomm://", "wsrep-cluster-name": "stroppy",
		"wsrep-node-address": "127.0.0.1", "binlog-format": "ROW", "innodb-autoinc-lock-mode": "2",
		"wsrep-provider-options": "gmcast.listen_addr=tcp://127.0.0.1:0;gcache.size=8M",
	})
	d := drivertest.Open(t, Open, m.URL()+"?tx_isolation='SERIALIZABLE'")
	info, err := d.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, s := range info.Settings {
		values[s.Name] = s.Value
	}
	if info.Name != "MariaDB Galera Cluster" || values["wsrep_cluster_size"] != "1" || values["wsrep_cluster_name"] != "stroppy" || values["wsrep_provider_version"] == "" {
		t.Errorf("%+v", info)
	}
	if c, err := d.Claim(""); err != nil || c.Isolation != serializable || c.Source != sourceGalera {
		t.Errorf("%+v, %v", c, err)
	}
	if d.Dialect().AddConstraint {
		t.Error("a table may be without a primary key")
	}
	bank.Make(t, d, 3)
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		if s.options.Mode != db.Interactive {
			t.Error("statements travel together, which Galera does not bear")
		}
		if err := sqltest.Transact(t.Context(), s, false, false, bank.Touch(0, 1), bank.See(0)); err != nil {
			t.Fatal(err)
		}
		// A node that is not ready refuses a COMMIT like any other command.
		if err := s.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if _, err := sqltest.Do(t.Context(), s, bank.Touch(0, 1)); err != nil {
			t.Fatal(err)
		}
		before := ask(t, d, "SELECT SUM(balance) FROM accounts")
		other := newSession(t, d, mode, "")
		if _, err := other.exec("SET GLOBAL wsrep_reject_queries = ALL"); err != nil {
			t.Fatal(err)
		}
		sqltest.WantError(t, "the commit", s.Commit(t.Context()), db.Unavailable, "1047")
		if _, err := other.exec("SET GLOBAL wsrep_reject_queries = NONE"); err != nil {
			t.Fatal(err)
		}
		if after := ask(t, d, "SELECT SUM(balance) FROM accounts"); after != before {
			t.Errorf("%s before and %s after", before, after)
		}
	})
}
