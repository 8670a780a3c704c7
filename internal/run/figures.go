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
		Clients: len(options.Clients), Seconds: l.Elapsed.Seconds(),
		Committed: f.Committed, Aborted: f.Aborted, Unknown: f.Unknown,
		Rejected: report.Rejected{
			InsufficientFunds: f.Rejected[history.InsufficientFunds], NoSuchAccount: f.Rejected[history.NoSuchAccount],
		},
		Retries: l.Retries, Conflicts: l.Conflicts, TPS: &report.Throughput{},
		Latency: latency(&f.Latency), Service: latency(&f.Service),
		WarmupSeconds: options.Warmup.Seconds(), Interrupted: l.Interrupted, Backlog: l.Backlog, Reconnects: l.Reconnects,
		Style: c.o.Workload.Header().Keys, Kinds: map[string]uint64{}, Errors: []report.ErrorCount{},
	}
	pacing(d, options, l)
	d.Histogram, d.ServiceTimes = histogram(&f.Latency), histogram(&f.Service)
	d.Outcomes = map[string]*report.Latency{}
	for name, s := range map[string]*stats.Summary{
		"committed": &f.Latency, "retried": &f.LatencyRetried, "rejected": &f.LatencyRejected,
		"aborted": &f.LatencyAborted, "unknown": &f.LatencyUnknown,
	} {
		if s.Count > 0 {
			d.Outcomes[name] = latency(s)
		}
	}
	if f.Clipped > 0 {
		c.log.Warn("times longer than an hour count as an hour in the percentiles; mean and max have them as they are", "count", f.Clipped)
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

// pacing writes how fast the drive was asked to be, and how far it was that.
func pacing(d *report.Drive, options *load.Options, l *load.Result) {
	d.ThinkSeconds, d.Shed, d.Clipped = options.Think.Seconds(), l.Shed, l.Figures.Clipped
	d.Pacing = latency(&l.Figures.Pacing)
	if options.Plan.Closed() {
		if options.Think > 0 {
			d.Arrival = options.Arrival.String()
		}
		return
	}
	d.RatePlan, d.Arrival = options.Plan.String(), options.Arrival.String()
	fixed, ok := options.Plan.Fixed()
	if d.Rate = fixed; ok {
		return
	}
	whole := options.Warmup + l.Elapsed // of stages the mean that was asked for
	if options.Duration > 0 {
		whole = options.Duration
	}
	if s := whole.Seconds(); s > 0 {
		d.Rate = options.Plan.Expected(whole) / s
	}
}

// histogram is nil where nothing was measured.
func histogram(s *stats.Summary) *report.Histogram {
	buckets := s.Buckets()
	if len(buckets) == 0 {
		return nil
	}
	h := &report.Histogram{Buckets: make([][2]float64, 0, len(buckets))}
	for _, b := range buckets {
		h.Buckets = append(h.Buckets, [2]float64{float64(b.Upper) / float64(time.Microsecond), float64(b.Count)})
	}
	return h
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
// throughput of its whole seconds, the longest queue and the longest gap. unsent
// is what waited and was never sent, as load.Result has it.
func (c *conductor) series(warmup time.Duration, unsent []uint64) error {
	recorded, err := history.Open(c.o.Dir.History())
	if err != nil {
		return err
	}
	defer recorded.Close()
	line := stats.NewTimeline()
	if err := line.Read(recorded.Transactions()); err != nil {
		return err
	}
	if err := line.AddUnsent(unsent); err != nil {
		return err
	}
	seconds := line.Series()
	d := c.result.Drive
	if d.RatePlan != "" {
		for _, s := range seconds {
			d.MaxBacklog = max(d.MaxBacklog, s.Waiting)
		}
	}
	from := int((warmup + time.Second - 1) / time.Second)
	if to := int((warmup.Seconds() + d.Seconds)); to > from {
		_, median, most := stats.TPS(seconds, from, to)
		d.TPS.Median, d.TPS.Max = &median, &most
	}
	end := time.Duration((d.WarmupSeconds + d.Seconds) * float64(time.Second))
	if gap := line.LongestGapUntil(end); gap.Length() > 0 {
		d.Outage = &report.Outage{AtSeconds: gap.From.Seconds(), Seconds: gap.Length().Seconds()}
	}
	c.course = seconds
	return c.o.Dir.WriteFrom(SeriesFile, func(w io.Writer) error { return stats.WriteSeries(w, seconds) })
}
