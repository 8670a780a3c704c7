package stats

import (
	"cmp"
	"fmt"
	"slices"
)

// Step is one step of a sweep over the rate.
type Step struct {
	Offered float64 // transactions a second asked for; 0 where as many were sent as could be
	Kept    bool    // the step is known to have done what was due
	Latency float64 // of a high percentile, such as the 99th, in any unit; 0: not known
}

// Knee is where the latency of a throughput-latency curve bends up.
type Knee struct {
	Found  bool
	Step   Step    // the last one before the bend; the knee
	Flat   float64 // latency of the flat part; 0: not known
	Detail string  // one sentence for a person
}

const (
	bend       = 2 // the latency beyond the knee is more than so many times the flat one
	leastSteps = 4 // in which a knee is looked for
)

// FindKnee names the knee of a throughput-latency curve: the last step, in the order of
// the rate, before the latency is more than twice that of the flat part, or the rate is
// not kept, in every further step. The flat part is the third of the
// steps with the lowest rates, two at least, and its latency their median, so that one
// step with a hiccup moves neither end.
//
// Twice the latency of an idle single queue is where it is at half its capacity
// and its power, throughput by latency, is greatest (L. Kleinrock, ICC 1979). A rule
// by curvature is not used: where a hyperbola bends most depends on how far beyond
// saturation the sweep went. N. J. Gunther, MeasureIT 7.08, 2009,
// https://www.cmg.org/2023/06/measureit-issue-7-08-mind-your-knees-and-queues/
// Steps without an offered rate, as the first one of a sweep, or without a latency are left out.
func FindKnee(steps []Step) Knee {
	sorted := slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return !(s.Offered > 0) || !(s.Latency > 0) })
	slices.SortStableFunc(sorted, func(a, b Step) int { return cmp.Compare(a.Offered, b.Offered) })
	if len(sorted) < leastSteps {
		return Knee{Detail: fmt.Sprintf("the knee is not known: it takes %d steps with a rate and a latency, not %d", leastSteps, len(sorted))}
	}
	if first := sorted[0]; !first.Kept {
		return Knee{Detail: fmt.Sprintf("the knee is not known: even the lowest rate of %s was not kept up with; begin with a lower one", rate(first.Offered))}
	}
	var low []float64
	for _, s := range sorted[:max(2, len(sorted)/3)] {
		low = append(low, s.Latency)
	}
	flat, beyond := Median(low), len(sorted)
	for beyond > 0 && (sorted[beyond-1].Latency > bend*flat || !sorted[beyond-1].Kept) {
		beyond--
	}
	k := Knee{Flat: flat}
	switch beyond {
	case len(sorted):
		k.Detail = fmt.Sprintf("there is no knee up to %s: the latency stays below twice that of the low rates", rate(sorted[beyond-1].Offered))
	case 0:
		k.Detail = "the knee is not known: the latency is high at every rate; begin with a lower one"
	default:
		k.Found, k.Step = true, sorted[beyond-1]
		k.Detail = fmt.Sprintf("the knee is at %s: from %s on the latency is more than twice that of the low rates, or the rate is not kept up with",
			rate(k.Step.Offered), rate(sorted[beyond].Offered))
	}
	return k
}
