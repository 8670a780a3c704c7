package dbtest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	postgrescluster "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db"
	"stroppy/internal/db/noop"
	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
	"stroppy/internal/workload/tpcb"
)

// smallTPCB returns the configuration of TPC-B with few accounts, so that transactions conflict.
func smallTPCB() tpcb.Config {
	c := tpcb.DefaultConfig()
	c.Scale, c.Ratio, c.Seed, c.Clients = 10, [3]uint64{1, 2, 20}, 7, 8
	return c
}

// newTPCB returns the workload with a configuration.
func newTPCB(t *testing.T, database db.Database, c tpcb.Config) *tpcb.TPCB {
	t.Helper()
	w, err := tpcb.New(database, c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// runTPCB runs TPC-B with or without a load, and checks it together with earlier runs in the directories given.
func runTPCB(t *testing.T, database db.Database, c tpcb.Config, count uint64, loads bool, before ...string) *trial {
	t.Helper()
	r := newTrial(t, database, newTPCB(t, database, c), c.Isolation)
	if loads {
		r.load(t)
	}
	r.attach(t)
	r.drive(t, count)
	r.download(t)
	r.leave(t)
	r.checkWith(t, before...)
	return r
}

// wantTPCB fails the test unless all required checks and the named checks are valid.
func (r *trial) wantTPCB(t *testing.T, names ...string) {
	t.Helper()
	r.wantValid(t)
	for _, name := range names {
		if result := r.status(name); result.Status != check.Valid {
			t.Errorf("%s is %v: %s", name, result.Status, result.Detail)
		}
	}
}

// tpcbChecks lists the checks that a run with history can pass.
var tpcbChecks = []string{check.Total, check.Ledger, check.Durable, check.NoGhost, check.ExactlyOnce, check.Serializable, check.Strict}

// onTPCB runs TPC-B on a SQL database with each mode and each form of rows, with a load and then without. By default
// the runs cover each mode and each form; `make seeds` covers all combinations.
func onTPCB(t *testing.T, database db.Database, modes []string) {
	for m, mode := range modes {
		for r, rows := range []string{"versions", "plain", "bare", "zipfian"} {
			if rows == "versions" && mode == workload.Procedure {
				continue
			}
			if checktest.Factor() == 0 && r%len(modes) != m {
				continue
			}
			t.Run(mode+" "+rows, func(t *testing.T) {
				c := smallTPCB()
				c.Mode, c.Versions, c.History, c.Zipfian = mode, rows == "versions", rows != "bare", rows == "zipfian"
				o := runTPCB(t, database, c, 800, true)
				if rows == "bare" {
					o.wantTPCB(t, check.Total, check.Ledger, check.Serializable)
				} else {
					o.wantTPCB(t, tpcbChecks...)
				}
				again := c
				again.Scale, again.Ratio, again.Seed, again.AnyRows = 0, [3]uint64{}, 0, true
				again.History = rows != "plain" && rows != "bare" || rows == "bare"
				o = runTPCB(t, database, again, 200, false, o.dir)
				o.wantTPCB(t, check.Total, check.Ledger, check.Durable, check.Serializable)
			})
		}
	}
}

// withoutNote runs TPC-B after the metadata of its tables was removed. The run must adopt the tables, use a new run
// number, and take the history into account.
func withoutNote(t *testing.T, database db.SQL) {
	c := smallTPCB()
	runTPCB(t, database, c, 200, true)
	runTPCB(t, database, c, 200, false)
	if err := database.Exec(t.Context(), "DROP TABLE stroppy_tpcb_meta"); err != nil {
		t.Fatal(err)
	}
	// The opening balance must include changes that the history does not explain.
	if err := database.Exec(t.Context(), "UPDATE pgbench_tellers SET tbalance = tbalance + 11 WHERE tid = 3"); err != nil {
		t.Fatal(err)
	}
	c.Scale, c.Ratio, c.Seed, c.AnyRows = 0, [3]uint64{}, 0, true
	o := runTPCB(t, database, c, 200, false)
	r, err := history.Open(o.history())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if run := r.Header().Run; run != 3 {
		t.Errorf("the third run has the number %d, want 3", run)
	}
	for _, result := range o.results {
		if result.Name == check.NoGhost || result.Name == check.Serializable || result.Name == check.Strict {
			if result.Status != check.Unknown { // the first two recordings belong to another load
				t.Errorf("%s is %v: %s", result.Name, result.Status, result.Detail)
			}
		} else if result.Status != check.Valid {
			t.Errorf("%s is %v: %s", result.Name, result.Status, result.Detail)
		}
	}
}

// wantUnknown fails the test unless a check and the verdict are unknown and no check is invalid.
func wantUnknown(t *testing.T, results []checktest.Reported, name string) {
	t.Helper()
	if v := checktest.Verdict(results); v != check.Unknown {
		t.Errorf("the verdict is %v", v)
	}
	for _, r := range results {
		if r.Name == name && (r.Status != check.Unknown || r.Detail == "") || r.Status == check.Invalid {
			t.Errorf("%s is %v: %s", r.Name, r.Status, r.Detail)
		}
	}
}

// TestTPCBRunsOnNoop checks the number of transactions on a database that stores nothing.
func TestTPCBRunsOnNoop(t *testing.T) {
	t.Parallel()
	c := smallTPCB()
	r := newTrial(t, noop.Open(), newTPCB(t, noop.Open(), c), "")
	r.attach(t)
	r.drive(t, 1000)
	if n := r.driven.Measurements.Latency.Count; n != 1000 {
		t.Errorf("%d of 1000 transactions were committed", n)
	}
}

// TestTPCBExplainsRunWithoutHistory checks a run after a run that kept no history. The database records the first run,
// so that the later run knows why its history does not explain the balances.
func TestTPCBExplainsRunWithoutHistory(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]db.Database{"sql": openSQLite(t), "key-value": openMemory(t, "memory:")} {
		t.Run(name, func(t *testing.T) {
			c := smallTPCB()
			c.History = false
			bare := runTPCB(t, database, c, 300, true)
			c.History = true
			later := runTPCB(t, database, c, 300, false)
			wantUnknown(t, later.results, check.Ledger)
			both := runTPCB(t, database, c, 100, false, bare.dir, later.dir)
			both.wantTPCB(t, check.Total, check.Ledger, check.Durable, check.Serializable)
		})
	}
}

// pgbench runs pgbench.
func pgbench(t *testing.T, args ...string) {
	t.Helper()
	program, err := postgrescluster.PGBin("pgbench")
	if err != nil {
		t.Skip("skipped engine: pgbench: ", err)
	}
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("pgbench %v: %v: %s", args, err, out)
	}
}

// TestTPCBHistoryHasKeyIfServerRequiresIt checks TPC-B on a server that refuses tables without a primary key.
func TestTPCBHistoryHasKeyIfServerRequiresIt(t *testing.T) {
	t.Parallel()
	s := startMariaDB(t, map[string]string{"innodb-force-primary-key": "ON"})
	for _, mode := range []string{workload.Pipelined, workload.Procedure} {
		c := smallTPCB()
		c.Mode = mode
		runTPCB(t, openMariaDB(t, s, "keys_"+mode), c, 300, true).wantTPCB(t, tpcbChecks...)
	}
}

// TestTPCBSharesTablesWithPgbench checks that pgbench runs on tables of this program. It also checks that this program
// runs on tables of pgbench, before and after pgbench has run on them.
func TestTPCBSharesTablesWithPgbench(t *testing.T) {
	t.Parallel()
	drives := func(t *testing.T, url string) {
		for _, protocol := range []string{"simple", "prepared"} {
			pgbench(t, "-n", "-b", "tpcb-like", "-c", "4", "-t", "50", "-M", protocol, url)
		}
		pgbench(t, "-n", "-S", "-c", "2", "-t", "50", url)
	}
	c := smallTPCB()
	c.Scale, c.Ratio = 1, [3]uint64{1, 10, 100_000}
	t.Run("pgbench on ours", func(t *testing.T) {
		d, url := openPostgres(t)
		first := runTPCB(t, d, c, 300, true)
		first.wantTPCB(t, tpcbChecks...)
		drives(t, url)
		w := newTPCB(t, d, c)
		if _, err := w.AttachReadOnly(t.Context()); err != nil {
			t.Fatal(err)
		}
		first.workload = w
		first.download(t)
		first.check(t)
		for _, r := range first.results { // the rows of pgbench explain its changes
			switch r.Name {
			case check.Total, check.Ledger, check.Durable, check.NoGhost, check.ExactlyOnce:
				if r.Status != check.Valid {
					t.Errorf("%s is %v: %s", r.Name, r.Status, r.Detail)
				}
			case check.Serializable:
				if r.Status != check.Unknown {
					t.Errorf("%s is %v, want unknown, because pgbench used the same rows: %s", r.Name, r.Status, r.Detail)
				}
			}
		}
		runTPCB(t, d, c, 100, false, first.dir) // the history explains the balances
		// A transaction of pgbench -N leaves out tellers and branches. The history does not explain it, so the run
		// adopts the tables again.
		pgbench(t, "-n", "-N", "-c", "2", "-t", "50", url)
		last := runTPCB(t, d, c, 100, false)
		for _, r := range last.results {
			if r.Name == check.Ledger && r.Status != check.Valid {
				t.Errorf("%s is %v: %s", r.Name, r.Status, r.Detail)
			}
		}
	})
	t.Run("the program on pgbench", func(t *testing.T) {
		url := newPostgresDatabase(t)
		pgbench(t, "-i", "-q", "-s", "2", url)
		code, r, why := program(t, "tpcb", "--db", url, "--no-load", "--count", "200", "--mode", "interactive")
		if code != 0 || r.Verdict != "valid" || r.Load.Accounts != 200022 {
			t.Errorf("exit code %d: %+v\n%s", code, r.Checks, why)
		}
	})
	for _, driven := range []bool{false, true} {
		t.Run(fmt.Sprintf("ours on pgbench, driven %v", driven), func(t *testing.T) {
			d, url := openPostgres(t)
			pgbench(t, "-i", "-q", "-s", "1", url)
			if driven {
				drives(t, url)
				pgbench(t, "-n", "-N", "-c", "2", "-t", "50", url) // the history does not explain these changes
			}
			adopted := smallTPCB()
			adopted.Scale, adopted.Ratio, adopted.Seed, adopted.AnyRows = 0, [3]uint64{}, 0, true
			o := runTPCB(t, d, adopted, 300, false)
			o.wantTPCB(t, tpcbChecks...)
			again := runTPCB(t, d, adopted, 300, false, o.dir)
			again.wantTPCB(t, tpcbChecks...)
			drives(t, url)
			_, err := newTPCB(t, d, c).Load(t.Context(), nil)
			if e := wantError[*dataset.StateError](t, err); !strings.Contains(e.Error(), "--no-load") {
				t.Error(e)
			}
		})
	}
}
