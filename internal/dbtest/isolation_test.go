package dbtest

import (
	"fmt"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/infinisql"
	"stroppy/internal/db/voltdb"
	"stroppy/internal/matrix"
	"stroppy/internal/schedule"
)

// isolationLevels holds the expected upper bound of each isolation level, by engine. The text has the bound, then the
// anomalies that were seen.
var isolationLevels = map[string]map[string]string{
	"memory": {"strict serializable": "serializable:"},
	"sqlite": {"serializable": "serializable:"},
	"postgres": {
		"read uncommitted": weakest, "read committed": weakest,
		"repeatable read": "snapshot-isolation: G2-item G2", "serializable": "serializable:",
	},
	"mariadb": innoDB,
	"mysql":   innoDB,
	// MDEV-40092, and a shared locking read that an index alone answers, do not return error 1020.
	"mariadb with snapshot isolation": {
		"repeatable read": "read-committed: some-OTV some-G-single G2-item G2; not what it claims", "serializable": "serializable:",
	},
	"cockroach":       {"serializable": "serializable:"},
	"mongodb":         {"snapshot": "snapshot-isolation: G2-item G2", "majority": "snapshot-isolation: G2-item G2", "local": "snapshot-isolation: G2-item G2"},
	"foundationdb":    {"serializable": "serializable:", "snapshot reads": noCheck},
	"etcd":            {"serializable snapshot": "serializable:", "serializable": "serializable:", "read committed": noCheck},
	"redis by script": {"serializable": "serializable:"},
	"redis by watch":  {"serializable": "serializable:"},
}

// innoDB holds the expected bounds for MariaDB and MySQL.
var innoDB = map[string]string{
	"read uncommitted": "read-uncommitted: G1a G1b G1c some-OTV some-internal some-PMP P4 some-G-single long-fork G2-item G2",
	"read committed":   weakest,
	"repeatable read":  "read-committed: some-OTV some-internal some-PMP P4 some-G-single G2-item G2",
	"serializable":     "serializable:",
}

const (
	// weakest is a level at which each statement reads the latest committed rows.
	weakest = "monotonic-atomic-view: some-internal PMP P4 some-G-single long-fork G2-item G2"
	// noCheck is a level that reads a snapshot and does not validate its reads at the commit.
	noCheck = "read-atomic: P4 G2-item G2"
)

// published lists the variants in which published reports found an anomaly. A variant after ! is one in which they
// found none.
var published = map[string]map[string][]string{
	"mariadb": innoDBPublished,
	"mysql":   innoDBPublished,
	"mariadb with snapshot isolation": {"repeatable read": { // https://jira.mariadb.org/browse/MDEV-40092
		"G-single update, a row that moves away, by a predicate, with an index",
		"G-single update, a row that is deleted, by a predicate, with an index",
		"G-single read for update, a row that is deleted, by a predicate, with an index",
		"!G-single update, a row that moves away, by a predicate, without an index",
		"!OTV a reader that updates a row, by key",
	}},
}

// innoDBPublished is from https://jepsen.io/analyses/mysql-8.0.34.
var innoDBPublished = map[string][]string{"repeatable read": {
	"OTV a reader that updates a row, by key",
	"internal a row that was read, updated and read again",
	"!internal a row that was read, by key",
}}

// TestIsolationLevelsHaveExpectedBounds runs the scripted schedules on every engine at each isolation level.
func TestIsolationLevelsHaveExpectedBounds(t *testing.T) {
	t.Parallel()
	for _, e := range engines() {
		want, ok := isolationLevels[e.name]
		if !ok {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			if !e.short {
				needsTime(t)
			}
			database, _ := e.start(t)(t)
			table, err := schedule.NewTable(database)
			if err != nil {
				t.Fatal(err)
			}
			for level, want := range want {
				got, seen := upperBound(t, database, table, level)
				if got != want {
					t.Errorf("the upper bound of %s is %s; want %s", level, got, want)
				}
				for _, variant := range published[e.name][level] {
					name, absent := strings.CutPrefix(variant, "!")
					if seen[name] == absent {
						t.Errorf("%s at %s: seen %v; the published report has %v", name, level, seen[name], !absent)
					}
				}
			}
			if err := table.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// upperBound returns the upper bound of a level with the anomalies that were seen, and the variants that were seen.
func upperBound(t *testing.T, database db.Database, table schedule.Table, level string) (text string, seen map[string]bool) {
	t.Helper()
	claim, err := database.Claim(level)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := schedule.RunAll(t.Context(), table, level, schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := matrix.NewLevel(level, false, claim.Level, claim.Source, outcomes, nil)
	seen = map[string]bool{}
	for _, o := range outcomes {
		seen[o.Anomaly.String()+" "+o.Variant] = o.State == schedule.Seen
	}
	text = l.AmountsTo + ":"
	for _, a := range schedule.Anomalies() {
		name := map[schedule.Anomaly]string{schedule.LongFork: "long-fork", schedule.StaleRead: "stale-read"}[a]
		if name == "" {
			name = a.String()
		}
		switch mark := l.Anomalies[a.String()].Mark(); mark {
		case "seen":
			text += " " + name
		case "some":
			text += " some-" + name
		case "?":
			text += fmt.Sprintf(" %s-not-decided (%s)", name, l.Anomalies[a.String()].How)
		}
	}
	if l.Verdict != "valid" {
		text += "; not what it claims"
	}
	return text, seen
}

// TestSchedulesRefuseDatabasesWithOneStep checks that databases whose transactions have one step cannot run schedules.
func TestSchedulesRefuseDatabasesWithOneStep(t *testing.T) {
	for _, d := range []db.Database{&voltdb.Database{}, &infinisql.Database{}} {
		if table, err := schedule.NewTable(d); table != nil || err == nil {
			t.Errorf("%T accepted schedules", d)
		}
	}
}
