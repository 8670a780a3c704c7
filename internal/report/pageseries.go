package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"stroppy/internal/stats"
)

// ReadSeries reads what stats.WriteSeries wrote, of this or an earlier version:
// columns are found by their names, and one that is not there is zero.
func ReadSeries(r io.Reader) ([]stats.Second, error) {
	return readRows(r, seriesFile, []string{"second", "committed"}, setSecond)
}

// mostSecond is the last second of the longest run that a series is made of.
const mostSecond = 60 * 24 * 60 * 60

func setSecond(s *stats.Second, column, text string) (err error) {
	counts := map[string]*uint64{
		"committed": &s.Committed, "rejected": &s.Rejected, "aborted": &s.Aborted, "unknown": &s.Unknown, "waiting": &s.Waiting,
	}
	latencies := map[string]*time.Duration{"p50_ms": &s.P50, "p99_ms": &s.P99, "max_ms": &s.Max}
	switch {
	case column == "second":
		s.Second, err = parseSecondNumber(text)
	case counts[column] != nil:
		if *counts[column], err = strconv.ParseUint(text, 10, 64); err != nil {
			err = fmt.Errorf("%q is no number of transactions", text)
		}
	case latencies[column] != nil:
		var ms float64
		ms, err = parseUpTo(text, 1e12, "latency")
		*latencies[column] = time.Duration(math.Round(ms * float64(time.Millisecond)))
	}
	return err
}
