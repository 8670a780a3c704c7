package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// Step is one measurement in a sweep over the rate. A repetition is a separate Step.
type Step struct {
	Offered float64 // requested transactions per second; 0: as many as possible
	Kept    bool    // the step is known to have done what was due
	Latency float64 // of a high percentile, such as the 99th, in any unit; 0: not known
	Samples uint64  // that the percentile is of; 0: not known
}

// Knee is the point from which the latency of a throughput-latency curve rises.
type Knee struct {
	Found  bool    // claimed: repeating the steps beside the bend gave the same
	Step   Step    // the last step before the bend, with the median latency
	Flat   float64 // latency of the flat part; 0: not known
	Repeat float64 // a rate to measure again before a knee is claimed; 0: none
	Detail string  // one sentence for the report
}

const (
	bend       = 2 // the latency beyond the knee is more than so many times the flat one
	leastSteps = 4 // in which a knee is looked for

	// The steps on both sides of a knee are measured three times, or five times if they differ. If noise
	// randomly doubles a latency, six measurements agree by chance in one sweep of 64.
	confirming, disputed = 3, 5
	mostDissent          = 0.2 // the share of a step's measurements that may differ
)

// LeastSamples returns the number of samples needed for quantile q: the least n whose largest value is the
// upper end of a 95 % confidence interval, 1-qⁿ ≥ 0.975. For q = 0.99 it is 368. With fewer samples, there is
// no such interval without a model of the distribution. The sample quantile is then usually too low, because
// it cannot exceed the largest sample (H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed., 7.1).
func LeastSamples(q float64) uint64 {
	return uint64(math.Ceil(math.Log((1-Confidence)/2) / math.Log(q)))
}

// rated holds the measurements at one rate.
type rated struct {
	Step // medians
	all  []Step
}

// FindKnee finds the knee of a throughput-latency curve. Every step at a higher rate than the knee misses its
// rate or has more than twice the latency of the flat part. The flat part is the third of the steps with
// the lowest rates, at least two. Its latency is their median, so that a single outlier has no effect. A step with
// several measurements has the median of their latencies, and kept its rate if most measurements did.
//
// The absence of a knee is claimed only if no measurement at any rate was beyond the bend. A knee is claimed if both
// sides of the bend were measured three times with consistent results. Five measurements with four consistent results
// suffice too.
//
// The factor of two has a reason: a single queue has twice its idle latency at half its capacity. There its power,
// throughput divided by latency, is greatest (L. Kleinrock, ICC 1979). Curvature is not used: the point where a
// hyperbola bends most depends on how far the sweep went beyond saturation (N. J. Gunther, MeasureIT 7.08, 2009,
// https://www.cmg.org/2023/06/measureit-issue-7-08-mind-your-knees-and-queues/).
//
// Some steps are left out:
// - steps without an offered rate, such as the first one of a sweep;
// - steps without a latency;
// - steps that kept their rate with too few samples for a 99th percentile.
func FindKnee(steps []Step) Knee {
	sorted, few := byRate(steps)
	if len(sorted) < leastSteps {
		detail := fmt.Sprintf("no knee is claimed: it takes %d rates with a latency, not %d", leastSteps, len(sorted))
		if few > 0 {
			detail += fmt.Sprintf("; %s had fewer than the %d committed transactions that a 99 %% latency takes: give a longer --duration", counted(few), LeastSamples(0.99))
		}
		return Knee{Detail: detail}
	}
	if first := sorted[0]; !first.Kept {
		return Knee{Detail: fmt.Sprintf("no knee is claimed: even the lowest rate of %s was not kept up with; begin with a lower one", rate(first.Offered))}
	}
	var low []float64
	for _, s := range sorted[:max(2, len(sorted)/3)] {
		low = append(low, s.Latency)
	}
	k := Knee{Flat: Median(low)}
	beyond := len(sorted)
	for beyond > 0 && sorted[beyond-1].above(bend*k.Flat) {
		beyond--
	}
	switch beyond {
	case len(sorted):
		k.Detail = k.unbent(sorted, few)
	case 0:
		k.Detail = "no knee is claimed: the latency is high at every rate; begin with a lower one"
	default:
		k.confirm(sorted[beyond-1], sorted[beyond])
	}
	return k
}

// unbent returns the sentence for a sweep whose highest rate is not beyond the bend. It claims that there is
// no knee only if no measurement at any rate was beyond it.
func (k *Knee) unbent(sorted []rated, few int) string {
	var slow, late []string
	highest := rate(sorted[len(sorted)-1].Offered)
	for _, r := range sorted {
		slow = append(slow, r.share(func(s Step) bool { return s.Latency > bend*k.Flat })...)
		late = append(late, r.share(func(s Step) bool { return !s.Kept })...)
	}
	if len(slow)+len(late) == 0 {
		detail := fmt.Sprintf("there is no knee up to %s: the latency stays below twice the latency of the low rates", highest)
		if few > 0 {
			detail += fmt.Sprintf(". %s left out, with fewer than the %d committed transactions that a 99 %% latency needs",
				counted(few)+english.PluralWord(few, " was", " were"), LeastSamples(0.99))
		}
		return detail
	}
	var why []string
	if len(slow) > 0 {
		why = append(why, "the latency was more than twice the latency of the low rates at "+strings.Join(slow, ", "))
	}
	if len(late) > 0 {
		why = append(why, "the rate was not kept at "+strings.Join(late, ", "))
	}
	return fmt.Sprintf("whether there is a knee up to %s is not known: %s; at higher rates, or at other times, it was not so: give a longer --duration or --repeat %d",
		highest, strings.Join(why, ", and "), confirming)
}

// count returns the number of measurements at the rate for which is returns true.
func (r rated) count(is func(Step) bool) (n int) {
	for _, s := range r.all {
		if is(s) {
			n++
		}
	}
	return n
}

// share describes the measurements at the rate for which is returns true, with their number if they are not
// all.
func (r rated) share(is func(Step) bool) []string {
	switch n := r.count(is); n {
	case 0:
		return nil
	case len(r.all):
		return []string{rate(r.Offered)}
	default:
		return []string{fmt.Sprintf("%s (%d of %d times)", rate(r.Offered), n, len(r.all))}
	}
}

// byRate groups the measurements by rate in ascending order, and counts those with too few samples.
func byRate(steps []Step) (sorted []rated, few int) {
	for _, s := range steps {
		switch i := slices.IndexFunc(sorted, func(r rated) bool { return r.Offered == s.Offered }); {
		case !(s.Offered > 0) || !(s.Latency > 0):
		case s.Kept && s.Samples < LeastSamples(0.99):
			few++
		case i < 0:
			sorted = append(sorted, rated{Step: Step{Offered: s.Offered}, all: []Step{s}})
		default:
			sorted[i].all = append(sorted[i].all, s)
		}
	}
	for i := range sorted {
		r := &sorted[i]
		var latencies []float64
		for _, s := range r.all {
			latencies, r.Samples = append(latencies, s.Latency), r.Samples+s.Samples
		}
		r.Latency, r.Kept = Median(latencies), 2*r.count(func(s Step) bool { return s.Kept }) > len(r.all)
	}
	slices.SortFunc(sorted, func(a, b rated) int { return cmp.Compare(a.Offered, b.Offered) })
	return sorted, few
}

// counted returns a number of steps.
func counted(n int) string { return english.Plural(n, "step", "") }

// above reports whether the step lies beyond the bend.
func (s Step) above(latency float64) bool { return s.Latency > latency || !s.Kept }

// dissent returns the share of the measurements that disagree with the majority about the side of the bend.
func (r rated) dissent(latency float64) float64 {
	differ := r.count(func(s Step) bool { return s.above(latency) != r.above(latency) })
	return float64(differ) / float64(len(r.all))
}

// confirm claims the knee between two neighbors, or states what is needed for that.
func (k *Knee) confirm(knee, next rated) {
	sure := true
	for _, side := range []rated{knee, next} {
		differ := side.dissent(bend*k.Flat) > 0
		if n := len(side.all); k.Repeat == 0 && (n < confirming || n < disputed && differ) {
			k.Repeat = side.Offered
		}
		sure = sure && len(side.all) >= confirming && side.dissent(bend*k.Flat) <= mostDissent
	}
	between := rate(knee.Offered) + " and " + rate(next.Offered)
	switch {
	case k.Repeat > 0:
		k.Detail = fmt.Sprintf("no knee is claimed: the latency bends between %s, which were measured %d and %d times. Needed are %d of each if they agree, else %d; run with --repeat %d",
			between, len(knee.all), len(next.all), confirming, disputed, confirming)
	case !sure:
		k.Detail = fmt.Sprintf("no knee is claimed: the latency bends between %s, but measuring them again gave now one thing, now the other; give a longer --duration or --repeat %d", between, disputed)
	default:
		k.Found, k.Step = true, knee.Step
		k.Detail = fmt.Sprintf("the knee is at %s: from %s on the latency is more than twice the latency of the low rates, or the rate is missed; measured %d and %d times",
			rate(k.Step.Offered), rate(next.Offered), len(knee.all), len(next.all))
	}
}
