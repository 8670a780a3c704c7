package stats

import (
	"slices"
	"testing"
	"time"

	"stroppy/internal/history"
)

// ended records n transactions with one outcome and duration.
func ended(r *Recorder, n int, o history.Outcome, took time.Duration) {
	for range n {
		r.Record(&history.Transaction{Kind: kindTransfer, Outcome: o, Attempts: 1, End: int64(took)})
	}
}

// TestUnfinishedTransactionsCountAsDue checks that transactions that did not commit or were never sent count with
// their known latency. Affected figures must be marked as lower bounds.
func TestUnfinishedTransactionsCountAsDue(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	roughly := func(got, want time.Duration) bool { return got >= want && got <= want+want/500 }
	r := new(Recorder)
	ended(r, 900, history.Committed, ms)
	ended(r, 60, history.Rejected, 2*ms)
	ended(r, 20, history.Aborted, s)
	f := Merge(r)
	d := f.Due(Waits{})
	if d.Count != 980 || len(d.AtLeast) > 0 || !roughly(d.P50, ms) || !roughly(d.P95, 2*ms) || !roughly(d.P99, s) || d.Max != s {
		t.Errorf("all ended: %+v", d)
	}
	var never Waits
	never.Add(3*s, 20) // 2 %
	d = f.Due(never)
	if want := []string{"mean", "p99", "p999", "max"}; !slices.Equal(d.AtLeast, want) || d.Count != 1000 || !roughly(d.P99, 3*s) || d.Max != 3*s {
		t.Errorf("2 %% were never sent: %+v", d)
	}
	if want := (900*ms + 120*ms + 20*s + 60*s) / 1000; d.Mean < want-time.Microsecond || d.Mean > want {
		t.Errorf("mean %v, want %v", d.Mean, want)
	}
	// The bounds are below the latencies of all that ended, so the median is uncertain.
	never = Waits{}
	never.Add(0, 970)
	if d = f.Due(never); !slices.Contains(d.AtLeast, "p50") || d.Count != 1950 {
		t.Errorf("half were never sent: %+v", d)
	}
	ended(r, 5, history.Unknown, 10*s)
	if d = Merge(r).Due(Waits{}); slices.Contains(d.AtLeast, "p99") || !slices.Contains(d.AtLeast, "p999") || d.Max != 10*s {
		t.Errorf("some are in doubt: %+v", d)
	}
	if d = Merge().Due(Waits{}); d.Count != 0 || len(d.AtLeast) > 0 {
		t.Errorf("nothing was due: %+v", d)
	}
}
