// Package sweep chooses the steps of a sweep: runs that differ in the rate, the number of clients or the
// number of nodes. The next step is a pure function of the results so far, so an interrupted sweep continues
// where it stopped.
package sweep

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/report"
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
	parts := make([]string, len(s.Values))
	for i, v := range s.Values {
		parts[i] = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return string(s.Axis) + "=" + strings.Join(parts, ",")
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
	for round := range max(1, s.Repeat) {
		for _, v := range values {
			if count(done, v) <= round {
				return v, true
			}
		}
	}
	return s.confirm(done)
}

// Due returns the values that must still be measured, as far as they are known. times is the number of
// measurements of each.
func (s Spec) Due(done []Point, times int) (values []float64) {
	s.Repeat = max(s.Repeat, times, 1)
	if len(s.Values) == 0 {
		if next, more := s.Next(done, nil); more {
			return []float64{next}
		}
		return nil
	}
	for round := range s.Repeat {
		for _, v := range s.Values {
			if count(done, v) <= round {
				values = append(values, v)
			}
		}
	}
	return values
}

// ValueName returns a value of the axis without separators. A rate of 0 is maximum.
func ValueName(axis Axis, value float64) string {
	if axis == Rate && value == 0 {
		return "maximum"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}
