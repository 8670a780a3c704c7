package dbtest

import (
	"fmt"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/matrix"
	"stroppy/internal/schedule"
)

// isolationLevels are what the levels of an engine amount to, by the engine's name: first
// the level, then what was seen, in the order of the anomalies.
var isolationLevels = map[string]map[string]string{
	"memory": {"strict serializable": "serializable:"},
	"sqlite": {"serializable": "serializable:"},
	"postgres": {
		"read uncommitted": weakest, "read committed": weakest,
		"repeatable read": "snapshot-isolation: G2-item G2", "serializable": "serializable:",
	},
	"mariadb": {
		"read uncommitted": "read-uncommitted: G1a G1b G1c OTV some-PMP P4 G-single long-fork G2-item G2",
		"read committed":   weakest,
		"repeatable read":  "monotonic-atomic-view: some-PMP P4 some-G-single G2-item G2",
		"serializable":     "serializable:",
	},
	"mariadb with snapshot isolation": {
		"repeatable read": "snapshot-isolation: G2-item G2", "serializable": "serializable:",
	},
	"cockroach":       {"serializable": "serializable:"},
	"mongodb":         {"snapshot": "snapshot-isolation: G2-item G2", "majority": "snapshot-isolation: G2-item G2", "local": "snapshot-isolation: G2-item G2"},
	"foundationdb":    {"serializable": "serializable:", "snapshot reads": noCheck},
	"etcd":            {"serializable snapshot": "serializable:", "serializable": "serializable:", "read committed": noCheck},
	"redis by script": {"serializable": "serializable:"},
	"redis by watch":  {"serializable": "serializable:"},
}

const (
	// weakest is a level whose every statement reads what is committed by then.
	weakest = "monotonic-atomic-view: PMP P4 G-single long-fork G2-item G2"
	// noCheck is one that reads a snapshot and does not check at the commit what it read.
	noCheck = "read-atomic: P4 G2-item G2"
)

// TestIsolationLevels runs the scripted schedules on every engine at each of its levels.
func TestIsolationLevels(t *testing.T) {
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
				if got := amountsTo(t, database, table, level); got != want {
					t.Errorf("%s amounts to %s; want %s", level, got, want)
				}
			}
			if err := table.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// amountsTo is what a level gives in one line.
func amountsTo(t *testing.T, database db.Database, table schedule.Table, level string) string {
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
	if l.Verdict != "valid" {
		t.Errorf("%s claims %s: %s", level, claim.Level, l.Verdict)
	}
	text := l.AmountsTo + ":"
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
	return text
}

// TestNoSchedules: a database whose transactions have one step says why none can be made.
func TestNoSchedules(t *testing.T) {
	for _, d := range []db.Database{struct{ db.Procedures }{}, struct{ db.TableStore }{}} {
		if table, err := schedule.NewTable(d); table != nil || err == nil {
			t.Errorf("%T has schedules", d)
		}
	}
}
