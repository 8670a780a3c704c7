package check

import (
	"slices"

	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// Declared is what a workload says of one of its checks before it is made.
type Declared struct {
	Name  string
	About string // what holds if the check is valid
	// Needs are the files without which the check is not valid. A violation that shows in
	// the files that are there is one all the same.
	Needs history.Inputs
	// If reports whether the check is made of these recordings; nil: of all.
	If func(recordings []history.Header) bool
}

// Files says which files of the recordings the checks were made from.
type Files struct {
	Recordings []history.Header

	Missing history.Inputs    // nobody has kept them
	Early   uint64            // the run that may have gone on after the end state was downloaded; 0: none
	Failed  []*history.Damage // of each file that could not be trusted, and that no check has seen
}

// Settle returns the results of all declared checks in their order, and behind them those of
// other checks. It leaves undecided each check whose file failed, and each that lacks a file
// and found no violation without it.
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

// failed returns the first damage of the files; nil if they can be trusted. If one file of the
// end state has failed, the other one was not read.
func (f *Files) failed(files history.Inputs) *history.Damage {
	for _, d := range f.Failed {
		if d.Input&files != 0 || d.Input&history.EndState != 0 && files&history.EndState != 0 {
			return d
		}
	}
	return nil
}

// lack returns why files are not there.
func (f *Files) lack(files history.Inputs) fact.Fact {
	if files&history.Recorded != 0 {
		return fact.NoHistory{}
	}
	return fact.NoEnd{Run: f.Early}
}

// Undecided returns the result of a check without what the check found.
func Undecided(r Result, why fact.Fact) Result {
	return Result{Name: r.Name, Required: r.Required, StateAlone: r.StateAlone, Why: why}
}
