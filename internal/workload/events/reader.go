package events

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload/dataset"
)

// piece is one row or key of an entry.
type piece struct {
	stream, place, number uint64
	writer                history.ID
	member                uint32
	void                  bool
	body                  []byte
}

// reader puts the entries of a log together again, proves each, and keeps what it
// found. Pieces come in the order of streams, places and numbers.
type reader struct {
	formula *formula
	streams uint64
	end     *history.EndWriter

	first piece  // of the entry that was begun; at place 0: none was
	next  uint64 // number of the piece that is expected
	value []byte
	wrong string // what is wrong with the entry so far

	scratch []byte
	lasts   map[uint64]history.Object // by stream: its last entry, where there is one or an origin
	origins map[uint64]bool           // the streams whose origin was found, in SQL
	agrees  bool                      // the streams' ends are where their entries end
	seen    uint64                    // the pieces, and the places of all ends, together: it only grows
}

func (r *reader) add(p piece) error {
	r.seen++
	if p.stream != r.first.stream || p.place != r.first.place {
		if err := r.finish(); err != nil {
			return err
		}
		r.first, r.next, r.value, r.wrong = p, 0, r.value[:0], ""
		r.first.body = nil // it is the caller's
	}
	switch {
	case r.wrong != "":
	case p.writer != r.first.writer || p.member != r.first.member || p.void != r.first.void:
		r.wrong = fmt.Sprintf("its piece %d is of %s", p.number, p.what())
	case p.number < r.next:
		r.wrong = fmt.Sprintf("it has piece %d twice", p.number)
	case p.number > r.next:
		r.wrong = fmt.Sprintf("its piece %d is missing", r.next)
	case p.void && p.number > 0:
		r.wrong = fmt.Sprintf("it is a tombstone, and has a piece %d", p.number)
	case len(r.value)+len(p.body) > maxValue:
		r.wrong = fmt.Sprintf("it has more than %d bytes, which is longer than any event", maxValue)
	default:
		r.value = append(r.value, p.body...)
	}
	r.next = p.number + 1
	return nil
}

func (p *piece) what() string {
	if p.void {
		return fmt.Sprintf("the tombstone of %v", p.writer)
	}
	return fmt.Sprintf("event %d of %v", p.member, p.writer)
}

// finish ends the entry that was begun. One that is not whole has the length 0.
func (r *reader) finish() error {
	p := r.first
	if p.place == 0 {
		return nil
	}
	r.first = piece{}
	r.note(p.stream, p.place, p.writer)
	if r.wrong == "" && !p.void {
		r.wrong, r.scratch = r.formula.fault(r.value, p.writer, p.member, r.scratch)
	}
	row := history.Row{Transaction: p.writer, Number: p.member, Object: p.stream, Version: p.place}
	if p.void {
		row.Mark = history.Tombstone
	}
	var err error
	switch {
	case r.wrong != "":
		row.State = history.Broken
		err = r.unexpected("stream %d has at place %d what should be %s: %s", p.stream, p.place, p.what(), r.wrong)
	case !p.void:
		row.State, row.Amount = history.Whole, int64(len(r.value))
	}
	return cmp.Or(err, r.end.Row(row))
}

func (r *reader) note(stream, place uint64, writer history.ID) {
	if place >= r.lasts[stream].Version {
		r.lasts[stream] = history.Object{N: stream, Version: place, Writer: writer}
	}
}

// unexpected keeps what no load and no client made.
func (r *reader) unexpected(format string, args ...any) error {
	return r.end.Unexpected(fmt.Sprintf(format, args...))
}

func (r *reader) row(row []db.Value) error {
	p := piece{
		stream: uint64(row[0].Int), place: uint64(row[1].Int), number: uint64(row[2].Int),
		writer: history.ID(row[3].Int), member: uint32(row[4].Int), void: row[5].Null, body: row[5].Text,
	}
	switch {
	case slices.ContainsFunc(row[:5], func(v db.Value) bool { return v.Null || v.Int < 0 }):
	case p.place > 0 && row[4].Int <= math.MaxUint32:
		return r.add(p)
	case p.place == 0 && p.number == 0 && p.writer == 0 && p.void:
		r.origins[p.stream] = true
		r.note(p.stream, 0, 0)
		return nil
	}
	return r.unexpected("a row of stream %d, place %d, piece %d, writer %d and member %d, which no client writes", row[0].Int, row[1].Int, row[2].Int, row[3].Int, row[4].Int)
}

// streamEnd keeps where a stream ends, where the database says so by itself.
func (r *reader) streamEnd(stream, place uint64, writer history.ID, report *dataset.Progress) error {
	r.seen += place
	report.Total += place
	return r.end.Object(history.Object{N: stream, Version: place, Writer: writer})
}

// closeEnds ends the entries of a database that says where the streams end.
func (r *reader) closeEnds(ends map[uint64]uint64) error {
	if err := r.finish(); err != nil {
		return err
	}
	r.agrees = true
	for stream, place := range ends {
		r.agrees = r.agrees && r.lasts[stream].Version == place
	}
	return nil
}

// closeRows ends the entries of a SQL database, where a stream ends with its last
// entry. A stream without its origin is not there.
func (r *reader) closeRows() error {
	if err := r.finish(); err != nil {
		return err
	}
	r.agrees = true
	for stream := range r.streams {
		if r.origins[stream] {
			if err := r.end.Object(r.lasts[stream]); err != nil {
				return err
			}
		}
	}
	return nil
}
