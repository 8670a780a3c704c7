package bank

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
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
	var r recordings
	defer r.close()
	for _, dir := range dirs {
		if err := r.open(dir); err != nil {
			return nil, err
		}
	}
	if err := check.SameBank(dirs, r.headers()); err != nil {
		return nil, fmt.Errorf("check the recordings: %w", err)
	}
	h := r.list[0].Header()
	f := newFormula(h.Seed)
	in := check.Input{
		Expect: expect, Accounts: h.Accounts, Total: h.Total, Opening: f.opening, Name: f.name, Tell: tell,
	}
	for i := range r.list {
		one := &r.list[i]
		if !check.Driven(one.Header()) && len(r.list) > 1 {
			continue // it is there for its end state
		}
		in.History = append(in.History, one.source(len(r.list) > 1))
		audits, err := strconv.ParseFloat(one.Header().Keys[keyAudits], 64)
		if err == nil && audits > 0 {
			in.Audited = append(in.Audited, one.Header().Run)
		}
	}
	if err := r.chooseEnd(ctx, &in); err != nil {
		return nil, err
	}
	return check.Bank(ctx, in)
}

// recordings are runs' directories, open.
type recordings struct{ list []recording }

// recording is one run's directory.
type recording struct {
	*history.Reader
	dir string
	end *history.End // nil: none was downloaded
}

func (r *recordings) open(dir string) error {
	folder := filepath.Join(dir, historyFolder)
	recorded, err := history.Open(folder)
	if err != nil {
		return err
	}
	r.list = append(r.list, recording{Reader: recorded, dir: dir})
	if w := recorded.Header().Workload; w != Name {
		return fmt.Errorf("check %s: its history is of the workload %q, not of the bank", dir, w)
	}
	end, err := history.OpenEnd(folder)
	switch {
	case err == nil:
		r.list[len(r.list)-1].end = end
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

func (r *recordings) close() {
	for _, one := range r.list {
		_ = one.Close()
		if one.end != nil {
			_ = one.end.Close()
		}
	}
}

func (r *recordings) headers() []history.Header {
	var list []history.Header
	for _, one := range r.list {
		list = append(list, one.Header())
	}
	return list
}

// chooseEnd picks the end state that was downloaded last. One that is known to be
// later than all runs is; of others it is the one with the most rows, because a
// ledger only grows. A wrong choice, as among end states of a database that loses
// rows, shows in a run that it does not cover, and leaves the checks unknown.
func (r *recordings) chooseEnd(ctx context.Context, in *check.Input) error {
	most := uint64(0)
	for _, one := range r.list {
		if one.end == nil {
			continue
		}
		early := r.early(one)
		rows, err := rowsOf(ctx, one.end, len(r.list) > 1)
		if err != nil {
			return err
		}
		sure, before := len(early) == 0, len(in.Early) == 0
		if in.End == nil || sure && !before || sure == before && rows > most {
			in.End, in.Early, most = one.end, early, rows
		}
	}
	return nil
}

// early returns the runs that are not known to have ended when this recording's
// end state was downloaded. Its own run had.
func (r *recordings) early(one recording) []uint64 {
	ended := check.Ended(one.Header())
	if check.Driven(one.Header()) {
		ended = append(ended, one.Header().Run)
	}
	var runs []uint64
	for _, other := range r.list {
		if h := other.Header(); check.Driven(h) && !slices.Contains(ended, h.Run) {
			runs = append(runs, h.Run)
		}
	}
	return runs
}

// rowsOf counts the rows of a ledger, if there is another to compare it with. A
// damaged one counts as far as it can be read; the checks tell of the damage.
func rowsOf(ctx context.Context, end *history.End, compared bool) (uint64, error) {
	rows := uint64(0)
	if !compared {
		return 0, nil
	}
	for _, err := range end.Legs() {
		if err != nil {
			break
		}
		if rows++; rows%4096 == 0 && ctx.Err() != nil {
			return 0, fmt.Errorf("count the rows of the ledger: %w", context.Cause(ctx))
		}
	}
	return rows, nil
}

// source is the recording as the checks read it. Among several, places in its
// files are told with its directory.
func (r *recording) source(several bool) check.Source {
	if several {
		return placed{r.Reader, r.dir}
	}
	return r.Reader
}

type placed struct {
	*history.Reader
	dir string
}

func (p placed) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		var within, file string
		for record, err := range p.Reader.Transactions() {
			if record.Ref.File != within {
				within, file = record.Ref.File, filepath.ToSlash(filepath.Join(p.dir, record.Ref.File))
			}
			record.Ref.File = file
			if !yield(record, err) {
				return
			}
		}
	}
}
