package dataset

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/workload"
)

// Attach finds the data of an earlier load and takes the next run number. Its errors are:
//   - a *StateError if there are no usable data, or if Load has made others;
//   - a *MismatchError if they are not the wanted data;
//   - a *ChangedError if they have changed since the last run.
func (s *Set) Attach(ctx context.Context) (workload.Loaded, error) {
	if s.volatile {
		return s.attachVolatile(ctx)
	}
	if s.taken != nil {
		return s.attachTaken(ctx)
	}
	for try := 1; ; try++ {
		m, err := s.readFitting(ctx)
		if err != nil {
			return workload.Loaded{}, err
		}
		was := strconv.FormatUint(m.Run, 10)
		if err = s.identify(ctx, &m); err != nil && err != errChanged {
			return workload.Loaded{}, err
		}
		if err == nil {
			err = s.store.Set(ctx, nameRun, strconv.FormatUint(m.Run+1, 10), nameRun, was)
		}
		if err == nil {
			return s.attach(m, driven), s.store.Prepare(ctx, m.Run+1)
		}
		// A number taken without knowing it is only skipped.
		again := db.ClassOf(err) == db.Aborted || db.ClassOf(err) == db.Unknown
		if !again || try == attachTries || ctx.Err() != nil {
			return workload.Loaded{}, fmt.Errorf("write the next run number into the %s: %w", s.kind.Noun, err)
		}
	}
}

// readFitting reads the metadata and refuses data that cannot be used.
func (s *Set) readFitting(ctx context.Context) (Metadata, error) {
	m, err := s.store.Read(ctx)
	switch {
	case err != nil:
		return m, err
	case s.load != "" && m.Found && m.Load != s.load:
		return m, s.kind.overtaken()
	}
	return m, s.fits(&m)
}

// attach uses the metadata of the database.
func (s *Set) attach(m Metadata, doing string) workload.Loaded {
	s.found, s.run, s.doing = m, m.Run+1, doing
	return s.loaded(&m)
}

// AttachReadOnly finds the data as Attach does, and only reads. It uses a run number that no
// run has taken. The error is a *ChangedError if another program has made the data anew
// since the last run.
func (s *Set) AttachReadOnly(ctx context.Context) (workload.Loaded, error) {
	if s.volatile {
		return s.attachVolatile(ctx)
	}
	m, err := s.readFitting(ctx)
	if err == nil {
		err = s.madeAnew(ctx, &m)
	}
	if err != nil {
		return workload.Loaded{}, err
	}
	return s.attach(m, downloaded), nil
}

// attachVolatile attaches to a database that keeps nothing. The configuration describes the
// data.
func (s *Set) attachVolatile(ctx context.Context) (workload.Loaded, error) {
	w := &s.expected
	if w.Size == 0 {
		return workload.Loaded{}, fmt.Errorf("attach to the %s: this database keeps nothing, so the number of %s must be given", s.kind.Noun, s.kind.Things)
	}
	facts, err := w.Facts(ctx)
	if err != nil {
		return workload.Loaded{}, err
	}
	before := min(s.run, maxRun-1)
	if s.taken != nil {
		before = s.taken.run - 1
	}
	m := Metadata{Found: true, Schema: s.kind.Schema, State: stateLoaded, Seed: w.Seed, Size: w.Size, Run: before, Facts: facts}
	return s.attach(m, ""), w.Take(&m)
}

// fits accepts data, or returns an error if they do not fit the configuration.
func (s *Set) fits(m *Metadata) error {
	noun, things, remake := s.kind.Noun, s.kind.Things, s.kind.Make
	w := &s.expected
	switch {
	case m.Unread != nil:
		return StateErrorf("there is no %s in this database that its user can read (%v): run `%s` first", noun, m.Unread, remake)
	case !m.Found:
		return StateErrorf("there is no %s in this database: run `%s` first", noun, remake)
	case !s.kind.readable(m.Schema):
		return s.schemaError(*m)
	case m.Problem != nil:
		return m.Problem
	case m.State != stateLoaded:
		return StateErrorf("the load was not finished: run `%s` again", remake)
	case w.Seed != 0 && w.Seed != m.Seed:
		return MismatchErrorf("the %s in this database was loaded with seed %d, and seed %d is asked for: leave the seed out, or run `%s`", noun, m.Seed, w.Seed, remake)
	case w.Size != 0 && !w.AnySize && w.Size != m.Size:
		return MismatchErrorf("the %s in this database has %s %s, and %s are asked for: leave the number out, or run `%s`", noun, check.Group(m.Size), things, check.Group(w.Size), remake)
	case m.Run >= maxRun:
		return StateErrorf("all %d run numbers of this %s are used: run `%s` to load it again", maxRun, noun, remake)
	}
	return w.Take(m)
}

// CheckUnchanged returns a *StateError if another load has replaced the data of this set. It
// returns nil if that cannot be read: a database that has lost its data is checked against its
// promise.
func (s *Set) CheckUnchanged(ctx context.Context) error {
	if err := s.unchanged(ctx); errors.As(err, new(*StateError)) {
		return err
	}
	return nil
}

// unchanged is CheckUnchanged, and also returns the error of a failed read. Each load gives its
// data an id that stays.
func (s *Set) unchanged(ctx context.Context) error {
	if s.volatile || s.doing == "" {
		return nil
	}
	m, err := s.store.Read(ctx)
	if err != nil || m.Load == "" || m.Load == s.found.Load {
		return err
	}
	return StateErrorf("the %s in this database was loaded again while it was %s: the recorded data are gone, so nothing can be checked", s.kind.Noun, s.doing)
}
