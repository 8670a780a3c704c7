// Package sweep chooses the steps of a sweep: runs that differ in the rate, the number of clients or the
// number of nodes. The next step is a pure function of the results so far, so an interrupted sweep continues
// where it stopped.
package sweep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// Axis is the setting that the steps differ in. The zero value is none.
type Axis string

const (
	Rate    Axis = "rate"    // transactions a second; 0 is a closed loop
	Clients Axis = "clients" // that run at once
	Nodes   Axis = "nodes"   // of the cluster
)

// maxSteps bounds the steps of one sweep.
const maxSteps = 1000

// Spec selects the steps of a sweep.
type Spec struct {
	Axis   Axis
	Values []float64 // ascending; none: the axis's own profile
	Repeat int       // how often each step is measured; 0 is once
}

// Parse reads the text of --over:
//
//	rate                     the profile: the maximum rate first, then back off
//	clients=1,2,4,8          these
//	clients=1..64            doubled from the first, the last included
//	rate=1000..5000 by 500   in equal steps
func Parse(text string) (Spec, error) {
	name, list, given := strings.Cut(text, "=")
	s := Spec{Axis: Axis(strings.TrimSpace(name))}
	if !slices.Contains([]Axis{Rate, Clients, Nodes}, s.Axis) {
		return Spec{}, fmt.Errorf("sweep over %q: it goes over rate, clients, nodes or scenarios, such as clients=1,2,4,8", text)
	}
	if !given {
		return s, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		values, err := s.Axis.values(strings.TrimSpace(part))
		if err != nil {
			return Spec{}, fmt.Errorf("sweep over %q: %w", text, err)
		}
		if s.Values = append(s.Values, values...); len(s.Values) > maxSteps {
			return Spec{}, fmt.Errorf("sweep over %q: these are more than %d steps: take fewer", text, maxSteps)
		}
	}
	slices.Sort(s.Values)
	s.Values = slices.Compact(s.Values)
	return s, nil
}

// values reads one part of the list.
func (a Axis) values(part string) ([]float64, error) {
	first, rest, isRange := strings.Cut(part, "..")
	last, by, stepped := strings.Cut(rest, " by ")
	from, err := a.number(first)
	to, step := from, 0.0
	if err == nil && isRange {
		to, err = a.number(last)
	}
	if err == nil && to < from {
		err = fmt.Errorf("%s goes down: name the smaller value first", part)
	}
	if err == nil && stepped {
		step, err = a.number(by)
	}
	if err != nil {
		return nil, err
	}
	var list []float64
	for v := from; v < to; {
		if list = append(list, v); len(list) > maxSteps {
			return nil, fmt.Errorf("%s is more than %d steps: take larger ones", part, maxSteps)
		}
		if v *= 2; stepped {
			v = report.Rounded(from+float64(len(list))*step, 12)
		}
	}
	return append(list, to), nil
}

func (a Axis) number(text string) (float64, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, fmt.Errorf("it names no step: give some, such as %s=1,2,4,8", a)
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%q is no number", text)
	case v <= 0:
		return 0, fmt.Errorf("%s is not above 0", text)
	case v > 1e9:
		return 0, fmt.Errorf("%s is more than 1000000000", text)
	case a != Rate && v != math.Trunc(v):
		return 0, fmt.Errorf("%s is no whole number of %s", text, a)
	}
	return v, nil
}

// String is the text that Parse reads.
func (s Spec) String() string {
	if len(s.Values) == 0 {
		return string(s.Axis)
	}
	plain := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return string(s.Axis) + "=" + strings.Join(report.Texts(s.Values, plain), ",")
}

// above reports whether a figure is known and above 0.
func above(x *float64) bool { return x != nil && *x > 0 }

// mostLeft is the share of what was due that a step may leave and still have kept
// its rate: a pause at the very end happens to any. So few as fewLeft were on their way then,
// which is more than that share where little was due.
const (
	mostLeft = 0.01
	fewLeft  = 3
)

// late reports whether more work was left than that.
func (p *Point) late() bool {
	return p.Left > mostLeft && (p.Backlog == 0 || p.Backlog > fewLeft)
}

// Kept reports whether the step did all work that was due. If work piles up, an open loop reports the length
// of the run and no latency. Work that the workload rejected counts as done.
func (p *Point) Kept() bool { return p.Value > 0 && above(p.TPS) && !p.late() }

// behind reports whether the step did not keep its rate. It is false if the throughput is not known and no
// work was left.
func (p *Point) behind() bool {
	return p.Value > 0 && (p.late() || p.TPS != nil && !above(p.TPS))
}

// Next returns the value of the next step, or false if all are done. fallback is the list for an axis without
// a list and without a profile. A list is repeated as a whole, so that a change over time does not look like
// the axis.
func (s Spec) Next(done []Point, fallback []float64) (float64, bool) {
	if len(done) >= maxSteps {
		return 0, false
	}
	if s.Axis == Rate && len(s.Values) == 0 {
		if next, more := s.profile(done); more {
			return next, true
		}
		return s.confirm(done)
	}
	values := s.Values
	if len(values) == 0 {
		values = fallback
	}
	if due := missing(done, values, s.Repeat); len(due) > 0 {
		return due[0], true
	}
	return s.confirm(done)
}

// missing returns the values that were not measured so often, at least once, in the order of their measurement.
func missing(done []Point, values []float64, times int) (due []float64) {
	for round := range max(1, times) {
		for _, v := range values {
			if count(done, v) <= round {
				due = append(due, v)
			}
		}
	}
	return due
}

// Due returns the values that must still be measured, as far as they are known. times is the number of
// measurements of each.
func (s Spec) Due(done []Point, times int) []float64 {
	s.Repeat = max(s.Repeat, times)
	if len(s.Values) == 0 {
		if next, more := s.Next(done, nil); more {
			return []float64{next}
		}
		return nil
	}
	return missing(done, s.Values, s.Repeat)
}

// ValueName returns a value of the axis without separators. A rate of 0 is maximum.
func ValueName(axis Axis, value float64) string {
	if axis == Rate && value == 0 {
		return "maximum"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

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
		if high.Value-low.Value <= finest*fastest || count(done, middle) > 0 || !above(low.P99MS) || !above(high.P99MS) {
			continue
		}
		if ratio := *high.P99MS / *low.P99MS; ratio > steepest {
			best, steepest = middle, ratio
		}
	}
	return best, best > 0
}

// rounded keeps three digits, so that a rate can be read and repeated.
func rounded(v float64) float64 {
	if v <= 0 {
		return 0
	}
	return max(1, report.Rounded(v, 3))
}

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
		if count(merged, p.Value) > 0 {
			continue
		}
		merged = append(merged, together(at(points, p.Value)))
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

// at returns the measurements of a step.
func at(points []Point, value float64) []Point {
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.Value != value })
}

func count(points []Point, value float64) (n int) {
	for _, p := range points {
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
