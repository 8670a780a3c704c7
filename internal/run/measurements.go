package run

import (
	"errors"
	"io"
	"strings"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// measurements writes the results of a load phase that took this time.
func (c *conductor) measurements(options *load.Options, l *load.Result, took time.Duration) {
	d := drove(l, warmed(options.Warmup, l.Elapsed, took))
	d.Clients, d.Style = c.o.Workload.Header().Clients, c.o.Workload.Header().Keys
	d.Retries, d.Conflicts, d.Reconnects, d.Backlog, d.Interrupted = l.Retries, l.Conflicts, l.Reconnects, l.Backlog, l.Interrupted
	select {
	case <-c.violated:
		d.StoppedOnViolation, d.Interrupted = l.Interrupted, false
	default:
	}
	d.LiveCheck = c.checkedLive
	pacing(d, options, l)
	if d.Clipped > 0 {
		c.log.Warn("times longer than an hour count as an hour in the percentiles; mean and max have them as they are", "count", d.Clipped)
	}
	for _, e := range l.Errors {
		d.Errors = append(d.Errors, report.ErrorCount{
			Class: e.Class.String(), Code: e.Code, Op: e.Op, Count: e.Count, Example: c.o.Scrub(e.Example),
		})
		c.log.Info("errors of the load phase", "class", e.Class, "code", e.Code, "op", e.Op, "count", e.Count, "example", e.Example)
	}
	c.result.Drive = d
	c.result.Client = &report.Client{CPUSeconds: known(l.CPUSeconds), MaxRSSBytes: known(l.MaxRSSBytes), Threads: known(float64(l.Threads))}
	if c.o.Workers != nil {
		c.result.Client.Workers, d.Workers = c.o.Workers.Shares(), c.o.Plan.Workers
		d.WorkersLost = d.Workers - len(c.result.Client.Workers)
	}
	c.log.Info("drove", "committed", d.Committed, "aborted", d.Aborted, "unknown", d.Unknown, "seconds", d.Seconds, "interrupted", d.Interrupted)
}

// warmed returns the length of the warm-up, which a load phase without measurements may have ended early.
func warmed(asked, measured, took time.Duration) time.Duration {
	if measured > 0 {
		return asked
	}
	return min(asked, took)
}

// drove returns the measured load phase. Its counts are of transactions due after the warm-up; counted replaces them
// by counts of those that ended after it.
func drove(l *load.Result, warmup time.Duration) *report.Drive {
	f := l.Measurements
	due := f.Due(l.Never)
	d := &report.Drive{
		Seconds: l.Elapsed.Seconds(), WarmupSeconds: warmup.Seconds(),
		Committed: f.Latency.Count, Aborted: f.LatencyAborted.Count, Unknown: f.LatencyUnknown.Count, Retries: f.Retries,
		Kinds: map[string]uint64{},
		TPS:   &report.Throughput{}, Latency: latency(&f.Latency), Service: latency(&f.Service), Clipped: f.Clipped,
		Errors: []report.ErrorCount{}, DueAtLeast: due.AtLeast, Outcomes: map[string]*report.Latency{},
		Histogram: report.NewHistogram(f.Latency.Buckets()), ServiceTimes: report.NewHistogram(f.Service.Buckets()),
	}
	for name, s := range map[string]*stats.Summary{
		"committed": &f.Latency, "retried": &f.LatencyRetried, "rejected": &f.LatencyRejected,
		"aborted": &f.LatencyAborted, "unknown": &f.LatencyUnknown, "all": &due.Summary,
	} {
		if s.Count > 0 {
			d.Outcomes[name] = latency(s)
		}
	}
	return d
}

// counted writes the outcomes, the committed transactions by kind, and the mean throughput. steadyState may replace
// the mean by the mean of the whole seconds.
func counted(d *report.Drive, e *stats.Ended, h history.Header) {
	d.Committed, d.Aborted, d.Unknown, d.Writes = e.Committed, e.Aborted, e.Unknown, &e.Writes
	d.Rejected = report.Rejected{report.InsufficientFunds: 0, report.NoSuchAccount: 0}
	for _, rule := range h.Reasons {
		d.Rejected[strings.ReplaceAll(rule.Name, " ", "_")] = e.Rejected[history.Reason(rule.Number)]
	}
	for kind, n := range e.ByKind {
		d.Kinds[h.KindName(kind)] = n
	}
	if d.Seconds > 0 {
		d.TPS.Mean = new(float64(e.Committed) / d.Seconds)
	}
}

// pacing writes how fast the drive was asked to be, and how far it was that.
func pacing(d *report.Drive, options *load.Options, l *load.Result) {
	d.ThinkSeconds, d.Shed, d.Clipped = options.Think.Seconds(), l.Shed, l.Measurements.Clipped
	d.Pacing, d.WarmupUnsent = latency(&l.Measurements.Pacing), l.WarmupUnsent
	d.Connect = latency(&l.Measurements.Connect)
	if options.LatencyLimit > 0 {
		d.Limit = &report.LatencyLimit{LimitMS: float64(options.LatencyLimit) / float64(time.Millisecond), Over: l.Measurements.Late, Skipped: l.Skipped}
	}
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

// known returns nil for a zero value, which means that it is not known.
func known[V comparable](v V) *V {
	if v == *new(V) {
		return nil
	}
	return &v
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

// series reads the recorded history and computes the measurements over time. unsent counts the transactions that were
// never sent, as in load.Result.
func (c *conductor) series(warmup time.Duration, unsent []uint64) error {
	recorded, err := history.Open(c.o.Dir.History())
	if err != nil {
		return err
	}
	defer recorded.Close()
	line, done, all, parts := new(stats.Timeline), stats.NewEnded(warmup), stats.NewEnded(0), new(stats.Breakdown)
	if err := line.Read(recorded.Transactions(), done, all, parts); err != nil {
		return err
	}
	counted(c.result.Drive, done, recorded.Header())
	c.result.FootprintTransfers = &all.Writes // those that have left something behind
	if err := line.AddUnsent(unsent); err != nil {
		return err
	}
	c.result.Drive.Recorded = recordedCounts(all)
	c.timeline = timeline(c.result.Drive, line, warmup)
	silence(c.result.Drive, line, warmup, c.o.Plan.Duration)
	c.breakdown(parts, recorded.Header())
	return nil
}

// breakdown writes the committed transactions by kind and by time into the result and the plots.
func (c *conductor) breakdown(b *stats.Breakdown, h history.Header) {
	kinds := b.Kinds()
	c.result.Drive.ByKind = map[string]*report.Latency{}
	for _, kind := range kinds {
		if s := b.Measured(kind); s.Count > 0 {
			c.result.Drive.ByKind[h.KindName(kind)] = latency(&s)
		}
		c.plots.AddKind(h.KindName(kind), b.Width(), b.Columns(kind))
	}
	all := b.Columns(kinds...)
	c.plots.AddKind(report.AllKinds, b.Width(), all)
	c.plots.AddHeat(b.Width(), all)
}

// writeSeries writes the rows that plots are made of.
func (c *conductor) writeSeries() error {
	return errors.Join(
		writeRows(c.o.Dir, report.SeriesFile, c.timeline),
		writePlot(c.o.Dir, report.AroundFile, c.plots.Around),
		writePlot(c.o.Dir, report.KindsFile, c.plots.Kinds),
		writePlot(c.o.Dir, report.HeatFile, c.plots.Heat))
}

func writeRows[Row any](dir *Directory, name string, rows []Row) error {
	return dir.WriteFrom(name, func(w io.Writer) error { return report.WriteRows(w, rows) })
}

// writePlot writes rows, if there are any.
func writePlot[Row any](dir *Directory, name string, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	return writeRows(dir, name, rows)
}

// timeline returns the drive second by second, and writes what is read from it.
func timeline(d *report.Drive, line *stats.Timeline, warmup time.Duration) []stats.Second {
	seconds := line.Series()
	if d.RatePlan != "" {
		for _, s := range seconds {
			d.MaxBacklog = max(d.MaxBacklog, s.Waiting)
		}
	}
	if from, to := whole(warmup, d.Seconds); to > from {
		d.TPS.Median, d.TPS.Max = stats.TPS(seconds, from, to)
	}
	end := time.Duration((d.WarmupSeconds + d.Seconds) * float64(time.Second))
	if gap := line.LongestGapUntil(end); gap.Length() > 0 {
		d.Outage = &report.Outage{AtSeconds: gap.From.Seconds(), Seconds: gap.Length().Seconds()}
	}
	return seconds
}

func recordedCounts(all *stats.Ended) *report.RecordedCounts {
	return &report.RecordedCounts{Committed: all.Committed, Writes: all.Writes, Background: all.Background}
}

// silence writes for how long the clients of a closed loop waited and sent nothing after the warm-up. A time that is
// short compared with the latency is left out. duration is the length of a load phase that ends by time. Otherwise the clients may end
// before the load phase does.
func silence(d *report.Drive, line *stats.Timeline, warmup, duration time.Duration) {
	if d.RatePlan != "" || d.Latency == nil {
		return
	}
	to := min(duration, seconds(d.WarmupSeconds+d.Seconds))
	if duration == 0 || d.Interrupted || d.StoppedOnViolation {
		to = line.LastSent()
	}
	least := stats.SilenceFrom(time.Duration(d.Latency.P99 * float64(time.Millisecond)))
	if s := line.Silence(warmup, to, least, d.ThinkSeconds > 0); s.Count > 0 {
		d.Silence = &report.Silence{Seconds: s.Total.Seconds(), Longest: s.Longest.Length().Seconds(), AtSeconds: s.Longest.From.Seconds(), Count: s.Count}
	}
}

// steadyState computes the confidence interval of the mean throughput over all seconds, and the steady state without
// the seconds of faults. A rate that was meant to change has neither. From ten whole seconds on, the mean is the mean
// of these seconds, so that it is the middle of its interval.
func (c *conductor) steadyState(timeline []stats.Second, fixed bool) {
	d := c.result.Drive
	if d.Rebuilt && d.Seconds > 0 {
		c.recount(d)
	}
	from, to := whole(seconds(d.WarmupSeconds), d.Seconds)
	i := stats.MeanInterval(stats.Throughput(timeline, from, to))
	if i.Known() {
		d.TPS.Mean = &i.Value
	}
	if !fixed {
		d.Steady = &stats.Steadiness{State: stats.SteadyUnknown, Detail: "steady state not assessed: the rate was meant to change"}
		return
	}
	if i.Known() {
		d.Interval = &i
	}
	s := stats.MeasureSteadiness(timeline, from, to, c.faultIntervals())
	d.Steady = &s
}

// recount counts a rebuilt load phase by the ends of its transactions, which takes a
// second pass: when its warm-up ended is known only after the first.
func (c *conductor) recount(d *report.Drive) {
	recorded, err := history.Open(c.o.Dir.History())
	if err != nil {
		c.log.Warn("the throughput after the warm-up is not known: the recorded transactions could not be read again", "error", err)
		return
	}
	defer recorded.Close()
	done := stats.NewEnded(seconds(d.WarmupSeconds))
	for rec := range readable(recorded) {
		done.Add(rec.Transaction)
	}
	counted(d, done, recorded.Header())
}

// whole returns the whole measured seconds since the run's start: from to before to.
func whole(warmup time.Duration, measured float64) (from, to int) {
	return int((warmup + time.Second - 1) / time.Second), int(warmup.Seconds() + measured)
}

// faultIntervals returns the times from each fault until the throughput was back.
func (c *conductor) faultIntervals() []stats.Gap {
	var intervals []stats.Gap
	_, end := measuredPart(c.result.Drive)
	for _, f := range c.result.Faults {
		if !f.Done() {
			continue
		}
		until := end
		if f.Healed != nil && f.Recovered != nil {
			until = time.Duration(max(*f.Healed, f.At+*f.Recovered))
		}
		intervals = append(intervals, stats.Gap{From: time.Duration(f.At), To: until})
	}
	return intervals
}
