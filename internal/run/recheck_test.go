package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/text"
	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/report"
	"stroppy/internal/workload"
)

// silent is the progress that nobody looks at.
type silent struct{}

func (silent) Begin(string)             {}
func (silent) Show(State)               {}
func (silent) Fault(fault.Record)       {}
func (silent) Violation(string, string) {}
func (silent) Known(*report.Result)     {}

// recording makes a run's directory with so many committed transfers; bend may
// change the header.
func recording(t *testing.T, number uint64, committed int, bend func(h *history.Header)) string {
	t.Helper()
	dir := t.TempDir()
	h := history.Header{
		Workload: "bank", Run: number, Seed: 4, Objects: 10, Clients: 1, Started: 1_700_000_000_000_000_000, Database: "none",
		Keys: map[string]string{keyExpect: isolation.Serializable.String()},
	}
	if bend != nil {
		bend(&h)
	}
	w, err := history.Create(filepath.Join(dir, HistoryDir), h, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range committed {
		tx := history.Transaction{ID: history.NewID(number, 0, uint64(i+1)), Kind: kindTransfer, Outcome: history.Committed, Attempts: 1}
		if err := w.Client(0).Append(&tx); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Client(0).Flush(), w.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func checking(t *testing.T, dirs []string, check func(context.Context, []string, isolation.Level, func(check.Violation)) (check.Checked, error)) Options {
	t.Helper()
	o := Options{Spec: workload.Spec{Check: check}, Progress: silent{}}
	var err error
	if len(dirs) == 1 {
		o.Dir, err = OpenDirectory(dirs[0])
	} else {
		o.Runs = dirs
		o.Dir, err = NewDirectory(filepath.Join(t.TempDir(), "verdict"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Dir.Close() })
	return o
}

func allValid(context.Context, []string, isolation.Level, func(check.Violation)) (check.Checked, error) {
	return check.Checked{Results: []check.Result{{Name: "total", Status: check.Valid, Required: true}}, Committed: 10}, nil
}

var errByHand = errors.New("ended by hand")

// TestInterruptedCheckKeepsOldVerdict checks that a check that is ended before or midway has no verdict,
// says why, and leaves the one that was there.
func TestInterruptedCheckKeepsOldVerdict(t *testing.T) {
	for _, runs := range []int{1, 2} {
		var dirs []string
		for n := range runs {
			dirs = append(dirs, recording(t, uint64(n+1), 10_000, nil))
		}
		o := checking(t, dirs, allValid)
		if r, err := Check(t.Context(), o); err != nil || r.Verdict != "valid" {
			t.Fatalf("%d runs: %v, %+v", runs, err, r)
		}
		before, err := os.ReadFile(filepath.Join(o.Dir.Path, report.FileName))
		if err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"before", "midway", "at the end"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			if when == "before" {
				cancel(errByHand)
			}
			o.Spec.Check = func(ctx context.Context, _ []string, _ isolation.Level, _ func(check.Violation)) (check.Checked, error) {
				if when == "before" {
					t.Errorf("%d runs: checked after the end", runs)
				}
				cancel(errByHand)
				if when == "midway" {
					return check.Checked{}, fmt.Errorf("check the history: %w", context.Cause(ctx))
				}
				return allValid(ctx, nil, 0, nil)
			}
			if _, err := Check(ctx, o); !errors.Is(err, errByHand) {
				t.Errorf("%d runs, ended %s: %v", runs, when, err)
			}
			after, err := os.ReadFile(filepath.Join(o.Dir.Path, report.FileName))
			if err != nil || string(after) != string(before) {
				t.Errorf("%d runs, ended %s: the earlier verdict is gone (%v)", runs, when, err)
			}
		}
	}
}

// TestTogetherIsNoBetterThanItsRuns checks that a check that is open in one run is open in all.
func TestTogetherIsNoBetterThanItsRuns(t *testing.T) {
	for _, tc := range []struct {
		name    string
		bend    func(h *history.Header)
		counts  [2]int
		cut     bool
		verdict string
		says    string
	}{
		{"both sound", nil, [2]int{5, 6}, false, "valid", "Runs 1 and 2 against one data set, checked together. The one required check, total, found no violation in 11 committed transactions (claim: "},
		{"nothing committed", nil, [2]int{0, 0}, false, "unknown", "Nothing was committed"},
		{"faults of one not known", func(h *history.Header) { h.Keys[keyNemesis] = "kill leader at 1s" }, [2]int{5, 6}, false, "unknown", "The check faults could not be decided"},
		{"nodes of one not read", func(h *history.Header) { h.Keys[keyNodes] = "compared" }, [2]int{5, 6}, false, "unknown", "The check replicas could not be decided"},
		{"one cut off", nil, [2]int{5, 6}, true, "valid", "Not all transactions of run 2 are recorded, because it was cut off."},
	} {
		dirs := []string{recording(t, 1, tc.counts[0], nil), recording(t, 2, tc.counts[1], tc.bend)}
		if tc.cut {
			path := filepath.Join(dirs[1], HistoryDir, "transactions.bin")
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, info.Size()-1)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		counted := func(context.Context, []string, isolation.Level, func(check.Violation)) (check.Checked, error) {
			checked, err := allValid(t.Context(), nil, 0, nil)
			checked.Committed = uint64(tc.counts[0] + tc.counts[1])
			return checked, err
		}
		r, err := Check(t.Context(), checking(t, dirs, counted))
		if err != nil || r.Verdict != tc.verdict || !strings.Contains(r.Reason, tc.says) {
			t.Errorf("%s: %v, %s: %s", tc.name, err, r.Verdict, r.Reason)
		}
	}
}

// TestRunsWithDifferentClaimsAreRefused checks that runs checked together have one claim.
func TestRunsWithDifferentClaimsAreRefused(t *testing.T) {
	weaker := func(h *history.Header) { h.Keys[keyExpect] = isolation.ReadCommitted.String() }
	o := checking(t, []string{recording(t, 1, 5, nil), recording(t, 2, 5, weaker)}, allValid)
	if _, err := Check(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--expect") {
		t.Errorf("serializable and read-committed: %v", err)
	}
	o.Plan.Expect = isolation.ReadCommitted
	if r, err := Check(t.Context(), o); err != nil || r.Verdict != "valid" {
		t.Errorf("with --expect: %v, %s", err, r.Verdict)
	}
}

// TestWorstFaultCheckCounts checks that checks of the same name are as bad as the worst of the runs.
func TestWorstFaultCheckCounts(t *testing.T) {
	one := func(status check.Status) *conductor {
		r := &conductor{checks: []check.Result{{Name: checkFaults, Status: status, Required: true, Why: fact.HealsUnknown{}}}}
		r.facts.Header.Run = uint64(status) + 1
		return r
	}
	all := []check.Status{check.Unknown, check.Valid, check.Invalid}
	for _, a := range all {
		for _, b := range all {
			want := check.Valid
			switch {
			case a == check.Invalid || b == check.Invalid:
				want = check.Invalid
			case a == check.Unknown || b == check.Unknown:
				want = check.Unknown
			}
			got := faultsOf([]*conductor{one(a), one(b)})
			if len(got) != 1 || got[0].Status != want || !got[0].Required || len(got[0].Why.(fact.Reasons).List) != 2 {
				t.Errorf("%v and %v: %+v", a, b, got)
			}
		}
	}
}

// TestSharedClockReadingsAgree checks that two readings of one start agree, and that two starts differ by their
// distance.
func TestSharedClockReadingsAgree(t *testing.T) {
	start := time.Now()
	one, ok := clockAt(start)
	if !ok {
		t.Log("this system names no clock that processes share")
		return
	}
	const later = time.Hour
	for range 100 {
		again, _ := clockAt(start)
		moved, _ := clockAt(start.Add(later))
		if again.ID != one.ID || again.From > one.To || again.To < one.From || again.From > again.To {
			t.Fatalf("%v and %v are of one start", one, again)
		}
		if moved.From > one.To+int64(later) || moved.To < one.From+int64(later) {
			t.Fatalf("%v is %v after %v", moved, later, one)
		}
	}
}

// TestReasonCountsOneTransaction checks that the sentence of a verdict agrees with its numbers.
func TestReasonCountsOneTransaction(t *testing.T) {
	one := []check.Result{{Name: "total", Status: check.Valid, Required: true}}
	got := text.Speaker{}.Reason(one, check.Valid, 1, isolation.ReadCommitted)
	if want := "The one required check, total, found no violation in 1 committed transaction (claim: read-committed)."; got != want {
		t.Errorf("%q", got)
	}
}

// TestTablesOfTheChecks checks that the history is not read for a workload's own tables if the checks have made them.
func TestTablesOfTheChecks(t *testing.T) {
	for _, measured := range []bool{true, false} {
		o := checking(t, []string{recording(t, 1, 10, nil)}, func(context.Context, []string, isolation.Level, func(check.Violation)) (check.Checked, error) {
			checked, err := allValid(t.Context(), nil, 0, nil)
			if measured {
				checked.Tables = []check.Table{{Title: "measured beside"}}
			}
			return checked, err
		})
		read := false
		o.Spec.Tables = func(context.Context, *history.Reader) ([]workload.Table, error) {
			read = true
			return []workload.Table{{Title: "read"}}, nil
		}
		r, err := Check(t.Context(), o)
		want := map[bool]string{true: "measured beside", false: "read"}[measured]
		if err != nil || len(r.Tables) != 1 || r.Tables[0].Title != want || read == measured {
			t.Errorf("measured: %v: %v, %+v, the history was read: %v", measured, err, r.Tables, read)
		}
	}
}
