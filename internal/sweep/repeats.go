package sweep

import (
	"math"
	"slices"
	"time"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// These bound the repeats of all steps near a knee, and the time of a step at a rate unless more is
// requested.
const (
	confirmMost = 12
	longest     = time.Minute
)

// merge returns one point for each value, in the order in which the values first appear. It has the median of
// each figure, the worst verdict, and the range of several throughputs instead of an interval.
func merge(points []Point) []Point {
	var merged []Point
	for _, p := range points {
		if has(merged, p.Value) {
			continue
		}
		same := slices.DeleteFunc(slices.Clone(points), func(q Point) bool { return q.Value != p.Value })
		merged = append(merged, together(same))
	}
	return merged
}

// objectives are the statuses, the worst last.
var objectives = []string{"", report.ObjectiveMet, report.ObjectiveUnknown, report.ObjectiveMissed}

// objectivesOf returns the worst status of the objectives of all steps.
func objectivesOf(points []Point) string {
	worst := 0
	for _, p := range points {
		worst = max(worst, slices.Index(objectives, p.Objectives))
	}
	return objectives[worst]
}

func together(same []Point) Point {
	m := same[0]
	if len(same) == 1 {
		return m
	}
	middle := func(figure func(*Point) *float64) *float64 {
		if known := figures(same, figure); len(known) > 0 {
			return new(stats.Median(known))
		}
		return nil
	}
	for key, measure := range m.measures() {
		*measure = middle(func(p *Point) *float64 { return *p.measures()[key] })
	}
	m.Left = *middle(func(p *Point) *float64 { return &p.Left })
	m.Backlog = uint64(*middle(func(p *Point) *float64 { return new(float64(p.Backlog)) }))
	m.Low, m.High = spread(same, func(p *Point) *float64 { return p.TPS })
	for _, p := range same[1:] {
		m.Unsteady, m.Starved = m.Unsteady || p.Unsteady, m.Starved || p.Starved
		if worse := slices.Index(objectives, p.Objectives); worse > slices.Index(objectives, m.Objectives) {
			m.Objectives, m.ObjectivesText = p.Objectives, p.ObjectivesText
		}
		if p.Verdict == "invalid" || m.Verdict == "valid" {
			m.Verdict = p.Verdict
		}
	}
	return m
}

func p99(p *Point) *float64 { return p.P99MS }

// figures returns the known values.
func figures(points []Point, figure func(*Point) *float64) (known []float64) {
	for i := range points {
		if x := figure(&points[i]); x != nil {
			known = append(known, *x)
		}
	}
	return known
}

// spread returns the least and the greatest known value, or nil.
func spread(points []Point, figure func(*Point) *float64) (least, most *float64) {
	known := figures(points, figure)
	if len(known) == 0 {
		return nil, nil
	}
	return new(slices.Min(known)), new(slices.Max(known))
}

// repeated reports whether a step was measured more than once.
func repeated(points []Point) bool { return len(merge(points)) < len(points) }

func count(done []Point, value float64) (n int) {
	for _, p := range done {
		if p.Value == value {
			n++
		}
	}
	return n
}

// confirm returns the rate that must be measured once more before a knee is claimed.
func (s Spec) confirm(done []Point) (float64, bool) {
	if s.Axis != Rate {
		return 0, false
	}
	extra := 0
	for _, p := range merge(done) {
		extra += max(0, count(done, p.Value)-max(1, s.Repeat))
	}
	k := knee(done)
	return k.Repeat, k.Repeat > 0 && extra < confirmMost
}

// Lengthened returns how long a step at a rate is measured, so that its 99th percentile has enough samples. A
// quarter more are due, because some are refused or aborted. The result is at least the requested time, and
// at most a minute longer.
func Lengthened(rate float64, asked time.Duration) time.Duration {
	if !(rate > 0) {
		return asked
	}
	seconds := math.Ceil(1.25 * float64(stats.LeastSamples(0.99)) / rate)
	return max(asked, time.Duration(min(seconds, longest.Seconds()))*time.Second)
}
