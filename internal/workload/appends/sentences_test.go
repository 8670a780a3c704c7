package appends

import (
	"fmt"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/db/memory"
	"stroppy/internal/history"
)

// reader looks up in a recording what findings state of it.
type reader struct {
	*testing.T
	where string
	reads map[string]bool // by transaction, list and elements
	wrote map[string]history.ID
	by    map[history.ID]*history.Transaction
	end   map[string]string
}

func newReader(t *testing.T, where string, run *recordedRun) *reader {
	r := &reader{T: t, where: where, reads: map[string]bool{}, wrote: map[string]history.ID{}, by: map[history.ID]*history.Transaction{}, end: map[string]string{}}
	for i := range run.transactions {
		tx := &run.transactions[i]
		r.by[tx.ID] = tx
		left, appended := tx.Elements, uint64(0)
		for _, op := range tx.Ops {
			if op.Observed {
				r.reads[key(tx.ID, listName(op.Object), shown(op.Object, left[:op.Value]))] = true
				left = left[op.Value:]
			}
			if op.Write {
				r.wrote[listName(op.Object)+" "+elementName(op.Object, newElement(tx.ID, appended))] = tx.ID
				appended++
			}
		}
	}
	var list []uint64
	for i, row := range run.rows {
		list = append(list, newElement(row.Transaction, uint64(row.Number)))
		if i+1 == len(run.rows) || run.rows[i+1].Object != row.Object {
			r.end[listName(row.Object)] = fmt.Sprint(shown(row.Object, list))
			list = nil
		}
	}
	return r
}

func key(id history.ID, list string, read fact.Elements) string { return fmt.Sprint(id, list, read) }

// shown is a list as a fact has it.
func shown(object uint64, list []uint64) fact.Elements {
	e := fact.Elements{Length: len(list), Last: []fact.Element{}}
	for _, element := range list[max(0, len(list)-12):] {
		e.Last = append(e.Last, fact.Element(elementName(object, element)))
	}
	return e
}

func (r *reader) read(by fact.Member, on fact.Object, read fact.Elements) {
	r.Helper()
	if by.ID == 0 && r.end[string(on)] != fmt.Sprint(read) {
		r.Errorf("%s: %s in the end is said to be %v, and is %v", r.where, on, read, r.end[string(on)])
	} else if by.ID != 0 && !r.reads[key(by.ID, string(on), read)] {
		r.Errorf("%s: %v is said to have read %s as %v: %+v", r.where, by.ID, on, read, r.by[by.ID])
	}
}

func (r *reader) appended(by fact.Member, on fact.Object, element fact.Element) {
	r.Helper()
	if r.wrote[string(on)+" "+string(element)] != by.ID {
		r.Errorf("%s: %v is said to have appended %s to %s", r.where, by.ID, element, on)
	}
}

// has holds that a list that was read has an element, or has it not.
func (r *reader) has(read fact.Elements, element fact.Element, want bool) {
	r.Helper()
	there := read.Length > len(read.Last) && want
	for _, e := range read.Last {
		there = there || e == element
	}
	if there != want {
		r.Errorf("%s: %v has %s: %v", r.where, read, element, there)
	}
}

// fact holds a fact to the recording.
func (r *reader) fact(is fact.Fact) {
	r.Helper()
	switch f := is.(type) {
	case fact.ListGarbage:
		r.read(f.Reader, f.On, f.Read)
	case fact.ListOtherBase:
		r.read(f.Reader, f.On, f.Read)
		r.read(f.Writer, f.On, f.Base)
		r.appended(f.Writer, f.On, f.Element)
	case fact.ListContradiction:
		r.read(f.Reader, f.On, f.Read)
	case fact.ListAborted:
		r.read(f.Reader, f.On, f.Read)
		r.appended(f.Writer, f.On, f.Element)
		if r.by[f.Writer.ID].Outcome != history.Aborted {
			r.Errorf("%s: %v was not aborted", r.where, f.Writer.ID)
		}
	case fact.ListDirtyAppend:
		r.appended(f.By, f.On, f.Element)
		r.appended(f.Writer, f.On, f.Behind)
	case fact.ListHalfway:
		r.read(f.Reader, f.On, f.Read)
		r.appended(f.Writer, f.On, f.Read.Last[len(f.Read.Last)-1])
	case fact.ListFuture:
		r.read(f.Reader, f.On, f.Read)
		r.appended(f.Reader, f.On, f.Element)
	case fact.ListOwnMissing:
		r.read(f.Reader, f.On, f.Read)
		r.appended(f.Reader, f.On, f.Element)
		r.has(f.Read, f.Element, false)
	case fact.ListPartSeen:
		r.read(f.Reader, f.On, f.Read)
		r.read(f.Reader, f.SeenOn, f.Seen)
		r.appended(f.Writer, f.On, f.Missing)
		r.has(f.Read, f.Missing, false)
	case fact.ListLost:
		r.appended(f.By, f.On, f.Element)
		r.has(f.End, f.Element, false)
	case fact.ListGhost:
		r.appended(f.By, f.On, f.Element)
		if r.by[f.By.ID].Outcome != f.Outcome {
			r.Errorf("%s: %v was not %v", r.where, f.By.ID, f.Outcome)
		}
	case fact.ListDisorder:
		r.appended(f.By, f.On, f.Element)
	case fact.ListLostUpdate:
		r.read(f.First, f.On, f.Read)
		r.read(f.Second, f.On, f.Read)
	case fact.ListCycle:
		for _, why := range f.Why {
			r.fact(why)
		}
	default:
		r.edge(is)
	}
}

func (r *reader) edge(is fact.Fact) {
	r.Helper()
	switch f := is.(type) {
	case fact.ListEnded:
		if first, second := r.by[f.First.ID], r.by[f.Second.ID]; second.Try-first.End != int64(f.By) || f.By <= 0 {
			r.Errorf("%s: %v ended at %d and %v began at %d, which is said to be %d later", r.where, first.ID, first.End, second.ID, second.Try, f.By)
		}
	case fact.ListSession:
		if f.First.ID.Client() != f.Second.ID.Client() || f.First.ID >= f.Second.ID {
			r.Errorf("%s: %+v", r.where, f)
		}
	case fact.ListSaw:
		r.read(f.Second, f.On, f.Read)
		r.appended(f.First, f.On, f.Element)
		r.has(f.Read, f.Element, true)
	case fact.ListMissed:
		r.read(f.First, f.On, f.Read)
		r.appended(f.Second, f.On, f.Element)
		r.has(f.Read, f.Element, false)
	case fact.ListBehind:
		r.appended(f.First, f.On, f.Element)
		r.appended(f.Second, f.On, f.Next)
	case fact.ListOverwritten:
		r.appended(f.First, f.On, f.Element)
		r.read(fact.Member{}, f.On, f.End)
	default:
		r.Errorf("%s: nothing holds %T to the recording", r.where, is)
	}
}

func (r *reader) span(s *check.Span) {
	r.Helper()
	tx := r.by[s.ID]
	begin := tx.Try
	if tx.Outcome == history.Aborted {
		begin = tx.Sent
	}
	if s.Outcome != tx.Outcome || s.Begin != begin || s.End != tx.End && !(tx.Outcome == history.Unknown && s.End == 0) {
		r.Errorf("%s: the span of %v is %+v, and the recording has %+v", r.where, s.ID, s, tx)
	}
	for _, did := range s.Did {
		switch f := did.(type) {
		case fact.ListAppended:
			r.appended(fact.Member{ID: s.ID}, f.On, f.Element)
		case fact.ListOwnRead:
			if f.Known {
				r.read(fact.Member{ID: s.ID}, f.On, f.Read)
			}
		}
	}
}

// TestFindingsAgreeWithRecordings checks that each fact in a finding can be derived again from the recording, for
// all mutants.
func TestFindingsAgreeWithRecordings(t *testing.T) {
	seeds, found := uint64(2), map[string]int{}
	if !testing.Short() {
		seeds = 12
	}
	for _, mutant := range memory.Mutants() {
		for seed := range seeds {
			for _, rate := range []string{"0.05", "0.01"} {
				address := fmt.Sprintf("memory:?mutant=%s&rate=%s&seed=%d", mutant.Name, rate, seed+1)
				run := runOn(t, address, 8, 400, seed+1)
				r := newReader(t, address, run)
				for _, result := range run.check(t, true) {
					for _, f := range result.Findings {
						found[f.Kind()]++
						for _, is := range f.Instances {
							r.fact(is)
						}
						for i := range f.Cycle {
							r.edge(f.Cycle[i].Why)
						}
						for i := range f.Spans {
							r.span(&f.Spans[i])
						}
					}
				}
			}
		}
	}
	for _, kind := range []string{"list-cycle", "list-other-base", "list-aborted-read", "list-lost-update", "list-append-lost", "list-ghost", "list-part-seen"} {
		if found[kind] == 0 {
			t.Errorf("no recording shows %s: %v", kind, found)
		}
	}
}
