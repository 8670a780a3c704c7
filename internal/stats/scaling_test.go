package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"stroppy/internal/tier"
)

func within(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

// These are the published examples of N. J. Gunther, Guerrilla Capacity Planning, Springer 2007, from the R
// package usl, whose documentation prints the fits: https://www.rdocumentation.org/packages/usl
var (
	// A Sun SPARCcenter 2000, SPEC SDM91: scripts per hour by users.
	sparc = []Size{{1, 64.9}, {18, 995.9}, {36, 1652.4}, {72, 1853.2}, {108, 1828.9}, {144, 1775.0}, {216, 1702.2}}
	// A ray tracer on an SGI Origin 2000: operations per second by processors.
	tracer = []Size{{1, 20}, {4, 78}, {8, 130}, {12, 170}, {16, 190}, {20, 200}, {24, 210}, {28, 230}, {32, 260}, {48, 280}, {64, 310}}
)

func TestFitScalingPublished(t *testing.T) {
	s, err := FitScaling("clients", sparc)
	if err != nil {
		t.Fatal(err)
	}
	if !within(s.Sigma.Value, 0.0277285, 1e-6) || !within(s.Kappa.Value, 0.0001044, 5e-8) || !within(s.Lambda.Value, 89.9952, 1e-3) {
		t.Errorf("SPARCcenter: λ %v, σ %v, κ %v, want 89.995, 0.0277285, 0.0001044", s.Lambda, s.Sigma, s.Kappa)
	}
	if !within(s.PeakN, 96.52, 0.05) || s.Extrapolated || !s.Kappa.Known() || s.Kappa.Low <= 0 || !s.Sound || !strings.Contains(s.Detail, "peaks at 96.5 clients") {
		t.Errorf("SPARCcenter: %+v", s)
	}
	s, err = FitScaling("clients", tracer)
	if err != nil {
		t.Fatal(err)
	}
	if !within(s.Sigma.Value, 0.057771, 1e-6) || s.Kappa.Value != 0 || !within(s.Lambda.Value, 21.848843, 1e-4) {
		t.Errorf("ray tracer: λ %v, σ %v, κ %v, want 21.8488, 0.057771, 0", s.Lambda, s.Sigma, s.Kappa)
	}
	if s.PeakN != 0 || s.PeakX != 0 || !within(s.Limit, 378.2, 0.1) || s.Kappa.Low != 0 || s.Kappa.High <= 0 || !strings.Contains(s.Detail, "no peak is seen up to 64 clients: the throughput approaches 378/s") {
		t.Errorf("ray tracer: %+v", s)
	}
	// The package's intervals, from standard errors, are 0.0337 to 0.0819 and 17.9 to 25.8.
	if !within(s.Sigma.Low, 0.0337, 0.012) || !within(s.Sigma.High, 0.0819, 0.012) || !within(s.Lambda.Low, 17.9, 2) || !within(s.Lambda.High, 25.8, 2) {
		t.Errorf("ray tracer: σ %v, λ %v", s.Sigma, s.Lambda)
	}
}

func TestFitScalingCoverage(t *testing.T) {
	tier.SkipUnderRace(t)
	sizes := []float64{1, 2, 4, 8, 16, 32, 48, 64}
	for _, truth := range []coefficients{{1000, 0.03, 0.0005}, {1000, 0.1, 0}, {500, 0, 0.001}, {2000, 0.5, 0.01}, {100, 0, 0}} {
		r := rand.New(rand.NewPCG(31, math.Float64bits(truth[1])))
		var held [3]int
		const trials = 150
		for range trials {
			points := make([]Size, 0, 2*len(sizes))
			for _, n := range sizes {
				for range 2 {
					points = append(points, Size{n, truth.at(n) + 0.02*truth.at(8)*r.NormFloat64()})
				}
			}
			s, err := FitScaling("clients", points)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range []Interval{s.Lambda, s.Sigma, s.Kappa} {
				// A bound on which the true value lies is found to the precision of the bisection.
				if c.Holds(truth[i]) || c.Known() && within(c.Low, truth[i], 1e-9) {
					held[i]++
				}
			}
		}
		for i, count := range held {
			if share := float64(count) / trials; share < 0.9 {
				t.Errorf("λ, σ, κ = %v: coefficient %d lay in its interval in %.1f %% of the fits", truth, i, 100*share)
			}
			if share := float64(count) / trials; truth[sigma] > 0 && truth[kappa] > 0 && share > 0.995 {
				t.Errorf("λ, σ, κ = %v: the intervals of coefficient %d are too wide: %.1f %%", truth, i, 100*share)
			}
		}
	}
}

// TestFitScalingExact checks that points on a curve return its coefficients, for any unit of the throughput.
func TestFitScalingExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 31))
	for range 300 {
		truth := coefficients{math.Pow(10, 8*r.Float64()-2), r.Float64(), math.Pow(10, -5*r.Float64()-1)}
		var points []Size
		for n := 1.0; n <= 64; n *= 2 {
			points = append(points, Size{n, truth.at(n)})
		}
		s, err := FitScaling("clients", points)
		if err != nil {
			t.Fatal(err)
		}
		got := coefficients{s.Lambda.Value, s.Sigma.Value, s.Kappa.Value}
		for i := range got {
			if !within(got[i], truth[i], 1e-5*truth[i]+1e-8) {
				t.Fatalf("λ, σ, κ = %v, want %v", got, truth)
			}
		}
		if n := math.Sqrt((1 - truth[sigma]) / truth[kappa]); (s.PeakN > 0) != (n <= 128) {
			t.Fatalf("%v: the peak at %v is claimed at %v", truth, n, s.PeakN)
		}
		if peak := s.At(s.PeakN); s.PeakN > 0 && (s.At(s.PeakN*1.01) > peak || s.PeakN > 1 && s.At(s.PeakN*0.99) > peak || s.PeakX != peak) {
			t.Fatalf("%v: the peak at %v is none", truth, s.PeakN)
		}
		if s.R2 < 0.999999 || s.ResidualError > 1e-5*truth[lambda]*64 {
			t.Fatalf("%v: R² %v, residual error %v", truth, s.R2, s.ResidualError)
		}
	}
}

func TestFitScalingDegenerate(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []Size
		says  string
	}{
		"nothing":       {nil, "0 different numbers of clients are too few"},
		"one":           {[]Size{{4, 10}, {4, 11}}, "1 number of clients is too few"},
		"three":         {[]Size{{1, 10}, {2, 19}, {3, 27}}, "3 different numbers of clients are too few"},
		"three, twice":  {[]Size{{1, 10}, {2, 19}, {3, 27}, {1, 11}, {2, 18}, {3, 26}}, "3 different numbers of clients are too few"},
		"no throughput": {[]Size{{1, 10}, {2, 19}, {3, 0}, {4, 30}}, "throughput of 0 with 3 clients"},
		"no N":          {[]Size{{0, 10}, {2, 19}, {3, 20}, {4, 30}}, "with 0 clients"},
		"not a number":  {[]Size{{1, math.NaN()}, {2, 19}, {3, 20}, {4, 30}}, "NaN"},
		"infinite":      {[]Size{{1, math.Inf(1)}, {2, 19}, {3, 20}, {4, 30}}, "Inf"},
	} {
		if _, err := FitScaling("clients", c.sizes); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	for name, c := range map[string]struct {
		sizes []Size
		says  string
	}{
		"linear":           {[]Size{{1, 10}, {2, 20}, {4, 40}, {8, 80}, {16, 160}, {32, 320}}, "σ and κ are 0"},
		"faster than N":    {[]Size{{1, 10}, {2, 22}, {4, 46}, {8, 94}, {16, 190}, {32, 382}}, "or faster"},
		"flat":             {[]Size{{1, 100}, {2, 100}, {4, 100}, {8, 100}, {16, 100}, {32, 100}}, "approaches 100/s"},
		"falls at once":    {[]Size{{1, 100}, {2, 40}, {4, 12}, {8, 4}, {1, 101}, {2, 41}}, "peaks at 1 client "},
		"peak beyond":      {[]Size{{1, 1000}, {2, 1980.0}, {4, 3870}, {8, 7300}, {16, 12800}, {24, 16300}}, "prediction"},
		"four":             {[]Size{{1, 1000}, {2, 1900}, {4, 3300}, {8, 4300}}, "no peak is claimed: 4 measurements are too few"},
		"far beyond":       {[]Size{{1, 1000}, {2, 1999.0}, {3, 2996.9}, {4, 3993.6}, {5, 4989}, {6, 5983}}, "no peak is claimed"},
		"noise, no N of 1": {[]Size{{8, 100}, {16, 130}, {32, 90}, {64, 120}}, ""},
	} {
		s, err := FitScaling("clients", c.sizes)
		if err != nil || !strings.Contains(s.Detail, c.says) {
			t.Errorf("%s: %+v, %v; want %q", name, s, err, c.says)
		}
		for _, f := range []float64{s.Lambda.Value, s.Lambda.High, s.Sigma.High, s.Kappa.High, s.PeakN, s.PeakX, s.Limit, s.R2, s.ResidualError} {
			if math.IsNaN(f) || math.IsInf(f, 0) || f < 0 && f != s.R2 {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if s.Sigma.Low < 0 || s.Kappa.Low < 0 || s.Lambda.Value <= 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestBadFitClaimsNothing uses a best measurement of 119,692/s and a fit with an R² of 0.21, whose peak would
// be below that.
func TestBadFitClaimsNothing(t *testing.T) {
	s, err := FitScaling("clients", []Size{{1, 87_000}, {2, 119_692}, {4, 96_000}, {8, 104_000}, {16, 101_000}, {32, 92_000}, {64, 103_000}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Sound || s.PeakN != 0 || s.PeakX != 0 || s.Limit != 0 || !strings.HasPrefix(s.Detail, "no peak is claimed: the scalability law explains ") || !strings.Contains(s.Detail, "--repeat 3") {
		t.Errorf("%+v", s)
	}
}

// TestBestAboveTheCurve checks that a measurement above the claim is reported.
func TestBestAboveTheCurve(t *testing.T) {
	truth := coefficients{1000, 0.05, 0.001}
	var sizes []Size
	for _, n := range []float64{1, 2, 4, 8, 16, 32, 64} {
		sizes = append(sizes, Size{n, truth.at(n)})
	}
	sizes[5].X *= 1.05
	s, err := FitScaling("clients", sizes)
	if err != nil || s.PeakN == 0 || s.PeakX >= sizes[5].X || !strings.Contains(s.Detail, "the highest measured, "+rate(sizes[5].X)+", is above the curve's peak") {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestNoiseIsNoPeak checks that constant or saturating throughputs lead to a claimed peak in at most one of
// twenty cases, in agreement with the intervals.
func TestNoiseIsNoPeak(t *testing.T) {
	tier.SkipUnderRace(t)
	const trials = 120
	for _, truth := range []coefficients{{1000, 1, 0}, {1000, 0.1, 0}, {1000, 0, 0}} {
		r, claimed := rand.New(rand.NewPCG(7, math.Float64bits(truth[1]))), 0
		for range trials {
			var sizes []Size
			for _, n := range []float64{1, 2, 4, 8, 16, 32, 64} {
				sizes = append(sizes, Size{n, truth.at(n) * (1 + 0.1*r.NormFloat64())})
			}
			if s, err := FitScaling("clients", sizes); err == nil && s.PeakN > 0 && !s.Extrapolated {
				claimed++
			}
		}
		if claimed > trials/20 {
			t.Errorf("σ = %v: a peak is claimed in %d of %d sweeps over noise", truth[sigma], claimed, trials)
		}
	}
}

// TestPhysicalBounds checks that no coefficient or interval exceeds its bounds, for any measurements.
func TestPhysicalBounds(t *testing.T) {
	tier.SkipUnderRace(t)
	r := rand.New(rand.NewPCG(3, 5))
	for range 200 {
		var sizes []Size
		for _, n := range []float64{1, 2, 4, 8, 16, 32} {
			sizes = append(sizes, Size{n, math.Exp(3 * r.NormFloat64())})
		}
		s, err := FitScaling("clients", sizes)
		if err != nil {
			t.Fatal(err)
		}
		if s.Lambda.Value <= 0 || s.Sigma.Value < 0 || s.Sigma.Value > 1 || s.Kappa.Value < 0 || s.Sigma.Low < 0 || s.Sigma.High > 1 || s.Kappa.Low < 0 || s.Lambda.Low < 0 {
			t.Fatalf("%v: %+v", sizes, s)
		}
		for _, i := range []Interval{s.Lambda, s.Sigma, s.Kappa} {
			if i.Known() && (i.Low > i.Value || i.High < i.Value) {
				t.Fatalf("%v: %+v", sizes, s)
			}
		}
	}
}
