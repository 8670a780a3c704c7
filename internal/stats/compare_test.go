package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"stroppy/internal/tier"
)

// runsOf returns repeated runs of a side. Their means vary by the factor between. Their seconds vary by a
// fifth, and adjacent seconds are correlated.
func runsOf(r *rand.Rand, count, seconds int, rho, mean, between float64) []Sample {
	samples := make([]Sample, count)
	for i := range samples {
		own := mean * (1 + between*r.NormFloat64())
		samples[i] = Sample{
			TPS:     autoregression(r, seconds, rho, own, 0.1*mean),
			Latency: map[string]float64{"p99": 20 * (1 + between*r.NormFloat64()) * mean / 1000},
		}
	}
	return samples
}

func TestIntervalsCoverTheTruth(t *testing.T) {
	tier.SkipUnderRace(t)
	for _, c := range []struct {
		name      string
		a, b      int
		rho       float64
		between   float64
		low, high float64 // per cent of the intervals that hold the truth
	}{
		{"one run of each", 1, 1, 0.5, 0, 92, 98.5},
		{"one run of each, slow", 1, 1, 0.8, 0, 91, 98.5},
		{"three of each", 3, 3, 0.5, 0.05, 93, 99},
		{"five of each", 5, 5, 0.5, 0.05, 92, 98},
		{"five of each, which differ by nothing but noise", 5, 5, 0.8, 0, 93, 99.9},
		{"two of each", 2, 2, 0.5, 0.05, 93, 99.9},
		{"three and six", 3, 6, 0.5, 0.05, 92, 98.5},
		{"one and five", 1, 5, 0.5, 0.05, 91, 98.5},
	} {
		for _, truth := range []float64{1, 1.25} {
			r := rand.New(rand.NewPCG(21, math.Float64bits(truth)))
			held, latency, repeats := 0, 0, 0
			for range 1000 {
				got := Compare(runsOf(r, c.a, 240, c.rho, 1000, c.between), runsOf(r, c.b, 240, c.rho, 1000*truth, c.between))
				if got.TPS.Ratio.Holds(truth) {
					held++
				}
				if p99 := got.Latency["p99"]; p99.Ratio.Known() {
					repeats++
					if p99.Ratio.Holds(truth) || c.between == 0 {
						latency++
					}
				}
			}
			share := float64(held) / 10
			if share < c.low || share > c.high {
				t.Errorf("%s, ratio %v: the interval held the truth in %.1f %%, want %v to %v", c.name, truth, share, c.low, c.high)
			}
			if c.a+c.b > 2 && (repeats != 1000 || latency < 910) || c.a+c.b == 2 && repeats != 0 {
				t.Errorf("%s, ratio %v: %d intervals of the p99, %d of which held the truth", c.name, truth, repeats, latency)
			}
		}
	}
}

// TestCompareShowsDifference checks that large differences are shown, and that equal sides are rarely
// reported as different.
func TestCompareShowsDifference(t *testing.T) {
	tier.SkipUnderRace(t)
	r := rand.New(rand.NewPCG(9, 9))
	counts := map[float64]map[Difference]int{}
	for _, truth := range []float64{1, 1.2, 0.8} {
		counts[truth] = map[Difference]int{}
		for range 300 {
			c := Compare(runsOf(r, 5, 120, 0.5, 1000, 0.03), runsOf(r, 5, 120, 0.5, 1000*truth, 0.03))
			counts[truth][c.TPS.Difference]++
		}
	}
	if counts[1][DifferenceNone] < 270 || counts[1.2][DifferenceHigher] < 290 || counts[0.8][DifferenceLower] < 290 {
		t.Error(counts)
	}
}

// TestCompareIsSymmetric checks that B to A is the inverse of A to B.
func TestCompareIsSymmetric(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 9))
	for range 200 {
		a := runsOf(r, 1+r.IntN(4), 30+r.IntN(100), 0.5, 1000, 0.05)
		b := runsOf(r, 1+r.IntN(4), 30+r.IntN(100), 0.5, 1300, 0.05)
		one, other := Compare(a, b).TPS, Compare(b, a).TPS
		if math.Abs(one.Ratio.Low*other.Ratio.High-1) > 1e-9 || math.Abs(one.Ratio.High*other.Ratio.Low-1) > 1e-9 || *one.A != *other.B {
			t.Fatalf("%+v and %+v", one, other)
		}
		if one.Difference == DifferenceHigher && other.Difference != DifferenceLower {
			t.Fatalf("%v and %v", one.Difference, other.Difference)
		}
	}
}

func TestComparisonOfUnusualRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 9))
	run := func(n int) []Sample { return runsOf(r, n, 60, 0, 1000, 0.02) }
	still := func(tps float64) []Sample {
		return []Sample{{TPS: []float64{tps, tps, tps, tps, tps, tps, tps, tps, tps, tps}}}
	}
	short := []Sample{{TPS: []float64{1000, 1010}}}
	for _, c := range []struct {
		name  string
		a, b  []Sample
		want  Difference
		known bool
		value float64 // 0: any
		says  string
	}{
		{"one of each", run(1), run(1), DifferenceNone, true, 0, "within the two runs only"},
		{"three of each", run(3), run(3), DifferenceNone, true, 0, "within runs and between them"},
		{"one and three", run(1), run(3), DifferenceNone, true, 0, "the one run of A to vary as the runs of B do"},
		{"three and one", run(3), run(1), DifferenceNone, true, 0, "the one run of B to vary as the runs of A do"},
		{"short", short, run(1), DifferenceUnknown, false, 0, "runs of 10 seconds at least"},
		{"equal short repeats", append(short, short...), append(short, short...), DifferenceUnknown, false, 1, "runs of 10 seconds at least"},
		{"no run", nil, run(1), DifferenceUnknown, false, 0, "not every run has the throughput"},
		{"no second", []Sample{{}}, run(1), DifferenceUnknown, false, 0, "not every run has the throughput"},
		{"no variation, equal", still(1000), still(1000), DifferenceNone, true, 1, ""},
		{"no variation, twice", still(1000), still(2000), DifferenceHigher, true, 2, ""},
		{"A did nothing", still(0), still(2000), DifferenceUnknown, false, 0, "the throughput is 0 for A"},
		{"B did nothing", still(2000), still(0), DifferenceUnknown, false, 0, "the throughput of B is 0"},
	} {
		got := Compare(c.a, c.b).TPS
		if got.Difference != c.want || got.Ratio.Known() != c.known || c.value != 0 && got.Ratio.Value != c.value || !strings.Contains(got.Detail, c.says) {
			t.Errorf("%s: %+v, want %v, known %v, %q", c.name, got, c.want, c.known, c.says)
		}
	}
	single := Compare(run(1), run(1)).Latency["p99"]
	if single.Ratio.Known() || single.Ratio.Value == 0 || single.Difference != DifferenceUnknown || !strings.Contains(single.Detail, "takes repeated runs") {
		t.Errorf("p99 of one run of each: %+v", single)
	}
	lacking := run(2)
	delete(lacking[1].Latency, "p99")
	if got := Compare(run(2), lacking).Latency["p99"]; got.Ratio.Value != 0 || got.B != nil || got.Difference != DifferenceUnknown {
		t.Errorf("a run without a p99: %+v", got)
	}
	equal := func(p99 float64) []Sample {
		one := Sample{Latency: map[string]float64{"p99": p99}}
		return []Sample{one, one}
	}
	if got := Compare(equal(2), equal(2.004)).Latency["p99"]; got.Difference != DifferenceNone {
		t.Errorf("repeats that differ by less than the histogram reports: %+v", got)
	}
	if got := DifferenceNone; got != "no difference shown" {
		t.Error(got)
	}
}

// TestMaximumHasNoInterval checks that a maximum has no interval and no difference, for any number of
// repetitions.
func TestMaximumHasNoInterval(t *testing.T) {
	side := func(max float64) (runs []Sample) {
		for i := range 10 {
			runs = append(runs, Sample{Latency: map[string]float64{"p99": max / 10, Maximum: max + float64(i)}})
		}
		return runs
	}
	c := Compare(side(100), side(1000))
	if r := c.Latency[Maximum]; r.Ratio.Known() || r.Difference != DifferenceUnknown || r.Ratio.Value < 9 || r.Detail == "" {
		t.Errorf("the maximum: %+v", r)
	}
	if r := c.Latency["p99"]; !r.Ratio.Known() {
		t.Errorf("the 99th percentile: %+v", r)
	}
}
