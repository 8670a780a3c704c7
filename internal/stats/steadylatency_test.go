package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// paced returns a run at a fixed rate with the given median and 99th percentile of each second, in
// milliseconds.
func paced(seconds int, p50, p99 func(second int) float64) []Second {
	series := drive(seconds, func(int) float64 { return 500 })
	for i := range series {
		series[i].P50 = time.Duration(p50(i) * float64(time.Millisecond))
		series[i].P99 = time.Duration(p99(i) * float64(time.Millisecond))
	}
	return series
}

func TestSteadinessCountsLatency(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 4))
	about := func(ms, spread float64) float64 { return ms * math.Exp(spread*r.NormFloat64()) }
	flat := func(ms, spread float64) func(int) float64 {
		return func(int) float64 { return about(ms, spread) }
	}
	for _, c := range []struct {
		name     string
		p50, p99 func(int) float64
		want     SteadyState
		says     string
	}{
		{"flat", flat(2, 0.1), flat(9, 0.3), Steady, "steady state from second 0"},
		{"a queue grows", func(s int) float64 { return about(2+0.05*float64(s), 0.1) }, flat(20, 0.3), Unsteady, "the median latency rose from about"},
		{"the tail grows", flat(2, 0.1), func(s int) float64 { return about(9*(1+float64(s)/60), 0.3) }, Unsteady, "the 99 % latency rose from about"},
		{"a cache warms", func(s int) float64 { return about(8-0.05*float64(s), 0.1) }, flat(20, 0.3), Unsteady, "the median latency fell from about"},
		{"slow for a quarter", func(s int) float64 {
			if s >= 30 && s < 60 {
				return about(8, 0.1)
			}
			return about(2, 0.1)
		}, flat(20, 0.3), Unsteady, "ms from second 30 to 59 and"},
		{"a tenth more does not matter", func(s int) float64 { return about(2+0.2*float64(s)/120, 0.02) }, flat(20, 0.3), Steady, "steady"},
		{"not measured", func(int) float64 { return 0 }, func(int) float64 { return 0 }, Steady, "steady"},
	} {
		got := MeasureSteadiness(paced(120, c.p50, c.p99), 0, 120, nil)
		if got.State != c.want || !strings.Contains(got.Detail, c.says) || (got.Of == OfLatency) != (c.want == Unsteady) {
			t.Errorf("%s: %+v; want %s and %q", c.name, got, c.want, c.says)
		}
	}
}

// TestSteadyLatencyFalseAlarms checks that a latency that only varies, with correlated neighbors, is rarely
// called unsteady.
func TestSteadyLatencyFalseAlarms(t *testing.T) {
	const trials = 200
	for _, c := range []struct {
		seconds int
		rho     float64
	}{{60, 0}, {60, 0.5}, {300, 0.5}, {300, 0.9}, {1800, 0.9}} {
		r := rand.New(rand.NewPCG(9, uint64(c.seconds)))
		alarms := 0
		for range trials {
			p50, p99 := autoregression(r, c.seconds, c.rho, 0, 0.1), autoregression(r, c.seconds, c.rho, 0, 0.3)
			series := paced(c.seconds, func(s int) float64 { return 2 * math.Exp(p50[s]) }, func(s int) float64 { return 9 * math.Exp(p99[s]) })
			if MeasureSteadiness(series, 0, c.seconds, nil).State != Steady {
				alarms++
			}
		}
		if alarms > trials/20 {
			t.Errorf("%d seconds, correlation %v: %d false alarms of %d", c.seconds, c.rho, alarms, trials)
		}
	}
}

// TestFaultsDoNotMakeLatencyUnsteady checks that the seconds of a fault are ignored.
func TestFaultsDoNotMakeLatencyUnsteady(t *testing.T) {
	slow := func(s int) float64 {
		if s >= 40 && s < 70 {
			return 50
		}
		return 2
	}
	series := paced(120, slow, slow)
	if got := MeasureSteadiness(series, 0, 120, nil); got.State != Unsteady {
		t.Errorf("with the fault: %+v", got)
	}
	if got := MeasureSteadiness(series, 0, 120, []Gap{{From: 40 * time.Second, To: 70 * time.Second}}); got.State != Steady {
		t.Errorf("without the fault: %+v", got)
	}
}
