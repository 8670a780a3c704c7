// Package dataset is what a load leaves in a database for every later run to find:
// beside the data a note that says what they are (schema, load, seed, size, how
// many runs have begun), so that nobody drives half a load, another size or
// somebody else's tables. It loads in such a way that an interrupted load says so
// and can be gone on with.
package dataset

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// Kind is one workload's kind of data, and how people call it.
type Kind struct {
	Noun   string // what the data are together, such as "bank"
	Things string // what their size counts, such as "accounts"; the note keeps the size under this name
	Make   string // the command that loads them
	Schema uint64 // what this program writes: any change of a table, a key or a formula makes the next one
	Plain  uint64 // an older schema without a load id that can be driven as it is; 0 is none
	Table  string // of the note, in a SQL database
	Prefix string // of the note's keys, in a key-value store; it ends with a slash
}

// Want is what a run was asked for. Seed and Size are zero where whatever the
// database holds is right.
type Want struct {
	Seed, Size uint64
	Facts      map[string]string   // further facts that a load writes into the note
	Fits       func(n *Note) error // says why data that were loaded cannot be driven; may be nil
	Replacing  func(what string)   // is told in one sentence before a load replaces data; may be nil
}

// Store is a database that holds the data and their note.
type Store interface {
	// Read returns the note; there may be none.
	Read(ctx context.Context) (Note, error)
	// Foreign says what of somebody else's is where the data would be; empty if
	// there is nothing.
	Foreign(ctx context.Context) (string, error)
	// Begin writes the note of a load that starts, and clears away what an earlier
	// load has left.
	Begin(ctx context.Context, n Note) error
	// Resumable returns how many things an interrupted load of the same data has
	// left that can be kept.
	Resumable(ctx context.Context, n Note) (uint64, error)
	// Fill makes the things that are not there yet.
	Fill(ctx context.Context, n Note, progress func(done uint64)) error
	// Finish writes that the data are loaded, if the note is still that of n's load;
	// of another's it returns a *StateError and writes nothing.
	Finish(ctx context.Context, n Note) error
	// NextRun raises the run number from n.Run by one, if it is still that.
	NextRun(ctx context.Context, n Note) error
}

// Set is the data of one workload in one open database.
type Set struct {
	kind     Kind
	store    Store
	want     *Want
	volatile bool // the database keeps nothing

	load  string // the id of the load that Load made; empty: it was not called
	note  Note   // what Attach or Look found
	run   uint64 // the run that Attach took
	found bool
	doing string // what is done with the data, in words; empty: whatever is there is told
}

// New returns the data of a kind in a store. want is read at each call.
func New(kind Kind, database db.Database, store Store, want *Want) *Set {
	s := &Set{kind: kind, store: store, want: want}
	if v, ok := database.(db.Volatile); ok {
		s.volatile = v.Volatile()
	}
	return s
}

// Volatile says that the database keeps nothing.
func (s *Set) Volatile() bool { return s.volatile }

// Found says that Attach or Look was there.
func (s *Set) Found() bool { return s.found }

// Note is what Attach or Look found.
func (s *Set) Note() Note { return s.note }

// Run is the number of the run that Attach took, or that Look goes by; 0 before.
func (s *Set) Run() uint64 { return s.run }

// Client refuses a client that there is not, and all of them before the set is attached
// to.
func (s *Set) Client(i, clients int) error {
	switch {
	case s.run == 0:
		return fmt.Errorf("open client %d of the %s: it is not attached yet", i, s.kind.Noun)
	case i < 0 || i >= clients:
		return fmt.Errorf("open client %d of the %s: it has clients 0 to %d", i, s.kind.Noun, clients-1)
	}
	return nil
}

// Adopt takes over what another set has found, whatever the database holds: to
// look at one node of the same cluster by itself.
func (s *Set) Adopt(other *Set) {
	s.note, s.run, s.found = other.note, other.run, true
	s.note.Load = "" // a node that holds other data is told as wrong
}

// Load makes the data, and returns how many things an interrupted load had left and
// this one kept. Data of this program that are there already are replaced. What
// somebody else made is never touched.
func (s *Set) Load(ctx context.Context, progress func(done, total uint64)) (kept uint64, err error) {
	w := s.want
	if w.Size == 0 || w.Seed == 0 {
		return 0, fmt.Errorf("load the %s: the number of %s and the seed must be given, and not be 0", s.kind.Noun, s.kind.Things)
	}
	n, err := s.store.Read(ctx)
	if err != nil {
		return 0, err
	}
	if !s.volatile {
		if err := s.mayLoad(ctx, n); err != nil {
			return 0, err
		}
	}
	if s.sameLoading(n) {
		if kept, err = s.store.Resumable(ctx, n); err != nil {
			return 0, err
		}
	}
	if kept == 0 {
		s.tellReplaced(n)
		n = Note{
			Found: true, Schema: s.kind.Schema, Load: rand.Text(), State: stateLoading,
			Seed: w.Seed, Size: w.Size, Facts: w.Facts,
		}
		if err := s.store.Begin(ctx, n); err != nil {
			return 0, fmt.Errorf("begin the load: %w", err)
		}
	}
	report := Progress{Report: progress, Total: w.Size}
	reached := kept
	err = s.store.Fill(ctx, n, func(done uint64) { reached = done; report.Done(done) })
	if err == nil {
		err = s.store.Finish(ctx, n)
	}
	if errors.As(err, new(*StateError)) {
		return 0, err
	}
	if err != nil {
		return 0, &StoppedError{Done: reached, Size: w.Size, kind: s.kind, Err: err}
	}
	s.load = n.Load
	return kept, nil
}

// StoppedError says that a load ended before its end. The same load again goes on
// with what the database has kept of it.
type StoppedError struct {
	Done, Size uint64
	kind       Kind
	Err        error
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("the load stopped after %d of %d %s (run `%s` again to finish it): %v", e.Done, e.Size, e.kind.Things, e.kind.Make, e.Err)
}

func (e *StoppedError) Unwrap() error { return e.Err }

// sameLoading says that an interrupted load was of the data that are asked for.
func (s *Set) sameLoading(n Note) bool {
	return n.Problem == nil && n.Schema == s.kind.Schema && n.State == stateLoading &&
		n.Seed == s.want.Seed && n.Size == s.want.Size && maps.Equal(n.Facts, s.want.Facts)
}

// mayLoad refuses to touch what this program did not make.
func (s *Set) mayLoad(ctx context.Context, n Note) error {
	if n.Found {
		if !s.readable(&n) {
			return s.schemaError(n)
		}
		return nil
	}
	what, err := s.store.Foreign(ctx)
	if err != nil {
		return err
	}
	if what != "" {
		return StateErrorf("%s, which was not made by this program: rename or remove it, or use another database", what)
	}
	return nil
}

// tellReplaced says which data a load is about to replace. Whether somebody still
// drives them nobody can know: a run that was killed says no more than one that
// goes on.
func (s *Set) tellReplaced(n Note) {
	if s.volatile || s.want.Replacing == nil || n.State != stateLoaded || n.Problem != nil {
		return
	}
	what := fmt.Sprintf("the load replaces the %s of %d %s and seed %d that was in this database", s.kind.Noun, n.Size, s.kind.Things, n.Seed)
	switch n.Run {
	case 0:
	case 1:
		what += ", on which 1 run has begun: one that still drives it ends without a verdict"
	default:
		what += fmt.Sprintf(", on which %d runs have begun: one that still drives it ends without a verdict", n.Run)
	}
	s.want.Replacing(what)
}

// maxRun is the last run number that an ID can hold.
const maxRun = 1<<history.RunBits - 1

// attachTries bounds how often a run number that another process took first is
// asked for again.
const attachTries = 100

// Attach finds the data that an earlier load has left and takes the next run
// number. It returns a *StateError if there are none that can be used, or if they are
// no longer those that Load has made, and a *MismatchError if they are others than those that were asked for.
func (s *Set) Attach(ctx context.Context) error {
	if s.volatile {
		return s.attachVolatile()
	}
	for try := 1; ; try++ {
		n, err := s.store.Read(ctx)
		if err != nil {
			return err
		}
		if s.load != "" && n.Found && n.Load != s.load {
			return s.kind.overtaken()
		}
		if err := s.fits(&n); err != nil {
			return err
		}
		if err = s.store.NextRun(ctx, n); err == nil {
			s.take(n, "driven")
			return nil
		}
		// A number taken without knowing it is only skipped.
		again := db.ClassOf(err) == db.Aborted || db.ClassOf(err) == db.Unknown
		if !again || try == attachTries || ctx.Err() != nil {
			return fmt.Errorf("write the next run number into the %s: %w", s.kind.Noun, err)
		}
	}
}

// take takes over what the database says about the data in it.
func (s *Set) take(n Note, doing string) {
	s.note, s.run, s.found, s.doing = n, n.Run+1, true, doing
}

// Look finds the data as Attach does, and only reads. The run number that it goes
// by is one that nobody has taken.
func (s *Set) Look(ctx context.Context) error {
	if s.volatile {
		return s.attachVolatile()
	}
	n, err := s.store.Read(ctx)
	if err == nil {
		err = s.fits(&n)
	}
	if err != nil {
		return err
	}
	s.take(n, "downloaded")
	return nil
}

// attachVolatile attaches to a database that keeps nothing: the data are what the
// configuration says.
func (s *Set) attachVolatile() error {
	if s.want.Size == 0 {
		return fmt.Errorf("attach to the %s: this database keeps nothing, so the number of %s must be given", s.kind.Noun, s.kind.Things)
	}
	s.note = Note{Found: true, Schema: s.kind.Schema, State: stateLoaded, Seed: s.want.Seed, Size: s.want.Size, Facts: s.want.Facts}
	s.run, s.found = min(s.run+1, maxRun), true
	return nil
}

// fits says whether data can be used as they are asked for.
func (s *Set) fits(n *Note) error {
	noun, things, remake := s.kind.Noun, s.kind.Things, s.kind.Make
	w := s.want
	switch {
	case n.Unread != nil:
		return StateErrorf("there is no %s in this database that its user can read (%v): run `%s` first", noun, n.Unread, remake)
	case !n.Found:
		return StateErrorf("there is no %s in this database: run `%s` first", noun, remake)
	case !s.readable(n):
		return s.schemaError(*n)
	case n.Problem != nil:
		return n.Problem
	case n.State != stateLoaded:
		return StateErrorf("the load was not finished: run `%s` again", remake)
	case w.Seed != 0 && w.Seed != n.Seed:
		return MismatchErrorf("the %s in this database was loaded with seed %d, and seed %d is asked for: leave the seed out, or run `%s`", noun, n.Seed, w.Seed, remake)
	case w.Size != 0 && w.Size != n.Size:
		return MismatchErrorf("the %s in this database has %d %s, and %d are asked for: leave the number out, or run `%s`", noun, n.Size, things, w.Size, remake)
	case n.Run >= maxRun:
		return StateErrorf("all %d run numbers of this %s are used: run `%s` to load it anew", maxRun, noun, remake)
	case w.Fits == nil:
		return nil
	}
	return w.Fits(n)
}

// Replaced returns a *StateError if the data in the database are now of another
// load than those that this set is attached to, and nil if they are not or if
// nobody can tell: a database that has lost them is to be held to what it promised.
func (s *Set) Replaced(ctx context.Context) error {
	n, err := s.again(ctx)
	if err != nil {
		return nil
	}
	return s.sameLoad(n)
}

// Unchanged is Replaced for who needs the answer: not to be able to tell is an
// error, too.
func (s *Set) Unchanged(ctx context.Context) error {
	n, err := s.again(ctx)
	if err != nil {
		return err
	}
	return s.sameLoad(n)
}

// again reads the note of data that are attached to, where it can tell of another
// load.
func (s *Set) again(ctx context.Context) (Note, error) {
	if s.volatile || s.doing == "" {
		return Note{}, nil
	}
	return s.store.Read(ctx)
}

// sameLoad holds the id of a load that was found later against the one that is
// attached to. Data get an id by being loaded and never lose it.
func (s *Set) sameLoad(n Note) error {
	if n.Load == "" || n.Load == s.note.Load {
		return nil
	}
	return StateErrorf("the %s in this database was loaded anew while it was %s: what was recorded of it is gone, so that nothing can be said about it", s.kind.Noun, s.doing)
}

// Progress reports now and then: progress is for people.
type Progress struct {
	Report func(done, total uint64) // may be nil
	Total  uint64
	last   time.Time
}

const progressEvery = 100 * time.Millisecond

// Done tells how much is done.
func (p *Progress) Done(n uint64) {
	if p.Report == nil {
		return
	}
	if now := time.Now(); n >= p.Total || now.Sub(p.last) >= progressEvery {
		p.last = now
		p.Report(n, p.Total)
	}
}
