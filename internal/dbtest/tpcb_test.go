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

// smallTPCB is what a test runs: few accounts, so that transactions meet.
func smallTPCB() tpcb.Config {
	c := tpcb.DefaultConfig()
	c.Scale, c.Ratio, c.Seed, c.Clients = 10, [3]uint64{1, 2, 20}, 7, 8
	return c
}

func newTPCB(t *testing.T, database db.Database, c tpcb.Config) *tpcb.TPCB {
	t.Helper()
	w, err := tpcb.New(database, c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// runTPCB loads, unless there is something already, drives, downloads and checks.
// The results are of all the runs whose directories are given and of this one.
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

// wantTPCB fails the test unless all required checks are valid, and those named.
func (r *trial) wantTPCB(t *testing.T, names ...string) {
	t.Helper()
	r.wantValid(t)
	for _, name := range names {
		if result := r.status(name); result.Status != check.Valid {
			t.Errorf("%s is %v: %s", name, result.Status, result.Detail)
		}
	}
}

var tpcbChecks = []string{check.Total, check.Ledger, check.Durable, check.NoGhost, check.ExactlyOnce, check.Serializable, check.Strict}

// onTPCB runs the workload in all its ways on one database of the SQL model, one
// after the other, and then twice without a load. The run of all tests has each mode and
// each kind of rows, and `make seeds` each of the one with each of the other.
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

// withoutNote takes away the note of tables that were driven: they are adopted as
// somebody else's, no run's number comes again, and their history explains them.
func withoutNote(t *testing.T, database db.SQL) {
	c := smallTPCB()
	runTPCB(t, database, c, 200, true)
	runTPCB(t, database, c, 200, false)
	if err := database.Exec(t.Context(), "DROP TABLE stroppy_tpcb_meta"); err != nil {
		t.Fatal(err)
	}
	// What the history does not explain, too, is part of the opening.
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
		t.Errorf("after two runs the next one has the number %d", run)
	}
	for _, result := range o.results {
		if result.Name == check.NoGhost || result.Name == check.Serializable || result.Name == check.Strict {
			if result.Status != check.Unknown { // the recordings of the first two are of another load
				t.Errorf("%s is %v: %s", result.Name, result.Status, result.Detail)
			}
		} else if result.Status != check.Valid {
			t.Errorf("%s is %v: %s", result.Name, result.Status, result.Detail)
		}
	}
}

// wantUnknown fails the test unless a check could not be decided, and nothing was
// found wrong.
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

func TestTPCBOnNoop(t *testing.T) {
	t.Parallel()
	c := smallTPCB()
	r := newTrial(t, noop.Open(), newTPCB(t, noop.Open(), c), "")
	r.attach(t)
	r.drive(t, 1000)
	if n := r.driven.Measurements.Latency.Count; n != 1000 {
		t.Errorf("%d of 1000 transactions were committed", n)
	}
}

// TestTPCBAfterABareRun: a run that kept no history is reported by the database, so
// that a later run knows why its rows hold more than their history says.
func TestTPCBAfterABareRun(t *testing.T) {
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

// pgbench runs pgbench itself.
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

// TestTPCBWhereTablesNeedKeys: the history has no key of its own, and gets one where the
// server takes no table without.
func TestTPCBWhereTablesNeedKeys(t *testing.T) {
	t.Parallel()
	s := startMariaDB(t, map[string]string{"innodb-force-primary-key": "ON"})
	for _, mode := range []string{workload.Pipelined, workload.Procedure} {
		c := smallTPCB()
		c.Mode = mode
		runTPCB(t, openMariaDB(t, s, "keys_"+mode), c, 300, true).wantTPCB(t, tpcbChecks...)
	}
}

// TestPgbenchAndTPCB: pgbench drives what this program has loaded, and this program
// what `pgbench -i` has loaded, before and after pgbench has driven it.
func TestPgbenchAndTPCB(t *testing.T) {
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
		for _, r := range first.results { // what pgbench did explains itself, row by row
			switch r.Name {
			case check.Total, check.Ledger, check.Durable, check.NoGhost, check.ExactlyOnce:
				if r.Status != check.Valid {
					t.Errorf("%s is %v: %s", r.Name, r.Status, r.Detail)
				}
			case check.Serializable:
				if r.Status != check.Unknown {
					t.Errorf("%s is %v although pgbench read on the same rows: %s", r.Name, r.Status, r.Detail)
				}
			}
		}
		runTPCB(t, d, c, 100, false, first.dir) // which goes on with what the history explains
		// One that leaves out tellers and branches is not explained, so that the tables are taken up anew.
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
		code, r, why := tpcbProgram(t, "--db", url, "--no-load", "--count", "200", "--mode", "interactive")
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
				pgbench(t, "-n", "-N", "-c", "2", "-t", "50", url) // which leaves rows that the history does not explain
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
