package stats

import (
	"fmt"
	"math"
	"time"
)

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
	y := batchMeans(logs, trendBatches)
	change := senSlope(y) * float64(len(y)-1)
	if math.Abs(change) >= math.Log(latencyTrend) && trendProbability(y) < trendChance {
		word := "fell"
		if change > 0 {
			word = "rose"
		}
		intercept, slope, _ := fitLine(logs)
		last := len(logs) - 1
		return fmt.Sprintf("%s from about %s at second %d to %s at second %d",
			word, milliseconds(intercept), seconds[0], milliseconds(intercept+slope*float64(last)), seconds[last])
	}
	noise := stepNoise(logs)
	whole, parts := meanOf(logs), min(4, len(logs)/leastPart)
	for p := range parts {
		first, end := p*len(logs)/parts, (p+1)*len(logs)/parts
		mean := meanOf(logs[first:end])
		gap := math.Abs(mean - whole)
		if gap > math.Log(latencyLevel) && gap > levelNoise*math.Sqrt(noise/float64(end-first)) {
			return fmt.Sprintf("was about %s from second %d to %d and %s over the run",
				milliseconds(mean), seconds[first], seconds[end-1], milliseconds(whole))
		}
	}
	return ""
}

// milliseconds formats a latency given as the logarithm of its nanoseconds.
func milliseconds(log float64) string {
	return fmt.Sprintf("%.3g ms", math.Exp(log)/float64(time.Millisecond))
}
