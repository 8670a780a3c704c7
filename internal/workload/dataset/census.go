package dataset

import (
	"context"
	"errors"
	"fmt"

	"stroppy/internal/db"
)

// The bounds of a census: the rows of one part that it reads, the bytes of these rows, and the further rows that it
// counts. A census reads a part within the bounds completely. If a part is larger, a SQL database gives the rows at one
// end of its key. A database of records gives the first records in the order of their ids.
const (
	censusRows  = 250_000
	censusBytes = 64 << 20
	censusCount = 5_000_000
)

// Part is the result of a census of one table, one collection or one range of keys.
type Part struct {
	Name   string // in the form of a sentence: "the table stroppy_ledger"
	Things string // the name of its rows: "rows" or "records"
	Rows   uint64 // rows found; more may be there unless Whole is set
	Whole  bool   // every row was read
	Digest uint64 // of the rows that were read, in any order; 0: the database does not give them
	// Sums are the sums of the columns of numbers, by name, modulo 2^64, over the rows that were read.
	Sums map[string]int64
	// Missing is the reason if the server answered that the part cannot be read; else nil.
	Missing error
}

// Census is the result for all parts of the data, in the order of the model.
type Census []Part

// maxParts bounds the parts in the metadata.
const maxParts = 6

// text returns the form of a part in the metadata.
func (p *Part) text() string {
	more := ""
	if !p.Whole {
		more = "+"
	}
	return fmt.Sprintf("%d%s %016x", p.Rows, more, p.Digest)
}

// texts returns the form of a census in the metadata, in maxParts places.
func (c Census) texts() (list [maxParts]string) {
	for i := range c {
		list[i] = c[i].text()
	}
	return list
}

// tally adds up the rows of one part. A row has the columns, followed by the columns of list for each item of its list.
// The sum of a column of numbers is kept.
type tally struct {
	part    Part
	columns []db.Field
	list    []db.Field
	sums    []int64 // of the columns
	bytes   int
}

func newTally(name, things string, columns, list []db.Field) *tally {
	part := Part{Name: name, Things: things, Whole: true}
	return &tally{part: part, columns: columns, list: list, sums: make([]int64, len(columns))}
}

// errCensusFull ends the reading of a part that is larger than the bounds.
var errCensusFull = errors.New("the part is larger than the bounds of a census")

// begin is called before each row. It returns errCensusFull if the row is beyond the bounds.
func (t *tally) begin() error {
	if t.part.Rows >= censusRows || t.bytes >= censusBytes {
		t.part.Whole = false
		return errCensusFull
	}
	t.part.Rows++
	return nil
}

// row takes the columns of a row.
func (t *tally) row(values []db.Value) error {
	if err := t.begin(); err != nil {
		return err
	}
	h := hashStart
	for i := range values {
		v, kind := &values[i], db.Integer
		if i < len(t.columns) {
			kind = t.columns[i].Type
		} else if len(t.list) > 0 {
			kind = t.list[(i-len(t.columns))%len(t.list)].Type
		}
		switch {
		case v.Null:
			h = h.word(nullMark)
		case kind == db.Text:
			h = h.text(v.Text)
			t.bytes += len(v.Text)
		default:
			h = h.word(uint64(v.Int))
			if i < len(t.columns) {
				t.sums[i] += v.Int
			}
		}
	}
	t.bytes += 8 * len(values)
	t.part.Digest += h.end()
	return nil
}

// close returns the part after its last row, which ended with err.
func (t *tally) close(err error) (Part, error) {
	if errors.Is(err, errCensusFull) {
		err = nil
	}
	t.part.Sums = make(map[string]int64, len(t.columns))
	for i, c := range t.columns {
		if c.Type != db.Text {
			t.part.Sums[c.Name] = t.sums[i]
		}
	}
	return t.part, err
}

// hash is the state of a digest of one row: FNV-1a over words of 64 bits, with a final mix
// (Appleby, MurmurHash3), so that the sum over rows depends on all bits.
type hash uint64

const (
	hashStart hash = 14695981039346656037
	hashPrime hash = 1099511628211
	nullMark       = 0x9e3779b97f4a7c15
)

func (h hash) word(w uint64) hash { return (h ^ hash(w)) * hashPrime }

func (h hash) text(b []byte) hash {
	for _, c := range b {
		h = (h ^ hash(c)) * hashPrime
	}
	return h.word(uint64(len(b)))
}

func (h hash) end() uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return uint64(h ^ h>>33)
}

// Listing describes a table of a SQL database for a census.
type Listing struct {
	Table   string
	Columns []string
	Types   []db.Type
	Key     string // the columns of an index, in the form of ORDER BY; empty: there is none
	// Bytes is the length of the longest row, if rows can be long; nil: they cannot.
	Bytes func(m *Metadata) int
	// Optional is set if the table may not be there.
	Optional bool
}

// rows returns the number of rows of the table that a census reads.
func (l *Listing) rows(m *Metadata) int {
	if l.Bytes == nil {
		return censusRows
	}
	return min(censusRows, censusBytes/max(l.Bytes(m), 1)+1)
}

func (l *Listing) columns() (list []db.Field) {
	for i, name := range l.Columns {
		list = append(list, db.Field{Name: name, Type: l.Types[i]})
	}
	return list
}

// censusOf takes a census of one part after the other.
func censusOf[P any](
	ctx context.Context, parts []P, take func(ctx context.Context, part P) (Part, error),
) (Census, error) {
	var all Census
	for _, part := range parts {
		p, err := take(ctx, part)
		if err != nil {
			return nil, fmt.Errorf("read the identity of the data: %s: %w", p.Name, err)
		}
		all = append(all, p)
	}
	return all, nil
}
