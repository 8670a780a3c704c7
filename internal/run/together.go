package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/report"
)

// recorded is one of several runs that are checked together.
type recorded struct {
	Facts
	result *report.Result
	lacks  bool // the result could not be read
	expect isolation.Level
	faults []check.Result // on its faults and its nodes
}

func (r *recorded) number() string { return strconv.FormatUint(r.Header.Run, 10) }

// together holds several runs against one bank as if they were one. What is
// measured of a run stays in its own directory: there are no figures of all.
func (c *conductor) together(ctx context.Context, o CheckOptions) error {
	runs, err := c.readRuns(ctx, o)
	if err != nil {
		return err
	}
	c.summarize(runs, o)
	dirs := o.Runs
	if o.Workload != nil {
		if err := c.fetchAfter(ctx, runs); err != nil {
			return err
		}
		dirs = append(slices.Clone(dirs), o.Dir.Path)
	}
	c.enter("check")
	found := violations{dir: o.Dir.Path}
	defer found.discard()
	results, err := o.Spec.Check(ctx, dirs, c.o.Expect, found.tell)
	c.leave()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("check the runs: %w", context.Cause(ctx))
	}
	committed := uint64(0)
	for _, r := range runs {
		committed += r.Committed
	}
	results = append(results, faultsOf(runs)...)
	decide(c.result, results, committed, c.o.Expect)
	c.keep(&found, results)
	c.result.Reason = qualified(runs, c.result)
	return nil
}

// qualified is the reason of the verdict on several runs, with what is to be
// known of single ones before it.
func qualified(runs []*recorded, r *report.Result) string {
	var all, cut, lacking, early []string
	for _, one := range runs {
		all = append(all, one.number())
		if !one.Complete {
			cut = append(cut, one.number())
		}
		if one.lacks {
			lacking = append(lacking, one.number())
		}
		if d := one.result.Drive; d != nil && d.Interrupted {
			early = append(early, one.number())
		}
	}
	text := r.Reason
	switch {
	case r.Verdict == "invalid" || len(cut) == 0:
	case len(runs) == 1:
		text = cutOff + text
	default:
		text = fmt.Sprintf("Of what %s sent not all is recorded, because it was cut off. %s", numbered(cut), text)
	}
	if len(lacking) > 0 {
		text = fmt.Sprintf("The result of %s could not be read, and the check went by the recorded history. %s", numbered(lacking), text)
	}
	if len(early) > 0 {
		text = fmt.Sprintf("The user ended the run of %s early. %s", numbered(early), text)
	}
	if len(runs) > 1 {
		data, _ := check.DataOf(runs[0].Header)
		text = fmt.Sprintf("%s against one %s, checked together. %s", upper(numbered(all)), data, text)
	}
	return text
}

// readRuns reads what the directories say about their runs, in the order of the
// runs' numbers. Those that hold an end state alone are left out.
func (c *conductor) readRuns(ctx context.Context, o CheckOptions) ([]*recorded, error) {
	var runs []*recorded
	for _, path := range o.Runs {
		one := newConductor(Options{Dir: &Directory{Path: path}, Expect: o.Expect, Scrub: o.Scrub})
		if err := one.readRun(); err != nil {
			return nil, err
		}
		facts, err := Recall(ctx, one.o.Dir.History())
		if err != nil {
			return nil, err
		}
		if !facts.Driven {
			continue
		}
		if one.o.Expect == isolation.Unknown {
			return nil, fmt.Errorf("check %s: it does not say which level was promised: give it with --expect", path)
		}
		one.supposeFinished(facts)
		r := &recorded{Facts: facts, result: one.result, lacks: one.unreadable != "", expect: one.o.Expect}
		if len(runs) > 0 && runs[0].expect != r.expect {
			return nil, fmt.Errorf("check %s together with others: the one was promised %s and others %s: give the level that all are held to with --expect", path, r.expect, runs[0].expect)
		}
		if err := one.effects(); err != nil {
			return nil, err
		}
		if r.faults, err = one.judgeFaults(facts.Header); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("check %s: these directories hold end states alone, and no run", strings.Join(o.Runs, ", "))
	}
	slices.SortFunc(runs, func(a, b *recorded) int { return cmp.Compare(a.Header.Run, b.Header.Run) })
	return runs, nil
}

// summarize writes into the result what the runs have in common; what else
// describes them is that of the last one.
func (c *conductor) summarize(runs []*recorded, o CheckOptions) {
	last := runs[len(runs)-1]
	c.o.Expect = last.expect
	r, h := c.result, last.Header
	r.Workload, r.Database, r.DatabaseVersion, r.Seed, r.LoadID = h.Workload, h.Database, last.result.DatabaseVersion, h.Seed, h.LoadID
	r.Settings, r.Claim, r.Command, r.Finished, r.Machine = last.result.Settings, last.result.Claim, o.Command, true, last.result.Machine
	if r.DatabaseURL == "" {
		r.DatabaseURL = last.result.DatabaseURL
	}
	first := h.Started
	for _, one := range runs {
		first = min(first, one.Header.Started)
		r.Finished = r.Finished && one.result.Finished
		if l := one.result.Load; l != nil {
			r.Load = &report.Load{Accounts: l.Accounts, Total: l.Total}
		}
		if one.result.Machine != r.Machine {
			r.Machine = ""
		}
	}
	r.StartedAt = time.Unix(0, first).UTC().Format(time.RFC3339)
}

// fetchAfter downloads the end state into this directory. The runs whose
// recording was closed before had ended before.
func (c *conductor) fetchAfter(ctx context.Context, runs []*recorded) error {
	var headers []history.Header
	var ended []string
	for _, r := range runs {
		headers = append(headers, r.Header)
		if r.Complete {
			ended = append(ended, r.number())
		}
	}
	if err := c.look(ctx, headers); err != nil {
		return err
	}
	if err := c.empty(ended); err != nil {
		return err
	}
	return c.download(ctx)
}

// faultsOf makes one check of each name of those that the runs have of their
// faults: it is as bad as the worst.
func faultsOf(runs []*recorded) []check.Result {
	var all []check.Result
	for _, r := range runs {
		for _, one := range r.faults {
			if len(runs) > 1 {
				one.Detail = fmt.Sprintf("Run %s: %s", r.number(), one.Detail)
			}
			n := slices.IndexFunc(all, func(other check.Result) bool { return other.Name == one.Name })
			if n < 0 {
				all = append(all, one)
				continue
			}
			sum := &all[n]
			sum.Status = worse(sum.Status, one.Status)
			sum.Required = sum.Required || one.Required
			sum.Detail += "\n" + one.Detail
			sum.Witness = append(sum.Witness, one.Witness...)
		}
	}
	return all
}

// worse returns the worse of two answers: invalid, then unknown.
func worse(a, b check.Status) check.Status {
	switch {
	case a == check.Invalid || b == check.Invalid:
		return check.Invalid
	case a == check.Unknown || b == check.Unknown:
		return check.Unknown
	}
	return check.Valid
}

// numbered names runs by their numbers.
func numbered(numbers []string) string {
	if len(numbers) == 1 {
		return "run " + numbers[0]
	}
	return "runs " + sentence(numbers)
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
