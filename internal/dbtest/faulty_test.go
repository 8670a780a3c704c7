package dbtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/db"
	"stroppy/internal/db/memory"
	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/kv"
)

// faultyWorkload is a workload with its settings, for databases with faulty sessions.
type faultyWorkload struct {
	name  string
	open  func(t *testing.T, database db.Database) workload.Workload
	legs  bool // the ledger has every transaction that wrote
	final bool // a look-up resolves every unknown outcome
	sql   bool // it needs SQL
}

// on opens the workload on a database, or skips the test if the database lacks what it needs.
func (w faultyWorkload) on(t *testing.T, database db.Database) workload.Workload {
	t.Helper()
	if _, sql := database.(db.SQL); w.sql && !sql {
		t.Skip("the workload needs SQL")
	}
	return w.open(t, database)
}

// faultyWorkloads returns the workloads that run on faulty sessions.
func faultyWorkloads() []faultyWorkload {
	banked := func(update string) func(*testing.T, db.Database) workload.Workload {
		return func(t *testing.T, database db.Database) workload.Workload {
			return newBank(t, database, func(c *bank.Config) {
				if _, sql := database.(db.SQL); sql {
					c.Update = update
				}
			})
		}
	}
	tpcbWith := func(versions bool) func(*testing.T, db.Database) workload.Workload {
		return func(t *testing.T, database db.Database) workload.Workload {
			c := smallTPCB()
			if _, sql := database.(db.SQL); sql {
				c.Versions = versions
			}
			return newTPCB(t, database, c)
		}
	}
	return []faultyWorkload{
		{"bank atomic", banked(bank.Atomic), true, true, false},
		{"bank rmw", banked(bank.RMW), true, true, false},
		{"tpcb", tpcbWith(false), false, false, false},
		{"tpcb with versions", tpcbWith(true), false, true, false},
		{"events", func(t *testing.T, database db.Database) workload.Workload {
			return newEvents(t, database, fewEvents())
		}, true, true, false},
		{"kv", func(t *testing.T, database db.Database) workload.Workload {
			w, err := kv.New(database, kv.Config{
				Records: 300, Seed: 7, KeySize: 24, ValueLow: 100, ValueHigh: 100, Connections: 8, InFlight: 1,
				Mix: kv.Mix{Reads: 0.3, Updates: 0.2, Inserts: 0.1, Scans: 0.1, Modifies: 0.3}, ScanLength: 20,
			})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}, false, false, false},
		{"script", func(t *testing.T, database db.Database) workload.Workload { return newShop(t, database, shopSale) }, true, true, true},
		{"script with tracked tables", func(t *testing.T, database db.Database) workload.Workload {
			return newPurses(t, database, fmt.Sprintf(purseRewrite, ""), "")
		}, true, true, true},
		{"script with tracked tables alone", func(t *testing.T, database db.Database) workload.Workload {
			return newPurses(t, database, purseSkewed, "false")
		}, false, false, true},
	}
}

// embedded opens a database of each data model that needs no server.
var embedded = map[string]func(t *testing.T) db.Database{
	"memory": func(t *testing.T) db.Database { return openMemory(t, "memory:") },
	"sqlite": func(t *testing.T) db.Database { return openSQLite(t) },
}

// wrapped returns a database whose sessions are faulty while the injector is enabled.
func wrapped(t *testing.T, database db.Database, script string) (*Injector, db.Database, Script) {
	t.Helper()
	s, err := parseScript(script)
	if err != nil {
		t.Fatal(err)
	}
	in := newInjector(s)
	in.Enable(false)
	wrapped := in.Wrap(database)
	t.Cleanup(func() {
		if err := wrapped.Close(); err != nil {
			t.Error(err)
		}
	})
	return in, wrapped, s
}

// allowedFaults holds scripts with faults that a correct database may show.
var allowedFaults = map[string]string{
	"refused":       "seed 1; refuse begin 0.05; refuse statement 0.03; refuse read 0.05; refuse commit 0.1",
	"lost":          "seed 2; lose begin 0.03; lose statement 0.02; lose read 0.03; lose commit 0.1",
	"cut":           "seed 3; cut begin 0.03; cut statement 0.02; cut read 0.03; cut commit 0.1",
	"late":          "seed 4; late commit 0.1; lose commit 0.05",
	"delayed":       "seed 5; delay begin 0.05 1ms; delay read 0.05 1ms; delay commit 0.1 2ms",
	"no look-up":    "seed 6; cut commit 0.05; lose commit 0.05; lose look-up 0.3; cut look-up 0.3; refuse look-up 0.2",
	"no new one":    "seed 7; lose commit 0.05; cut commit 0.05; lose reset 0.3; cut reset 0.3",
	"all of it":     "seed 8; refuse commit 0.05; lose begin 0.02; cut read 0.02; cut commit 0.05; lose commit 0.05; late commit 0.03; lose look-up 0.2; cut look-up 0.2; cut reset 0.2; delay commit 0.05 1ms",
	"all, 2nd seed": "seed 9; refuse commit 0.05; lose begin 0.02; cut read 0.02; cut commit 0.05; lose commit 0.05; late commit 0.03; lose look-up 0.2; cut look-up 0.2; cut reset 0.2; delay commit 0.05 1ms",
}

// TestAllowedFaultsAreNotReported checks that lost, late and refused answers never make a run invalid. Every recorded
// outcome must agree with the end state.
func TestAllowedFaultsAreNotReported(t *testing.T) {
	t.Parallel()
	for engine, open := range embedded {
		for _, w := range faultyWorkloads() {
			for name, script := range allowedFaults {
				if raceEnabled && name != "all of it" {
					continue // the detector sees the same code in it
				}
				t.Run(strings.Join([]string{engine, w.name, name}, "/"), func(t *testing.T) {
					t.Parallel()
					in, database, rules := wrapped(t, open(t), script)
					r := driveFaulty(t, in, database, w.on(t, database), 400)
					r.wantNotInvalid(t)
					if w.final {
						r.wantValid(t)
					}
					outcomes := r.outcomes(t)
					if w.final && outcomes[history.Unknown] > 0 {
						t.Errorf("%d outcomes are unknown, want none", outcomes[history.Unknown])
					}
					if w.legs {
						r.wantOutcomes(t)
					}
					fired := 0
					for _, rule := range rules.Rules {
						fired += in.Fired(rule.Fault)
					}
					if fired < 10 {
						t.Errorf("%s: only %d faults happened", rules, fired)
					}
				})
			}
		}
	}
}

// TestAllowedFaultsOfProceduresAreNotReported is TestAllowedFaultsAreNotReported for transactions that are one call of
// a procedure.
func TestAllowedFaultsOfProceduresAreNotReported(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, database db.Database) workload.Workload{
		"bank": func(t *testing.T, database db.Database) workload.Workload {
			return newBank(t, database, func(c *bank.Config) { c.Mode = workload.Procedure })
		},
		"tpcb": func(t *testing.T, database db.Database) workload.Workload {
			c := smallTPCB()
			c.Mode = workload.Procedure
			return newTPCB(t, database, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := openPostgres(t)
			in, database, _ := wrapped(t, d, allowedFaults["all of it"])
			r := driveFaulty(t, in, database, open(t, database), 400)
			r.wantNotInvalid(t)
			if in.Fired(Lose) == 0 || in.Fired(Cut) == 0 {
				t.Error("no answer was lost")
			}
			if name == "bank" {
				r.wantValid(t)
				r.wantOutcomes(t)
			}
		})
	}
}

// driveFaulty runs a workload with faults only between the attachment and the download.
func driveFaulty(t *testing.T, in *Injector, database db.Database, w workload.Workload, count uint64) *trial {
	t.Helper()
	r := newTrial(t, database, w, "")
	r.load(t)
	r.attach(t)
	in.Enable(true)
	r.drive(t, count)
	in.Enable(false)
	r.download(t)
	r.check(t)
	return r
}

// wantNotInvalid fails the test if a required check or the verdict is invalid.
func (r *trial) wantNotInvalid(t *testing.T) {
	t.Helper()
	r.wantChecks(t, func(result checktest.Reported) bool { return result.Required && result.Status == check.Invalid })
	if checktest.Verdict(r.results) == check.Invalid {
		t.Error("the verdict is invalid")
	}
}

// wantOutcomes compares the recorded outcome of each transaction with the end state.
func (r *trial) wantOutcomes(t *testing.T) {
	t.Helper()
	end, err := history.OpenEnd(r.history())
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	there := map[history.ID]bool{}
	for leg, err := range end.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		there[leg.Transaction] = there[leg.Transaction] || leg.Mark != history.Tombstone
	}
	found, looked := 0, 0
	r.each(t, func(tx *history.Transaction) {
		if tx.Kind.ReadOnly() || tx.Outcome == history.Unknown {
			return
		}
		if applied := tx.Outcome == history.Committed; applied != there[tx.ID] {
			t.Errorf("%v is recorded as %v; in the end state: %v", tx.ID, tx.Outcome, there[tx.ID])
		}
		if there[tx.ID] {
			found++
		}
		if tx.LookedUp {
			looked++
		}
	})
	if found == 0 {
		t.Errorf("no transaction was applied; %d were looked up", looked)
	}
}

// TestInterruptedLoadIsRepeatedUntilComplete checks that a load which is interrupted again and again finally succeeds,
// and that a run on its data is valid.
func TestInterruptedLoadIsRepeatedUntilComplete(t *testing.T) {
	t.Parallel()
	for engine, open := range embedded {
		for _, w := range faultyWorkloads() {
			t.Run(engine+"/"+w.name, func(t *testing.T) {
				in, database, rules := wrapped(t, open(t), "seed 3; lose load 0.4; cut load 0.4; lose begin 0.02; cut commit 0.05; lose commit 0.05; cut scan 0.1; cut read 0.02")
				in.Enable(true)
				tries := 1
				for ; ; tries++ {
					_, err := w.on(t, database).Load(t.Context(), nil)
					if err == nil {
						break
					}
					if tries == 200 {
						t.Fatalf("%s: after %d tries: %v", rules, tries, err)
					}
				}
				in.Enable(false)
				r := newTrial(t, database, w.on(t, database), "")
				r.attach(t)
				r.drive(t, 100)
				r.download(t)
				r.check(t)
				r.wantValid(t)
				if in.Fired(Lose)+in.Fired(Cut) == 0 {
					t.Log("no fault happened") // a small load has few steps
				}
			})
		}
	}
}

// TestSQLPlantedBugsAreFound plants bugs in the sessions of a SQL database and checks that each is found by its own
// check.
func TestSQLPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	checks := map[string]string{}
	for _, m := range memory.Mutants() {
		checks[m.Name] = m.Check
	}
	type mutant struct {
		fault Fault
		step  Step
		style string
	}
	for _, m := range cases([]mutant{
		{LostAck, Commit, bank.Atomic},
		{Ghost, Commit, bank.Atomic},
		{Torn, Commit, bank.Atomic},
		{DoubleApply, Commit, bank.Atomic},
		{PhantomMoney, Commit, bank.Atomic},
		{Swap, Commit, bank.Atomic},
		{Overdraft, Commit, bank.Atomic},
		{UnknownLies, Commit, bank.Atomic},
		{FalseAck, Commit, bank.Atomic},
		{DirtyRead, Commit, bank.Atomic},
		{StaleRead, Read, bank.Atomic},
		{ReadSkew, Read, bank.Atomic},
		{LongFork, Read, bank.Atomic},
		{LostUpdate, Read, bank.RMW},
		{WriteSkew, Read, bank.RMW},
	}...) {
		for _, seed := range seeds(3) {
			t.Run(fmt.Sprintf("%s/seed=%d", m.fault, seed), func(t *testing.T) {
				t.Parallel()
				rate := map[Step]float64{Commit: 0.05, Read: 0.2}[m.step]
				if m.fault == Overdraft || m.fault == LongFork { // overdrafts and forks are rare
					rate = 1
				}
				script := fmt.Sprintf("seed %d; %s %s %g", seed, m.fault, m.step, rate)
				in, database, _ := wrapped(t, openSQLite(t), script)
				c, count := small(), uint64(2000)
				c.Accounts, c.Update, c.Seed, c.Audits, c.InquiryShare, c.JointShare = 40, m.style, uint64(seed), 0, 0.3, 0.3
				if m.fault == LongFork { // a fork needs few concurrent commits and few accounts
					c.Accounts, c.Clients, c.PayrollShare, count = 10, 2, 0, 4000
				}
				w := newBank(t, database, func(own *bank.Config) { *own = c })
				r := newTrial(t, database, w, "")
				r.retries = 5 // the bug aborts some transactions at every attempt
				r.load(t)
				r.attach(t)
				in.Enable(true)
				r.drive(t, count)
				in.Enable(false)
				r.download(t)
				r.check(t)
				if in.Fired(m.fault) == 0 {
					t.Fatal("the planted bug never took effect")
				}
				name := checks[string(m.fault)]
				t.Logf("%d times: %s", in.Fired(m.fault), r.status(name).Detail)
				if result := r.status(name); result.Status != check.Invalid {
					t.Errorf("the bug took effect the bug took effect %d times, and %s is %v: %s", in.Fired(m.fault), name, result.Status, result.Detail)
				}
				if m.fault == LongFork && !r.names(name, "long fork (G-nonadjacent)") {
					t.Errorf("each reader saw a consistent snapshot, but %s reports: %s", name, r.status(name).Detail)
				}
				if v := checktest.Verdict(r.results); v != check.Invalid && r.status(name).Required {
					t.Errorf("the verdict is %v", v)
				}
			})
		}
	}
}

// TestKeyValuePlantedBugsAreFound plants bugs in the sessions of a key-value store and checks that each is found.
func TestKeyValuePlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	want := map[Fault]string{
		LostAck: check.Durable, Ghost: check.NoGhost, Torn: check.Ledger,
		DoubleApply: check.Ledger, PhantomMoney: check.Total, StaleRead: check.Strict,
	}
	for _, fault := range cases(slices.Sorted(maps.Keys(want))...) {
		name := want[fault]
		t.Run(string(fault), func(t *testing.T) {
			in, database, _ := wrapped(t, openMemory(t, "memory:"), fmt.Sprintf("seed 1; %s %s %g", fault, places[fault][0], map[Step]float64{Commit: 0.1, Read: 0.3}[places[fault][0]]))
			r := driveFaulty(t, in, database, newBank(t, database, nil), 8000)
			t.Logf("%d times", in.Fired(fault))
			if result := r.status(name); in.Fired(fault) == 0 || result.Status != check.Invalid {
				t.Errorf("%d times, and %s is %v: %s", in.Fired(fault), name, result.Status, result.Detail)
			}
		})
	}
}
