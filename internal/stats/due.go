package stats

import "time"

// Waits are transactions that were due and never sent. Of each it is only known
// how long it had waited at least when the load phase ended. The zero Waits has none.
type Waits struct{ all distribution }

// Add counts n of them that had waited as long or longer.
func (w *Waits) Add(atLeast time.Duration, n uint64) { w.all.add(max(int64(atLeast), 0), n) }

// Due is the distribution of all that was due, from when it was due: committed,
// rejected and aborted transactions until then, unknown ones until they were
// given up, and those that were never sent until the load phase ended. Of the last two
// only a lower bound is known.
type Due struct {
	Summary
	AtLeast Bounds
}

// Bounds says which figures of a Summary are lower bounds.
type Bounds struct{ Mean, P50, P90, P95, P99, P999, Max bool }

// Due returns the distribution of all that was due. A percentile is a lower bound
// if it were more than a hundredth higher had those without an end never ended.
func (f *Figures) Due(never *Waits) Due {
	var ended, all distribution
	for _, s := range []*Summary{&f.Latency, &f.LatencyRejected, &f.LatencyAborted} {
		ended.join(&s.all)
	}
	all.join(&ended)
	all.join(&f.LatencyUnknown.all)
	if never != nil {
		all.join(&never.all)
	}
	d := Due{Summary: all.summary()}
	open := func(q float64, low time.Duration) bool {
		want := rank(q, all.count)
		if want > ended.count {
			return true
		}
		return ended.quantile(float64(want)/float64(max(ended.count, 1))) > low+low/100
	}
	if all.count > ended.count {
		d.AtLeast = Bounds{
			Mean: true, P50: open(0.50, d.P50), P90: open(0.90, d.P90), P95: open(0.95, d.P95),
			P99: open(0.99, d.P99), P999: open(0.999, d.P999), Max: true,
		}
	}
	return d
}
