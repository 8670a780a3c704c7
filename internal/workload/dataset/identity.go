package dataset

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/db"
)

// # Identification of a dataset
//
// The metadata hold the load and the number of runs. They do not show whether the tables beside them still hold that
// load. So a run that attaches takes a census of the data and compares it with two things:
//
//   - The seal. A load, and the last run to end while no other goes on, write the census of
//     what they left into the metadata. While no run has begun since, each part must be the
//     same: its rows, and a digest of their contents.
//   - The rule of the workload (Expected.Rule). If a run has begun since the seal and has not
//     ended, it may have been killed or may still change the data. The sums of the data must
//     then agree with each other, unless somebody changes them at this moment.
//
// Within the bounds of a census each change between two runs is found. In a larger part, only the rows that a census
// reads and the count of up to censusCount rows are compared. A change of another row is not found. A changed text that
// is represented by its length is found only if the length changes. After a run that was killed, a change that keeps
// the rule is not found. A table that was made again with the same rows is the same data.
//
// Nothing here distinguishes a change by another program from rows that the database has lost. So the error names both
// causes.

// The names of the seal in the metadata.
const (
	nameEnded = "ended" // the number of runs that have ended, and change nothing any more
	nameSeal  = "seal"  // the number of runs that had begun when the parts were written; empty: the parts are not there
)

// namePart is the name under which the metadata keep part i of the census.
func namePart(i int) string { return "part/" + strconv.Itoa(i) }

// seal describes the data at the end of the last run, in the metadata.
type seal struct {
	known bool // the load has made room for a seal
	ended uint64
	runs  string
	parts [maxParts]string
}

// parseSeal removes a seal from values and returns it. Invalid values are not a seal.
func parseSeal(values map[string]string) (s seal) {
	ended, err := strconv.ParseUint(values[nameEnded], 10, 64)
	s.known, s.ended, s.runs = err == nil, ended, values[nameSeal]
	for i := range s.parts {
		s.parts[i] = values[namePart(i)]
	}
	return s
}

// starting returns the names and values of a load that starts.
func (s seal) starting() (list [][2]string) {
	list = append(list, [2]string{nameEnded, strconv.FormatUint(s.ended, 10)}, [2]string{nameSeal, noSeal})
	for i := range maxParts {
		list = append(list, [2]string{namePart(i), noSeal})
	}
	return list
}

// noSeal is the value of a name that is not sealed. Some databases keep no empty text.
const noSeal = "-"

// sealed reports whether the data were sealed after the last run that has begun.
func (m *Metadata) sealed() bool {
	return m.seal.known && m.seal.ended == m.Run && m.seal.runs == strconv.FormatUint(m.Run, 10)
}

// ChangedError is the error if the data have changed since the last run or the load.
type ChangedError struct {
	*StateError
	What string // the change, in words that begin with the subject
}

func (e *ChangedError) Unwrap() error { return e.StateError }

// identify returns a *ChangedError if the data of m differ from the description in the metadata. It returns errChanged
// if another run has begun meanwhile.
func (s *Set) identify(ctx context.Context, m *Metadata) error {
	if s.load != "" && m.Run == 0 { // this process has just made them
		return nil
	}
	var before Census
	for range mostLooks {
		census, err := s.store.Census(ctx, *m)
		if err != nil && db.ClassOf(err) == db.Aborted { // by transactions that change the data
			return nil
		}
		if err != nil {
			return err
		}
		what := s.difference(m, census)
		if what == "" {
			return nil
		}
		now, err := s.store.Read(ctx)
		if err != nil {
			return err
		}
		if now.Load != m.Load || now.Run != m.Run || now.seal != m.seal {
			return errChanged
		}
		if m.sealed() || before != nil && census.texts() == before.texts() {
			return s.changed(m, what)
		}
		before = census
		if err := awaitLook(ctx); err != nil {
			return err
		}
	}
	return nil // a run goes on, and its changes cannot be distinguished from others
}

// madeAnew returns a *ChangedError if another program has made the data of m anew since a run
// sealed them. The metadata still describe the run, so a check would report each of its
// transactions as lost. If the census fails, madeAnew returns nil: the download that follows
// reports the error.
func (s *Set) madeAnew(ctx context.Context, m *Metadata) error {
	if s.expected.Anew == nil || m.Run == 0 || !m.sealed() {
		return nil
	}
	census, err := s.store.Census(ctx, *m)
	if err != nil || !s.expected.Anew(census) {
		return nil
	}
	if what := s.difference(m, census); what != "" {
		return s.changed(m, what)
	}
	return nil
}

// changed returns the error for data with a change, in words that begin with the subject.
func (s *Set) changed(m *Metadata, what string) error {
	of := "the load"
	if m.Run > 0 {
		of = fmt.Sprintf("run %d", m.Run)
	}
	const why = "another program changed the data, or the database lost some"
	return &ChangedError{What: what, StateError: &StateError{fmt.Errorf(
		"the %s in this database is not what %s left: %s (%s): run `%s` to load it anew",
		s.kind.Noun, of, what, why, s.kind.Make)}}
}

// difference returns a difference between a census and the metadata; empty: there is none.
func (s *Set) difference(m *Metadata, census Census) string {
	for _, p := range census {
		if p.Missing != nil {
			return fmt.Sprintf("%s cannot be read (%v)", p.Name, p.Missing)
		}
	}
	if !m.sealed() {
		if s.expected.Rule == nil {
			return ""
		}
		return s.expected.Rule(m, census)
	}
	what, fewer := m.seal.difference(census)
	if what != "" && !fewer && s.expected.Explains != nil && s.expected.Explains(m, census) {
		return ""
	}
	return what
}

// difference returns a difference between a census and the seal; empty: there is none. If a part has fewer rows, it is
// named first.
func (s *seal) difference(census Census) (what string, fewer bool) {
	for i := range census {
		p := &census[i]
		was := s.parts[i]
		if was == noSeal || was == p.text() {
			continue
		}
		rows, _, _ := strings.Cut(was, " ")
		number, more := strings.CutSuffix(rows, "+")
		n, err := strconv.ParseUint(number, 10, 64)
		switch {
		case err != nil:
			return p.Name + " is not described by the metadata, which were changed", true
		case p.Rows < n:
			return fmt.Sprintf("%s had %s %s and has %s", p.Name, check.Group(n), p.Things, check.Group(p.Rows)), true
		case what != "":
		case p.Rows > n:
			what = fmt.Sprintf("%s had %s %s and has %s", p.Name, check.Group(n), p.Things, check.Group(p.Rows))
		case more == p.Whole:
			return p.Name + " is not described by the metadata, which were changed", true
		default:
			what = fmt.Sprintf("%s has other contents in its %s %s", p.Name, check.Group(n), p.Things)
		}
	}
	return what, false
}

// Leave implements workload.Workload.
func (s *Set) Leave(ctx context.Context) error {
	if s.volatile || s.doing != driven || s.taken != nil {
		return nil
	}
	for try := 1; ; try++ {
		m, err := s.store.Read(ctx)
		if err != nil {
			return err
		}
		if m.Load != s.found.Load || !m.seal.known {
			return nil
		}
		was := strconv.FormatUint(m.seal.ended, 10)
		m.seal.ended++
		switch err = s.store.Set(ctx, nameEnded, strconv.FormatUint(m.seal.ended, 10), nameEnded, was); {
		case err == nil && m.seal.ended != m.Run:
			return nil // another run goes on, or was killed
		case err == nil:
			return s.seal(ctx, m, nameRun, strconv.FormatUint(m.Run, 10))
		case db.ClassOf(err) != db.Aborted || try == attachTries || ctx.Err() != nil:
			return err
		}
	}
}

// seal writes the census of the data into the metadata m, while the guard has its value.
func (s *Set) seal(ctx context.Context, m Metadata, guard, was string) error {
	census, err := s.store.Census(ctx, m)
	if err != nil {
		return err
	}
	values := [][2]string{{nameSeal, noSeal}} // until all parts are written
	for i, text := range census.texts() {
		if i < len(census) {
			values = append(values, [2]string{namePart(i), text})
		}
	}
	values = append(values, [2]string{nameSeal, strconv.FormatUint(m.Run, 10)})
	for _, v := range values {
		if err := s.store.Set(ctx, v[0], v[1], guard, was); err != nil {
			return err
		}
	}
	return nil
}
