package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"stroppy/internal/tier"
)

// autoregression returns n values of a first-order autoregression with known mean and standard deviation.
func autoregression(r *rand.Rand, n int, rho, mean, deviation float64) []float64 {
	values := make([]float64, n)
	state := r.NormFloat64()
	for i := range values {
		values[i] = mean + deviation*state
		state = rho*state + math.Sqrt(1-rho*rho)*r.NormFloat64()
	}
	return values
}

// naive returns the interval under the wrong assumption that the seconds are independent.
func naive(values []float64) Interval {
	n := float64(len(values))
	mean := stat.Mean(values, nil)
	half := quantileT(n-1) * stat.StdDev(values, nil) / math.Sqrt(n)
	return Interval{Value: mean, Low: mean - half, High: mean + half, Confidence: 0.95}
}

// coverage returns the percentage of intervals over 1,000 series that contain the true mean.
func coverage(n int, rho float64, interval func([]float64) Interval) float64 {
	r := rand.New(rand.NewPCG(uint64(n), math.Float64bits(rho)))
	held := 0
	for range 1000 {
		if interval(autoregression(r, n, rho, 1000, 80)).Holds(1000) {
			held++
		}
	}
	return float64(held) / 10
}

func TestMeanIntervalCoverage(t *testing.T) {
	tier.SkipUnderRace(t)
	for _, c := range []struct {
		seconds   int
		rho       float64
		low, high float64 // per cent
	}{
		{300, 0, 92, 98.5}, {600, 0, 92, 98.5}, {3600, 0, 92, 98.5},
		{300, 0.5, 92, 98}, {600, 0.5, 92, 98}, {3600, 0.5, 92, 98},
		{600, 0.9, 92, 98}, {3600, 0.9, 92, 98},
		// These series are worth 15 or a few more independent seconds.
		{15, 0, 90, 99.5}, {60, 0.5, 90, 98.5}, {300, 0.9, 90, 98},
		// These are worth three or a few more: never below 84 %.
		{10, 0.5, 84, 99.5}, {60, 0.9, 84, 98}, {120, 0.9, 84, 98},
		// Negative correlation costs width, not correctness.
		{60, -0.4, 95, 100}, {600, -0.4, 95, 100},
	} {
		got := coverage(c.seconds, c.rho, MeanInterval)
		if got < c.low || got > c.high {
			t.Errorf("%d seconds, correlation %v: the interval held the truth in %.1f %% of the series, want %v to %v", c.seconds, c.rho, got, c.low, c.high)
		}
	}
}

// TestNaiveIntervalFails shows that an interval for independent seconds does not satisfy the bounds of
// TestMeanIntervalCoverage, for any length of the run.
func TestNaiveIntervalFails(t *testing.T) {
	tier.SkipUnderRace(t)
	for _, n := range []int{60, 600, 3600} {
		for rho, most := range map[float64]float64{0.5: 84, 0.9: 50} {
			if got := coverage(n, rho, naive); got > most {
				t.Errorf("%d seconds, correlation %v: the naive interval held the truth in %.1f %%, which the test takes to be under %v", n, rho, got, most)
			}
		}
	}
}

// TestMeanIntervalSlowDrift uses noise above a slow drift, which hides the correlation between adjacent
// seconds.
func TestMeanIntervalSlowDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	held, fooled := 0, 0
	for range 1000 {
		values := autoregression(r, 600, 0.95, 1000, 35)
		for i := range values {
			values[i] += 50 * r.NormFloat64()
		}
		if MeanInterval(values).Holds(1000) {
			held++
		}
		if naive(values).Holds(1000) {
			fooled++
		}
	}
	if held < 900 || fooled > 600 {
		t.Errorf("held %d of 1000, the naive one %d", held, fooled)
	}
}

func TestMeanIntervalEffective(t *testing.T) {
	for _, rho := range []float64{0, 0.5, 0.9} {
		r := rand.New(rand.NewPCG(3, 5))
		var sum float64
		for range 200 {
			sum += MeanInterval(autoregression(r, 1800, rho, 1000, 80)).Effective
		}
		want := 1800 * (1 - rho) / (1 + rho)
		if got := sum / 200; got < 0.7*want || got > 1.3*want {
			t.Errorf("correlation %v: effective sample size %.0f, want about %.0f", rho, got, want)
		}
	}
}

func TestMeanIntervalUnknown(t *testing.T) {
	ten := []float64{9, 8, 9, 7, 9, 8, 9, 9, 8, 9}
	for name, i := range map[string]Interval{
		"no series":    MeanInterval(nil),
		"nine seconds": MeanInterval(ten[:9]),
		"not a number": MeanInterval(append(slices.Clone(ten), math.NaN())),
		"infinite":     MeanInterval(append(slices.Clone(ten), math.Inf(1))),
	} {
		if i != (Interval{}) || i.Known() || i.Holds(0) {
			t.Errorf("%s: %+v, want an unknown interval", name, i)
		}
	}
	if i := MeanInterval(ten); !i.Holds(8.5) || i.Effective <= 0 || i.Effective > 10 {
		t.Errorf("ten seconds: %+v", i)
	}
}

func TestMeanIntervalDegenerate(t *testing.T) {
	same := slices.Repeat([]float64{1000}, 60)
	if got, want := MeanInterval(same), (Interval{1000, 1000, 1000, 0.95, 60}); got != want {
		t.Errorf("60 equal seconds: %+v, want %+v", got, want)
	}
	rare := make([]float64, 60)
	rare[30] = 1
	if i := MeanInterval(rare); i.Low != 0 || i.High <= 1./60 {
		t.Errorf("one commit in a minute: %+v, want an interval from 0", i)
	}
}

// TestMeanIntervalScales checks that the unit of the series does not matter.
func TestMeanIntervalScales(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 13))
	for range 100 {
		values := autoregression(r, 20+r.IntN(300), r.Float64(), 500, 20)
		scaled := make([]float64, len(values))
		for i, v := range values {
			scaled[i] = 1000 * v
		}
		a, b := MeanInterval(values), MeanInterval(scaled)
		if math.Abs(b.Low-1000*a.Low) > 1e-6*b.Low || math.Abs(b.Effective-a.Effective) > 1e-6*a.Effective {
			t.Fatalf("%+v and a thousand times that: %+v", a, b)
		}
	}
}

func TestThroughputOfWholeSeconds(t *testing.T) {
	series := []Second{{Second: 0, Committed: 1}, {Second: 1, Committed: 2}, {Second: 3, Committed: 4}, {Second: 4, Committed: 5}}
	at := func(from, to float64) Gap {
		return Gap{From: time.Duration(from * 1e9), To: time.Duration(to * 1e9)}
	}
	for _, c := range []struct {
		from, to int
		without  []Gap
		want     []float64
	}{
		{0, 5, nil, []float64{1, 2, 0, 4, 5}},
		{1, 7, nil, []float64{2, 0, 4, 5, 0, 0}},
		{3, 3, nil, nil},
		{4, 2, nil, nil},
		{0, 5, []Gap{at(1.5, 3)}, []float64{1, 4, 5}},
		{0, 5, []Gap{at(1, 1)}, []float64{1, 0, 4, 5}},
		{0, 5, []Gap{at(0, 1), at(3.9, 4.1)}, []float64{2, 0}},
		{0, 5, []Gap{at(0, 60)}, nil},
	} {
		if got, seconds := quiet(series, c.from, c.to, c.without); !slices.Equal(got, c.want) || len(seconds) != len(got) {
			t.Errorf("%d to %d without %v: %v of %v, want %v", c.from, c.to, c.without, got, seconds, c.want)
		}
	}
}

func ExampleMeanInterval() {
	values := autoregression(rand.New(rand.NewPCG(1, 2)), 300, 0.8, 12000, 600)
	i := MeanInterval(values)
	fmt.Printf("%.0f/s, between %.0f and %.0f with 95 %% confidence: effective sample size %.0f of %d seconds\n", i.Value, i.Low, i.High, i.Effective, len(values))
	// Output: 12015/s, between 11814 and 12215 with 95 % confidence: effective sample size 32 of 300 seconds
}
