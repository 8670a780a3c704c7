package bank

import (
	"context"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/isolation"
	"stroppy/internal/workload/recording"
)

// What the header of a history keeps beside the run's numbers.
const (
	keyAudits = "audits" // a second
	keyUpdate = "update"
	keyMode   = "mode"
)

// CheckDir makes all checks of the recorded run in dir, a run's directory. It
// needs no database. A directory without a readable history is an error; an end
// state that is not there, or not whole, leaves unknown what needs it. Violations
// are handed to tell as check.Input says; it may be nil.
func CheckDir(ctx context.Context, dir string, expect isolation.Level, tell func(check.Violation)) ([]check.Result, error) {
	return CheckDirs(ctx, []string{dir}, expect, tell)
}

// CheckDirs makes all checks of several runs against one bank together: their
// histories are one, and the end state is the one of them all that was downloaded
// last. Where none of them is sure to have been downloaded after every run, what
// needs an end state is unknown. Directories of different banks are an error.
func CheckDirs(ctx context.Context, dirs []string, expect isolation.Level, tell func(check.Violation)) ([]check.Result, error) {
	r, err := recording.Open(dirs, Name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := r.Header()
	f := newFormula(h.Seed)
	in := check.Input{
		Expect: expect, Accounts: h.Accounts, Total: h.Total, Opening: f.opening, Name: f.name, Tell: tell, History: r.Sources(),
	}
	for _, source := range in.History {
		audits, err := strconv.ParseFloat(source.Header().Keys[keyAudits], 64)
		if err == nil && audits > 0 {
			in.Audited = append(in.Audited, source.Header().Run)
		}
	}
	if in.End, in.Early, err = r.End(ctx); err != nil {
		return nil, err
	}
	return check.Bank(ctx, in)
}
