package run

import (
	"io"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// figures writes what a drive came to into the result.
func (c *conductor) figures(options *load.Options, l *load.Result) {
	f := l.Figures
	d := &report.Drive{
		Clients: len(options.Clients), Seconds: l.Elapsed.Seconds(), Rate: options.Rate,
		Committed: f.Committed, Aborted: f.Aborted, Unknown: f.Unknown,
		Rejected: report.Rejected{
			InsufficientFunds: f.Rejected[history.InsufficientFunds], NoSuchAccount: f.Rejected[history.NoSuchAccount],
		},
		Retries: l.Retries, Conflicts: l.Conflicts, TPS: &report.Throughput{},
		Latency: latency(&f.Latency), Service: latency(&f.Service),
		WarmupSeconds: options.Warmup.Seconds(), Interrupted: l.Interrupted, Backlog: l.Backlog, Reconnects: l.Reconnects,
		Style: c.o.Workload.Header().Keys, Kinds: map[string]uint64{}, Errors: []report.ErrorCount{},
	}
	for kind, n := range f.ByKind {
		d.Kinds[kind.String()] = n
	}
	for _, e := range l.Errors {
		d.Errors = append(d.Errors, report.ErrorCount{
			Class: e.Class.String(), Code: e.Code, Op: e.Op, Count: e.Count, Example: c.o.Scrub(e.Example),
		})
		c.log.Info("errors of the drive", "class", e.Class, "code", e.Code, "op", e.Op, "count", e.Count, "example", e.Example)
	}
	if s := l.Elapsed.Seconds(); s > 0 {
		mean := float64(f.Committed) / s
		d.TPS.Mean = &mean
	}
	c.result.Drive = d
	c.result.Client = &report.Client{CPUSeconds: known(l.CPUSeconds), MaxRSSBytes: known(l.MaxRSSBytes)}
	c.log.Info("drove", "committed", d.Committed, "aborted", d.Aborted, "unknown", d.Unknown, "seconds", d.Seconds, "interrupted", d.Interrupted)
}

// known is nil where a platform or a run has not told.
func known[N int64 | float64](n N) *N {
	if n == 0 {
		return nil
	}
	return &n
}

func latency(s *stats.Summary) *report.Latency {
	if s.Count == 0 {
		return nil
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return &report.Latency{
		Mean: ms(s.Mean), P50: ms(s.P50), P90: ms(s.P90), P95: ms(s.P95), P99: ms(s.P99), P999: ms(s.P999), Max: ms(s.Max),
	}
}

// series reads the recorded history for the course of the drive: series.csv, the
// throughput of its whole seconds, and the longest gap.
func (c *conductor) series(warmup time.Duration) error {
	recorded, err := history.Open(c.o.Dir.History())
	if err != nil {
		return err
	}
	defer recorded.Close()
	line := stats.NewTimeline()
	if err := line.Read(recorded.Transactions()); err != nil {
		return err
	}
	seconds := line.Series()
	d := c.result.Drive
	from := int((warmup + time.Second - 1) / time.Second)
	if to := int((warmup.Seconds() + d.Seconds)); to > from {
		_, median, most := stats.TPS(seconds, from, to)
		d.TPS.Median, d.TPS.Max = &median, &most
	}
	end := time.Duration((d.WarmupSeconds + d.Seconds) * float64(time.Second))
	if gap := line.LongestGapUntil(end); gap.Length() > 0 {
		d.Outage = &report.Outage{AtSeconds: gap.From.Seconds(), Seconds: gap.Length().Seconds()}
	}
	return c.o.Dir.WriteFrom(SeriesFile, func(w io.Writer) error { return stats.WriteSeries(w, seconds) })
}
