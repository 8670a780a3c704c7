package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Step is one step of a sweep over the rate; one that is repeated is one of its own.
type Step struct {
	Offered float64 // transactions a second asked for; 0 where as many were sent as could be
	Kept    bool    // the step is known to have done what was due
	Latency float64 // of a high percentile, such as the 99th, in any unit; 0: not known
	Samples uint64  // that the percentile is of; 0: not known
}

// Knee is where the latency of a throughput-latency curve bends up.
type Knee struct {
	Found  bool    // claimed: repeating the steps beside the bend gave the same
	Step   Step    // the last one before the bend, its latency the median; the knee
	Flat   float64 // latency of the flat part; 0: not known
	Repeat float64 // the rate to be measured once more before a knee is claimed; 0: none
	Detail string  // one sentence for a person
}

const (
	bend       = 2 // the latency beyond the knee is more than so many times the flat one
	leastSteps = 4 // in which a knee is looked for

	// The steps on both sides of a knee are measured three times, and five where they
	// differ. Of noise that doubles a latency or not, six measurements agree by chance in
	// one sweep of 64.
	confirming, disputed = 3, 5
	mostDissent          = 0.2 // the share of a step's measurements that may differ
)

// LeastSamples is how many samples a quantile q takes: the least n whose largest value
// is the upper end of a 95 % confidence interval, 1-qⁿ ≥ 0.975. Of fewer there is no
// such interval without a model of the distribution, and the quantile is too low as a
// rule, because it is never more than the largest sample (H. A. David and H. N. Nagaraja,
// Order Statistics, 3rd ed., 7.1). For q = 0.99 it is 368.
func LeastSamples(q float64) uint64 {
	return uint64(math.Ceil(math.Log((1-Confidence)/2) / math.Log(q)))
}

// rated are the measurements at one rate.
type rated struct {
	Step // medians
	all  []Step
}

// FindKnee names the knee of a throughput-latency curve: the last step, in the order of
// the rate, before the latency is more than twice that of the flat part, or the rate is
// not kept, in every further step. The flat part is the third of the
// steps with the lowest rates, two at least, and its latency their median, so that one
// step with a hiccup moves neither end. A step that was measured several times has the
// median of its latencies, and kept its rate where most did.
//
// That there is no knee is claimed only where no measurement at any rate was beyond the bend.
//
// A knee is claimed where the step before the bend and the one after it were each
// measured three times, and came out on their side of the bend each time, or four
// times of five.
//
// Twice the latency of an idle single queue is where it is at half its capacity
// and its power, throughput by latency, is greatest (L. Kleinrock, ICC 1979). A rule
// by curvature is not used: where a hyperbola bends most depends on how far beyond
// saturation the sweep went. N. J. Gunther, MeasureIT 7.08, 2009,
// https://www.cmg.org/2023/06/measureit-issue-7-08-mind-your-knees-and-queues/
//
// Steps without an offered rate, as the first one of a sweep, or without a latency are
// left out, and those that kept their rate with fewer samples than their 99th percentile takes.
func FindKnee(steps []Step) Knee {
	sorted, few := byRate(steps)
	if len(sorted) < leastSteps {
		detail := fmt.Sprintf("no knee is claimed: it takes %d rates with a latency, not %d", leastSteps, len(sorted))
		if few > 0 {
			detail += fmt.Sprintf("; %s had fewer than the %d committed transactions that a 99 %% latency takes: give a longer --duration", howMany(few), LeastSamples(0.99))
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

// unbent says that no knee was found where the highest rate is not beyond the bend. That
// there is none is claimed only if no measurement at any rate was.
func (k *Knee) unbent(sorted []rated, few int) string {
	var slow, late []string
	highest := rate(sorted[len(sorted)-1].Offered)
	for _, r := range sorted {
		slow = append(slow, r.share(func(s Step) bool { return s.Latency > bend*k.Flat })...)
		late = append(late, r.share(func(s Step) bool { return !s.Kept })...)
	}
	if len(slow)+len(late) == 0 {
		if few > 0 {
			return fmt.Sprintf("there is no knee up to %s: the latency stays below twice that of the low rates; %s left out, with fewer than the %d committed transactions that a 99 %% latency takes", highest, wereMany(few), LeastSamples(0.99))
		}
		return fmt.Sprintf("there is no knee up to %s: the latency stays below twice that of the low rates", highest)
	}
	var why []string
	if len(slow) > 0 {
		why = append(why, "the latency was more than twice that of the low rates at "+strings.Join(slow, ", "))
	}
	if len(late) > 0 {
		why = append(why, "the rate was not kept at "+strings.Join(late, ", "))
	}
	return fmt.Sprintf("whether there is a knee up to %s is not known: %s; at higher rates, or at other times, it was not so: give a longer --duration or --repeat %d",
		highest, strings.Join(why, ", and "), confirming)
}

// share names the rate if some of its measurements are so, and how many where not all are.
func (r rated) share(is func(Step) bool) []string {
	n := 0
	for _, s := range r.all {
		if is(s) {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case len(r.all):
		return []string{rate(r.Offered)}
	}
	return []string{fmt.Sprintf("%s (%d of %d times)", rate(r.Offered), n, len(r.all))}
}

// byRate puts the measurements of each rate together, ascending, and counts those with
// too few samples.
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
		r, kept := &sorted[i], 0
		var latencies []float64
		for _, s := range r.all {
			latencies = append(latencies, s.Latency)
			if r.Samples += s.Samples; s.Kept {
				kept++
			}
		}
		r.Latency, r.Kept = Median(latencies), 2*kept > len(r.all)
	}
	slices.SortFunc(sorted, func(a, b rated) int { return cmp.Compare(a.Offered, b.Offered) })
	return sorted, few
}

func wereMany(n int) string {
	if n == 1 {
		return "1 step was"
	}
	return fmt.Sprintf("%d steps were", n)
}

func howMany(n int) string {
	if n == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", n)
}

// above says that the step lies beyond the bend.
func (s Step) above(latency float64) bool { return s.Latency > latency || !s.Kept }

// dissent is the share of the measurements that lie on the other side of the bend than
// all together.
func (r rated) dissent(latency float64) float64 {
	differ := 0
	for _, s := range r.all {
		if s.above(latency) != r.above(latency) {
			differ++
		}
	}
	return float64(differ) / float64(len(r.all))
}

// confirm claims the knee between two neighbours, or says what it takes.
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
		k.Detail = fmt.Sprintf("no knee is claimed: the latency bends between %s, which were measured %d and %d times, and %d of each are needed where they agree, %d where not; run with --repeat %d",
			between, len(knee.all), len(next.all), confirming, disputed, confirming)
	case !sure:
		k.Detail = fmt.Sprintf("no knee is claimed: the latency bends between %s, but measuring them again gave now one thing, now the other; give a longer --duration or --repeat %d", between, disputed)
	default:
		k.Found, k.Step = true, knee.Step
		k.Detail = fmt.Sprintf("the knee is at %s: from %s on the latency is more than twice that of the low rates, or the rate is not kept up with; measured %d and %d times",
			rate(k.Step.Offered), rate(next.Offered), len(knee.all), len(next.all))
	}
}
