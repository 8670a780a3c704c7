package bank

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/tier"
)

// said returns what a result came to in words, for messages.
func said(r check.Result) string { return text.Speaker{Words: Spec().Words}.Detail(&r) }

// books is a bank whose transfers are made one after the other and recorded in
// runs' directories.
type books struct {
	t        *testing.T
	formula  formula
	accounts []history.Object
	legs     []history.Row
	now      int64
	started  int64 // of the next recording
}

const heldAccounts = 20

// historyFolder is where a run's directory keeps the history and the end state.
const historyFolder = "history"

func newBooks(t *testing.T) *books {
	b := &books{t: t, formula: newFormula(9)}
	for n := range uint64(heldAccounts) {
		b.accounts = append(b.accounts, history.Object{N: n, Value: b.formula.opening(n)})
	}
	return b
}

// run records a run of so many transfers, and the end state after it if asked.
func (b *books) run(number uint64, transfers int, ended bool, keys map[string]string) string {
	b.t.Helper()
	dir := b.t.TempDir()
	total, err := b.formula.total(b.t.Context(), heldAccounts)
	if err != nil {
		b.t.Fatal(err)
	}
	h := history.Header{Workload: Name, Run: number, Seed: 9, Objects: heldAccounts, Total: total, Clients: 1, Database: "books", Keys: keys, Started: b.started}
	w, err := history.Create(filepath.Join(dir, historyFolder), h, 1)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range transfers {
		b.now += 10
		tx := history.Transaction{
			ID: history.NewID(number, 0, uint64(i+1)), Kind: transfer, Outcome: history.Committed, Attempts: 1,
			Due: b.now, Sent: b.now, Try: b.now, End: b.now + 5,
		}
		for leg, amount := range []int64{-1, 1} {
			a := &b.accounts[(i+leg*7)%heldAccounts]
			tx.Ops = append(tx.Ops, history.Op{Object: a.N, Write: true, Amount: amount, Observed: true, Version: a.Version, Value: a.Value, Writer: a.Writer})
			a.Value, a.Version, a.Writer = a.Value+amount, a.Version+1, tx.ID
			b.legs = append(b.legs, history.Row{Transaction: tx.ID, Number: uint32(leg), Object: a.N, Amount: amount, Version: a.Version})
		}
		if err := w.Client(0).Append(&tx); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := errors.Join(w.Client(0).Flush(), w.Close()); err != nil {
		b.t.Fatal(err)
	}
	if ended {
		b.download(dir)
	}
	return dir
}

// download keeps what the bank holds now.
func (b *books) download(dir string) {
	b.t.Helper()
	end, err := history.CreateEnd(filepath.Join(dir, historyFolder))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, a := range b.accounts {
		err = errors.Join(err, end.Object(a))
	}
	for _, l := range b.legs {
		err = errors.Join(err, end.Row(l))
	}
	if err := errors.Join(err, end.Close()); err != nil {
		b.t.Fatal(err)
	}
}

func checkedDirs(t *testing.T, dirs ...string) (check.Status, map[string]check.Result) {
	t.Helper()
	checked, err := Spec().Check(t.Context(), dirs, isolation.Serializable, nil)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]check.Result{}
	for _, r := range checked.Results {
		named[r.Name] = r
	}
	return check.Verdict(checked.Results), named
}

// TestLastOfSeveralEndStatesDecides checks that the last of several end states counts, in any order of the
// directories. An end state that is too old decides nothing.
func TestLastOfSeveralEndStatesDecides(t *testing.T) {
	b := newBooks(t)
	first := b.run(1, 30, true, nil)
	second := b.run(2, 40, true, nil)
	for _, dirs := range [][]string{{first, second}, {second, first}} {
		verdict, results := checkedDirs(t, dirs...)
		if verdict != check.Valid || results[check.Strict].Status != check.Unknown {
			t.Errorf("both: %v, strict %v; %+v", verdict, results[check.Strict].Status, results[check.Durable])
		}
	}
	if verdict, results := checkedDirs(t, second); verdict != check.Unknown || results[check.Durable].Status != check.Valid {
		t.Errorf("the second alone: %v: %s", verdict, said(results[check.Durable]))
	}
	third := b.run(3, 10, false, nil)
	verdict, results := checkedDirs(t, first, second, third)
	if verdict != check.Unknown || results[check.Total].Why != fact.Fact(fact.NoEnd{Run: 3}) {
		t.Errorf("with a third that nobody downloaded after: %v: %s", verdict, said(results[check.Total]))
	}
	none := map[string]string{check.KeyDrive: check.DriveNone}
	after := b.run(4, 0, true, none)
	if verdict, results := checkedDirs(t, first, after, third, second); verdict != check.Valid {
		t.Errorf("with an end state of after all: %v: %+v", verdict, results[check.NoGhost])
	}
}

// TestEndStateAfterAllRunsShowsLoss checks that an end state downloaded after all runs counts before one with more
// rows, and shows the lost rows.
func TestEndStateAfterAllRunsShowsLoss(t *testing.T) {
	b := newBooks(t)
	first := b.run(1, 30, false, nil)
	second := b.run(2, 40, true, nil)
	old := newBooks(t)
	old.run(1, 30, false, nil)
	keys := map[string]string{check.KeyDrive: check.DriveNone}
	lost := old.run(3, 0, true, keys)
	if verdict, results := checkedDirs(t, first, second, lost); verdict != check.Valid {
		t.Errorf("an end state of nobody knows when: %v: %s", verdict, said(results[check.Durable]))
	}
	keys[check.KeyEnded] = "1 2"
	lost = old.run(3, 0, true, keys)
	verdict, results := checkedDirs(t, first, second, lost)
	if r := results[check.Durable]; verdict != check.Invalid || r.Status != check.Invalid || r.Findings[0].Kind() != "lost" || r.Findings[0].Count != 40 {
		t.Errorf("an end state of after both that lacks the second: %v: %s", verdict, said(r))
	}
	if where := results[check.Durable].Where; len(where) == 0 || !strings.HasPrefix(where[0].File, filepath.ToSlash(second)) {
		t.Errorf("the witnesses are said to be in %v", where)
	}
}

// TestStrictNeedsOneClockForAllRuns checks that strict is decided if all runs used one clock, and is unknown if
// they used two.
func TestStrictNeedsOneClockForAllRuns(t *testing.T) {
	b := newBooks(t)
	on := func(id string) map[string]string {
		return map[string]string{check.KeyClock: check.Clock{ID: id}.String()}
	}
	first, second, third := b.run(1, 10, false, on("a")), b.run(2, 10, true, on("a")), b.run(3, 10, true, on("b"))
	if _, results := checkedDirs(t, first, second); results[check.Strict].Status != check.Valid {
		t.Errorf("on one clock strict is %v: %s", results[check.Strict].Status, said(results[check.Strict]))
	}
	if _, results := checkedDirs(t, first, second, third); results[check.Strict].Status != check.Unknown || results[check.Strict].Why != fact.Fact(fact.ClocksApart{Clocks: 2}) {
		t.Errorf("on two clocks strict is %v: %s", results[check.Strict].Status, said(results[check.Strict]))
	}
}

// TestUnrelatedRecordingsAreAnError checks that recordings that do not belong together are an error, never a
// violation.
func TestUnrelatedRecordingsAreAnError(t *testing.T) {
	b := newBooks(t)
	first, again := b.run(1, 10, true, nil), b.run(1, 10, true, nil)
	if _, err := Spec().Check(t.Context(), []string{first, again}, isolation.Serializable, nil); err == nil {
		t.Error("two recordings of run 1 were checked together")
	}
}

// asked is a context that ends when it has been asked so often.
type asked struct {
	context.Context
	left int
}

func (a *asked) Err() error {
	if a.left == 0 {
		return context.Canceled
	}
	a.left--
	return nil
}

// TestInterruptedCheckHasNoResult checks that a check that is interrupted at any point returns an error and no
// result.
func TestInterruptedCheckHasNoResult(t *testing.T) {
	tier.SkipUnderRace(t)
	b := newBooks(t)
	dirs := []string{b.run(1, 6000, true, nil), b.run(2, 6000, true, nil)}
	for n := 0; ; n++ {
		checked, err := Spec().Check(&asked{t.Context(), n}, dirs, isolation.Serializable, nil)
		if err == nil {
			if n < 10 || check.Verdict(checked.Results) != check.Valid {
				t.Errorf("asked %d times, verdict %v", n, check.Verdict(checked.Results))
			}
			return
		}
		if !errors.Is(err, context.Canceled) || checked.Results != nil {
			t.Fatalf("ended when asked %d times: %v", n, err)
		}
	}
}

// TestNewlyDownloadedEndStateDecides checks that the end state downloaded by a check counts, not the end states of
// the runs. This holds even if the database has lost rows since.
func TestNewlyDownloadedEndStateDecides(t *testing.T) {
	b := newBooks(t)
	first := b.run(1, 30, true, nil)
	cut := b.run(2, 10, false, nil)
	after := func(started int64, ended string) string {
		b.started = started
		return b.run(9, 0, true, map[string]string{check.KeyDrive: check.DriveNone, check.KeyEnded: ended})
	}
	sound := after(100, "1 2")
	b.legs = b.legs[2:]
	lost := after(200, "1 2")
	knowsOne := after(150, "1")
	for _, test := range []struct {
		name string
		dirs []string
		want check.Status
	}{
		{"a run's own state and one of now", []string{first, cut, lost}, check.Invalid},
		{"the other way round", []string{lost, cut, first}, check.Invalid},
		{"two checks, of which the later one counts", []string{first, lost, sound, cut}, check.Invalid},
		{"the earlier check alone", []string{sound, first, cut}, check.Valid},
		{"a check that does not know whether a run had ended", []string{first, cut, knowsOne}, check.Invalid},
	} {
		if verdict, results := checkedDirs(t, test.dirs...); verdict != test.want {
			t.Errorf("%s: %v: %+v", test.name, verdict, results[check.Durable])
		}
	}
}
