package check

import (
	"context"
	"slices"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// Declared describes a check of a workload before the check runs.
type Declared struct {
	Name  string
	About string // what holds if the check is valid
	// Needs lists the files without which the check cannot be valid. A violation in the other files still
	// makes the check invalid.
	Needs history.Inputs
	// If reports whether the check applies to these recordings. A nil If means that it applies to all
	// recordings.
	If func(recordings []history.Header) bool
	// Make makes the check by itself, from all recordings. A nil Make means that the workload makes it together
	// with its other checks.
	Make func(ctx context.Context, in Input) (Result, error)
}

// Files records which files of the recordings were available to the checks.
type Files struct {
	Recordings []history.Header

	Missing history.Inputs    // files that were not kept
	Early   uint64            // a run that may have continued after the end state was downloaded; 0: none
	Failed  []*history.Damage // one for each file that could not be trusted and that no check has read
}

// Settle returns the results of all declared checks in their order, followed by the results of other checks.
// A check is undecided if a file that it needs failed, or if such a file is missing and the check found no
// violation.
func (f *Files) Settle(declared []Declared, results []Result) []Result {
	var settled []Result
	for _, d := range declared {
		r, made := Result{Name: d.Name, Required: true}, false
		for _, one := range results {
			if one.Name == d.Name {
				r, made = one, true
			}
		}
		switch {
		case !made && d.If != nil && !d.If(f.Recordings):
			continue
		case f.failed(d.Needs) != nil:
			r = Undecided(r, Unreadable(f.failed(d.Needs)))
		case r.Status == Unknown && len(f.Failed) > 0:
			r = Undecided(r, Unreadable(f.Failed[0]))
		case !made, d.Needs&f.Missing != 0 && (r.Status == Valid || r.Status == NotApplicable):
			r = Undecided(r, f.lack(d.Needs&f.Missing))
		}
		settled = append(settled, r)
	}
	for _, r := range results {
		if !slices.ContainsFunc(declared, func(d Declared) bool { return d.Name == r.Name }) {
			settled = append(settled, r)
		}
	}
	return settled
}

// failed returns the first damage of the files, or nil if all files can be trusted. If one file of the end
// state has failed, the other one was not read.
func (f *Files) failed(files history.Inputs) *history.Damage {
	for _, d := range f.Failed {
		if d.Input&files != 0 || d.Input&history.EndState != 0 && files&history.EndState != 0 {
			return d
		}
	}
	return nil
}

// lack returns the reason why files are missing.
func (f *Files) lack(files history.Inputs) fact.Fact {
	if files&history.Recorded != 0 {
		return fact.NoHistory{}
	}
	return fact.NoEnd{Run: f.Early}
}

// Undecided returns r as an unknown result with the reason why. The findings are dropped.
func Undecided(r Result, why fact.Fact) Result {
	return Result{Name: r.Name, Required: r.Required, StateAlone: r.StateAlone, Why: why}
}
