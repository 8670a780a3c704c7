package bank

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// What the header of a history keeps beside the run's numbers.
const (
	keyAudits = "audits" // a second
	keyUpdate = "update"
	keyMode   = "mode"
)

// historyFolder is where a run's directory keeps the history and the end state.
const historyFolder = "history"

// CheckDir makes all checks of the recorded run in dir, a run's directory. It
// needs no database. A directory without a readable history is an error; an end
// state that is not there, or not whole, leaves unknown what needs it.
func CheckDir(ctx context.Context, dir string, expect isolation.Level) ([]check.Result, error) {
	folder := filepath.Join(dir, historyFolder)
	recorded, err := history.Open(folder)
	if err != nil {
		return nil, err
	}
	defer recorded.Close()
	h := recorded.Header()
	if h.Workload != Name {
		return nil, fmt.Errorf("check %s: its history is of the workload %q, not of the bank", dir, h.Workload)
	}
	f := newFormula(h.Seed)
	in := check.Input{
		Expect: expect, Accounts: h.Accounts, Total: h.Total,
		Opening: f.opening, Name: f.name,
		History: []check.Source{recorded},
	}
	if audits, err := strconv.ParseFloat(h.Keys[keyAudits], 64); err == nil {
		in.Audited = audits > 0
	}
	end, err := history.OpenEnd(folder)
	switch {
	case err == nil:
		defer end.Close()
		in.End = end
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return check.Bank(in), nil
}
