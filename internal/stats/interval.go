package stats

import (
	"math"
	"slices"
	"time"
)

// Interval is an estimate and its confidence interval. The zero Interval is not
// known, which is never the same as one of no width.
type Interval struct {
	Value      float64 `json:"-"` // the estimate itself
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"` // 0: not known
	// Effective is how many independent seconds would give the mean as exactly; 0 where
	// the estimate is no mean of seconds.
	Effective float64 `json:"effective_seconds"`
}

// Confidence is that of every interval which is known.
const Confidence = 0.95

// Known reports whether there is an interval.
func (i Interval) Known() bool { return i.Confidence > 0 }

// Holds reports whether v lies in the interval; false where it is not known.
func (i Interval) Holds(v float64) bool { return i.Known() && i.Low <= v && v <= i.High }

const (
	// LeastInterval is the shortest series with an interval: five batches of two seconds.
	LeastInterval = 10
	// More than 30 batches add next to nothing, fewer than eight cost much width.
	// B. Schmeiser, Operations Research 30(3), 1982, https://doi.org/10.1287/opre.30.3.556
	mostBatches, leastBatches = 30, 8
	independent               = 0.2 // the correlation up to which no longer batches are tried
	mostCorrelation           = 0.7 // bounds the correction, which grows without bound near 1
)

// MeanInterval returns the mean of a series of equal times, such as the commits of each
// second, with an interval that allows for neighbours being alike. It is not known of
// less than ten values, and of such as are not finite.
//
// The method is that of batch means: Student's t over the means of batches that are long
// enough to hardly know of each other (A. M. Law, Simulation Modeling and Analysis, 5th
// ed., 9.5.3), without a model of the correlation. It begins with 30 batches and makes
// them longer while neighbouring ones are correlated by more than 0.2, down to eight. The
// estimate of that is corrected for its bias in short series (F. H. C. Marriott and
// J. A. Pope, Biometrika 41, 1954, https://doi.org/10.1093/biomet/41.3-4.390). What is
// left of it widens the interval as in a first-order autoregression.
//
// TestMeanIntervalCoverage measures how often a 95 % interval holds the truth: 92 % to
// 98.5 % where the effective sample size is 30 or more, and at least 84 % where it is
// three. Below, no method can know from the series alone how slowly it varies.
func MeanInterval(values []float64) Interval {
	mean, variance, freedom, ok := meanError(values)
	if !ok {
		return Interval{}
	}
	half := quantileT(freedom) * math.Sqrt(variance)
	i := Interval{Value: mean, Low: mean - half, High: mean + half, Confidence: Confidence, Effective: float64(len(values))}
	if variance > 0 {
		i.Effective = min(i.Effective, varianceOf(values)/variance)
	}
	if slices.Min(values) >= 0 {
		i.Low = max(i.Low, 0)
	}
	return i
}

// meanError returns the mean of a series, the variance of that mean, and the
// degrees of freedom of the latter; ok is false where they are not known.
func meanError(values []float64) (mean, variance, freedom float64, ok bool) {
	n := len(values)
	mean = meanOf(values)
	if n < LeastInterval || math.IsNaN(mean) || math.IsInf(mean, 0) {
		return 0, 0, 0, false
	}
	single := varianceOf(values)
	if single == 0 {
		return mean, 0, float64(n - 1), true
	}
	count := min(mostBatches, n/2)
	batches := batchMeans(values, count)
	left := neighbours(batches)
	for left > independent && count*3/4 >= leastBatches {
		count = count * 3 / 4
		batches = batchMeans(values, count)
		left = neighbours(batches)
	}
	left = min(max(left, 0), mostCorrelation)
	variance = varianceOf(batches) / float64(count) * (1 + left) / (1 - left)
	return mean, max(variance, single/float64(n)), float64(count - 1), true
}

// batchMeans returns the means of count batches, whose lengths differ by one at most.
func batchMeans(values []float64, count int) []float64 {
	means := make([]float64, count)
	for i := range means {
		means[i] = meanOf(values[i*len(values)/count : (i+1)*len(values)/count])
	}
	return means
}

// neighbours estimates the correlation of neighbouring values: the usual
// estimate, whose bias is -(1+3r)/n, with that added.
func neighbours(values []float64) float64 {
	r := autocorrelation(values, 1)
	return r + (1+3*r)/float64(len(values))
}

// autocorrelation is that of values with lag places between; 0 of equal values.
func autocorrelation(values []float64, lag int) float64 {
	mean := meanOf(values)
	var products, squares float64
	for i, v := range values {
		squares += (v - mean) * (v - mean)
		if i >= lag {
			products += (v - mean) * (values[i-lag] - mean)
		}
	}
	if squares == 0 {
		return 0
	}
	return products / squares
}

// Throughput returns the committed transactions of each whole second from from
// (included) to to (excluded). A second that the series does not have counts as one in
// which nothing committed.
func Throughput(series []Second, from, to int) []float64 {
	committed := make([]float64, max(0, to-from))
	for _, s := range series {
		if s.Second >= from && s.Second < to {
			committed[s.Second-from] += float64(s.Committed)
		}
	}
	return committed
}

// quiet is Throughput without the seconds that a fault touches, with the number of each
// second. A fault without length still touches the second that it lies in.
func quiet(series []Second, from, to int, faults []FaultInterval) (values []float64, seconds []int) {
	for i, v := range Throughput(series, from, to) {
		start, end := time.Duration(from+i)*time.Second, time.Duration(from+i+1)*time.Second
		if !slices.ContainsFunc(faults, func(f FaultInterval) bool { return f.At < end && (f.Healed > start || f.At >= start) }) {
			values, seconds = append(values, v), append(seconds, from+i)
		}
	}
	return values, seconds
}
