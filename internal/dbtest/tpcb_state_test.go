package dbtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/report"
	"stroppy/internal/tier"
	"stroppy/internal/workload/dataset"
	"stroppy/internal/workload/tpcb"
)

// TestTPCBInterruptedLoadIsRepeated checks that an interrupted load is refused and can be repeated. The repeated load
// continues in a key-value store.
func TestTPCBInterruptedLoadIsRepeated(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) db.Database{
		"sql":          func(t *testing.T) db.Database { return noBulk{openSQLite(t)} },
		"sql add keys": func(t *testing.T) db.Database { d, _ := openPostgres(t); return noBulk{d} },
		"keys":         func(t *testing.T) db.Database { return openMemory(t, "memory:") },
		"keys by adds": func(t *testing.T) db.Database { return openMemory(t, "memory:") },
	} {
		t.Run(name, func(t *testing.T) {
			database, c := open(t), smallTPCB()
			c.Ratio[2], c.Plain = 3000, name == "keys by adds"
			ctx, cancel := context.WithCancel(t.Context())
			_, err := newTPCB(t, database, c).Load(ctx, func(done, total uint64) { cancel() })
			if err == nil || !strings.Contains(err.Error(), "again to finish it") {
				t.Fatalf("the interrupted load ended with %v", err)
			}
			_, err = newTPCB(t, database, c).Attach(t.Context())
			if e := wantError[*dataset.StateError](t, err); !strings.Contains(e.Error(), "not finished") {
				t.Error(e)
			}
			w := newTPCB(t, database, c)
			loaded, err := w.Load(t.Context(), nil)
			if err != nil || (loaded.Resumed > 0) != strings.HasPrefix(name, "keys") || loaded.Size != 30030 {
				t.Fatalf("the repeated load returned %+v, %v", loaded, err)
			}
			o := runTPCB(t, database, c, 200, false)
			o.wantTPCB(t, tpcbChecks...)
		})
	}
}

// TestTPCBRefusesOtherSizeOrSeed checks that a run refuses missing tables and tables of another size or seed. A load
// reports the data that it replaces.
func TestTPCBRefusesOtherSizeOrSeed(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]db.Database{"sql": openSQLite(t), "key-value": openMemory(t, "memory:")} {
		t.Run(name, func(t *testing.T) {
			c := smallTPCB()
			_, err := newTPCB(t, database, c).Attach(t.Context())
			if e := wantError[*dataset.StateError](t, err); !strings.Contains(e.Error(), "stroppy run tpcb") {
				t.Error(e)
			}
			first := newTPCB(t, database, c)
			if _, err := first.Load(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := first.Attach(t.Context()); err != nil {
				t.Fatal(err)
			}
			for what, bend := range map[string]func(c *tpcb.Config){
				"scale": func(c *tpcb.Config) { c.Scale++ },
				"ratio": func(c *tpcb.Config) { c.Ratio = [3]uint64{2, 1, 20} },
				"seed":  func(c *tpcb.Config) { c.Seed++ },
			} {
				other := smallTPCB()
				bend(&other)
				_, err := newTPCB(t, database, other).Attach(t.Context())
				wantError[*dataset.MismatchError](t, err)
				t.Logf("%s: %v", what, err)
			}
			if err := first.CheckUnchanged(t.Context()); err != nil {
				t.Error(err)
			}
			var reported string
			second := newTPCB(t, database, c)
			second.OnOverwrite(func(what string) { reported = what })
			if _, err := second.Load(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(reported, "230 table rows") || !strings.Contains(reported, "1 run has begun") {
				t.Errorf("the load that replaces data reported %q", reported)
			}
			wantError[*dataset.StateError](t, first.CheckUnchanged(t.Context()))
		})
	}
}

// TestTPCBLoadReplacesRowsOfOtherForm checks loads with and without versions in turn. A run without a preference
// accepts both forms.
func TestTPCBLoadReplacesRowsOfOtherForm(t *testing.T) {
	t.Parallel()
	database, c := openSQLite(t), smallTPCB()
	for _, versions := range []bool{false, true, false} {
		c.Versions = versions
		o := runTPCB(t, database, c, 100, true)
		o.wantTPCB(t, tpcbChecks...)
		other := c
		other.Versions = !versions
		_, err := newTPCB(t, database, other).Attach(t.Context())
		wantError[*dataset.MismatchError](t, err)
		other.AnyRows = true
		again := runTPCB(t, database, other, 100, false, o.dir)
		again.wantTPCB(t, tpcbChecks...)
		gone := "stroppy_tpcb_accounts"
		if versions {
			gone = "pgbench_accounts"
		}
		if err := database.Exec(t.Context(), "DELETE FROM "+gone); err == nil {
			t.Errorf("the load has left the table %s of the other form", gone)
		}
	}
}

// TestTPCBLoadReplacesKeysOfOtherForm is TestTPCBLoadReplacesRowsOfOtherForm for a key-value store. Its rows have
// versions by default.
func TestTPCBLoadReplacesKeysOfOtherForm(t *testing.T) {
	t.Parallel()
	database, c := openMemory(t, "memory:"), smallTPCB()
	for _, plain := range []bool{false, true, false} {
		c.Plain = plain
		o := runTPCB(t, database, c, 100, true)
		o.wantTPCB(t, tpcbChecks...)
		other := c
		other.Plain, other.Versions = !plain, plain
		_, err := newTPCB(t, database, other).Attach(t.Context())
		wantError[*dataset.MismatchError](t, err)
		other.AnyRows = true
		again := runTPCB(t, database, other, 100, false, o.dir)
		again.wantTPCB(t, tpcbChecks...)
	}
	s, err := database.KVSession(t.Context(), db.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Scan(t.Context(), []byte("stroppy_tpcb_counter/"), endOf("stroppy_tpcb_counter/"), func(key, _ []byte) error { return fmt.Errorf("%s", key) })
	if err != nil {
		t.Errorf("a load with versions has left a row without versions: %v", err)
	}
}

// TestTPCBRefusesForeignTables checks that a run and a load refuse tables that have pgbench's names and another
// definition.
func TestTPCBRefusesForeignTables(t *testing.T) {
	t.Parallel()
	database := openSQLite(t)
	for _, statement := range []string{
		"CREATE TABLE pgbench_branches (bid INTEGER, bbalance INTEGER)", "CREATE TABLE pgbench_tellers (tid INTEGER, tbalance INTEGER)",
		"CREATE TABLE pgbench_accounts (aid INTEGER, abalance INTEGER)", "INSERT INTO pgbench_branches VALUES (1, 0), (3, 0)",
	} {
		if err := database.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	w := newTPCB(t, database, smallTPCB())
	_, err := w.Attach(t.Context())
	if e := wantError[*dataset.StateError](t, err); !strings.Contains(e.Error(), "pgbench_branches") {
		t.Error(e)
	}
	_, err = w.Load(t.Context(), nil)
	if e := wantError[*dataset.StateError](t, err); !strings.Contains(e.Error(), "not made by this program") {
		t.Error(e)
	}
}

// TestTPCBFindsPlantedBugs checks that each planted bug which write transactions can show is found by its own check.
func TestTPCBFindsPlantedBugs(t *testing.T) {
	tier.SkipUnderRace(t)
	t.Parallel()
	for mutant, name := range map[string]string{
		"lost-update": check.Serializable, "dirty-read": check.Serializable, "lost-ack": check.Durable, "ghost": check.NoGhost,
		"double-apply": check.ExactlyOnce, "torn": check.Total, "false-ack-on-crash": check.Durable, "unknown-lies": check.NoGhost,
	} {
		findsTPCBBug(t, mutant, name, true)
	}
}

// TestTPCBWithoutVersionsFindsPlantedBugs is TestTPCBFindsPlantedBugs for rows without versions. A torn commit then
// loses an add, and a commit that is applied twice adds twice.
func TestTPCBWithoutVersionsFindsPlantedBugs(t *testing.T) {
	tier.SkipUnderRace(t)
	t.Parallel()
	for mutant, name := range map[string]string{
		"lost-update": check.Serializable, "dirty-read": check.Serializable, "lost-ack": check.Durable, "ghost": check.NoGhost,
		"double-apply": check.Ledger, "torn": check.Total, "false-ack-on-crash": check.Durable, "unknown-lies": check.NoGhost,
	} {
		findsTPCBBug(t, mutant, name, false)
	}
}

// findsTPCBBug runs TPC-B with a planted bug and fails the test unless the check finds it.
func findsTPCBBug(t *testing.T, mutant, name string, versions bool) {
	if raceEnabled && mutant != "torn" { // the other bugs run the same code
		return
	}
	for _, seed := range seeds(2) {
		t.Run(fmt.Sprintf("%s/seed=%d", mutant, seed), func(t *testing.T) {
			t.Parallel()
			code, r, why := program(t, "tpcb", "--db", fmt.Sprintf("memory:?mutant=%s&rate=0.001&seed=%d", mutant, seed), "--clients", "32",
				"--count", "10000", "--scale", "10", "--ratio", "1:10:100", "--seed", fmt.Sprint(seed), fmt.Sprintf("--versions=%t", versions))
			found := slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == name && c.Status == "invalid" })
			if code != 1 || r.Verdict != "invalid" || found < 0 {
				t.Errorf("exit code %d, verdict %s: %+v\n%s", code, r.Verdict, r.Checks, why)
			}
		})
	}
}

// TestTPCBSurvivesKilledPrimary kills the primary during commits that wait for a paused standby. The end state or,
// with versions, a look-up decides the commits whose answer is lost.
func TestTPCBSurvivesKilledPrimary(t *testing.T) {
	needsTime(t)
	t.Parallel()
	for _, versions := range []string{"--versions=false", "--versions=true"} {
		t.Run(versions, func(t *testing.T) {
			code, r, why := program(t, "tpcb", "--cluster", "postgres:2?memory=on", "--nemesis", "pause n1 at 1600ms for 1s", "--nemesis", "kill primary at 2s for 2s", "--duration", "9s",
				"--clients", "8", "--rate", "200", "--scale", "10", "--ratio", "1:10:1000", "--seed", "7", versions)
			if code != 0 {
				t.Errorf("exit code %d: %s", code, why)
			}
			if !slices.ContainsFunc(r.Drive.Errors, func(e report.ErrorCount) bool { return e.Class == "unknown" }) {
				t.Errorf("no answer was lost: %+v", r.Drive.Errors)
			}
			for _, c := range r.Checks {
				if c.Status != "valid" {
					t.Errorf("%s is %s: %s", c.Name, c.Status, c.Detail)
				}
			}
		})
	}
}
