package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/stats"
)

// ReadSeries reads what stats.WriteSeries wrote, of this or an earlier version:
// columns are found by their names, and one that is not there is zero.
func ReadSeries(r io.Reader) ([]stats.Second, error) {
	reader := csv.NewReader(r)
	reader.ReuseRecord = true
	head, err := reader.Read()
	if err != nil {
		return nil, broken(seriesFile, 0, err)
	}
	names := slices.Clone(head)
	if !slices.Contains(names, "second") || !slices.Contains(names, "committed") {
		return nil, broken(seriesFile, 0, errors.New("its first line names no seconds and what was committed in them: it is no series of stroppy"))
	}
	var series []stats.Second
	for line := 2; ; line++ {
		fields, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return series, nil
		case err != nil:
			return nil, broken(seriesFile, line, err)
		}
		s, err := parseSecond(names, fields)
		if err != nil {
			return nil, broken(seriesFile, line, err)
		}
		series = append(series, s)
	}
}

// mostSecond is the last second of the longest run that a series is made of.
const mostSecond = 60 * 24 * 60 * 60

func parseSecond(names, fields []string) (s stats.Second, err error) {
	counts := map[string]*uint64{
		"committed": &s.Committed, "rejected": &s.Rejected, "aborted": &s.Aborted, "unknown": &s.Unknown, "waiting": &s.Waiting,
	}
	latencies := map[string]*time.Duration{"p50_ms": &s.P50, "p99_ms": &s.P99, "max_ms": &s.Max}
	for i, name := range names {
		switch {
		case name == "second":
			if s.Second, err = strconv.Atoi(fields[i]); err == nil && (s.Second < 0 || s.Second > mostSecond) {
				err = fmt.Errorf("no run has a second %d", s.Second)
			}
		case counts[name] != nil:
			*counts[name], err = strconv.ParseUint(fields[i], 10, 64)
		case latencies[name] != nil:
			var ms float64
			if ms, err = strconv.ParseFloat(fields[i], 64); err == nil && !(ms >= 0 && ms < 1e12) {
				err = fmt.Errorf("%s is no latency", fields[i])
			}
			*latencies[name] = time.Duration(math.Round(ms * float64(time.Millisecond)))
		}
		var number *strconv.NumError
		if errors.As(err, &number) {
			err = fmt.Errorf("%q is no number that belongs there", number.Num)
		}
		if err != nil {
			return s, fmt.Errorf("column %s: %w", name, err)
		}
	}
	return s, nil
}
