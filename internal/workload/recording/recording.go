// Package recording opens the recordings of runs for the checks: the histories of one or several runs against the
// same data, and the end state.
package recording

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/workload"
)

// Input is the input of a workload's checks.
type Input struct {
	check.Input
	Header history.Header // of the first recording: what it says of the data holds for all
	Dir    string         // of the first recording

	// Opening is the state that is taken as the loaded data; nil: these are the loaded data.
	Opening *history.Base

	// Tables, if not nil, may be set to the workload's tables for the report of the one recording, if the checks have
	// measured them.
	Tables *[]check.Table
}

// Declare returns the declaration of a check that a workload makes together with its other checks.
func Declare(name string, needs history.Inputs, about string) check.Declared {
	return DeclareIf(nil, name, needs, about)
}

// DeclareIf is Declare for a check that does not apply to all recordings.
func DeclareIf(applies func([]history.Header) bool, name string, needs history.Inputs, about string) check.Declared {
	return check.Declared{Name: name, About: about, Needs: needs, If: applies}
}

// decider decides the checks of a workload.
type decider func(ctx context.Context, in Input) ([]check.Result, error)

// Checked returns the specification of a workload with its checks.
func Checked(s workload.Spec, declared []check.Declared, decide decider) workload.Spec {
	s.Checks, s.Check = declared, checker(s.Name, declared, decide)
	s.CheckPart = func(ctx context.Context, h history.Header, expect isolation.Level, part check.Source) ([]check.Result, error) {
		return decide(ctx, Input{Input: check.Input{Expect: expect, History: []check.Source{part}, Part: true}, Header: h})
	}
	return s
}

// checker returns what makes all checks of recorded runs of a workload, as workload.Spec has it: of one run's
// directory, or of several runs against the same data together. Their histories are one, and the end state is the one
// of them all that was downloaded last. If none of them is sure to have been downloaded after every run, the checks that
// need an end state are unknown. A declared check whose files could not be trusted, or are not there, is not decided,
// whatever decide says of it.
func checker(
	name string, declared []check.Declared, decide decider,
) func(context.Context, []string, isolation.Level, func(check.Violation)) (check.Checked, error) {
	return func(ctx context.Context, dirs []string, expect isolation.Level, report func(check.Violation)) (checked check.Checked, err error) {
		r, err := open(ctx, dirs, name)
		defer r.close()
		if err != nil {
			return checked, err
		}
		in := Input{
			Input: check.Input{
				Expect: expect, OnViolation: report, History: r.sources(),
				Committed: &checked.Committed, Resolved: &checked.Resolved,
			},
			Header: r[0].Header, Dir: dirs[0],
		}
		if len(r) == 1 {
			in.Tables = &checked.Tables
		}
		last, err := r.last(ctx)
		if err != nil {
			return checked, err
		}
		opening, lost, err := r.rebase(ctx, last)
		if err != nil {
			return checked, err
		}
		if last != nil {
			in.End, in.Early = last.End, last.early
		}
		if in.Opening = opening; opening != nil && last != nil {
			in.End = opening.End(last.End)
		}
		if checked.Results, err = decide(ctx, in); err != nil {
			return checked, err
		}
		for _, d := range declared {
			if d.Make == nil || d.If != nil && !d.If(r.files().Recordings) {
				continue
			}
			result, err := d.Make(ctx, in.Input)
			if err != nil {
				return checked, fmt.Errorf("make the check %s: %w", d.Name, err)
			}
			checked.Results = append(checked.Results, result)
		}
		addLost(checked.Results, lost)
		files := r.files()
		if len(files.Failed) > 0 {
			checked.Resolved = check.Resolved{}
		}
		if len(in.Early) > 0 {
			files.Early = in.Early[0]
		}
		checked.Results = files.Settle(declared, checked.Results)
		return checked, nil
	}
}

// runs are runs' directories of one workload, open.
type runs []recording

// recording is one run's directory, with the files of it that can be trusted.
type recording struct {
	*history.Verified
	dir string

	early []uint64 // the runs that are not known to have ended when the end state was downloaded
	rows  uint64   // of its ledger, if there are several recordings
}

// folder is the folder of the history and the end state in the directory of a run.
const folder = "history"

// open opens the recordings of a workload in runs' directories. If the run of a directory is
// not known, or the directories are of different data, it returns an error. A file
// that cannot be trusted, and an end state that is not there, are no errors. The caller closes
// what was opened even after an error.
func open(ctx context.Context, dirs []string, name string) (r runs, err error) {
	var headers []history.Header
	for _, dir := range dirs {
		v, err := history.Verify(ctx, filepath.Join(dir, folder), runtime.GOMAXPROCS(0))
		if err != nil {
			return r, err
		}
		r = append(r, recording{Verified: v, dir: dir})
		if v.Header.Workload != name {
			return r, fmt.Errorf("check %s: its history is of the workload %q, not of %s", dir, v.Header.Workload, name)
		}
		headers = append(headers, v.Header)
	}
	for i := range r {
		if err := r[i].plausible(); err != nil {
			return r, err
		}
	}
	if err := check.SameData(dirs, headers); err != nil {
		return r, fmt.Errorf("check the recordings: %w", err)
	}
	return r, nil
}

// files lists the files that the checks have read.
func (r runs) files() (f check.Files) {
	f.Missing = history.EndState
	for _, one := range r {
		one.Late()
		f.Recordings = append(f.Recordings, one.Header)
		if one.End != nil {
			f.Missing = 0
		}
		f.Failed = append(f.Failed, one.Failed...)
	}
	return f
}

// manyAccounts is a number of accounts that takes minutes to ask for one by one.
const manyAccounts = 1 << 33

// plausible refuses a header that claims many more accounts than the end state has
// rows: the checks would ask for each of them.
func (s *recording) plausible() error {
	if n := s.Header.Objects; s.End != nil && n > manyAccounts && s.End.Count() < n/2 {
		return fmt.Errorf("check %s: its history has %d accounts and its end state has %d rows: one of the two is damaged; restore it from a copy", s.dir, n, s.End.Count())
	}
	return nil
}

func (r runs) close() {
	for _, one := range r {
		_ = one.Close()
	}
}

// sources are the recordings in which there is a run, or the only one; one whose clients had
// several clocks is one source for each. Among several, places in their files are named with their
// directories.
func (r runs) sources() (list []check.Source) {
	for _, one := range r {
		if one.History == nil {
			list = append(list, unreadable{one.Header, one.Failed[0]})
			continue
		}
		var parts []recorded
		for _, part := range check.Parts(one.History) {
			parts = append(parts, part)
		}
		if len(parts) == 0 {
			parts = []recorded{one.History}
		}
		for _, part := range parts {
			switch {
			case len(r) == 1:
				list = append(list, part)
			case check.Driven(one.Header):
				list = append(list, placed{part, one.dir})
			}
		}
	}
	return list
}

// unreadable is a history that cannot be trusted: it has no transaction.
type unreadable struct {
	header history.Header
	why    error
}

func (u unreadable) Header() history.Header { return u.header }
func (u unreadable) Complete() bool         { return false }

func (u unreadable) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) { yield(history.Record{}, u.why) }
}

// recorded is a recording, or a part of one, as several goroutines can read it.
type recorded interface {
	check.Source
	check.Blocks
	Blocks() iter.Seq2[history.Block, error]
	Cursor() *history.Cursor
}

// last picks the recording whose end state was downloaded last; nil if there is none. If an
// end state cannot be trusted, it is not known which one was the last.
func (r runs) last(ctx context.Context) (last *recording, err error) {
	for _, one := range r {
		if slices.ContainsFunc(one.Failed, func(d *history.Damage) bool { return d.Input != history.Recorded }) {
			return nil, nil
		}
	}
	for i := range r {
		one := &r[i]
		if one.End == nil {
			continue
		}
		one.early = r.early(one)
		if len(r) > 1 {
			if err := one.count(ctx); err != nil {
				return nil, err
			}
		}
		if last == nil || one.after(last) {
			last = one
		}
	}
	return last, nil
}

// after reports whether the end state of s was downloaded after the end state of other, as far as that is known.
//
// A check that downloads an end state names the runs that had ended before. Its end state always counts more than
// theirs, because a database that has lost rows since must be checked against its current content. Among unrelated
// end states, the one later than all runs counts, then the one with the most rows, because a ledger only grows. A
// wrong choice shows in a run that the end state does not cover, and leaves the checks unknown.
func (s *recording) after(other *recording) bool {
	if sees, seen := s.sees(other), other.sees(s); sees != seen {
		return sees
	}
	if sure, before := len(s.early) == 0, len(other.early) == 0; sure != before {
		return sure
	}
	a, b := s.Header, other.Header
	if !check.Driven(a) && !check.Driven(b) {
		// The run number of a check is the first number that no run had taken, by the database. This is safer than
		// the clocks of two machines.
		if a.LoadID != "" && a.Run != b.Run {
			return a.Run > b.Run
		}
		return a.Started > b.Started
	}
	return s.rows > other.rows
}

// sees reports whether s belongs to a check before which the run of other had ended.
func (s *recording) sees(other *recording) bool {
	a, b := s.Header, other.Header
	return !check.Driven(a) && check.Driven(b) && slices.Contains(check.Ended(a), b.Run)
}

// early returns the runs that are not known to have ended when this recording's
// end state was downloaded. Its own run had.
func (r runs) early(one *recording) []uint64 {
	ended := check.Ended(one.Header)
	if check.Driven(one.Header) {
		ended = append(ended, one.Header.Run)
	}
	var runs []uint64
	for _, other := range r {
		if h := other.Header; check.Driven(h) && !slices.Contains(ended, h.Run) {
			runs = append(runs, h.Run)
		}
	}
	return runs
}

// count counts the rows of a ledger. A damaged one counts as far as it can be read; the
// checks report the damage.
func (s *recording) count(ctx context.Context) error {
	for _, err := range s.End.Rows() {
		if err != nil {
			break
		}
		if s.rows++; s.rows%4096 == 0 && ctx.Err() != nil {
			return fmt.Errorf("count the rows of the ledger: %w", context.Cause(ctx))
		}
	}
	return nil
}

// placed is a recording that names places in its files with its directory.
type placed struct {
	recorded
	dir string
}

// Has reports whether the recording has the transactions of a client.
func (p placed) Has(client uint64) bool {
	part, ok := p.recorded.(*history.Part)
	return !ok || part.Has(client)
}

func (p placed) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		var within, file string
		for record, err := range p.recorded.Transactions() {
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
