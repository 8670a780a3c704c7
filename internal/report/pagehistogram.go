package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// binsPerDecade is the number of bins of the drawn histogram for each power of ten.
const binsPerDecade = 20

// The range that is ever drawn, in microseconds: a tenth of one to a day.
const (
	leastDecade = -1
	mostDecade  = 11
)

// HistogramPlot is the distribution of the latency of committed transactions, in bins of equal width on a log
// scale.
type HistogramPlot struct {
	Edges []num  `json:"edges_ms"` // ascending; the bin i goes from Edges[i] to Edges[i+1]
	Due   []num  `json:"due"`      // how many in each bin, from when they were due
	Sent  []num  `json:"sent"`     // and from when they were sent; empty: not known
	Marks []Mark `json:"marks"`    // since due

	Percentiles *PercentilePlot `json:"percentiles"`
}

// PercentilePlot are the same distributions by percentile, on the axis of HdrHistogram's plots. A percentile
// q is at 1/(1-q), so each further nine has the same room.
type PercentilePlot struct {
	At    []num  `json:"at"`     // 1/(1-q), from 1 to Count
	Due   []num  `json:"due_ms"` // since due
	Sent  []num  `json:"sent_ms"`
	Count uint64 `json:"count"` // of transactions
}

// perDecadeOfNines is the number of percentiles that are drawn for each further nine.
const perDecadeOfNines = 40

// percentiles returns nil if nothing is known. The largest one is the slowest of all.
func percentiles(d *Drive) *PercentilePlot {
	due, count := sortedBuckets(d.Histogram)
	if count == 0 {
		return nil
	}
	p := &PercentilePlot{At: []num{}, Count: count}
	for i := 0; ; i++ {
		x := math.Pow(10, float64(i)/perDecadeOfNines)
		if x >= float64(count) {
			break
		}
		p.At = append(p.At, num(x))
	}
	p.At = append(p.At, num(count))
	p.Due = quantiles(due, count, p.At, d.Latency)
	if sent, n := sortedBuckets(d.ServiceTimes); n == count {
		p.Sent = quantiles(sent, count, p.At, d.Service)
	}
	return p
}

// sortedBuckets returns the sound buckets in ascending order, and the number of their values.
func sortedBuckets(h *Histogram) (list [][2]float64, count uint64) {
	if h == nil {
		return nil, 0
	}
	for _, b := range h.Buckets {
		if b[0] >= 0 && b[1] >= 1 && b[0] <= 1e15 && b[1] <= 1e15 {
			list, count = append(list, b), count+uint64(b[1])
		}
	}
	slices.SortFunc(list, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	return list, count
}

// quantiles returns the nearest-rank quantiles in milliseconds, as the upper ends of their buckets. None is
// above the largest value, if that is known.
func quantiles(buckets [][2]float64, count uint64, at []num, known *Latency) []num {
	list, seen, next := make([]num, len(at)), uint64(0), 0
	for i, x := range at {
		rank := uint64(math.Ceil((1 - 1/float64(x)) * float64(count) * (1 - 1e-12)))
		if i == len(at)-1 {
			rank = count
		}
		for next < len(buckets) && seen < max(rank, 1) {
			seen += uint64(buckets[next][1])
			next++
		}
		list[i] = num(buckets[next-1][0] / 1000)
		if known != nil && known.Max > 0 {
			list[i] = min(list[i], num(known.Max))
		}
	}
	return list
}

// Mark is a place on the scale of a chart.
type Mark struct {
	Name string `json:"name"`
	At   num    `json:"at_ms"`
}

// histogram returns the distribution of a load phase, or nil if it is not known. A closed loop has one curve,
// because work is sent when it is due.
func histogram(d *Drive) *HistogramPlot {
	if d == nil || d.Histogram == nil || len(d.Histogram.Buckets) == 0 {
		return nil
	}
	due, sent := bins(d.Histogram), map[int]float64(nil)
	if d.ServiceTimes != nil && open(d) {
		sent = bins(d.ServiceTimes)
	}
	used := slices.AppendSeq(slices.Collect(maps.Keys(due)), maps.Keys(sent))
	if len(used) == 0 {
		return nil
	}
	first, last := slices.Min(used), slices.Max(used)
	h := &HistogramPlot{Edges: []num{num(edge(first) / 1000)}, Due: []num{}, Sent: []num{}, Marks: []Mark{}}
	for i := first; i <= last; i++ {
		h.Edges, h.Due = append(h.Edges, num(edge(i+1)/1000)), append(h.Due, num(due[i]))
		if sent != nil {
			h.Sent = append(h.Sent, num(sent[i]))
		}
	}
	h.Percentiles = percentiles(d)
	if l := d.Latency; l != nil {
		h.Marks = append(h.Marks, Mark{"50 %", num(l.P50)}, Mark{"99 %", num(l.P99)}, Mark{"99.9 %", num(l.P999)}, Mark{"max", num(l.Max)})
	}
	return h
}

// edge returns the lower end of a bin in microseconds.
func edge(bin int) float64 { return math.Pow(10, float64(bin)/binsPerDecade) }

// bins spreads the buckets over the bins. A bucket that lies in several bins gives each the share that it
// covers, as if its values were spread evenly. With two significant digits this moves nothing by more than 1
// %.
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
