package totals

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// split divides the transactions of a world among several runs, as if several machines had driven the bank.
// Each run has its own clock with its own zero. shared adds the position on a common clock.
func split(w *world, runs int, rng *rand.Rand, shared bool) []*checktest.History {
	list := make([]*checktest.History, runs)
	began := make([]int64, runs)
	for i := range list {
		list[i] = &checktest.History{Run: uint64(i + 1)}
		began[i] = rng.Int64N(1_000_000)
		if shared {
			list[i].Keys = map[string]string{check.KeyClock: check.Clock{ID: "boot", From: 5_000_000 + began[i], To: 5_000_000 + began[i]}.String()}
		}
	}
	renamed := map[history.ID]history.ID{0: 0}
	for i := range w.Txns {
		run := rng.IntN(runs)
		tx := w.Txns[i]
		renamed[tx.ID] = history.NewID(uint64(run+1), 0, uint64(len(list[run].Txns)+1))
		tx.ID = renamed[tx.ID]
		w.Txns[i].ID = tx.ID
		for _, at := range []*int64{&tx.Due, &tx.Sent, &tx.Try, &tx.End} {
			*at -= began[run]
		}
		list[run].Txns = append(list[run].Txns, tx)
	}
	for _, r := range list {
		for i := range r.Txns {
			for j := range r.Txns[i].Ops {
				op := &r.Txns[i].Ops[j]
				op.Writer = renamed[op.Writer]
			}
		}
	}
	for i := range w.LedgerRows {
		w.LedgerRows[i].Transaction = renamed[w.LedgerRows[i].Transaction]
	}
	for i := range w.ObjectRows {
		w.ObjectRows[i].Writer = renamed[w.ObjectRows[i].Writer]
	}
	return list
}

func (w *world) inputOf(expect isolation.Level, runs []*checktest.History) AccountsInput {
	in := w.input(expect)
	in.History = nil
	for _, r := range runs {
		in.History = append(in.History, r)
	}
	return in
}

// TestCorrectRunsAreValidTogether checks correct runs from several machines. The check strict is valid only
// if they share a clock.
func TestCorrectRunsAreValidTogether(t *testing.T) {
	for seed := range uint64(60) {
		shared := seed%2 == 0
		w := busy(seed, 12, 300)
		in := w.inputOf(isolation.StrictSerializable, split(w, 2+int(seed%3), rand.New(rand.NewPCG(seed, 2)), shared))
		for _, tx := range w.Txns {
			if run := tx.ID.Run(); tx.Kind == kindAudit && !slices.Contains(in.Audited, run) {
				in.Audited = append(in.Audited, run)
			}
		}
		for _, r := range checked(in) {
			want := check.Valid
			if r.Name == check.Strict && !shared {
				want = check.Unknown
			}
			if r.Status != want || !r.Required {
				t.Fatalf("seed %d: %s is %v (required %v): %s", seed, r.Name, r.Status, r.Required, r.Detail)
			}
		}
		for _, r := range checked(w.inputOf(isolation.Serializable, []*checktest.History{in.History[0].(*checktest.History)})) {
			if r.Status == check.Invalid {
				t.Fatalf("seed %d: of one run alone %s is invalid: %s", seed, r.Name, r.Detail)
			}
			if (r.Name == check.NoGhost || r.Name == check.Serializable) && (r.Status != check.Unknown || r.Why.Fact() != fact.OtherRuns{}.Fact()) {
				t.Fatalf("seed %d: of one run alone %s is %v: %s", seed, r.Name, r.Status, r.Detail)
			}
		}
	}
}

// TestViolationsAcrossRuns checks that a violation within one run is found across runs.
func TestViolationsAcrossRuns(t *testing.T) {
	for _, tc := range violations {
		for seed := range uint64(8) {
			w := newWorld(8)
			tc.make(w)
			expect := tc.expect
			if expect == isolation.Unknown {
				expect = isolation.StrictSerializable
			}
			if strings.HasSuffix(tc.name, "never sent") {
				continue // it concerns no run
			}
			in := w.inputOf(expect, split(w, 2, rand.New(rand.NewPCG(seed, 5)), true))
			if tc.audited {
				in.Audited = []uint64{1, 2}
			}
			results := checked(in)
			if r := checktest.ByName(results)[tc.check]; r.Status != check.Invalid {
				t.Errorf("%s, seed %d: %s is %v: %s", tc.name, seed, tc.check, r.Status, r.Detail)
			}
			if !tc.tolerated && checktest.Verdict(results) != check.Invalid {
				t.Errorf("%s, seed %d: verdict %v", tc.name, seed, checktest.Verdict(results))
			}
		}
	}
}

// TestTwoRunsAgainstDefinition compares the checks of two runs with the definition. On one clock, real time
// is common; otherwise each run has its own.
func TestTwoRunsAgainstDefinition(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(4000) {
		shared := seed%2 == 0
		rng := rand.New(rand.NewPCG(seed, 13))
		w := weak(rng, 3+rng.IntN(3), 2+rng.IntN(5))
		runs := split(w, 2, rng, shared)
		results := checktest.ByName(checked(w.inputOf(isolation.StrictSerializable, runs)))
		real := func(ended, began *history.Transaction) bool {
			return (shared || ended.ID.Run() == began.ID.Run()) && ended.End < began.Try
		}
		plain, strict := explained(w, nil), explained(w, real)
		want := map[string]check.Status{check.Serializable: check.Valid, check.Strict: check.Valid}
		if !plain {
			want[check.Serializable] = check.Invalid
		}
		switch {
		case !strict:
			want[check.Strict] = check.Invalid
		case !shared && len(runs[0].Txns) > 0 && len(runs[1].Txns) > 0:
			want[check.Strict] = check.Unknown
		}
		for name, status := range want {
			if got := results[name].Status; got != status {
				t.Fatalf("seed %d, shared %v: %s is %v, the oracle says %v: %s", seed, shared, name, got, status, results[name].Detail)
			}
			counts[fmt.Sprintf("%s %v", name, status)]++
		}
		if plain && !strict {
			counts["against real time alone"]++
		}
	}
	for _, what := range []string{"serializable valid", "serializable invalid", "strict valid", "strict unknown", "strict invalid", "against real time alone"} {
		if counts[what] < 100 {
			t.Errorf("%d histories are too few: %s", counts[what], what)
		}
	}
}

// TestClockBoundsBetweenRuns checks that real time between runs counts only if it is certain.
func TestClockBoundsBetweenRuns(t *testing.T) {
	for _, tc := range []struct {
		from, to int64
		want     check.Status
	}{{9000, 9000, check.Invalid}, {9000, 9400, check.Invalid}, {8000, 8200, check.Valid}, {8000, 9000, check.Unknown}} {
		// Run 2 reads, at once in its own time, what run 1 had overwritten at 1500, which is 1500 to 1600 on
		// the common clock.
		w := newWorld(4)
		w.transfer(0, 1, 10)
		other := &checktest.History{Run: 2, Txns: []history.Transaction{{
			ID: history.NewID(2, 0, 0), Kind: kindInquiry, Outcome: history.Committed, Attempts: 1, Try: -7000, End: -6000,
			Ops: []history.Op{{Object: 0, Observed: true, Value: opening}},
		}}}
		w.Keys = map[string]string{check.KeyClock: check.Clock{ID: "boot", From: 0, To: 100}.String()}
		other.Keys = map[string]string{check.KeyClock: check.Clock{ID: "boot", From: tc.from, To: tc.to}.String()}
		r := checktest.ByName(checked(w.inputOf(isolation.StrictSerializable, []*checktest.History{&w.History, other})))[check.Strict]
		if r.Status != tc.want {
			t.Errorf("a run that began between %d and %d: strict is %v: %s", tc.from, tc.to, r.Status, r.Detail)
		}
		apart := one(func(f fact.Cycle) bool {
			return slices.ContainsFunc(f.Steps, func(d fact.Dependency) bool { return d.Apart == 400 })
		})
		if tc.want == check.Invalid && !slices.ContainsFunc(r.Findings, apart) {
			t.Errorf("reported as %s", r.Detail)
		}
	}
	for _, text := range []string{"", "boot", "boot 1", "boot 1 x", "boot 2 1", "boot 1 2 3"} {
		if c, ok := check.ClockOf(history.Header{Keys: map[string]string{check.KeyClock: text}}); ok {
			t.Errorf("%q was taken for the clock %v", text, c)
		}
	}
}

// TestEndStateBeforeTheEndOfARun checks that an end state older than a run accuses no transaction, and that a
// later end state is used, whichever run downloaded it.
func TestEndStateBeforeTheEndOfARun(t *testing.T) {
	w := newWorld(6)
	for i := range uint64(20) {
		w.transfer(i%6, (i+1)%6, 3)
	}
	before := checktest.End{ObjectRows: append([]history.Object(nil), w.ObjectRows...), LedgerRows: append([]history.Row(nil), w.LedgerRows...)}
	second := len(w.Txns)
	for i := range uint64(20) {
		w.transfer(i%6, (i+2)%6, 2)
	}
	w.inquiry(0, 1, 2)
	later := &checktest.History{Run: 2}
	renamed := map[history.ID]history.ID{}
	for _, tx := range w.Txns[second:] {
		renamed[tx.ID] = history.NewID(2, 0, uint64(len(later.Txns)+1))
		tx.ID = renamed[tx.ID]
		later.Txns = append(later.Txns, tx)
	}
	w.Txns = w.Txns[:second]
	rename := func(id *history.ID) {
		if name, ok := renamed[*id]; ok {
			*id = name
		}
	}
	for i := range later.Txns {
		for j := range later.Txns[i].Ops {
			rename(&later.Txns[i].Ops[j].Writer)
		}
	}
	for i := range w.LedgerRows {
		rename(&w.LedgerRows[i].Transaction)
	}
	for i := range w.ObjectRows {
		rename(&w.ObjectRows[i].Writer)
	}
	in := w.inputOf(isolation.Serializable, []*checktest.History{&w.History, later})
	in.Early = []uint64{2}
	if results := checked(in); checktest.Verdict(results) != check.Valid {
		t.Errorf("with all of run 2 in the ledger the verdict is %v: %+v", checktest.Verdict(results), checktest.ByName(results)[check.Durable])
	}
	old := in
	old.End = &before
	for _, r := range checked(old) {
		if r.Status == check.Invalid || r.Status == check.Valid && r.Name != check.Audits {
			t.Errorf("with the end state of before %s is %v: %s", r.Name, r.Status, r.Detail)
		}
		if r.Name == check.Durable && r.Why != fact.Fact(fact.NoEnd{Run: 2}) {
			t.Errorf("durable says %s", r.Detail)
		}
	}
	// The last transfer of run 2 may have been applied after the download.
	last := &later.Txns[len(later.Txns)-2]
	last.Outcome = history.Unknown
	in.End = without(&w.End, last.ID)
	if r := checktest.ByName(checked(in))[check.Serializable]; r.Status != check.Unknown {
		t.Errorf("with a transfer in doubt that is not in the ledger serializable is %v: %s", r.Status, r.Detail)
	}
	last.Outcome = history.Committed
	in.Early = nil // it is known that run 2 had ended
	if r := checktest.ByName(checked(in))[check.Durable]; r.Status != check.Invalid {
		t.Errorf("with an acknowledged transfer that is gone durable is %v: %s", r.Status, r.Detail)
	}
}

// without returns the end state before its last transfer.
func without(f *checktest.End, last history.ID) *checktest.End {
	g := &checktest.End{ObjectRows: append([]history.Object(nil), f.ObjectRows...)}
	for _, leg := range f.LedgerRows {
		if leg.Transaction != last {
			g.LedgerRows = append(g.LedgerRows, leg)
			continue
		}
		a := &g.ObjectRows[leg.Object]
		a.Value -= leg.Amount
		a.Version--
		for _, before := range f.LedgerRows {
			if before.Object == leg.Object && before.Version == a.Version {
				a.Writer = before.Transaction
			}
		}
	}
	return g
}

// TestAuditsOfEveryRun checks that each run with audits completed one.
func TestAuditsOfEveryRun(t *testing.T) {
	w := newWorld(4)
	w.transfer(0, 1, 10)
	audit(w, 0, 1, 2, 3)
	other := &checktest.History{Run: 2}
	in := w.inputOf(isolation.Serializable, []*checktest.History{&w.History, other})
	in.Audited = []uint64{1}
	if r := checktest.ByName(checked(in))[check.Audits]; r.Status != check.Valid || !r.Required {
		t.Errorf("audits is %v: %s", r.Status, r.Detail)
	}
	in.Audited = []uint64{1, 2}
	if r := checktest.ByName(checked(in))[check.Audits]; r.Status != check.Unknown || !r.Required {
		t.Errorf("with no audit in run 2 audits is %v: %s", r.Status, r.Detail)
	}
}

// TestSingularAndPlural checks that the words of sentences agree with their numbers.
func TestSingularAndPlural(t *testing.T) {
	for got, want := range map[string]string{
		check.Plural(uint64(1), "dependency"): "1 dependency", check.Plural(uint64(0), "dependency"): "0 dependencies",
	} {
		if got != want {
			t.Errorf("%q is not %q", got, want)
		}
	}
	wrong := regexp.MustCompile(`(^|[^-0-9.,#])1 (more |ledger |whole |sampled |committed )?(accounts|transfers|audits|balances|legs|rows|dependencies|transactions|nodes)\b`)
	for _, tc := range violations {
		w := newWorld(8)
		tc.make(w)
		in := w.input(isolation.StrictSerializable)
		in.Audited = []uint64{1}
		for _, r := range checked(in) {
			if found := wrong.FindString(r.Detail); found != "" {
				t.Errorf("%s: %s says %q in %q", tc.name, r.Name, found, r.Detail)
			}
		}
	}
}

// deal assigns the clients of a world to several runs. Each run's beginning on the common clock is known
// within some ns.
func deal(w *world, runs int, rng *rand.Rand, within int64) []*checktest.History {
	list := make([]*checktest.History, runs)
	began := make([]int64, runs)
	for i := range list {
		began[i] = rng.Int64N(1_000_000)
		from := 5_000_000 + began[i] - rng.Int64N(within+1)
		clock := check.Clock{ID: "boot", From: from, To: from + within}
		list[i] = &checktest.History{Run: uint64(i + 1), Keys: map[string]string{check.KeyClock: clock.String()}}
	}
	own := func(id history.ID) history.ID {
		if id == 0 {
			return 0
		}
		return history.NewID(id.Client()%uint64(runs)+1, id.Client(), id.Sequence())
	}
	for i := range w.Txns {
		tx := &w.Txns[i]
		tx.ID = own(tx.ID)
		for j := range tx.Ops {
			tx.Ops[j].Writer = own(tx.Ops[j].Writer)
		}
		run := tx.ID.Run() - 1
		ours := *tx
		for _, at := range []*int64{&ours.Due, &ours.Sent, &ours.Try, &ours.End} {
			*at -= began[run]
		}
		list[run].Txns = append(list[run].Txns, ours)
	}
	for i := range w.LedgerRows {
		w.LedgerRows[i].Transaction = own(w.LedgerRows[i].Transaction)
	}
	for i := range w.ObjectRows {
		w.ObjectRows[i].Writer = own(w.ObjectRows[i].Writer)
	}
	return list
}

// TestProofOfSeveralRuns checks that the recordings of several runs on one clock are proved together, with
// the same results as the examination, also after changes. With inexact clocks a proof may be missed, but no
// wrong proof may be found.
func TestProofOfSeveralRuns(t *testing.T) {
	var counts [2]int
	for seed := range checktest.Rounds(2000, 10000) {
		rng := rand.New(rand.NewPCG(seed, 27))
		w := parallel(rng, 3+rng.IntN(12), 2+rng.IntN(10), 4+rng.IntN(60), seed%5 == 4)
		bent, within := seed%2 == 1, int64(0)
		if bent {
			bend(rng, w)
		}
		if seed%3 == 2 {
			within = rng.Int64N(300)
		}
		runs := deal(w, 1+rng.IntN(4), rng, within)
		in := w.inputOf(isolation.StrictSerializable, runs)
		for _, tx := range w.Txns {
			if run := tx.ID.Run(); tx.Kind == kindAudit && !slices.Contains(in.Audited, run) {
				in.Audited = append(in.Audited, run)
			}
		}
		switch proved := sameAsExamined(t, in, seed); {
		case proved:
			counts[0]++
		case bent:
			counts[1]++
		case within == 0 && seed%5 != 4:
			t.Fatalf("seed %d: no proof was found", seed)
		}
	}
	if counts[0] < 1000 || counts[1] < 400 {
		t.Errorf("%d were proved and %d changed ones not: too few of one kind to prove anything", counts[0], counts[1])
	}
}

// TestNoProofWithoutOneClock checks that there is no proof without a common clock or with an open recording.
func TestNoProofWithoutOneClock(t *testing.T) {
	for name, change := range map[string]func(runs []*checktest.History){
		"another clock": func(runs []*checktest.History) {
			runs[1].Keys = map[string]string{check.KeyClock: check.Clock{ID: "other"}.String()}
		},
		"no clock":   func(runs []*checktest.History) { runs[1].Keys = nil },
		"not closed": func(runs []*checktest.History) { runs[0].Incomplete = true },
		"twice":      func(runs []*checktest.History) { runs[1].Run = 1 },
	} {
		rng := rand.New(rand.NewPCG(1, 28))
		w := parallel(rng, 8, 4, 60, false)
		runs := deal(w, 2, rng, 0)
		change(runs)
		in := w.inputOf(isolation.StrictSerializable, runs)
		if results, _, err := prove(t.Context(), in); err != nil || results != nil {
			t.Errorf("%s: %v, %v", name, results, err)
		}
	}
}

// TestAuditThatLacksAnAccount checks that an audit whose recording lacks an account counts as damaged:
// neither as a complete audit nor as a sample.
func TestAuditThatLacksAnAccount(t *testing.T) {
	for gone, want := range map[int]check.Status{-1: check.Valid, 0: check.Unknown, 3: check.Unknown, 7: check.Unknown} {
		w := newWorld(8)
		w.transfer(0, 1, 5)
		audit := w.begin(kindAudit)
		for n := range uint64(8) {
			w.see(audit, n)
		}
		if gone >= 0 {
			audit.Ops = slices.Delete(audit.Ops, gone, gone+1)
		}
		in := w.input(isolation.StrictSerializable)
		in.Audited, in.AuditSize = []uint64{1}, map[uint64]uint64{1: 8}
		if verdict := checktest.Verdict(checked(in)); verdict != want {
			t.Errorf("without its account %d the verdict is %v, want %v", gone, verdict, want)
		}
	}
}
