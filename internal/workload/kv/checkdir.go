package kv

import (
	"context"

	"stroppy/internal/check"
	"stroppy/internal/isolation"
	"stroppy/internal/workload/recording"
)

// CheckDirs makes all checks of the recorded runs in dirs together, which are runs'
// directories against the same records. It needs no database. A directory without a
// readable history is an error; an end state that is not there, or not whole, leaves
// unknown what needs it. Violations are handed to tell as check.KVInput says; it may
// be nil.
func CheckDirs(ctx context.Context, dirs []string, expect isolation.Level, tell func(check.Violation)) ([]check.Result, error) {
	r, err := recording.Open(dirs, Name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := r.Header()
	f := formulaOf(h)
	in := check.KVInput{
		Expect: expect, Records: h.Accounts, Place: f.place, Name: f.name, Tell: tell, History: r.Sources(),
	}
	if in.End, in.Early, err = r.End(ctx); err != nil {
		return nil, err
	}
	return check.KV(ctx, in)
}
