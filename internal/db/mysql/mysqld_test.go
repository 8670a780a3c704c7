package mysql

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/host"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// startMySQL starts one mysqld server for a test and returns its URL.
func startMySQL(t *testing.T, settings map[string]string) string {
	t.Helper()
	params := url.Values{"flush": {"2"}}
	for name, value := range settings {
		params.Set("set."+name, value)
	}
	return startServers(t, 1, params).URL()
}

// startServers starts mysqld servers for a test, preferably of the version that scripts/versions.sh has
// fetched.
func startServers(t *testing.T, nodes int, params url.Values) cluster.Local {
	t.Helper()
	maps.Copy(params, clustertest.Fetched("mysql"))
	c, err := mysqlcluster.StartMySQL(t.Context(), cluster.Options{Nodes: nodes, InMemory: true, Loopback: true, Params: params})
	if missing, ok := errors.AsType[host.MissingError](err); ok {
		t.Skip("skipped engine: mysql: " + missing.Advice())
	}
	drivertest.Must(t, err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	return c
}

// TestMySQLAcceptsSettingsAndProcedures checks a MySQL server with settings that are words, including reserved
// words, and defines a procedure twice.
func TestMySQLAcceptsSettingsAndProcedures(t *testing.T) {
	server := startMySQL(t, nil)
	d := drivertest.Open(t, Open, server+"?transaction_isolation=READ-COMMITTED&time_zone=SYSTEM&innodb_strict_mode=OFF&max_sort_length=4*512")
	info, err := d.Info(t.Context())
	if err != nil || info.Name != "MySQL" {
		t.Errorf("%+v, %v", info, err)
	}
	if got := ask(t, d, "SELECT @@transaction_isolation, @@innodb_strict_mode, @@max_sort_length"); got != "READ-COMMITTED 0 2048" {
		t.Errorf("the settings are %s", got)
	}
	sqltest.Procedures(t, d, &bank)
}

// TestGroupReplicationWorksWithOneMember checks a group of one member, which has the requirements of a group with
// several primaries.
func TestGroupReplicationWorksWithOneMember(t *testing.T) {
	port, err := host.FreePort(t.Context())
	drivertest.Must(t, err)
	group := "127.0.0.1:" + strconv.Itoa(port)
	address := startMySQL(t, map[string]string{
		"plugin-load-add": "group_replication.so", "gtid-mode": "ON", "enforce-gtid-consistency": "ON", "server-id": "1",
		"loose-group-replication-group-name":    "3e11fa47-71ca-11e1-9e33-c80aa9429562",
		"loose-group-replication-start-on-boot": "OFF", "loose-group-replication-local-address": group, "loose-group-replication-group-seeds": group,
		"report-host": "127.0.0.1", "loose-group-replication-single-primary-mode": "OFF", "loose-group-replication-enforce-update-everywhere-checks": "ON",
	})
	d := drivertest.Open(t, Open, address)
	d.server = &server{product: mySQL} // sessions of a member wait until it is in its group
	sqltest.Execute(t, d, "SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION", "SET GLOBAL group_replication_bootstrap_group = OFF")
	until(t, d, "SELECT 'in' FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'")

	d = drivertest.Open(t, Open, address+"?group_replication_consistency=BEFORE")
	if got := ask(t, d, "SELECT @@group_replication_consistency"); got != "BEFORE" {
		t.Errorf("group_replication_consistency is %s", got)
	}
	info, err := d.Info(t.Context())
	if err != nil || info.Name != "MySQL Group Replication" {
		t.Errorf("%+v, %v", info, err)
	}
	// A table without a key can be created but accepts no row.
	sqltest.Execute(t, d, "CREATE TABLE keyless (n BIGINT)")
	err = d.Exec(t.Context(), "INSERT INTO keyless VALUES (1)")
	sqltest.WantError(t, "a row without a key", err, db.Fatal, "3098")
	if err == nil || !strings.Contains(err.Error(), "with a primary key alone: give the table one") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	sqltest.Execute(t, d, "CREATE TABLE keyed (n BIGINT, "+d.Dialect().KeyColumn+")", "INSERT INTO keyed (n) VALUES (1), (1)")
	if got := ask(t, d, "SELECT COUNT(*) FROM keyed"); got != "2" {
		t.Errorf("the table with a key of its own has %s rows, want 2", got)
	}
	// All members are primaries, and the server blames the table for the isolation.
	_, err = d.Claim("serializable")
	sqltest.WantError(t, "serializable writes in a group of primaries", err, db.Fatal, "")
	holding(t, d, func(c *link) {
		_, err := c.exec("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; INSERT INTO keyed (n) VALUES (2)")
		if err == nil || !strings.Contains(err.Error(), "external plugin") {
			t.Errorf("a write at SERIALIZABLE: %v", err)
		}
	})
	if claim, err := d.Claim("repeatable read"); err != nil || claim.Isolation != repeatableRead {
		t.Errorf("%+v, %v", claim, err)
	}
}

// TestNewGroupSessionWaitsForPendingChanges checks that a new session waits for changes that a member must still
// apply, although transactions at its consistency do not wait.
func TestNewGroupSessionWaitsForPendingChanges(t *testing.T) {
	c := startServers(t, 2, url.Values{"consistency": {"EVENTUAL"}})
	leader, err := c.Leader(t.Context())
	drivertest.Must(t, err)
	primary, secondary := drivertest.Open(t, Open, c.NodeURL(leader)), drivertest.Open(t, Open, c.NodeURL(1-leader))
	sqltest.Execute(t, primary, "CREATE TABLE seen (n BIGINT PRIMARY KEY)")
	holding(t, secondary, func(c *link) {
		if _, err := c.exec("FLUSH TABLES WITH READ LOCK"); err != nil {
			t.Fatal(err)
		}
		sqltest.Execute(t, primary, "INSERT INTO seen VALUES (1)")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if s, err := secondary.Session(short, db.SessionOptions{Mode: db.Interactive}); err == nil {
			drivertest.Must(t, s.Close())
			t.Error("a session began although what was committed is not applied")
		} else if db.ClassOf(err) != db.Unavailable {
			t.Errorf("a session that waited too long: %v", err)
		}
		if _, err := c.exec("UNLOCK TABLES"); err != nil {
			t.Fatal(err)
		}
	})
	if got := ask(t, secondary, "SELECT COUNT(*), @@group_replication_consistency FROM seen"); got != "1 EVENTUAL" {
		t.Errorf("a new session saw %s", got)
	}
	claim, err := secondary.Claim("")
	if err != nil || !strings.HasSuffix(claim.Source, "with group_replication_consistency EVENTUAL") {
		t.Errorf("the claim is %+v, %v", claim, err)
	}
	// A member outside of the group accepts no session.
	holding(t, secondary, func(c *link) {
		drivertest.Must(t, wait.Retry(t.Context(), func() error { // while it is being started it cannot be stopped
			_, err := c.exec("STOP GROUP_REPLICATION")
			return err
		}))
		_, err := secondary.Session(t.Context(), db.SessionOptions{Mode: db.Interactive})
		if db.ClassOf(err) != db.Unavailable || !strings.Contains(err.Error(), errApart.Error()) {
			t.Errorf("a session outside of the group: %v", err)
		}
	})
}

// holding runs statements on one connection that exists before.
func holding(t *testing.T, d *Database, do func(*link)) {
	t.Helper()
	drivertest.Must(t, d.control(t.Context(), "hold a member up", func(_ context.Context, c *link) error { do(c); return nil }))
}
