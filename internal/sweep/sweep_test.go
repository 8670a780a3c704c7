package sweep

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseExpandsAndSortsSteps(t *testing.T) {
	for text, want := range map[string]string{
		"rate":                   "rate",
		"clients":                "clients",
		"clients=8,1,4,2,2":      "clients=1,2,4,8",
		"clients=1..64":          "clients=1,2,4,8,16,32,64",
		"clients=1..100":         "clients=1,2,4,8,16,32,64,100",
		"nodes=1..5 by 2":        "nodes=1,3,5",
		"rate=1000..3000 by 750": "rate=1000,1750,2500,3000",
		"rate=0.5,2":             "rate=0.5,2",
		"clients=3..3":           "clients=3",
		"clients=1..4, 10":       "clients=1,2,4,10",
	} {
		s, err := Parse(text)
		if err != nil || s.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, s, err, want)
		}
		again, err := Parse(s.String())
		if err != nil || again.String() != want {
			t.Errorf("%q prints as %q, which is %q, %v", text, want, again, err)
		}
	}
}

func TestParseRejectsInvalidAxes(t *testing.T) {
	for text, why := range map[string]string{
		"":                     "rate, clients, nodes or scenarios",
		"threads=1,2":          "rate, clients, nodes or scenarios",
		"clients=":             "names no step",
		"clients=1,,2":         "names no step",
		"clients=0":            "not above 0",
		"rate=-5":              "not above 0",
		"clients=1.5":          "whole number",
		"rate=x":               "no number",
		"rate=NaN":             "no number",
		"rate=1e99":            "more than",
		"clients=8..1":         "goes down",
		"rate=1..1e9 by 1":     "more than 1000 steps",
		"rate=1..2 by 0":       "not above 0",
		"nodes=1..3 by":        "no number",
		"rate=1..1e9 by 1e-30": "more than 1000 steps",
	} {
		if s, err := Parse(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q is %v, %v; want an error with %q", text, s, err, why)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("clients=1..64")
	f.Add("rate=1..9 by 2,11")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil || again.String() != s.String() {
			t.Errorf("%q prints as %q, which is %q, %v", text, s, again, err)
		}
		if len(s.Values) > maxSteps || !slices.IsSorted(s.Values) {
			t.Errorf("%q has the steps %v", text, s.Values)
		}
	})
}

// database is one whose latency bends at its capacity.
func database(capacity float64) func(rate float64) Point {
	return func(rate float64) Point {
		if rate == 0 || rate >= capacity {
			return Point{Value: rate, TPS: new(capacity), P99MS: new(100.0), Samples: 1000, Left: max(0, 1-capacity/max(rate, capacity))}
		}
		return Point{Value: rate, TPS: new(rate), P99MS: new(1 / (1 - rate/capacity)), Samples: 1000}
	}
}

func sweepAll(t *testing.T, s Spec, fallback []float64, run func(float64) Point) []Point {
	t.Helper()
	var done []Point
	for {
		value, more := s.Next(done, fallback)
		if !more {
			return done
		}
		if count(done, value) >= max(1, s.Repeat) && s.Axis != Rate {
			t.Fatalf("the step %g comes twice after %v", value, done)
		}
		done = append(done, run(value))
	}
}

// TestProfileRefinesNearKnee checks the rates of a profile: first unlimited, then less by tenths, halves below 70
// %, and closer where the latency bends.
func TestProfileRefinesNearKnee(t *testing.T) {
	done := sweepAll(t, Spec{Axis: Rate}, nil, database(10_000))
	var values []float64
	for _, p := range done {
		values = append(values, p.Value)
	}
	if want := []float64{0, 9000, 8000, 7000, 3500, 1750, 875}; !slices.Equal(values[:7], want) {
		t.Errorf("the profile begins with %v, want %v", values[:7], want)
	}
	once := merge(done)
	for _, v := range values[7:] {
		if v < 3500 || v >= 9000 {
			t.Errorf("it looks closer at %g, where nothing bends", v)
		}
	}
	if len(once) == 7 || len(once) > 7+refineMost {
		t.Errorf("it took %d steps closer, want 1 to %d", len(once)-7, refineMost)
	}
	if k := knee(done); !k.Found || count(done, k.Step.Offered) != 3 || len(done) != len(once)+4 {
		t.Errorf("after %v the knee is %+v", values, k)
	}
}

func TestProfileStopsWithoutThroughput(t *testing.T) {
	for _, tps := range []*float64{nil, new(0.0)} {
		done := sweepAll(t, Spec{Axis: Rate}, nil, func(rate float64) Point { return Point{Value: rate, TPS: tps} })
		if len(done) != 1 {
			t.Errorf("a database that does nothing was given %d steps", len(done))
		}
	}
}

// TestProfileRefinesOnlyMeasuredLatencies checks that a profile does not look closer at steps without latencies.
func TestProfileRefinesOnlyMeasuredLatencies(t *testing.T) {
	done := sweepAll(t, Spec{Axis: Rate}, nil, func(rate float64) Point {
		p := database(10_000)(rate)
		if rate > 7000 {
			p.P99MS = nil
		}
		return p
	})
	for _, p := range done {
		if p.Value > 7000 && p.Value != 8000 && p.Value != 9000 {
			t.Errorf("it looks closer at %g, of which no latency is known", p.Value)
		}
	}
}

// TestResumedSweepTakesSameSteps checks that a sweep continues with the same steps, wherever it was interrupted.
func TestResumedSweepTakesSameSteps(t *testing.T) {
	for _, spec := range []Spec{{Axis: Rate}, {Axis: Rate, Repeat: 2}, {Axis: Rate, Values: []float64{1000, 2000, 4000, 8000, 12_000}}, {Axis: Clients}, {Axis: Clients, Repeat: 3}, {Axis: Nodes, Values: []float64{1, 3, 5}}} {
		run := database(12_345)
		whole := sweepAll(t, spec, []float64{1, 2, 4}, run)
		for cut := range whole {
			next, more := spec.Next(slices.Clone(whole[:cut]), []float64{1, 2, 4})
			if !more || next != whole[cut].Value {
				t.Errorf("%v cut after %d steps goes on with %g, %v; want %g", spec, cut, next, more, whole[cut].Value)
			}
		}
	}
}

func TestStepWithLargeBacklogMissedItsRate(t *testing.T) {
	for _, c := range []struct {
		p            Point
		kept, behind bool
	}{
		{Point{Value: 1000, TPS: new(940.0), Backlog: 3, Left: 0.001}, true, false}, // the rest was refused
		{Point{Value: 1000, TPS: new(900.0), Left: 0.1}, false, true},
		{Point{Value: 46, TPS: new(45.0), Backlog: 1, Left: 0.02}, true, false}, // on its way at the end
		{Point{Value: 46, TPS: new(40.0), Backlog: 4, Left: 0.08}, false, true},
		{Point{Value: 1000, TPS: new(0.0)}, false, true},
		{Point{Value: 1000}, false, false}, // nobody knows
		{Point{Value: 1000, Left: 0.1}, false, true},
		{Point{Value: 0, TPS: new(1000.0)}, false, false},
	} {
		if c.p.Kept() != c.kept || c.p.behind() != c.behind {
			t.Errorf("%+v kept its rate: %v, and did not: %v; want %v, %v", c.p, c.p.Kept(), c.p.behind(), c.kept, c.behind)
		}
	}
}

func TestRatesAreRoundedToThreeDigits(t *testing.T) {
	for v, want := range map[float64]float64{12345: 12300, 999.6: 1000, 12.345: 12.3, 0.4: 1, 875: 875, 0: 0} {
		if got := rounded(v); got != want {
			t.Errorf("%g is rounded to %g, want %g", v, got, want)
		}
	}
}

// TestListRepeatsWholeAndProfilePerStep checks that a list is repeated as a whole, and the profile step by
// step. Only a knee is measured more often than requested.
func TestListRepeatsWholeAndProfilePerStep(t *testing.T) {
	var values []float64
	for _, p := range sweepAll(t, Spec{Axis: Clients, Values: []float64{1, 2, 4}, Repeat: 2}, nil, database(1e6)) {
		values = append(values, p.Value)
	}
	if want := []float64{1, 2, 4, 1, 2, 4}; !slices.Equal(values, want) {
		t.Errorf("the list is run as %v, want %v", values, want)
	}
	done := sweepAll(t, Spec{Axis: Rate, Repeat: 3}, nil, database(10_000))
	for _, p := range done {
		if n := count(done, p.Value); n != 3 {
			t.Errorf("%g is measured %d times", p.Value, n)
		}
	}
	if k := knee(done); !k.Found {
		t.Errorf("the knee is %+v", k)
	}
}

// TestNoisyLatencyHasNoKnee checks that a database whose latency is only noise is not measured for ever, and has
// no knee.
func TestNoisyLatencyHasNoKnee(t *testing.T) {
	claimed := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		done := sweepAll(t, Spec{Axis: Rate}, nil, func(rate float64) Point {
			p := database(262)(rate)
			p.P99MS = new(math.Exp(r.NormFloat64()))
			p.Left = 0
			return p
		})
		if most := 1 + len(backOff) + refineMost + confirmMost; len(done) > most {
			t.Fatalf("it took %d steps, want %d at most", len(done), most)
		}
		if knee(done).Found {
			claimed++
		}
	}
	if claimed > 20 {
		t.Errorf("a knee is claimed in %d of 200 sweeps over noise", claimed)
	}
}

// TestSweepUsesRoundedRates checks that no rate of a sweep has more digits than needed.
func TestSweepUsesRoundedRates(t *testing.T) {
	long := regexp.MustCompile(`\d{4,}\.\d|\.\d{4,}`)
	for capacity := 11.7; capacity < 1e6; capacity *= 1.37 {
		for _, p := range sweepAll(t, Spec{Axis: Rate}, nil, database(capacity)) {
			if text := label(Rate, p.Value); long.MatchString(text) || p.Value != rounded(p.Value) {
				t.Errorf("of a capacity of %g there is the rate %s", capacity, text)
			}
		}
	}
	s, err := Parse("rate=22.1..23 by 0.1")
	if want := "rate=22.1,22.2,22.3,22.4,22.5,22.6,22.7,22.8,22.9,23"; err != nil || s.String() != want {
		t.Errorf("it is %s, %v", s, err)
	}
}

func TestSlowRatesAreMeasuredLonger(t *testing.T) {
	for _, c := range []struct {
		rate        float64
		asked, want time.Duration
	}{
		{0, time.Second, time.Second}, {10_000, time.Second, time.Second}, {22.9, 2 * time.Second, 21 * time.Second},
		{1, time.Second, time.Minute}, {1, time.Hour, time.Hour},
	} {
		if got := Lengthened(c.rate, c.asked); got != c.want {
			t.Errorf("%g a second for %v is measured for %v, want %v", c.rate, c.asked, got, c.want)
		}
	}
}

// TestDueListsUnmeasuredSteps checks which steps are still due: the rest of a list with its repetitions, and
// the next step of a profile.
func TestDueListsUnmeasuredSteps(t *testing.T) {
	done := []Point{{Value: 1}, {Value: 2}, {Value: 1}}
	for _, c := range []struct {
		over  string
		times int
		want  []float64
	}{
		{"clients=1,2", 0, nil}, {"clients=1,2", 2, []float64{2}}, {"clients=1,2,4", 1, []float64{4}},
		{"clients=1,2,4", 2, []float64{4, 2, 4}}, {"clients", 1, nil}, {"rate", 1, []float64{0}},
	} {
		spec, err := Parse(c.over)
		if err != nil {
			t.Fatal(err)
		}
		if due := spec.Due(done, c.times); !slices.Equal(due, c.want) {
			t.Errorf("of %s, %d times each, there is %v to do and not %v", c.over, c.times, due, c.want)
		}
	}
}
