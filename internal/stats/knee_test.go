package stats

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestFindKnee(t *testing.T) {
	followed := func(latencies ...float64) []Step {
		var steps []Step
		for i, l := range latencies {
			rate := 1000 * float64(i+1)
			steps = append(steps, Step{Offered: rate, Kept: true, Latency: l})
		}
		return steps
	}
	saturated := followed(2, 2, 2, 2.1, 2.2, 3)
	saturated = append(saturated, Step{7000, false, 3}, Step{8000, false, 3})
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
		{"bend", followed(2, 2.1, 2, 2.2, 2.6, 3.5, 9, 400), 6000, "from 7000/s on"},
		{"one hiccup is no bend", followed(2, 2, 2.1, 30, 2.2, 2.4, 9, 80), 6000, ""},
		{"a hiccup at the start", followed(30, 2, 2.1, 2, 2.2, 2.4, 3, 9, 80), 7000, ""},
		{"not kept up with", saturated, 6000, "from 7000/s on"},
		{"straight to overload", followed(2, 2, 2, 2, 5000), 4000, ""},
		{"no bend", followed(2, 2.1, 2.2, 2.4, 3), 0, "no knee up to 5000/s"},
		{"late from the start", late, 0, "begin with a lower one"},
		{"three steps", followed(2, 2, 9), 0, "a latency, not 3"},
		{"none", nil, 0, "not 0"},
		{"without latencies", followed(2, 0, 2, 0, 9), 0, "not 3"},
		{"fire-hose left out", append([]Step{{0, false, 70}}, followed(2, 2, 2, 9)...), 3000, ""},
	} {
		shuffled := append([]Step(nil), c.steps...)
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		got := FindKnee(shuffled)
		if got.Step.Offered != c.knee || got.Found != (c.knee > 0) || !strings.Contains(got.Detail, c.says) {
			t.Errorf("%s: %+v, want %v and %q", c.name, got, c.knee, c.says)
		}
	}
}

// TestKneeOfAQueue: a single queue's latency is 1/(1-load); the knee is where it
// is at about half its capacity (the flat part is not quite idle), whatever the unit and however far the sweep went.
func TestKneeOfAQueue(t *testing.T) {
	for _, last := range []float64{0.7, 0.9, 0.99} {
		for _, unit := range []float64{1, 1000} {
			steps := []Step{{10, true, unit}, {20, true, unit * 1.001}, {30, true, unit * 1.002}}
			for load := 0.1; load <= last; load += 0.05 {
				steps = append(steps, Step{1000 * load, true, unit / (1 - load)})
			}
			if got := FindKnee(steps); !got.Found || got.Step.Offered < 400 || got.Step.Offered > 560 {
				t.Errorf("up to %v: %+v", last, got)
			}
		}
	}
}
