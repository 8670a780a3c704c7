package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// binsPerDecade is how many bins the drawn histogram has for each power of ten.
const binsPerDecade = 20

// The range that is ever drawn, in microseconds: a tenth of one to a day.
const (
	leastDecade = -1
	mostDecade  = 11
)

// PageHistogram is the distribution of the latency of committed transactions in
// bins that are equally wide on a log scale.
type PageHistogram struct {
	Edges []num  `json:"edges_ms"` // ascending; the bin i goes from Edges[i] to Edges[i+1]
	Due   []num  `json:"due"`      // how many in each bin, from when they were due
	Sent  []num  `json:"sent"`     // and from when they were sent; empty: not known
	Marks []Mark `json:"marks"`    // since due
}

// Mark is a place on the scale of a chart.
type Mark struct {
	Name string `json:"name"`
	At   num    `json:"at_ms"`
}

// histogram draws the distribution of a load phase; nil where none is known.
func histogram(d *Drive) *PageHistogram {
	if d == nil || d.Histogram == nil || len(d.Histogram.Buckets) == 0 {
		return nil
	}
	due, sent := bins(d.Histogram), map[int]float64(nil)
	if d.ServiceTimes != nil {
		sent = bins(d.ServiceTimes)
	}
	used := slices.AppendSeq(slices.Collect(maps.Keys(due)), maps.Keys(sent))
	if len(used) == 0 {
		return nil
	}
	first, last := slices.Min(used), slices.Max(used)
	h := &PageHistogram{Edges: []num{num(edge(first) / 1000)}, Due: []num{}, Sent: []num{}, Marks: []Mark{}}
	for i := first; i <= last; i++ {
		h.Edges, h.Due = append(h.Edges, num(edge(i+1)/1000)), append(h.Due, num(due[i]))
		if sent != nil {
			h.Sent = append(h.Sent, num(sent[i]))
		}
	}
	if l := d.Latency; l != nil {
		h.Marks = append(h.Marks, Mark{"50 %", num(l.P50)}, Mark{"99 %", num(l.P99)}, Mark{"99.9 %", num(l.P999)}, Mark{"max", num(l.Max)})
	}
	return h
}

// edge is the lower end of a bin in microseconds.
func edge(bin int) float64 { return math.Pow(10, float64(bin)/binsPerDecade) }

// bins spreads the buckets over the bins. A bucket that lies in several gives
// each the share that it covers, as if its values were spread evenly; with two
// significant digits that moves nothing by more than 1 %.
func bins(h *Histogram) map[int]float64 {
	out := map[int]float64{}
	buckets := slices.Clone(h.Buckets)
	slices.SortFunc(buckets, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	before := 0.0
	for _, b := range buckets {
		upper, count := b[0], b[1]
		if !(count > 0) || !(upper >= 0) || math.IsInf(upper, 0) {
			continue
		}
		upper = min(max(upper, math.Pow(10, leastDecade)), math.Pow(10, mostDecade))
		lower := max(before, upper-max(bucketUnit, upper/bucketShare), math.Pow(10, leastDecade))
		before = upper
		from, to := binOf(lower), binOf(upper)
		if lower >= upper || from == to {
			out[to] += count
			continue
		}
		for i := from; i <= to; i++ {
			if covered := min(upper, edge(i+1)) - max(lower, edge(i)); covered > 0 {
				out[i] += count * covered / (upper - lower)
			}
		}
	}
	return out
}

// The width of a bucket of an HdrHistogram with two significant digits over
// microseconds: it is one unit at first and later at most this share of its
// value (http://hdrhistogram.org).
const (
	bucketUnit  = 0.512
	bucketShare = 128
)

func binOf(us float64) int { return int(math.Floor(math.Log10(us)*binsPerDecade + 1e-9)) }
