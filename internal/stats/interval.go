package stats

import (
	"math"
	"slices"
	"time"
)

// Interval is an estimate with its confidence interval. The zero Interval is not known, which differs from an
// interval of width 0.
type Interval struct {
	Value      float64 `json:"-"` // the estimate itself
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"` // 0: not known
	// Effective is the number of independent seconds that would estimate the mean as exactly. It is 0 if the
	// estimate is not a mean of seconds.
	Effective float64 `json:"effective_seconds"`
}

// Confidence is the confidence level of every known interval.
const Confidence = 0.95

// Known reports whether there is an interval.
func (i Interval) Known() bool { return i.Confidence > 0 }

// Holds reports whether v lies in the interval. It returns false if the interval is not known.
func (i Interval) Holds(v float64) bool { return i.Known() && i.Low <= v && v <= i.High }

const (
	// LeastInterval is the shortest series with an interval: five batches of two seconds.
	LeastInterval = 10
	// More than 30 batches gain almost nothing, and fewer than eight cost much width. B. Schmeiser,
	// Operations Research 30(3), 1982, https://doi.org/10.1287/opre.30.3.556
	mostBatches, leastBatches = 30, 8
	independent               = 0.2 // the correlation up to which no longer batches are tried
	mostCorrelation           = 0.7 // bounds the correction, which grows without bound near 1
)

// MeanInterval returns the mean of a series over equal times, such as the commits of each second, with an
// interval that accounts for correlated neighbors. The interval is not known for fewer than ten values or for
// values that are not finite.
//
// The method is batch means: Student's t over the means of batches that are long enough to be nearly
// independent (A. M. Law, Simulation Modeling and Analysis, 5th ed., 9.5.3), without a model of the
// correlation. It starts with 30 batches and makes them longer, down to eight, while neighboring batches have
// a correlation above 0.2. The estimate of the correlation is corrected for its bias in short series (F. H.
// C. Marriott and J. A. Pope, Biometrika 41, 1954, https://doi.org/10.1093/biomet/41.3-4.390). The remaining
// correlation widens the interval as in a first-order autoregression.
//
// TestMeanIntervalCoverage measures how often a 95 % interval contains the true mean: 92 % to 98.5 % if the
// effective sample size is 30 or more, and at least 84 % if it is three. Below that, no method can learn from
// the series alone how slowly it varies.
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

// meanError returns the mean of a series, the variance of that mean, and the variance's degrees of freedom.
// ok is false if they are not known.
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

// batchMeans returns the means of count batches, whose lengths differ by at most one.
func batchMeans(values []float64, count int) []float64 {
	means := make([]float64, count)
	for i := range means {
		means[i] = meanOf(values[i*len(values)/count : (i+1)*len(values)/count])
	}
	return means
}

// neighbours returns an estimate of the correlation of adjacent values, with a correction for the bias of
// -(1+3r)/n.
func neighbours(values []float64) float64 {
	r := autocorrelation(values, 1)
	return r + (1+3*r)/float64(len(values))
}

// autocorrelation returns the correlation of values at a distance of lag, and 0 for equal values.
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

// Throughput returns the committed transactions of each second in [from, to). A second that is missing in the
// series counts as 0.
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
func quiet(series []Second, from, to int, faults []Gap) (values []float64, seconds []int) {
	for i, v := range Throughput(series, from, to) {
		start, end := time.Duration(from+i)*time.Second, time.Duration(from+i+1)*time.Second
		if !slices.ContainsFunc(faults, func(f Gap) bool { return f.From < end && (f.To > start || f.From >= start) }) {
			values, seconds = append(values, v), append(seconds, from+i)
		}
	}
	return values, seconds
}
