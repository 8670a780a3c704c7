package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"stroppy/internal/tier"
)

// drive returns the throughput of a load phase, in committed transactions per second.
func drive(seconds int, at func(second int) float64) []Second {
	series := make([]Second, seconds)
	for i := range series {
		series[i] = Second{Second: i, Committed: uint64(max(0, math.Round(at(i))))}
	}
	return series
}

func TestSteadinessOfEachCourse(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	noise := func() float64 { return 40 * r.NormFloat64() }
	constant := func(int) float64 { return 1000 + noise() }
	ramp := func(until float64) func(int) float64 {
		return func(s int) float64 { return 1000*min(1, 0.2+0.8*float64(s)/until) + noise() }
	}
	step := func(at int, after float64) func(int) float64 {
		return func(s int) float64 {
			if s < at {
				return 1000 + noise()
			}
			return after + noise()
		}
	}
	swing := func(period, size float64) func(int) float64 {
		return func(s int) float64 { return 1000 + size*math.Sin(2*math.Pi*float64(s)/period) + noise() }
	}
	decline := func(share float64, n int) func(int) float64 {
		return func(s int) float64 { return 1000*(1-share*float64(s)/float64(n)) + noise() }
	}
	for _, c := range []struct {
		name           string
		series         []Second
		want           SteadyState
		earliest, last int
		says           string
	}{
		{"constant and noise", drive(120, constant), Steady, 0, 0, "steady state from second 0 on"},
		{"constant and noise, an hour", drive(3600, constant), Steady, 0, 0, "standard deviation of single seconds 4."},
		{"no noise at all", drive(60, func(int) float64 { return 1000 }), Steady, 0, 0, "at 1,000/s"},
		{"warm-up, then flat", drive(120, ramp(20)), Steady, 10, 25, "steady"},
		{"warm-up of an hour's run", drive(3600, ramp(300)), Steady, 200, 330, "steady"},
		{"too fast a start, then flat", drive(120, step(10, 700)), Steady, 10, 15, "steady"},
		{"warm-up of more than a third", drive(120, ramp(70)), Unsteady, 0, 0, "rose"},
		{"slow decline", drive(300, decline(0.2, 300)), Unsteady, 0, 0, "fell from about "},
		{"decline too small to matter", drive(300, decline(0.02, 300)), Steady, 0, 0, "steady"},
		{"fast swing", drive(200, swing(20, 300)), Steady, 0, 0, "standard deviation of single seconds 2"},
		{"swing as long as the drive", drive(200, swing(200, 300)), Unsteady, 0, 0, "no steady state"},
		{"swing of half the drive", drive(200, swing(110, 300)), Unsteady, 0, 0, "no steady state"},
		{"step down in the middle", drive(120, step(60, 700)), Unsteady, 0, 0, "fell at about second 60 from "},
		{"step down near the end", drive(120, step(100, 600)), Unsteady, 0, 0, "no steady state"},
		{"step up in the middle", drive(120, step(60, 1500)), Unsteady, 0, 0, "rose at about second 60"},
		{"too short", drive(29, constant), SteadyUnknown, 0, 0, "needs 30 s without faults (this run: 29 s)"},
		{"one second", drive(1, constant), SteadyUnknown, 0, 0, "(this run: 1 s)"},
		{"nothing", nil, SteadyUnknown, 0, 0, "(this run: 0 s)"},
		{"all zero", drive(60, func(int) float64 { return 0 }), SteadyUnknown, 0, 0, "nothing was committed"},
	} {
		got := MeasureSteadiness(c.series, 0, len(c.series), nil)
		if got.State != c.want || got.From < c.earliest || got.From > c.last || !strings.Contains(got.Detail, c.says) {
			t.Errorf("%s: %v from %d: %s; want %v from %d to %d, and %q", c.name, got.State, got.From, got.Detail, c.want, c.earliest, c.last, c.says)
		}
	}
}

// TestSteadinessLeavesFaultsOut checks that a database that is slower only during faults is steady, and that
// times remain relative to the run's start.
func TestSteadinessLeavesFaultsOut(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	series := drive(120, func(s int) float64 {
		if s < 10 || s >= 50 && s < 70 {
			return 200 + 10*r.NormFloat64()
		}
		return 1000 + 40*r.NormFloat64()
	})
	if got := MeasureSteadiness(series, 0, 120, nil); got.State == Steady {
		t.Errorf("with the fault: %+v", got)
	}
	fault := []Gap{{From: 50 * time.Second, To: 70 * time.Second}}
	if got := MeasureSteadiness(series, 0, 120, fault); got.State != Steady || got.From < 10 || got.From > 15 {
		t.Errorf("without the fault: %+v", got)
	}
	early := []Gap{{From: 0, To: 30 * time.Second}, {From: 50 * time.Second, To: 70 * time.Second}}
	if got := MeasureSteadiness(series, 5, 120, early); got.State != Steady || got.From != 30 {
		t.Errorf("without both: %+v", got)
	}
	always := []Gap{{From: 0, To: 100 * time.Second}}
	if got := MeasureSteadiness(series, 0, 120, always); got.State != SteadyUnknown || !strings.Contains(got.Detail, "(this run: 20 s)") {
		t.Errorf("hurt nearly always: %+v", got)
	}
}

// TestSteadinessFalseAlarms checks that a steady load phase with correlated neighbors is rarely reported as
// unsteady, and that a decline by a fifth is rarely missed.
func TestSteadinessFalseAlarms(t *testing.T) {
	tier.SkipUnderRace(t)
	const trials = 200
	for _, c := range []struct {
		seconds int
		rho     float64
		most    int // of the trials
	}{{60, 0, 10}, {60, 0.5, 10}, {300, 0, 10}, {300, 0.5, 10}, {300, 0.9, 20}, {1800, 0.9, 10}} {
		r := rand.New(rand.NewPCG(6, uint64(c.seconds)))
		alarms, missed := 0, 0
		for range trials {
			values := autoregression(r, c.seconds, c.rho, 10000, 400)
			at := func(s int) float64 { return values[s] }
			if MeasureSteadiness(drive(c.seconds, at), 0, c.seconds, nil).State != Steady {
				alarms++
			}
			falling := func(s int) float64 { return values[s] - 2500*float64(s)/float64(c.seconds) }
			if MeasureSteadiness(drive(c.seconds, falling), 0, c.seconds, nil).State == Steady {
				missed++
			}
		}
		t.Logf("%d seconds, correlation %v: %d false alarms, %d missed, of %d", c.seconds, c.rho, alarms, missed, trials)
		if alarms > c.most || missed > c.most {
			t.Errorf("%d seconds, correlation %v: %d false alarms and %d missed of %d, want at most %d each", c.seconds, c.rho, alarms, missed, trials, c.most)
		}
	}
}

// TestTrendChance checks that the test for a trend at 1 % finds one in about 1 % of independent series without a
// trend. It may find few more if neighbors are correlated.
func TestTrendChance(t *testing.T) {
	for rho, most := range map[float64]int{0: 18, 0.5: 18, 0.9: 35} {
		r := rand.New(rand.NewPCG(8, 8))
		found, falling := 0, 0
		for range 1000 {
			values := autoregression(r, 600, rho, 1000, 40)
			if trendProbability(batchMeans(values, trendBatches)) < trendChance {
				found++
			}
			for i := range values {
				values[i] -= float64(i) / 4
			}
			if trendProbability(batchMeans(values, trendBatches)) < trendChance {
				falling++
			}
		}
		if found > most || falling < 900 {
			t.Errorf("correlation %v: a trend in %d of 1000 series without one and %d with one, want at most %d and at least 900", rho, found, falling, most)
		}
	}
}

func TestMSERCutsTheStart(t *testing.T) {
	for _, c := range []struct {
		batches []float64
		want    int
	}{
		{[]float64{5}, 0},
		{[]float64{1, 5, 5, 5, 5, 5}, 1},
		{[]float64{1, 3, 5, 6, 5, 6, 5, 6, 5, 6}, 2},
		{[]float64{5, 5, 5, 5, 5, 5}, 0},
	} {
		if got := mser(c.batches); got != c.want {
			t.Errorf("%v: %d, want %d", c.batches, got, c.want)
		}
	}
}

func TestSteadyStateNames(t *testing.T) {
	var zero Steadiness
	if zero.State == Steady || SteadyUnknown != "unknown" || Steady != "steady" || Unsteady != "unsteady" {
		t.Error(zero.State, Steady, Unsteady)
	}
}
