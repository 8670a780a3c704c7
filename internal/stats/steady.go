package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
)

// SteadyState states whether a throughput is in a steady state, as results record it.
type SteadyState string

const (
	SteadyUnknown SteadyState = "unknown"
	Steady        SteadyState = "steady"
	Unsteady      SteadyState = "unsteady"
)

// Steadiness is the assessment of whether the throughput and the latency of a run are in a steady state.
type Steadiness struct {
	State  SteadyState `json:"status"`
	From   int         `json:"from_s"`       // where it is steady: the second from which on, since the run's start
	Detail string      `json:"detail"`       // one sentence for a person
	Of     string      `json:"of,omitempty"` // what is not steady: OfLatency; empty: the throughput
}

// OfLatency is Steadiness.Of if the throughput was steady but the latency was not.
const OfLatency = "latency"

const (
	// LeastSteady is the minimal number of seconds without a fault for an assessment.
	LeastSteady = 30
	// mserBatch is the length of a batch in MSER-5; leastMSER and mostMSER limit the number of batches.
	mserBatch, leastMSER, mostMSER = 5, 20, 360
	// mostWarming is the share of the run that may pass before the steady state.
	mostWarming = 1. / 3
	// trendBatches is the number of batches in the test for a trend. Neighbors among 15 batches are nearly
	// independent; with single seconds, the test finds too many trends.
	trendBatches = 15
	// trendChance is the allowed probability of a false trend. trendSize is the relative change below which a
	// trend does not matter.
	trendChance, trendSize = 0.01, 0.05
	// levelSize is the allowed relative distance of a quarter's mean from the total mean. levelNoise is the
	// number of standard errors that it must exceed too.
	levelSize, levelNoise = 0.10, 3
	// leastPart is the minimal number of seconds in such a part of the load phase.
	leastPart = 10
	// latencyTrend and latencyLevel are the factors of the latency that correspond to trendSize and
	// levelSize. They are larger because the percentiles of single seconds vary more.
	latencyTrend, latencyLevel = 1.25, 1.5
	// mostUncertain is the relative error of the mean up to which a run may be called steady.
	mostUncertain = 0.10
	// The start differs from the rest if the difference exceeds this number of standard errors and this
	// share.
	shownDifference, leastDifference = 3, 0.02
)

// MeasureSteadiness assesses whether the throughput is in a steady state over the seconds from from (included) to to
// (excluded), and from when on. Seconds that a fault interval touches are left out. A run whose rate was meant to
// change must not be assessed as a whole.
//
// The state is steady if all of this holds, over at least 30 seconds:
//   - The start that MSER-5 cuts off is at most a third. MSER takes the cut that makes the mean of the rest most exact
//     (K. P. White, Simulation 69(6), 1997, https://doi.org/10.1177/003754979706900601; batches of five, Spratt 1998).
//     It counts only if its mean differs by more than three standard errors and 2 %.
//   - The rest has no trend. The Mann-Kendall test over the means of 15 batches, corrected for autocorrelation, finds
//     none at 1 % (K. H. Hamed and A. R. Rao, Journal of Hydrology 204, 1998,
//     https://doi.org/10.1016/S0022-1694(97)00125-X), or Sen's slope is less than 5 % of the mean over the rest.
//   - The rest does not change its level: no quarter's mean is 10 % from the whole mean, unless the noise of single
//     seconds explains it.
//   - The mean is known to 10 % with 95 % confidence; see MeanInterval.
//   - The median and the 99th percentile of the latency of single seconds have no trend of 25 %. No quarter of them is
//     a factor of 1.5 from the whole. At a fixed rate only the latency shows that a queue grows.
//
// A swing that comes again many times is steady: the mean is well defined, and the sentence reports how much single
// seconds vary.
func MeasureSteadiness(series []Second, from, to int, faults []Gap) Steadiness {
	values, seconds := quiet(series, from, to, faults)
	answer := func(state SteadyState, format string, args ...any) Steadiness {
		return Steadiness{State: state, Detail: fmt.Sprintf(format, args...)}
	}
	switch n := len(values); {
	case n < LeastSteady:
		return answer(SteadyUnknown, "steady state not assessed: needs %d s without faults (this run: %d s)", LeastSteady, n)
	case slices.Max(values) == 0:
		return answer(SteadyUnknown, "steady state not assessed: nothing was committed")
	}
	cut, late := warming(values)
	rest, restSeconds := values[cut:], seconds[cut:]
	if late {
		rest, restSeconds = values, seconds
	}
	whole := meanOf(rest)
	level, at, length := strayLevel(rest, levelSize*whole)
	_, left := bestStep(rest)
	switch {
	case trend(rest, trendSize*meanOf(batchMeans(rest, trendBatches))) != 0, length > 0 && left < 0.5:
		return answer(Unsteady, "no steady state: the throughput %s", describe(rest, restSeconds))
	case length > 0:
		return answer(Unsteady, "no steady state: the throughput was %s from second %d to %d and %s over the run",
			rate(level), restSeconds[at], restSeconds[at+length-1], rate(whole))
	case late:
		return answer(Unsteady, "steady state only from second %d on, after more than a third of the run: %s before, %s after; use a longer warm-up or run",
			seconds[cut], rate(meanOf(values[:cut])), rate(meanOf(values[cut:])))
	}
	i := MeanInterval(rest)
	if half := (i.High - i.Low) / 2 / whole; !i.Known() || half > mostUncertain {
		return answer(SteadyUnknown, "steady state not assessed: the throughput varies much and slowly, so that its mean is known to ±%.0f %% only; use a longer run", 100*half)
	}
	if text := unsteadyLatency(series, restSeconds); text != "" {
		unsteady := answer(Unsteady, "no steady state: the throughput was steady and %s", text)
		unsteady.Of = OfLatency
		return unsteady
	}
	steady := answer(Steady, "steady state from second %d on, at %s; standard deviation of single seconds %.1f %%",
		seconds[cut], rate(whole), 100*math.Sqrt(varianceOf(rest))/whole)
	steady.From = seconds[cut]
	return steady
}

// warming returns the number of values in the start that differs from the rest. late reports whether they are
// more than a third.
func warming(values []float64) (cut int, late bool) {
	n := len(values)
	size := min(max(n/leastMSER, 1), mserBatch)
	size = max(size, (n+mostMSER-1)/mostMSER)
	cut = mser(batchMeans(values, n/size))
	cut = cut * n / (n / size)
	if cut == 0 {
		return 0, false
	}
	start, after := meanOf(values[:cut]), meanOf(values[cut:])
	_, variance, _, ok := meanError(values[cut:])
	variance *= 1 + float64(n-cut)/float64(cut) // the variance of the rest, scaled to the length of the start
	if gap := math.Abs(start - after); !ok || gap <= leastDifference*after || gap <= shownDifference*math.Sqrt(variance) {
		return 0, false
	}
	return cut, float64(cut) > mostWarming*float64(n)
}

// mser returns the number of batches to cut off at the start, at most half of them.
func mser(batches []float64) (cut int) {
	best := math.Inf(1)
	for d := range len(batches)/2 + 1 {
		rest := batches[d:]
		if mark := populationVarianceOf(rest) / float64(len(rest)); mark < best {
			best, cut = mark, d
		}
	}
	return cut
}

// trend returns the change of trendBatches or more values by Sen's slope; 0 if it is less than least or shows no trend.
func trend(values []float64, least float64) float64 {
	y := batchMeans(values, trendBatches)
	change := senSlope(y) * float64(len(y)-1)
	if math.Abs(change) < least || trendProbability(y) >= trendChance {
		return 0
	}
	return change
}

// senSlope returns the median of the slopes between all pairs of two or more values. P. K. Sen, JASA 63,
// 1968, https://doi.org/10.1080/01621459.1968.10480934
func senSlope(y []float64) float64 {
	slopes := make([]float64, 0, len(y)*(len(y)-1)/2)
	for i := range y {
		for j := i + 1; j < len(y); j++ {
			slopes = append(slopes, (y[j]-y[i])/float64(j-i))
		}
	}
	return Median(slopes)
}

// trendProbability returns the probability of a Mann-Kendall statistic at least this far from zero without a
// trend, by the test of Hamed and Rao.
func trendProbability(y []float64) float64 {
	n := float64(len(y))
	var s float64
	for i := range y {
		for _, later := range y[i+1:] {
			s += float64(cmp.Compare(later, y[i]))
		}
	}
	variance := n * (n - 1) * (2*n + 5)
	groups := map[float64]float64{} // how many values are equal
	for _, v := range y {
		groups[v]++
	}
	for _, t := range groups {
		variance -= t * (t - 1) * (2*t + 5)
	}
	variance *= rankCorrection(y) / 18
	if s == 0 || variance <= 0 {
		return 1
	}
	z := (math.Abs(s) - 1) / math.Sqrt(variance)
	return 2 * normalTail(z)
}

// rankCorrection returns n/n* of Hamed and Rao, at least 1: the factor by which the autocorrelation of the
// ranks of the detrended values increases the variance of the statistic. Only correlations significant at 5 %
// count.
func rankCorrection(y []float64) float64 {
	slope := senSlope(y)
	free := make([]float64, len(y))
	for i, v := range y {
		free[i] = v - slope*float64(i)
	}
	ranks := ranked(free)
	n := float64(len(y))
	var sum float64
	for lag := 1; lag < len(y)-2; lag++ {
		if r := autocorrelation(ranks, lag); math.Abs(r) > 1.96/math.Sqrt(n) {
			k := float64(lag)
			sum += (n - k) * (n - k - 1) * (n - k - 2) * r
		}
	}
	return max(1, 1+2/(n*(n-1)*(n-2))*sum)
}

// ranked returns the rank of each value. Equal values share their mean rank.
func ranked(y []float64) []float64 {
	ranks := make([]float64, len(y))
	for i, v := range y {
		twice := len(y) + 1 // the rank, with what lies below it less what lies above
		for _, other := range y {
			twice += cmp.Compare(v, other)
		}
		ranks[i] = float64(twice) / 2
	}
	return ranks
}

// strayLevel returns the quarter whose mean is furthest from the total mean. The distance must be above least, and
// more than the noise explains. Otherwise length is 0.
func strayLevel(values []float64, least float64) (level float64, at, length int) {
	parts := min(4, len(values)/leastPart)
	whole := meanOf(values)
	noise := stepNoise(values)
	var furthest float64
	for p := range parts {
		first, end := p*len(values)/parts, (p+1)*len(values)/parts
		mean := meanOf(values[first:end])
		gap := math.Abs(mean - whole)
		if gap > least && gap > levelNoise*math.Sqrt(noise/float64(end-first)) && gap > furthest {
			furthest, level, at, length = gap, mean, first, end-first
		}
	}
	return level, at, length
}

// stepNoise returns the variance of the noise between adjacent values, to which slow changes add little: J.
// von Neumann and others, Annals of Mathematical Statistics 12, 1941, https://doi.org/10.1214/aoms/1177731746
func stepNoise(values []float64) (variance float64) {
	for i := 1; i < len(values); i++ {
		variance += (values[i] - values[i-1]) * (values[i] - values[i-1])
	}
	return variance / (2 * float64(len(values)-1))
}

// describe states how values changed: as a step or slowly, whichever fits better.
func describe(values []float64, seconds []int) string {
	_, slope, leftByLine := fitLine(values)
	at, left := bestStep(values)
	if left >= leftByLine {
		return slowly(values, seconds, func(v float64) string { return rate(max(0, v)) })
	}
	return fmt.Sprintf("%s at about second %d from %s to %s",
		direction(slope), seconds[at], rate(meanOf(values[:at])), rate(meanOf(values[at:])))
}

// slowly states between which values a line leads.
func slowly(values []float64, seconds []int, write func(float64) string) string {
	intercept, slope, _ := fitLine(values)
	last := len(values) - 1
	return fmt.Sprintf("%s from about %s at second %d to %s at second %d",
		direction(slope), write(intercept), seconds[0], write(intercept+slope*float64(last)), seconds[last])
}

func direction(change float64) string {
	if change > 0 {
		return "rose"
	}
	return "fell"
}

// bestStep returns the position at which one step fits best, and the unexplained share of the variation.
func bestStep(values []float64) (at int, left float64) {
	var all, squares, before float64
	for _, v := range values {
		all += v
		squares += v * v
	}
	left = math.Inf(1)
	n := float64(len(values))
	for i := 1; i < len(values); i++ {
		before += values[i-1]
		k := float64(i)
		if rest := squares - before*before/k - (all-before)*(all-before)/(n-k); rest < left {
			at, left = i, rest
		}
	}
	return at, left / (varianceOf(values) * (n - 1))
}

func rate(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f/s", v)
	}
	return humanize.Comma(int64(math.Round(v))) + "/s"
}

// unsteadyLatency describes how the latency changed over these seconds, as the end of a sentence. It returns
// an empty string if it did not change, or if fewer than LeastSteady seconds have a latency. The test uses
// the logarithm, so that a factor counts equally in both directions.
func unsteadyLatency(series []Second, seconds []int) string {
	for _, p := range []struct {
		name string
		of   func(Second) time.Duration
	}{
		{"median latency", func(s Second) time.Duration { return s.P50 }},
		{"99 % latency", func(s Second) time.Duration { return s.P99 }},
	} {
		logs, at := logLatency(series, seconds, p.of)
		if len(logs) < LeastSteady {
			continue
		}
		if text := latencyChange(logs, at); text != "" {
			return "the " + p.name + " " + text
		}
	}
	return ""
}

// logLatency returns the logarithms of the latency of the seconds with commits, and these seconds.
func logLatency(series []Second, seconds []int, of func(Second) time.Duration) (logs []float64, at []int) {
	by := make(map[int]time.Duration, len(series))
	for _, s := range series {
		by[s.Second] = of(s)
	}
	for _, n := range seconds {
		if latency := by[n]; latency > 0 {
			logs, at = append(logs, math.Log(float64(latency))), append(at, n)
		}
	}
	return logs, at
}

// latencyChange describes the trend or the stray level of logarithms of latencies. It returns an empty string
// if there is none.
func latencyChange(logs []float64, seconds []int) string {
	if change := trend(logs, math.Log(latencyTrend)); change != 0 {
		return slowly(logs, seconds, milliseconds)
	}
	if level, at, length := strayLevel(logs, math.Log(latencyLevel)); length > 0 {
		return fmt.Sprintf("was about %s from second %d to %d and %s over the run",
			milliseconds(level), seconds[at], seconds[at+length-1], milliseconds(meanOf(logs)))
	}
	return ""
}

// milliseconds formats a latency given as the logarithm of its nanoseconds.
func milliseconds(log float64) string {
	return fmt.Sprintf("%.3g ms", math.Exp(log)/float64(time.Millisecond))
}
