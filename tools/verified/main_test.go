package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"stroppy/tools/try"
)

// TestThePagesAreTheRecords checks that nobody has written a table by hand.
func TestThePagesAreTheRecords(t *testing.T) {
	const root = "../../"
	for page, made := range map[string][]byte{
		pageFile:     withTable(root, try.JSON[[]row](root+recordFile)),
		versionsPage: withVersions(root, try.JSON[[]server](root+versionsFile)),
	} {
		if text, err := os.ReadFile(root + page); err != nil || !bytes.Equal(text, made) {
			t.Errorf("the table of %s is not made of its record: %v: run go run ./tools/verified", page, err)
		}
	}
}

// TestServersOf counts the cells of servers on which the whole matrix ran.
func TestServersOf(t *testing.T) {
	const log = `{"Time":"2026-11-27T03:52:02Z","Action":"output","Test":"TestVersions/postgres-14.0.0","Output":"    v_test.go:9: version {\"name\":\"postgres-14.0.0\",\"from\":\"Maven Central\",\"whole\":true}\n"}
{"Action":"output","Test":"TestVersions/postgres-14.0.0/bank_rmw","Output":"    m_test.go:9: verified {\"database\":\"PostgreSQL\",\"version\":\"14.0 (x)\",\"workload\":\"bank\"}\n"}
{"Action":"pass","Test":"TestVersions/postgres-14.0.0/bank_rmw/a_part"}
{"Action":"pass","Test":"TestVersions/postgres-14.0.0/bank_rmw"}
{"Action":"fail","Test":"TestVersions/postgres-14.0.0/bank_atomic"}
{"Action":"skip","Test":"TestVersions/postgres-14.0.0/kv"}
{"Action":"pass","Test":"TestVersions/postgres-14.0.0/fail-over_postgres:1_kill_random"}
{"Action":"fail","Test":"TestVersions/postgres-14.0.0"}
{"Time":"2026-11-27T03:52:02Z","Action":"output","Test":"TestVersions/dqlite-installed","Output":"    v_test.go:9: version {\"name\":\"dqlite-installed\",\"from\":\"this machine\",\"whole\":true}\n"}
{"Action":"skip","Test":"TestVersions/dqlite-installed"}
{"Time":"2026-11-27T03:52:02Z","Action":"output","Test":"TestVersions/etcd-3.7.3","Output":"    v_test.go:9: version {\"name\":\"etcd-3.7.3\",\"from\":\"its Go module\",\"whole\":false}\n"}
{"Action":"pass","Test":"TestVersions/etcd-3.7.3/bank"}
{"Time":"2026-11-29T03:52:02Z","Action":"output","Test":"TestVersions/patroni-4.1","Output":"    v_test.go:9: version {\"name\":\"patroni-4.1\",\"from\":\"Debian sid\",\"whole\":true,\"database\":\"PostgreSQL under Patroni\",\"version\":\"4.1.5\"}\n"}
{"Action":"output","Test":"TestVersions/patroni-4.1/fail-over_postgres:3_kill_primary","Output":"    n_test.go:9: verified {\"database\":\"PostgreSQL\",\"version\":\"15.18 (x)\",\"workload\":\"bank\",\"faults\":[\"kill primary\"]}\n"}
{"Action":"pass","Test":"TestVersions/patroni-4.1/fail-over_postgres:3_kill_primary"}
{"Time":"2026-11-29T03:52:02Z","Action":"output","Test":"TestVersions/pgbouncer-1.26","Output":"    v_test.go:9: version {\"name\":\"pgbouncer-1.26\",\"from\":\"Debian sid\",\"whole\":true,\"database\":\"PostgreSQL behind PgBouncer\",\"version\":\"1.26.1\"}\n"}
{"Action":"output","Test":"TestVersions/pgbouncer-1.26/kv_prepared","Output":"    m_test.go:9: verified {\"database\":\"PostgreSQL\",\"version\":\"15.18 (x)\",\"workload\":\"kv\"}\n"}
{"Action":"pass","Test":"TestVersions/pgbouncer-1.26/kv_prepared"}
`
	events := eventsOf([]byte(log))
	list := serversOf(events)
	old := []server{{Name: "postgres-9", Database: "PostgreSQL", Version: "9.6"}, {Name: "postgres-14.0.0", Database: "PostgreSQL", Version: "14.0"}}
	const want = `| database | version | from | bank | tpcb | kv | events | append | fail-over | verdicts | date |
|---|---|---|---|---|---|---|---|---|---|---|
| PostgreSQL | 9.6 |  | none | none | none | none | none | none | not known |  |
| PostgreSQL | 14.0 | Maven Central | 1 of 2 | none | none | none | none | postgres:1 kill random | not as they must be: bank atomic | 2026-11-27 |
| PostgreSQL behind PgBouncer | 1.26.1 | Debian sid | none | none | 1 of 1 | none | none | none | as they must be | 2026-11-29 |
| PostgreSQL under Patroni | 4.1.5 | Debian sid | none | none | none | none | none | postgres:3 kill primary | as they must be | 2026-11-29 |
`
	if got := versionsTable(addServers(old, list)); got != want {
		t.Errorf("the table is\n%s\nnot\n%s", got, want)
	}
	if others := ofTests(events); len(others) > 0 {
		t.Errorf("the table of what was verified gets %v", others)
	}
}

// TestPassedTestsAreCounted checks that exactly the reported passed tests are counted.
func TestPassedTestsAreCounted(t *testing.T) {
	const log = `{"Action":"run","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"A","Output":"    x_test.go:9: verified {\"database\":\"PostgreSQL\",\"version\":\"15.14 (Debian 15.14-0)\",\"workload\":\"bank\",\"faults\":[\"pause n1\",\"kill leader\"]}\n"}
{"Action":"output","Package":"p","Test":"B","Output":"    x_test.go:9: verified {\"database\":\"PostgreSQL\",\"version\":\"15.14\",\"workload\":\"kv\"}\n"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"fail","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"C","Output":"    x_test.go:9: verified {\"database\":\"etcd\",\"version\":\"v3.4.23\",\"workload\":\"events\"}\n"}
{"Action":"output","Package":"p","Test":"D","Output":"    x_test.go:9: verified {\"database\":\"PostgreSQL\",\"version\":\"15.14\",\"workload\":\"bank\",\"faults\":[\"kill\"]}\n"}
{"Action":"pass","Package":"p","Test":"D"}
{"Action":"pass","Package":"p","Test":"C"}
`
	var rows []row
	for _, e := range ofTests(eventsOf([]byte(log))) {
		rows = add(rows, e)
	}
	const want = `| database | version | bank | tpcb | kv | events | append |
|---|---|---|---|---|---|---|
| etcd | 3.4.23 | not yet | not yet | not yet | no fault | not yet |
| PostgreSQL | 15.14 | no fault, kill, pause | not yet | not yet | not yet | not yet |
`
	if got := table(rows); got != want {
		t.Errorf("the table is\n%s\nnot\n%s", got, want)
	}
	for what, text := range map[string]string{
		"a report that cannot be read": strings.Replace(log, `\"workload\":\"kv\"`, `\"workload\":`, 1),
		"a log that is none":           "no JSON\n",
	} {
		if try.Attempt(func() { ofTests(eventsOf([]byte(text))) }) == nil {
			t.Errorf("%s is taken", what)
		}
	}
}
