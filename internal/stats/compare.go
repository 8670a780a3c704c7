package stats

import (
	"fmt"
	"math"
	"slices"
)

// Sample holds the measurements of one run in a comparison.
type Sample struct {
	// TPS holds the committed transactions of each second that counts; see Throughput.
	TPS []float64
	// Latency holds latencies by name, such as "p99", in any unit that both sides share. Missing measurements
	// are absent.
	Latency map[string]float64
}

// Difference states whether two sides differ, as shown in tables.
type Difference string

// These constants state whether B differs from A.
const (
	DifferenceUnknown Difference = ""
	DifferenceNone    Difference = "no difference shown" // that does not prove that there is none
	DifferenceHigher  Difference = "higher"              // the measurement of B is higher
	DifferenceLower   Difference = "lower"
)

// Ratio compares one measurement of two sides.
type Ratio struct {
	A, B       *float64 // the mean over each side's runs; nil: a run lacks the measurement
	Ratio      Interval // of B to A; Value is 0 if A is 0 or a side is not known
	Difference Difference
	Detail     string // one sentence: what the interval covers, or why there is none
}

// Comparison compares two runs, or two groups of repeated runs.
type Comparison struct {
	TPS     Ratio
	Latency map[string]Ratio // of the names that any run of both sides has
}

const throughput = "throughput"

// Maximum is the name of the largest latency in Sample.Latency. Its ratio has no interval: a maximum grows with the
// length of the run and comes from one transaction. Means over a few runs therefore do not predict the next run.
const Maximum = "max"

// Compare compares two sides of one or more runs each.
//
// With repetitions, the unit is the run. The interval follows from the differences between the runs of a side (T.
// Kalibera and R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013,
// https://doi.org/10.1145/2464157.2464160). It is at least as wide as MeanInterval finds within the runs, because two
// runs may be equal by chance. With one run of each side, only the variation of the throughput within it is known. A
// side with a single run is assumed to vary like the other side.
//
// The interval is for the logarithm of the ratio, by the delta method, with Student's t and Welch's degrees of
// freedom (B. L. Welch, Biometrika 34, 1947, https://doi.org/10.1093/biomet/34.1-2.28). So A to B and B to A are
// consistent. Runs are not paired, because pairs would halve the few degrees of freedom.
func Compare(a, b []Sample) Comparison {
	of := func(name string) Ratio { return compareSides(newSide(a, name), newSide(b, name), name) }
	c := Comparison{TPS: of(throughput), Latency: map[string]Ratio{}}
	for _, run := range slices.Concat(a, b) {
		for name := range run.Latency {
			c.Latency[name] = of(name)
		}
	}
	return c
}

// side is one measurement of the runs of one side.
type side struct {
	runs float64  // how many
	mean *float64 // over the runs; nil if there are no runs, or one lacks the measurement
	// variance is the variance of a run's measurement divided by the square of the mean. freedom is its
	// degrees of freedom.
	variance, freedom float64
	known             bool
}

// latencyResolution is the relative resolution of a histogram with three digits.
const latencyResolution = 1e-3

// newSide collects the throughput of the runs, or their latency with the given name.
func newSide(samples []Sample, name string) side {
	s := side{runs: float64(len(samples)), known: name == throughput}
	var values []float64
	var within float64 // the mean of the variances that show within the runs
	for _, sample := range samples {
		value, found := sample.Latency[name]
		if name == throughput {
			value, found = meanOf(sample.TPS), len(sample.TPS) > 0
			_, variance, freedom, ok := meanError(sample.TPS)
			s.known = s.known && ok
			s.freedom += freedom
			within += variance / s.runs
		}
		if !found {
			return side{}
		}
		values = append(values, value)
	}
	if len(values) == 0 {
		return side{}
	}
	mean := meanOf(values)
	s.mean, s.variance = &mean, within/(mean*mean)
	if len(values) > 1 {
		between := varianceOf(values) / (mean * mean)
		if !s.known { // nothing shows within the runs
			s.variance = 0
		}
		s.variance, s.freedom = max(s.variance, between), s.runs-1
		if name != throughput {
			s.variance = max(s.variance, latencyResolution*latencyResolution)
		}
		// Runs that are equal to the last digit do not prove that there is no variation.
		s.known = s.known || s.variance > 0
	}
	return s
}

// compareSides compares one measurement of both sides.
func compareSides(a, b side, name string) Ratio {
	r := Ratio{A: a.mean, B: b.mean}
	if r.A == nil || r.B == nil {
		r.Detail = "the ratio is not known: not every run has the " + name
		return r
	}
	r.Ratio.Value = *r.B / *r.A
	if !(*r.A > 0 && *r.B >= 0) || math.IsInf(r.Ratio.Value, 0) || math.IsInf(*r.A, 0) {
		r.Ratio.Value = 0
		r.Detail = fmt.Sprintf("the ratio is not known: the %s is %g for A and %g for B", name, *r.A, *r.B)
		return r
	}
	if *r.B == 0 {
		r.Detail = fmt.Sprintf("the interval is not known: the %s of B is 0", name)
		return r
	}
	if name == Maximum {
		r.Detail = "a maximum has no interval: it comes from one transaction of each run"
		return r
	}
	variance, freedom, kind := variation(a, b)
	if freedom == 0 {
		r.Detail = "there is no interval: how much the " + name + " varies takes repeated runs to know"
		if name == throughput {
			r.Detail = fmt.Sprintf("there is no interval: that takes repeated runs, or runs of %d seconds at least", LeastInterval)
		}
		return r
	}
	reach := math.Exp(quantileT(freedom) * math.Sqrt(variance))
	if math.IsInf(reach, 0) || math.IsNaN(reach) {
		r.Detail = "there is no interval: the runs vary too much for one"
		return r
	}
	r.Ratio.Low, r.Ratio.High, r.Ratio.Confidence = r.Ratio.Value/reach, r.Ratio.Value*reach, Confidence
	r.Detail = kind
	switch {
	case r.Ratio.Holds(1):
		r.Difference = DifferenceNone
	case r.Ratio.Low > 1:
		r.Difference = DifferenceHigher
	default:
		r.Difference = DifferenceLower
	}
	return r
}

// variation returns the variance of the logarithm of the ratio of the two means, its degrees of freedom (0:
// not known), and a description of what it covers.
func variation(a, b side) (variance, freedom float64, kind string) {
	if (a.runs == 1) != (b.runs == 1) {
		single, several, names := a, b, [2]string{"A", "B"}
		if b.runs == 1 {
			single, several, names = b, a, [2]string{"B", "A"}
		}
		if !several.known {
			return 0, 0, ""
		}
		variance = several.variance
		if single.known {
			variance = max(variance, single.variance)
		}
		return variance + variance/several.runs, several.freedom,
			fmt.Sprintf("the interval takes the one run of %s to vary as the runs of %s do", names[0], names[1])
	}
	if !a.known || !b.known {
		return 0, 0, ""
	}
	kind = "the interval allows for variation within runs and between them"
	if a.runs == 1 {
		kind = "the interval allows for variation within the two runs only: what varies from run to run takes repeats"
	}
	va, vb := a.variance/a.runs, b.variance/b.runs
	if freedom = a.freedom + b.freedom; va+vb > 0 {
		freedom = (va + vb) * (va + vb) / (va*va/a.freedom + vb*vb/b.freedom) // Welch
	}
	return va + vb, freedom, kind
}
