package load

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/stats"
	"stroppy/internal/tier"
)

// TestSecondsMatchTheHistory checks that observers see what the history contains, and that a hanging client
// hides nothing.
func TestSecondsMatchTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(n, at int) *standIn {
			return &standIn{attempt: func(ctx context.Context, tx *history.Transaction) error {
				n++
				switch {
				case n == at:
					return takes(2*time.Second)(ctx, tx)
				case n%10 == 0:
					time.Sleep(3 * time.Millisecond)
					tx.Outcome, tx.Reason = history.Rejected, noFunds
					return nil
				}
				return takes(3*time.Millisecond)(ctx, tx)
			}}
		}
		d := newDrill(t, Options{Plan: constant(200), Duration: 8 * time.Second}, hangs(0, 251), hangs(0, 253))
		var seen []stats.Second
		var middle Counters
		time.AfterFunc(4*time.Second+time.Millisecond, func() {
			seen = d.driver.Seconds(0)
			middle = d.driver.Live()
		})
		if _, ok := d.driver.Second(); ok || d.driver.Live() != (Counters{}) || d.driver.Latencies().Count() != 0 {
			t.Error("there is something before the drive begins")
		}
		r, _, err := d.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := history.Open(d.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer recorded.Close()
		line := new(stats.Timeline)
		err = line.Read(recorded.Transactions())
		want := line.Series()
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != 4 || middle.Backlog < 290 || middle.Backlog > 310 || middle.Done < 500 || middle.Done > 504 {
			t.Errorf("after four seconds: %d seconds, %+v", len(seen), middle)
		}
		live := d.driver.Seconds(2)
		if len(live) < 5 || live[0].Second != 2 {
			t.Fatalf("%d seconds: %+v", len(live), live)
		}
		var committed uint64
		for i, s := range d.driver.Seconds(0) {
			w := want[i]
			committed += s.Committed
			if s.Second != i || s.Rejected != w.Rejected || apart(s.Committed, w.Committed, 1) || apart(s.Waiting, w.Waiting, 1) {
				t.Errorf("second %d: %+v, want %+v", i, s, w)
			}
			for _, p := range [][2]time.Duration{{s.P50, w.P50}, {s.P99, w.P99}, {s.Max, w.Max}} {
				if p[0] < p[1]*98/100-time.Microsecond || p[0] > p[1]*102/100+time.Microsecond {
					t.Errorf("second %d: %+v, want %+v", i, s, w)
				}
			}
		}
		last, ok := d.driver.Second()
		if total := d.driver.Latencies().Count(); !ok || total != r.Measurements.Latency.Count || committed > total || total-committed > 200 || last.Second < 6 {
			t.Errorf("%d latencies of %d committed, %d in seconds, the last %+v", total, r.Measurements.Latency.Count, committed, last)
		}
	})
}

// apart reports whether two numbers differ by more than slack.
func apart(a, b, slack uint64) bool { return max(a, b)-min(a, b) > slack }

// TestOnlyAnHourIsKept checks that a long load phase keeps a limited number of seconds.
func TestOnlyAnHourIsKept(t *testing.T) {
	tier.SkipUnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		d := newDrill(t, Options{Plan: constant(1), Duration: 2 * time.Hour}, &standIn{attempt: takes(time.Millisecond)})
		if _, _, err := d.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if kept := d.driver.Seconds(0); len(kept) != keptSeconds || kept[len(kept)-1].Second < 7198 || kept[0].Committed != 1 {
			t.Errorf("%d seconds are kept", len(kept))
		}
	})
}

// TestKindsAndErrorsAreComplete checks that observers see all counts by kind and class.
func TestKindsAndErrorsAreComplete(t *testing.T) {
	const other = 7 * history.Numbered
	synctest.Test(t, func(t *testing.T) {
		aborts := 0
		declared := []history.Declared{kindTransfer.Named("transfer"), other.Named("other"), (8*history.Numbered | history.Background).Named("audit")}
		d := newDrill(t, Options{Count: 20, Retries: 5, Kinds: declared},
			&standIn{attempt: func(ctx context.Context, tx *history.Transaction) error {
				if aborts++; aborts%4 == 0 {
					return errAborted
				}
				return takes(time.Millisecond)(ctx, tx)
			}},
			&standIn{kind: other, attempt: func(_ context.Context, tx *history.Transaction) error {
				tx.Outcome, tx.Reason = history.Rejected, noFunds
				return nil
			}})
		r, _, err := d.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kinds := d.driver.Kinds()
		if len(kinds) != 2 || kinds[0] != (KindCount{Kind: "transfer", Committed: 10}) || kinds[1] != (KindCount{Kind: "other", Rejected: 10}) {
			t.Errorf("the kinds are %+v", kinds)
		}
		if by := d.driver.KindLatencies(); len(by) != 1 || by["transfer"].Count() != 10 {
			t.Errorf("the latencies of %d kinds are there", len(by))
		}
		if errors := d.driver.Errors(); errors["aborted"] != r.Conflicts || r.Conflicts == 0 || errors["unknown"] != 0 || len(errors) != classes {
			t.Errorf("the errors are %v, and %d conflicts", errors, r.Conflicts)
		}
	})
}
