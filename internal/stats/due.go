package stats

import (
	"math/bits"
	"time"
)

// Waits are transactions that were due and never sent. Of each it is only known
// how long it had waited at least when the load phase ended. The zero Waits has none.
type Waits struct {
	dense []uint64 // by bucket of three digits
	exact exact
}

// Add counts n of them that had waited as long or longer.
func (w *Waits) Add(atLeast time.Duration, n uint64) {
	if n == 0 {
		return
	}
	buckets := newCounts(threeDigits)
	if w.dense == nil {
		w.dense = make([]uint64, buckets.size())
	}
	ns := max(int64(atLeast), 0)
	w.dense[buckets.index(min(ns, highest))] += n
	hi, lo := bits.Mul64(uint64(ns), n)
	w.exact.merge(exact{count: n, max: ns, hi: hi, lo: lo})
}

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
	var ended, all merged
	for _, s := range []*Summary{&f.Latency, &f.LatencyRejected, &f.LatencyAborted} {
		ended.addSummary(s)
		all.addSummary(s)
	}
	all.addSummary(&f.LatencyUnknown)
	if never != nil {
		all.exact.merge(never.exact)
		for i, n := range never.dense {
			all.dense[i] += n
		}
	}
	d := Due{Summary: all.summary()}
	buckets := newCounts(threeDigits)
	open := func(q float64, low time.Duration) bool {
		if rank(q, all.exact.count) > ended.exact.count {
			return true
		}
		high := min(buckets.quantile(ended.dense, float64(rank(q, all.exact.count))/float64(max(ended.exact.count, 1)), ended.exact.count), ended.exact.max)
		return high > int64(low)+int64(low)/100
	}
	if all.exact.count > ended.exact.count {
		d.AtLeast = Bounds{
			Mean: true, P50: open(0.50, d.P50), P90: open(0.90, d.P90), P95: open(0.95, d.P95),
			P99: open(0.99, d.P99), P999: open(0.999, d.P999), Max: true,
		}
	}
	return d
}

// addSummary adds a distribution whose mean stands for each of its values in the
// sum, which is then right to a nanosecond each.
func (m *merged) addSummary(s *Summary) {
	if m.dense == nil {
		buckets := newCounts(threeDigits)
		m.dense = make([]uint64, buckets.size())
	}
	if s.Count == 0 || s.histogram == nil {
		return
	}
	for i, n := range s.histogram.Export().Counts {
		if n > 0 {
			m.dense[i] += uint64(n)
		}
	}
	hi, lo := bits.Mul64(uint64(s.Mean), s.Count)
	m.exact.merge(exact{count: s.Count, max: int64(s.Max), hi: hi, lo: lo})
}
