package sweep

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
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

func TestParseRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                     "rate, clients or nodes",
		"threads=1,2":          "rate, clients or nodes",
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
			return Point{Value: rate, TPS: new(capacity), P99MS: new(100.0), Left: max(0, 1-capacity/max(rate, capacity))}
		}
		return Point{Value: rate, TPS: new(rate), P99MS: new(1 / (1 - rate/capacity))}
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
		if has(done, value) {
			t.Fatalf("the step %g comes twice after %v", value, done)
		}
		done = append(done, run(value))
	}
}

// TestProfile: fire-hose, back off by tenths, halve below 70 %, then closer where
// latency bends.
func TestProfile(t *testing.T) {
	done := sweepAll(t, Spec{Axis: Rate}, nil, database(10_000))
	var values []float64
	for _, p := range done {
		values = append(values, p.Value)
	}
	if want := []float64{0, 9000, 8000, 7000, 3500, 1750, 875}; !slices.Equal(values[:7], want) {
		t.Errorf("the profile begins with %v, want %v", values[:7], want)
	}
	for _, v := range values[7:] {
		if v <= 3500 || v >= 9000 {
			t.Errorf("it looks closer at %g, where nothing bends", v)
		}
	}
	if len(values) == 7 || len(values) > 7+refineMost {
		t.Errorf("it took %d steps closer, want 1 to %d", len(values)-7, refineMost)
	}
}

func TestProfileOfNothing(t *testing.T) {
	for _, tps := range []*float64{nil, new(0.0)} {
		done := sweepAll(t, Spec{Axis: Rate}, nil, func(rate float64) Point { return Point{Value: rate, TPS: tps} })
		if len(done) != 1 {
			t.Errorf("a database that does nothing was given %d steps", len(done))
		}
	}
}

// TestProfileWithoutLatencies: where a step has none, nothing bends.
func TestProfileWithoutLatencies(t *testing.T) {
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

// TestResume: wherever a sweep is cut, it goes on with the same steps.
func TestResume(t *testing.T) {
	for _, spec := range []Spec{{Axis: Rate}, {Axis: Clients}, {Axis: Nodes, Values: []float64{1, 3, 5}}} {
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

func TestKept(t *testing.T) {
	for _, c := range []struct {
		p            Point
		kept, behind bool
	}{
		{Point{Value: 1000, TPS: new(940.0), Backlog: 3, Left: 0.001}, true, false}, // the rest was refused
		{Point{Value: 1000, TPS: new(900.0), Left: 0.1}, false, true},
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

func TestRounded(t *testing.T) {
	for v, want := range map[float64]float64{12345: 12300, 999.6: 1000, 12.345: 12.3, 0.4: 1, 875: 875, 0: 0} {
		if got := rounded(v); got != want {
			t.Errorf("%g is rounded to %g, want %g", v, got, want)
		}
	}
}
