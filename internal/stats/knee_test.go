package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestFindKneeOfEachCurve(t *testing.T) {
	followed := func(latencies ...float64) []Step {
		var steps []Step
		for i, l := range latencies {
			rate := 1000 * float64(i+1)
			for range confirming {
				steps = append(steps, Step{Offered: rate, Kept: true, Latency: l, Samples: 1000})
			}
		}
		return steps
	}
	saturated := followed(2, 2, 2, 2.1, 2.2, 3)
	saturated = append(saturated, Step{7000, false, 3, 10}, Step{7000, false, 3, 10}, Step{7000, false, 3, 10}, Step{8000, false, 3, 10})
	late := followed(900, 950, 1000, 1100)
	for i := range late {
		late[i].Kept = false
	}
	for _, c := range []struct {
		name  string
		steps []Step
		knee  float64 // offered; 0: none
		says  string
	}{
		{"bend", followed(2, 2.1, 2, 2.2, 2.6, 3.5, 9, 400), 6000, "from 7,000/s on"},
		{"one hiccup is no bend", followed(2, 2, 2.1, 30, 2.2, 2.4, 9, 80), 6000, ""},
		{"a hiccup at the start", followed(30, 2, 2.1, 2, 2.2, 2.4, 3, 9, 80), 7000, ""},
		{"not kept up with", saturated, 6000, "from 7,000/s on"},
		{"straight to overload", followed(2, 2, 2, 2, 5000), 4000, ""},
		{"no bend", followed(2, 2.1, 2.2, 2.4, 3), 0, "no knee up to 5,000/s"},
		{"late from the start", late, 0, "begin with a lower one"},
		{"three steps", followed(2, 2, 9), 0, "with a latency, not 3"},
		{"none", nil, 0, ", not 0"},
		{"without latencies", followed(2, 0, 2, 0, 9), 0, ", not 3"},
		{"fire-hose left out", append([]Step{{0, false, 70, 1000}}, followed(2, 2, 2, 9)...), 3000, ""},
	} {
		shuffled := append([]Step(nil), c.steps...)
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		got := FindKnee(shuffled)
		if got.Step.Offered != c.knee || got.Found != (c.knee > 0) || !strings.Contains(got.Detail, c.says) {
			t.Errorf("%s: %+v, want %v and %q", c.name, got, c.knee, c.says)
		}
	}
}

// TestKneeOfAQueue uses a queue with latency 1/(1-load). The knee must be at about half its capacity,
// whatever the unit and the extent of the sweep.
func TestKneeOfAQueue(t *testing.T) {
	for _, last := range []float64{0.7, 0.9, 0.99} {
		for _, unit := range []float64{1, 1000} {
			steps := []Step{{10, true, unit, 1000}, {20, true, unit * 1.001, 1000}, {30, true, unit * 1.002, 1000}}
			for load := 0.1; load <= last; load += 0.05 {
				for range confirming {
					steps = append(steps, Step{1000 * load, true, unit / (1 - load), 1000})
				}
			}
			if got := FindKnee(steps); !got.Found || got.Step.Offered < 400 || got.Step.Offered > 560 {
				t.Errorf("up to %v: %+v", last, got)
			}
		}
	}
}

// TestKneeNeedsRepetition checks that single measurements do not make a knee. Both sides of the bend are
// measured three times, and a step that is slow only once is not a knee.
func TestKneeNeedsRepetition(t *testing.T) {
	// In an earlier version, 22.9/s was the knee, because 45.8/s was slow once, although 189/s was kept.
	steps := []Step{{11.4, true, 4, 400}, {22.9, true, 4, 400}, {45.8, true, 30, 400}, {91.7, true, 11, 400}, {189, true, 11, 400}, {236, false, 900, 400}}
	slow := func(rate float64) Step {
		s := steps[slices.IndexFunc(steps, func(s Step) bool { return s.Offered == rate })]
		if s.Kept {
			s.Latency = 5
		}
		return s
	}
	all := slices.Clone(steps)
	for range 30 {
		k := FindKnee(all)
		if k.Found && len(all) == len(steps) {
			t.Fatalf("single measurements gave %+v", k)
		}
		if k.Repeat == 0 {
			break
		}
		all = append(all, slow(k.Repeat))
	}
	if k := FindKnee(all); !k.Found || k.Step.Offered != 189 || len(all) <= len(steps) || !strings.Contains(k.Detail, "measured 5 and 3 times") {
		t.Errorf("after %d measurements: %+v", len(all), k)
	}
	// A result that differs each time is not claimed.
	for i := range 4 {
		all = append(all, Step{189, i%2 == 0, 5, 400}, Step{236, i%2 == 1, 5, 400})
	}
	if k := FindKnee(all); k.Found && k.Step.Offered != 91.7 || k.Repeat == 189 {
		t.Errorf("a disputed knee: %+v", k)
	}
}

// TestSlowLowerRatePreventsTheClaimOfNoKnee checks that a low latency at all rates is not claimed if a lower
// rate was slow or not kept.
func TestSlowLowerRatePreventsTheClaimOfNoKnee(t *testing.T) {
	low := []Step{{300, true, 54, 400}, {400, true, 54.3, 400}, {589, true, 60, 400}, {900, true, 60, 400}, {1900, true, 80, 400}, {2020, true, 90, 400}}
	none := "there is no knee up to 2,020/s: the latency stays below twice the latency of the low rates"
	for _, c := range []struct {
		name string
		more []Step
		says []string
	}{
		{"all low", nil, []string{none}},
		{"low again", []Step{{1900, true, 70, 400}}, []string{none}},
		{"slow once", []Step{{1900, true, 171, 400}}, []string{"is not known", "up to 2,020/s", "twice the latency of the low rates at 1,900/s (1 of 2 times);"}},
		{"slow, and late once", []Step{{700, true, 131, 400}, {589, false, 60, 400}}, []string{"low rates at 700/s, and the rate was not kept at 589/s (1 of 2 times);"}},
		{"late alone", []Step{{1000, false, 60, 400}}, []string{"is not known", "the rate was not kept at 1,000/s;"}},
		{"the highest once", []Step{{2020, true, 171, 400}, {2020, true, 90, 400}}, []string{"low rates at 2,020/s (1 of 3 times);"}},
		{"too few samples", []Step{{1000, true, 171, 3}}, []string{none, ". 1 step was left out, with fewer than the 368 committed"}},
	} {
		k := FindKnee(append(slices.Clone(low), c.more...))
		for _, want := range c.says {
			if k.Found || !strings.Contains(k.Detail, want) || strings.HasPrefix(k.Detail, none) != slices.Contains(c.says, none) {
				t.Errorf("%s: %+v, want %q", c.name, k, want)
			}
		}
	}
}

// TestKneeNeedsSamples checks that steps with too few samples are left out and named.
func TestKneeNeedsSamples(t *testing.T) {
	var steps []Step
	for i, latency := range []float64{2, 2, 2, 2, 9} {
		steps = append(steps, Step{float64(i + 1), true, latency, 367})
	}
	if k := FindKnee(steps); k.Found || k.Repeat > 0 || !strings.Contains(k.Detail, "5 steps had fewer than the 368 committed transactions") {
		t.Errorf("%+v", k)
	}
	for i := range steps {
		steps[i].Samples++
	}
	if k := FindKnee(steps); k.Repeat != 4 {
		t.Errorf("%+v", k)
	}
}

// TestLeastSamples checks that the largest of this number of samples is below the true quantile in one of forty
// cases. Half as many samples must be below it far more often.
func TestLeastSamples(t *testing.T) {
	if n := LeastSamples(0.99); n != 368 || math.Pow(0.99, 368) > 0.025 || math.Pow(0.99, 367) <= 0.025 {
		t.Errorf("%d samples", n)
	}
	r := rand.New(rand.NewPCG(9, 9))
	const trials = 4000
	short := func(n uint64) float64 {
		below := 0
		for range trials {
			largest := 0.0
			for range n {
				largest = max(largest, r.Float64())
			}
			if largest < 0.99 {
				below++
			}
		}
		return float64(below) / trials
	}
	if enough, half := short(368), short(184); enough < 0.015 || enough > 0.035 || half < 0.12 {
		t.Errorf("the largest is below the quantile in %.3f of the samples, and of half as many in %.3f", enough, half)
	}
}
