package sweep

import (
	"cmp"
	"slices"

	"stroppy/internal/report"
)

// The profile of the rate, after VoltDB's "Three Nodes, Highly Available
// Cluster, ~1 Million Transactions/second" (2013): first the maximum
// rate, then steps down by a tenth of it, below 70 % by half.
var backOff = []float64{0.9, 0.8, 0.7, 0.35, 0.175, 0.0875}

// Near the knee the profile is refined: between two neighbouring rates
// of which the higher has more than bend times the other's 99th percentile.
const (
	bend       = 2
	finest     = 0.02 // of the fastest rate: two neighbours nearer than that get no rate between them
	refineMost = 4
)

// profile returns the next rate.
func (s Spec) profile(done []Point) (float64, bool) {
	if count(done, 0) < max(1, s.Repeat) {
		return 0, true
	}
	once := merge(done)
	maximum := once[slices.IndexFunc(once, func(p Point) bool { return p.Value == 0 })]
	if !above(maximum.TPS) {
		return 0, false // it did nothing, or nobody knows what, and so has no curve
	}
	planned := make([]float64, len(backOff))
	for i, share := range backOff {
		planned[i] = rounded(share * *maximum.TPS)
		if count(done, planned[i]) < max(1, s.Repeat) {
			return planned[i], true
		}
	}
	for _, p := range once {
		if count(done, p.Value) < s.Repeat {
			return p.Value, true
		}
	}
	return refine(once, planned, *maximum.TPS)
}

// refine returns, of steps that have a value each, the rate between the two neighbours whose latencies differ most.
func refine(done []Point, planned []float64, fastest float64) (float64, bool) {
	open := slices.DeleteFunc(slices.Clone(done), func(p Point) bool { return p.Value <= 0 })
	extra := slices.DeleteFunc(slices.Clone(open), func(p Point) bool { return slices.Contains(planned, p.Value) })
	if len(extra) >= refineMost {
		return 0, false
	}
	slices.SortFunc(open, func(a, b Point) int { return cmp.Compare(a.Value, b.Value) })
	best, steepest := 0.0, float64(bend)
	for i := 1; i < len(open); i++ {
		low, high := open[i-1], open[i]
		middle := rounded((low.Value + high.Value) / 2)
		if high.Value-low.Value <= finest*fastest || has(done, middle) || !above(low.P99MS) || !above(high.P99MS) {
			continue
		}
		if ratio := *high.P99MS / *low.P99MS; ratio > steepest {
			best, steepest = middle, ratio
		}
	}
	return best, best > 0
}

func has(done []Point, value float64) bool {
	return slices.ContainsFunc(done, func(p Point) bool { return p.Value == value })
}

// rounded keeps three digits, so that a rate can be read and repeated.
func rounded(v float64) float64 {
	if v <= 0 {
		return 0
	}
	return max(1, report.Rounded(v, 3))
}
