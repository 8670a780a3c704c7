package tpcb

import (
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/isolation"
	"stroppy/internal/workload/recording"
)

// CheckDirs makes all checks of one run, or of several against the same data
// together. It needs no database. A directory without a readable history and
// directories of different data are errors; an end state that is not there, or not
// whole, leaves unknown what needs it. Violations are handed to tell as
// check.TPCBInput says; it may be nil.
func CheckDirs(ctx context.Context, dirs []string, expect isolation.Level, tell func(check.Violation)) ([]check.Result, error) {
	r, err := recording.Open(dirs, Name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := r.Header()
	s, ok := sizeOf(h)
	if !ok {
		return nil, fmt.Errorf("check %s: its header does not say how many branches, tellers and accounts there are: it is damaged", dirs[0])
	}
	in := check.TPCBInput{
		Expect: expect, Branches: s.branches, Tellers: s.tellers, Accounts: s.accounts,
		Versions: h.Keys[keyVersions] == strconv.FormatBool(true),
		Name:     s.name, Tell: tell, History: r.Sources(),
	}
	in.Strangers, _ = strconv.ParseUint(h.Keys[keyStrangers], 10, 64)
	for _, source := range in.History {
		if header := source.Header(); check.Driven(header) && header.Keys[keyHistory] == strconv.FormatBool(false) {
			in.Bare = append(in.Bare, header.Run)
		}
	}
	if in.End, in.Early, err = r.End(ctx); err != nil {
		return nil, err
	}
	return check.TPCB(ctx, in)
}
