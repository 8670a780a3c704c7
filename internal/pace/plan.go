// Package pace computes when work is due: a rate over time, the resulting arrivals of each client, and the
// think times of clients.
package pace

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"
)

// These constants limit a plan. MaxRate is one transaction per nanosecond, the resolution of the clock.
const (
	MaxRate   = 1e9
	MaxLength = 365 * 24 * time.Hour
	maxStages = 1000
)

// Plan is the total rate of arrivals over a load phase. It consists of consecutive stages, each with a
// constant rate or a linear ramp. The zero Plan is a closed loop without a rate.
//
// Parse describes its text form. A Plan is immutable.
type Plan struct {
	stages []stage
}

// stage lasts from begin to the beginning of the next stage.
type stage struct {
	from, to float64       // transactions a second, at its begin and its end
	length   time.Duration // 0: until the load phase's end
	begin    time.Duration // since the load phase's start
	before   float64       // expected arrivals until begin
	after    float64       // expected arrivals until its end, where it has one
}

// Constant returns the plan with one rate for the whole load phase; 0 is a closed loop.
func Constant(rate float64) (Plan, error) {
	return Parse(number(rate))
}

// Parse parses a plan: stages separated by commas, each RATE, RATE for TIME, or RATE..RATE for TIME, which is
// a linear ramp. Only the last stage may omit its time; it then lasts until the end of the load phase. "0" is
// the zero Plan.
func Parse(text string) (Plan, error) {
	var stages []stage
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseStage(strings.Fields(part))
		if err != nil {
			return Plan{}, err
		}
		stages = append(stages, s)
	}
	if s := stages[0]; len(stages) == 1 && s.from == 0 && s.to == 0 && s.length == 0 {
		return Plan{}, nil
	}
	return build(stages)
}

var errForm = errors.New("it must be transactions per second, such as 1000, or stages of them, such as '1000 for 30s, 1000..5000 for 1m'")

func parseStage(words []string) (s stage, err error) {
	if len(words) != 1 && (len(words) != 3 || words[1] != "for") {
		return s, errForm
	}
	from, to, ramp := strings.Cut(words[0], "..")
	if s.from, err = parseRate(from); err != nil {
		return s, err
	}
	s.to = s.from
	if ramp {
		if s.to, err = parseRate(to); err != nil {
			return s, err
		}
	}
	if len(words) == 1 {
		if ramp {
			return s, fmt.Errorf("the ramp %s needs a time, such as '%s for 1m'", words[0], words[0])
		}
		return s, nil
	}
	s.length, err = time.ParseDuration(words[2])
	if err != nil || s.length <= 0 || s.length > MaxLength {
		return s, fmt.Errorf("after 'for' comes a time with its unit that is longer than 0 and at most a year, such as 30s, and not %.40q", words[2])
	}
	return s, nil
}

func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(rate) || math.IsInf(rate, 0):
		return 0, errForm
	case rate < 0:
		return 0, errors.New("a rate cannot be negative: take 0 to send as fast as answers come")
	case rate > MaxRate:
		return 0, fmt.Errorf("a rate may be at most %.0f per second", MaxRate)
	}
	return math.Abs(rate), nil // of -0
}

// build computes the beginnings of the stages.
func build(stages []stage) (Plan, error) {
	if len(stages) > maxStages {
		return Plan{}, fmt.Errorf("it has %d stages: at most %d are possible", len(stages), maxStages)
	}
	var begin time.Duration
	var before float64
	for i := range stages {
		s := &stages[i]
		s.begin, s.before = begin, before
		last := i == len(stages)-1
		switch {
		case s.length == 0 && !last:
			return Plan{}, fmt.Errorf("stage %d of %d lacks its time, and only the last may: give it one, such as '%s for 30s'", i+1, len(stages), number(s.from))
		case s.length == 0 && s.from == 0:
			return Plan{}, errors.New("the last stage would send nothing until the end of the load phase: give it a time, or a rate above 0")
		}
		begin += s.length
		before += (s.from + s.to) / 2 * s.length.Seconds()
		s.after = before
		if begin > MaxLength {
			return Plan{}, errors.New("its stages last longer than a year")
		}
	}
	if last := stages[len(stages)-1]; last.length > 0 && before == 0 {
		return Plan{}, errors.New("no stage of it has a rate above 0")
	}
	return Plan{stages}, nil
}

// String returns the text form, which Parse converts back to the same plan.
func (p Plan) String() string {
	if p.Closed() {
		return "0"
	}
	var parts []string
	for _, s := range p.stages {
		text := number(s.from)
		if s.to != s.from {
			text += ".." + number(s.to)
		}
		if s.length > 0 {
			text += " for " + briefly.Replace(s.length.String())
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// Divided returns the plan with its rates and stage times divided by factors of at least 1. A positive rate
// is not reduced below least, unless it is below already.
func (p Plan) Divided(rates, times, least float64) (Plan, error) {
	var stages []stage
	for _, s := range p.stages {
		divide := func(rate float64) float64 { return min(rate, max(rate/rates, least)) }
		length := time.Duration(float64(s.length) / times).Round(time.Millisecond)
		if s.length > 0 {
			length = max(length, min(s.length, time.Millisecond))
		}
		stages = append(stages, stage{from: divide(s.from), to: divide(s.to), length: length})
	}
	if len(stages) == 0 {
		return p, nil
	}
	return build(stages)
}

// Closed reports whether this is the zero Plan without a rate.
func (p Plan) Closed() bool { return len(p.stages) == 0 }

// Fixed returns the rate of a plan that has one rate for the whole load phase.
func (p Plan) Fixed() (rate float64, ok bool) {
	if len(p.stages) != 1 || p.stages[0].length > 0 {
		return 0, false
	}
	return p.stages[0].from, true
}

// Length returns the total length of the stages. It returns false for a closed loop, and if the last stage
// lasts until the end of the load phase.
func (p Plan) Length() (time.Duration, bool) {
	if p.Closed() {
		return 0, false
	}
	last := p.stages[len(p.stages)-1]
	return last.begin + last.length, last.length > 0
}

// Expected returns the expected number of arrivals in [0, t), relative to the load phase's start. No arrivals
// are expected after the last stage.
func (p Plan) Expected(t time.Duration) float64 {
	if p.Closed() || t <= 0 {
		return 0
	}
	s := p.at(func(s *stage) bool { return s.begin > t })
	passed := (t - s.begin).Seconds()
	switch {
	case s.length == 0:
		return s.before + s.from*passed
	case t-s.begin >= s.length:
		return s.after
	}
	return min(s.before+s.from*passed+s.slope()*passed*passed/2, s.after)
}

// At returns the rate at t, relative to the load phase's start. It is 0 in a closed loop and after the last
// stage.
func (p Plan) At(t time.Duration) float64 {
	if p.Closed() || t < 0 {
		return 0
	}
	s := p.at(func(s *stage) bool { return s.begin > t })
	passed := t - s.begin
	switch {
	case s.length == 0:
		return s.from
	case passed >= s.length:
		return 0
	}
	return s.from + s.slope()*passed.Seconds()
}

// When returns the time since the load phase's start until which x arrivals are
// expected: the inverse of Expected, and the latest such time where no arrivals
// are expected for a while. False if so many never come: a plan whose stages end
// has the arrivals 0 ≤ x < Expected(Length).
//
// The time in a ramp from a to b over T is the root of a·t + (b-a)/(2T)·t² = x,
// written so that nothing cancels: t = 2x / (a + √(a² + 2·x·(b-a)/T)).
func (p Plan) When(x float64) (time.Duration, bool) {
	if p.Closed() || x < 0 {
		return 0, false
	}
	s := p.at(func(s *stage) bool { return s.before > x })
	if s.length > 0 && x >= s.after {
		return 0, false // only of the last stage: otherwise the next one has it
	}
	x -= s.before
	var seconds float64
	switch {
	case s.from == s.to:
		seconds = x / s.from
	case x > 0:
		seconds = 2 * x / (s.from + math.Sqrt(max(0, s.from*s.from+2*x*s.slope())))
	}
	t := seconds * 1e9
	switch {
	case t >= float64(math.MaxInt64-s.begin):
		return 0, false
	case s.length > 0:
		return s.begin + min(time.Duration(t), s.length-1), true
	}
	return s.begin + time.Duration(t), true
}

// at returns the stage before the first one for which past returns true.
func (p Plan) at(past func(*stage) bool) *stage {
	n := len(p.stages)
	if n > 1 {
		n = sort.Search(n, func(i int) bool { return past(&p.stages[i]) })
	}
	return &p.stages[max(n, 1)-1]
}

// slope returns the change of the rate per second.
func (s *stage) slope() float64 { return (s.to - s.from) / s.length.Seconds() }

func number(rate float64) string { return strconv.FormatFloat(rate, 'f', -1, 64) }

// briefly removes the zero parts of a time: 1m instead of 1m0s.
var briefly = strings.NewReplacer("h0m0s", "h", "m0s", "m")
