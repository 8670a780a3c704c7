package run

import (
	"errors"
	"math"
	"path/filepath"
	"testing"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// overloaded returns a recorded run with one transaction per millisecond although two were due. So at 4 s it did the
// transactions that were due at 2 s, the end of the warm-up. It ends at the given time.
func overloaded(t *testing.T, end time.Duration) (*conductor, *load.Result) {
	t.Helper()
	const warmup = 2 * time.Second
	dir := t.TempDir()
	w, err := history.Create(filepath.Join(dir, HistoryDir), history.Header{Workload: "bank", Run: 1, Seed: 4, Objects: 10, Clients: 1, Kinds: []history.Declared{kindTransfer.Named("transfer")}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	recorder := new(stats.Recorder)
	for n := int64(1); n <= int64(end/time.Millisecond); n++ {
		due, at := n*5e5, n*1e6-1
		tx := history.Transaction{
			ID: history.NewID(1, 0, uint64(n)), Kind: kindTransfer, Outcome: history.Committed, Attempts: 1,
			Warmup: due < int64(warmup), Due: due, Sent: at - 1e5, Try: at - 1e5, End: at,
		}
		recorder.Record(&tx)
		if err := w.Client(0).Append(&tx); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Client(0).Flush(), w.Close()); err != nil {
		t.Fatal(err)
	}
	return newConductor(Options{Dir: &Directory{Path: dir}}), &load.Result{Elapsed: end - warmup, Measurements: stats.Merge(recorder)}
}

// TestOverloadAfterAWarmUp checks that the throughput counts the transactions done in the measured time, even if all
// of them were due in the warm-up.
func TestOverloadAfterAWarmUp(t *testing.T) {
	const warmup = 2 * time.Second
	c, l := overloaded(t, 4*time.Second)
	d := drove(l, warmup)
	c.result.Drive = d
	if l.Measurements.Latency.Count > 1 {
		t.Fatalf("%d that were due after the warm-up were done", l.Measurements.Latency.Count)
	}
	if err := c.series(warmup, nil); err != nil {
		t.Fatal(err)
	}
	c.steadyState(c.timeline, true)
	if d.Committed != 2000 || d.Kinds["transfer"] != 2000 || *d.TPS.Mean != 1000 || *d.TPS.Median != 1000 {
		t.Errorf("%d committed, %v, mean %v, median %v", d.Committed, d.Kinds, *d.TPS.Mean, *d.TPS.Median)
	}
	r := &report.Result{Scenario: []report.Setting{{Name: "warmup", Value: "2s"}, {Name: "duration", Value: "4s"}, {Name: "rate", Value: "2000"}}}
	if _, err := Recompute(c.o.Dir.Path, r); err != nil {
		t.Fatal(err)
	}
	if d := r.Drive; d.Committed != 2000 || math.Abs(*d.TPS.Mean-1000) > 1 {
		t.Errorf("rebuilt: %d committed, mean %v", d.Committed, *d.TPS.Mean)
	}
}

// TestTheMeanIsInItsInterval checks that the mean is computed from the seconds of the interval, whatever a partial
// second at the end holds. A rate that was meant to change has no interval.
func TestTheMeanIsInItsInterval(t *testing.T) {
	timeline := make([]stats.Second, 21)
	for i := range timeline {
		timeline[i] = stats.Second{Second: i, Committed: 1000}
	}
	timeline[20].Committed = 5000 // in the tenth of a second that is left
	for _, fixed := range []bool{true, false} {
		c := newConductor(Options{Dir: &Directory{Path: t.TempDir()}})
		all := 25000 / 20.1
		d := &report.Drive{Seconds: 20.1, TPS: &report.Throughput{Mean: &all}}
		c.result.Drive = d
		c.steadyState(timeline, fixed)
		if *d.TPS.Mean != 1000 {
			t.Errorf("fixed %v: the mean is %v", fixed, *d.TPS.Mean)
		}
		switch i := d.Interval; {
		case !fixed && i != nil:
			t.Errorf("an interval of a rate that changes: %+v", i)
		case fixed && (i == nil || *d.TPS.Mean < i.Low || *d.TPS.Mean > i.High):
			t.Errorf("the mean %v is not in %+v", *d.TPS.Mean, i)
		}
	}
	c := newConductor(Options{Dir: &Directory{Path: t.TempDir()}})
	all := 5100 / 5.1
	c.result.Drive = &report.Drive{Seconds: 5.1, TPS: &report.Throughput{Mean: &all}}
	c.steadyState(timeline[:5], true)
	if d := c.result.Drive; d.Interval != nil || d.TPS.Mean != &all {
		t.Errorf("five seconds: %+v, mean %v", d.Interval, *d.TPS.Mean)
	}
}
