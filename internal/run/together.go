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
	"stroppy/internal/check/fact"
	"stroppy/internal/isolation"
	"stroppy/internal/report"
)

func (c *conductor) number() string { return strconv.FormatUint(c.facts.Header.Run, 10) }

// together checks several runs against one data set as if they were one. The measurements of a run stay in its own
// directory.
func (c *conductor) together(ctx context.Context) error {
	runs, err := c.readRuns()
	if err != nil {
		return err
	}
	c.summarize(runs)
	dirs := c.o.Runs
	if c.o.Workload != nil {
		if err := c.fetch(ctx, runs); err != nil {
			return err
		}
		dirs = append(slices.Clone(dirs), c.o.Dir.Path)
	}
	return c.verify(ctx, dirs, func(results []check.Result) ([]check.Result, error) {
		for _, r := range runs {
			r.o.Spec = c.o.Spec
			results = r.whole(results)
		}
		return append(results, faultsOf(runs)...), nil
	}, func(reason string) string { return qualified(runs, c.result.Verdict, reason) })
}

// qualified returns the reason of the verdict on several runs, behind the reservations.
func qualified(runs []*conductor, verdict, text string) string {
	// before puts words about the runs that are so, for whom %s stands, before the text.
	before := func(so func(r *conductor) bool, words string) {
		var numbers []string
		for _, r := range runs {
			if so(r) {
				numbers = append(numbers, r.number())
			}
		}
		if len(numbers) > 0 {
			text = strings.Replace(words, "%s", numbered(numbers), 1) + text
		}
	}
	cut := "Not all transactions of %s are recorded, because it was cut off. "
	if len(runs) == 1 {
		cut = cutOff
	}
	before(func(r *conductor) bool { return !r.facts.Complete && verdict != "invalid" }, cut)
	before(func(r *conductor) bool { return r.result.Drive != nil && r.result.Drive.Interrupted }, "The user ended the run of %s early. ")
	if len(runs) > 1 {
		before(func(*conductor) bool { return true }, "%s against one data set, checked together. ")
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text
}

// readRuns reads the results and headers in the directories, in the order of the runs' numbers. Directories with an
// end state alone are left out.
func (c *conductor) readRuns() ([]*conductor, error) {
	var runs []*conductor
	for _, path := range c.o.Runs {
		one := newConductor(Options{Dir: &Directory{Path: path}, Plan: c.o.Plan, Scrub: c.o.Scrub})
		if err := one.readRun(); err != nil {
			return nil, err
		}
		if !one.facts.Driven {
			continue
		}
		if one.expect == isolation.Unknown {
			return nil, fmt.Errorf("check %s: it does not say which level was promised: give it with --expect", path)
		}
		if len(runs) > 0 && runs[0].expect != one.expect {
			return nil, fmt.Errorf("check %s together with others: it was promised %s and others %s: give one level for all with --expect",
				path, one.expect, runs[0].expect)
		}
		err := one.effects()
		if err == nil {
			one.checks, err = one.judgeFaults(one.facts.Header)
		}
		if err == nil {
			err = one.judgeObjectives(one.facts.Header.Keys)
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, one)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("check %s: these directories hold no run, only end states", strings.Join(c.o.Runs, ", "))
	}
	slices.SortFunc(runs, func(a, b *conductor) int { return cmp.Compare(a.facts.Header.Run, b.facts.Header.Run) })
	return runs, nil
}

// summarize writes the common properties of the runs into the result. Other properties are those from the last run.
func (c *conductor) summarize(runs []*conductor) {
	last := runs[len(runs)-1]
	c.expect = last.expect
	r, h := c.result, last.facts.Header
	r.Workload, r.Database, r.DatabaseVersion, r.Seed, r.LoadID = h.Workload, h.Database, last.result.DatabaseVersion, h.Seed, h.LoadID
	r.Settings, r.Claim, r.Command, r.Finished, r.Machine = last.result.Settings, last.result.Claim, c.o.Command, true, last.result.Machine
	if r.DatabaseURL == "" {
		r.DatabaseURL = last.result.DatabaseURL
	}
	first := h.Started
	for _, one := range runs {
		first = min(first, one.facts.Header.Started)
		r.Finished = r.Finished && one.result.Finished
		if l := one.result.Load; l != nil {
			r.Load = &report.Load{Accounts: l.Accounts, Total: l.Total}
		}
		for _, o := range one.result.Objectives {
			if len(runs) > 1 {
				o.Detail = fmt.Sprintf("Run %s: %s", one.number(), o.Detail)
			}
			r.Objectives = append(r.Objectives, o)
		}
		if one.result.Machine != r.Machine {
			r.Machine = ""
		}
	}
	r.StartedAt = time.Unix(0, first).UTC().Format(time.RFC3339)
}

// faultsOf joins the runs' checks of their faults by name: each is as bad as the worst.
func faultsOf(runs []*conductor) []check.Result {
	var all []check.Result
	for _, r := range runs {
		for _, one := range r.checks {
			if len(runs) > 1 {
				one = ofRun(one, r.number())
			}
			n := slices.IndexFunc(all, func(other check.Result) bool { return other.Name == one.Name })
			if n < 0 {
				all = append(all, one)
				continue
			}
			sum := &all[n]
			sum.Status = check.Verdict([]check.Result{{Status: sum.Status, Required: true}, {Status: one.Status, Required: true}})
			sum.Required = sum.Required || one.Required
			sum.Findings = append(sum.Findings, one.Findings...)
			sum.Why = reasons(sum.Why, one.Why)
			sum.Witness = append(sum.Witness, one.Witness...)
		}
	}
	return all
}

// ofRun returns a result whose statements name the run that they are about.
func ofRun(r check.Result, run string) check.Result {
	if r.Why != nil {
		r.Why = fact.OfRun{Run: run, What: r.Why}
	}
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Instances = slices.Clone(f.Instances)
		for j := range f.Instances {
			f.Instances[j] = fact.OfRun{Run: run, What: f.Instances[j]}
		}
	}
	return r
}

// reasons joins two reasons, of which either may be nil.
func reasons(one, other fact.Fact) fact.Fact {
	switch {
	case one == nil:
		return other
	case other == nil:
		return one
	}
	if list, ok := one.(fact.Reasons); ok {
		return fact.Reasons{List: append(slices.Clone(list.List), other)}
	}
	return fact.Reasons{List: []fact.Fact{one, other}}
}

func numbered(numbers []string) string {
	last := len(numbers) - 1
	if last == 0 {
		return "run " + numbers[0]
	}
	return "runs " + strings.Join(numbers[:last], ", ") + " and " + numbers[last]
}
