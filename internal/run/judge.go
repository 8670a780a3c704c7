package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/text"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/report"
)

// judge downloads the end state, makes the checks and writes the verdict.
func (c *conductor) judge(ctx context.Context) error {
	r := c.result
	switch {
	case c.o.Plan.NoCheck:
		r.Reason = endedEarly(r.Drive) + c.o.Unchecked
		return nil
	case c.volatile():
		r.Reason = endedEarly(r.Drive) + fmt.Sprintf("%s keeps nothing, so that there is no end state to check.", r.Database)
		return nil
	}
	if c.unproved(c.o.Workload.Header()) == "" { // otherwise there is no end state
		if err := c.gather(ctx); err != nil {
			return err
		}
	}
	return c.verify(ctx, []string{c.o.Dir.Path}, func(results []check.Result) ([]check.Result, error) {
		header, err := Header(c.o.Dir.Path)
		if err != nil {
			return nil, err
		}
		c.judging = true
		faults, err := c.judgeFaults(header)
		return append(results, faults...), err
	}, func(reason string) string { return endedEarly(r.Drive) + reason })
}

// unproved returns the reason why nothing of a recording is checked, or an empty string.
func (c *conductor) unproved(h history.Header) string {
	if c.o.Spec.Unproved == nil {
		return ""
	}
	return c.o.Spec.Unproved(h)
}

// volatile reports whether the database keeps nothing.
func (c *conductor) volatile() bool {
	v, ok := c.o.Database.(db.Volatile)
	return ok && v.Volatile()
}

// verify runs the checks of the workload on the recordings in dirs and lets add complete them. It writes the verdict
// and its reason, worded by qualify, into the result.
func (c *conductor) verify(ctx context.Context, dirs []string,
	add func([]check.Result) ([]check.Result, error), qualify func(reason string) string) error {
	c.enter("check")
	defer c.leave()
	found := violations{most: mostViolations, bytes: mostViolationBytes, speaker: c.speaker()}
	var checked check.Checked
	var err error
	if ctx.Err() == nil {
		defer c.checkPeak()()
		checked, err = c.o.Spec.Check(ctx, dirs, c.expect, found.add)
	}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("check the run: %w", context.Cause(ctx))
	}
	results := checked.Results
	c.measured = checked.Tables
	c.result.Resolved = resolved(checked.Resolved)
	if err == nil {
		results, err = add(results)
	}
	if err != nil {
		return err
	}
	unproved := ""
	if header, err := Header(dirs[0]); err == nil {
		unproved = c.unproved(header)
	}
	c.result.Checks = report.Checks(results, c.speaker())
	c.decide(results, checked.Committed, unproved)
	c.results, c.qualify = results, qualify
	c.result.Reason = qualify(c.result.Reason)
	if c.result.Violations, err = found.keep(ctx, Directory{Path: c.o.Dir.Path}, dirs, results); err == nil {
		err = keepDrawings(c.o.Dir.Path, c.result.Checks)
	}
	if !errors.Is(err, fs.ErrPermission) { // where nothing can be written, a check goes without
		c.unkept = err
	}
	return nil
}

// resolved returns nil if the end state decided nothing.
func resolved(r check.Resolved) *report.Resolved {
	if r.Unknown == 0 {
		return nil
	}
	return &report.Resolved{Unknown: r.Unknown, Applied: r.Applied, NotApplied: r.Unknown - r.Applied, By: r.By}
}

// gather downloads the end state, from the cluster as one and from every node. A
// database that did not become whole after the last heal may have none to give:
// that leaves checks undecided and does not end the run.
func (c *conductor) gather(ctx context.Context) error {
	err := c.download(ctx)
	switch {
	case err == nil:
		return c.compareNodes(ctx)
	case c.unwhole == "" || ctx.Err() != nil:
		return err
	}
	c.log.Error("the end state could not be downloaded", "error", err)
	c.unwhole += "; " + c.o.Scrub(err.Error())
	c.o.Nodes = nil
	return c.compareNodes(ctx)
}

func (c *conductor) download(ctx context.Context) error {
	c.enter("download")
	defer c.leave()
	pauses := downloadPauses
	if c.unwhole != "" { // the database is known not to answer
		pauses = nil
	}
	err := retry(ctx, pauses, func() error {
		return keepEnd(c.o.Dir.History(), func(end *history.EndWriter) error {
			return c.o.Workload.EndState(ctx, end, func(done, total uint64) { c.o.Progress.Show(State{Done: done, Total: total}) })
		})
	}, func(err error, pause time.Duration) {
		c.log.Warn("the end state is downloaded again", "after", pause, "error", err)
	})
	if err != nil {
		return fmt.Errorf("download the end state: %w", err)
	}
	return nil
}

// retry calls do until it succeeds, and failed before each pause. It returns the last error.
func retry(ctx context.Context, pauses []time.Duration, do func() error, failed func(err error, pause time.Duration)) error {
	err := do()
	for _, pause := range pauses {
		if err == nil || ctx.Err() != nil {
			break
		}
		failed(err, pause)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		err = do()
	}
	return err
}

// downloadPauses are the pauses before further attempts to download the end state. A server that is
// slow for some seconds must not cost the verdict of a run of hours.
var downloadPauses = []time.Duration{time.Second, 10 * time.Second}

// keepEnd puts an end state into a directory; none where download fails.
func keepEnd(dir string, download func(*history.EndWriter) error) error {
	end, err := history.CreateEnd(dir)
	if err != nil {
		return err
	}
	if err := download(end); err != nil {
		return errors.Join(err, end.Abandon())
	}
	return end.Close()
}

// decide writes the verdict and its reason into the result. A run in which
// nothing was committed proves nothing, however valid its checks. unproved is the reason why the workload checks
// nothing, or empty: then faults alone can fail.
func (c *conductor) decide(results []check.Result, committed uint64, unproved string) {
	verdict := check.Verdict(results)
	c.result.Cause = nil
	c.result.Measured = unproved != "" && !slices.ContainsFunc(results, func(r check.Result) bool {
		return r.Required && r.Status != check.Valid && r.Status != check.NotApplicable
	})
	switch {
	case c.result.Measured:
		verdict, c.result.Reason = check.Unknown, unproved
	case verdict == check.Valid && committed == 0:
		verdict = check.Unknown
		c.result.Reason = fmt.Sprintf("Nothing was committed, and a run in which nothing happened proves nothing (claim: %s).", c.expect)
	case verdict == check.Invalid:
		c.explain(results)
	default:
		c.result.Reason = c.speaker().Reason(results, verdict, committed, c.expect)
	}
	c.result.Verdict = verdict.String()
}

// speaker returns the maker of sentences about findings, with the nouns of the workload.
func (c *conductor) speaker() text.Speaker { return text.Speaker{Words: c.o.Spec.Words} }

// endedEarly says, before the reason, that a person ended the load phase or that nothing
// was measured; empty where neither is so. There may be no load phase.
func endedEarly(d *report.Drive) string {
	switch {
	case d == nil:
		return ""
	case d.StoppedOnViolation:
		return fmt.Sprintf("The load phase was ended after %.3g s, because a violation showed. ", d.WarmupSeconds+d.Seconds)
	case d.Interrupted && d.Seconds <= 0:
		return "The user ended the run in its warm-up. "
	case d.Unmeasured():
		return "Nothing was measured, because all that was done was done within the warm-up: take a shorter one, or drive longer. "
	case !d.Interrupted:
		return ""
	}
	return fmt.Sprintf("The user ended the run early, after %.3g s. ", d.WarmupSeconds+d.Seconds)
}
