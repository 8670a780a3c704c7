package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/text"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/report"
)

// judge downloads the end state, makes the checks and writes the verdict.
func (c *conductor) judge(ctx context.Context) error {
	r := c.result
	switch {
	case !c.o.Steps.Check:
		r.Reason = endedEarly(r.Drive) + c.o.Unchecked
		return nil
	case c.volatile():
		r.Reason = endedEarly(r.Drive) + fmt.Sprintf("%s keeps nothing, so that there is no end state to check.", r.Database)
		return nil
	}
	if err := c.gather(ctx); err != nil {
		return err
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

// volatile says that the database keeps nothing.
func (c *conductor) volatile() bool {
	v, ok := c.o.Database.(db.Volatile)
	return ok && v.Volatile()
}

// verify makes the checks of the workload on the recordings in dirs, completed by add,
// and writes the verdict and its reason, worded by qualify, into the result.
func (c *conductor) verify(ctx context.Context, dirs []string,
	add func([]check.Result) ([]check.Result, error), qualify func(reason string) string) error {
	c.enter("check")
	defer c.leave()
	found := violations{most: mostViolations, bytes: mostViolationBytes, speaker: text.Speaker{Words: c.o.Spec.Words}}
	var checked check.Checked
	var err error
	if ctx.Err() == nil {
		checked, err = c.o.Spec.Check(ctx, dirs, c.expect, found.add)
	}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("check the run: %w", context.Cause(ctx))
	}
	results := checked.Results
	c.measured = checked.Tables
	if err == nil {
		results, err = add(results)
	}
	if err != nil {
		return err
	}
	c.result.Checks = report.Checks(results, text.Speaker{Words: c.o.Spec.Words})
	decide(c.result, results, checked.Committed, c.expect)
	c.result.Reason = qualify(c.result.Reason)
	if c.result.Violations, err = found.keep(ctx, Directory{Path: c.o.Dir.Path}, dirs, results); err == nil {
		err = keepDrawings(c.o.Dir.Path, c.result.Checks)
	}
	if !errors.Is(err, fs.ErrPermission) { // where nothing can be written, a check goes without
		c.unkept = err
	}
	return nil
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
	err := keepEnd(c.o.Dir.History(), func(end *history.EndWriter) error {
		return c.o.Workload.EndState(ctx, end, func(done, total uint64) { c.o.Progress.Show(State{Done: done, Total: total}) })
	})
	if err != nil {
		return fmt.Errorf("download the end state: %w", err)
	}
	return nil
}

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

// decide writes the verdict into the result. A run in which
// nothing was committed proves nothing, however valid its checks.
func decide(r *report.Result, results []check.Result, committed uint64, expect isolation.Level) {
	verdict := check.Verdict(results)
	if verdict == check.Valid && committed == 0 {
		verdict = check.Unknown
		r.Reason = fmt.Sprintf("Nothing was committed, and a run in which nothing happened proves nothing (claim: %s).", expect)
	} else {
		r.Reason = reason(results, verdict, committed, expect)
	}
	r.Verdict = verdict.String()
}

// reason is the sentence of a verdict that the required checks came to.
func reason(results []check.Result, verdict check.Status, committed uint64, expect isolation.Level) string {
	var names []string
	for _, result := range results {
		if result.Required && result.Status == verdict {
			names = append(names, result.Name)
		}
	}
	if len(names) == 0 {
		return "No check was made."
	}
	which, found, hold := "The check "+names[0], "a violation", "The one required check, "+names[0]+", holds"
	if len(names) > 1 {
		which, found, hold = "The checks "+sentence(names), "violations", fmt.Sprintf("All %d required checks hold", len(names))
	}
	switch verdict {
	case check.Invalid:
		return fmt.Sprintf("%s %s found %s (claim: %s).", worst(results), which, found, expect)
	case check.Valid:
		return fmt.Sprintf("%s over %s: the database kept what %s promises%s.", hold, check.Plural(committed, "committed transaction"), expect, beyond(results))
	}
	return fmt.Sprintf("%s could not be decided (claim: %s)%s.", which, expect, cause(results))
}

// onlyTimes is how often something was found that has no name.
var onlyTimes = regexp.MustCompile(`^(at least )?[\d,]+ times$`)

// worst is what the first of the failed checks found, in one sentence: the checks are in
// the order in which people ask, the money first.
func worst(results []check.Result) string {
	for _, r := range results {
		if r.Required && r.Status == check.Invalid {
			first, _, _ := strings.Cut(r.Detail, "\n")
			if at := strings.Index(first, ". "); at >= 0 {
				first = first[:at]
			}
			count, example, several := strings.Cut(first, ", first: ")
			if first = count; several && onlyTimes.MatchString(count) {
				first = strings.TrimSuffix(example, ".") + " (" + count + ")"
			}
			return kinds(results) + check.Capital(strings.TrimSuffix(first, ".")) + "."
		}
	}
	return ""
}

// mostKinds is how many kinds of anomalies the reason of a verdict names.
const mostKinds = 4

// kinds says how often the failed checks found which anomaly, to stand before the first of them;
// empty where that says it itself, or where there is but one.
func kinds(results []check.Result) string {
	var list []string
	all := 0
	for _, r := range results {
		if !r.Required || r.Status != check.Invalid {
			continue
		}
		if all == 0 && len(r.Anomalies) == 0 {
			return ""
		}
		for _, a := range r.Anomalies {
			n := max(a.Count, 1)
			if all == 0 && strings.Contains(a.Detail, check.Group(n)+" ") && !strings.HasSuffix(a.Detail, check.Times(n)) {
				return ""
			}
			all += n
			list = append(list, a.Name+" "+report.OftenText(n))
		}
	}
	if all < 2 {
		return ""
	}
	if more := len(list) - mostKinds; more > 0 {
		list = append(list[:mostKinds], check.Others(more, "kind", "kinds"))
	}
	text := list[0]
	if len(list) > 1 {
		text = sentence(list)
	}
	return fmt.Sprintf("%s found: %s. ", check.Plural(all, "anomaly"), text)
}

// beyond says which violations were found that the claim does not forbid, to
// stand in a sentence after what was kept; empty where there is none.
func beyond(results []check.Result) string {
	var serializable, strict bool
	var others []string
	for _, r := range results {
		switch {
		case r.Required || r.Status != check.Invalid:
		case r.Name == check.Serializable:
			serializable = true
		case r.Name == check.Strict:
			strict = true
		default:
			others = append(others, "failed the check "+r.Name)
		}
	}
	switch {
	case serializable:
		others = slices.Insert(others, 0, "was not serializable")
	case strict:
		others = slices.Insert(others, 0, "was not strictly serializable")
	}
	if len(others) == 0 {
		return ""
	}
	return ", and " + strings.Join(others, " and ") + " (for information: nothing that was claimed forbids it)"
}

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

// cause returns what all required checks that are undecided say of it, to stand
// after a sentence; empty where they say different things.
func cause(results []check.Result) string {
	said := ""
	for _, result := range results {
		if !result.Required || result.Status != check.Unknown {
			continue
		}
		why, ok := strings.CutPrefix(result.Detail, "Not decided: ")
		if !ok || said != "" && said != why {
			return ""
		}
		said = why
	}
	first, _, more := strings.Cut(said, "\n")
	first = strings.TrimSuffix(first, ".")
	if more {
		first += ", and more"
	}
	return ": " + first
}

func sentence(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
