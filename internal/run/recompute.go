package run

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// Recompute computes the missing measurements of a run from its directory, writes them into the result, and returns
// the timeline. It changes no file. A result with measurements and a result without transactions stay as they are;
// the timeline is then nil.
func Recompute(dir string, r *report.Result) ([]stats.Second, error) {
	timeline, _, err := recomputed(dir, r)
	return timeline, err
}

// recomputed is Recompute, and returns the other rows for plots too.
func recomputed(dir string, r *report.Result) ([]stats.Second, report.Plots, error) {
	c := newConductor(Options{Dir: &Directory{Path: dir}})
	c.result = r
	if err := c.rebuild(); err != nil {
		return nil, report.Plots{}, fmt.Errorf("recompute the measurements of the run in %s: %w", dir, err)
	}
	return c.timeline, c.plots, nil
}

// recompute is Recompute, and also writes series.csv and the other plots if the directory is writable. The verdict
// does not depend on them.
func (c *conductor) recompute() error {
	if err := c.rebuild(); err != nil || c.timeline == nil {
		return err
	}
	if err := c.writeSeries(); err != nil {
		c.log.Warn("the series of the run could not be kept", "error", err)
	}
	return nil
}

func (c *conductor) rebuild() error {
	if c.result.Drive != nil {
		return nil
	}
	recorded, err := history.Open(c.o.Dir.History())
	switch {
	case errors.Is(err, fs.ErrNotExist): // it did not come so far
		return nil
	case err != nil:
		return err
	}
	defer recorded.Close()
	var b replay
	for rec := range readable(recorded) {
		if err := b.add(rec.Transaction); err != nil {
			return err
		}
	}
	if !b.any {
		return nil
	}
	header := recorded.Header()
	d := b.drive(c.result.Scenario)
	d.Clients, d.Style = header.Clients, maps.Clone(header.Keys)
	for _, ours := range []string{keyExpect, keyNemesis, keyNodes, keyMaxOutage, keyMaxDegradation, keyThreshold, check.KeyClock} {
		delete(d.Style, ours)
	}
	c.result.Drive = d
	c.timeline = timeline(d, &b.line, seconds(d.WarmupSeconds))
	silence(d, &b.line, seconds(d.WarmupSeconds), b.duration)
	c.breakdown(&b.parts, header)
	if err := c.effects(); err != nil {
		return err
	}
	c.steadyState(c.timeline, !strings.Contains(d.RatePlan, " for "))
	c.warnLoop()
	return nil
}

// readable yields the transactions of a history up to its end or its first damage.
func readable(recorded *history.Reader) iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for rec, err := range recorded.Transactions() {
			if err != nil || !yield(rec, nil) {
				return
			}
		}
	}
}

// replay gathers the measurements of a recorded load phase.
type replay struct {
	recorder stats.Recorder
	line     stats.Timeline
	parts    stats.Breakdown
	any      bool
	warm     time.Duration // when the last transaction of the warm-up was due
	measured time.Duration // when the first one after it was due; 0 before
	ended    time.Duration // the last end of all
	answered time.Duration // the last end that was the database's answer
	duration time.Duration // that the load phase was to have; 0: it ends by a count
}

func (b *replay) add(tx *history.Transaction) error {
	if tx.Kind.Background() {
		return nil
	}
	if err := b.line.Add(tx); err != nil {
		return err
	}
	b.recorder.Record(tx)
	b.parts.Add(tx)
	b.any = true
	due, end := time.Duration(tx.Due), time.Duration(tx.End)
	if tx.Warmup {
		b.warm = max(b.warm, due)
	} else if b.measured == 0 || due < b.measured {
		b.measured = due
	}
	b.ended = max(b.ended, end)
	if tx.Outcome == history.Committed || tx.Outcome == history.Rejected || tx.LookedUp {
		b.answered = max(b.answered, end)
	}
	return nil
}

// drive computes the measurements. The scenario has the requested load phase. A run that ended before its warm-up has
// none in its history.
func (b *replay) drive(scenario []report.Setting) *report.Drive {
	asked := map[string]string{}
	for _, s := range scenario {
		asked[s.Name] = s.Value
	}
	span := func(name string) time.Duration {
		d, err := time.ParseDuration(asked[name])
		if err != nil {
			return 0
		}
		return d
	}
	warmup := span("warmup")
	if warmup == 0 && b.warm > 0 {
		warmup = max(b.warm, b.measured)
	}
	end := b.answered
	b.duration = span("duration")
	if whole := b.duration; whole > 0 {
		end = max(end, min(whole, b.ended))
	}
	f := stats.Merge(&b.recorder)
	l := &load.Result{Elapsed: max(0, end-warmup), Measurements: f}
	d := drove(l, warmed(warmup, l.Elapsed, b.ended))
	d.Rebuilt, d.ThinkSeconds = true, max(span("think-time"), span("think")).Seconds()
	if plan := asked["rate"]; plan != "" && plan != "0" {
		d.RatePlan, d.Arrival = plan, "uniform"
		d.Rate, _ = strconv.ParseFloat(plan, 64)                                   // of a rate that changes only the plan is reported
		d.DueAtLeast = []string{"mean", "p50", "p90", "p95", "p99", "p999", "max"} // what was never sent is not recorded
	}
	if asked["arrival"] != "" && (d.RatePlan != "" || d.ThinkSeconds > 0) {
		d.Arrival = asked["arrival"]
	}
	return d
}
