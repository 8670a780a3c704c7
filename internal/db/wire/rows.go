package wire

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"

	"stroppy/internal/db"
)

// Rows provides the rows of a bulk load to a reader in the server's format.
type Rows struct {
	Load            *db.BulkLoad
	Append          func(dst []byte, row []db.Value) ([]byte, error) // writes one row
	Header, Trailer string

	Count int64 // rows made so far
	Err   error // of Append; no row follows it

	// A library may read in its own goroutine and not wait for it after a cancellation.
	mu     sync.Mutex
	row    []db.Value
	opened bool
	ended  bool
	buf    []byte // made and not yet read from its place at
	at     int
}

// Next returns the next row, which is valid until the next call, or nil at the end.
func (r *Rows) Next() []db.Value {
	if r.row == nil {
		r.row = make([]db.Value, len(r.Load.Types))
	}
	clear(r.row)
	if r.ended || !r.Load.Next(r.row) {
		r.ended = true
		return nil
	}
	r.Count++
	return r.row
}

// insertBytes is the approximate length of an INSERT. It is below the limits of all servers: 4 MiB for MySQL's
// smallest default of max_allowed_packet, and 16 MiB for CockroachDB.
const insertBytes = 1 << 20

// Inserts passes the rows as INSERTs of up to about most rows to send, each with a copy of its first row. literal
// appends a value in the server's SQL.
func (r *Rows) Inserts(
	most int, literal func(dst []byte, t db.Type, v *db.Value) []byte, send func(first []db.Value, statement string) error,
) error {
	head := "INSERT INTO " + r.Load.Table + " (" + strings.Join(r.Load.Columns, ", ") + ") VALUES "
	text, rows := []byte(head), 0
	var first []db.Value
	for more := true; more; {
		row := r.Next()
		if more = row != nil; more {
			if rows++; rows == 1 {
				first = slices.Clone(row)
				for i := range first {
					first[i].Text = bytes.Clone(first[i].Text)
				}
			}
			text = append(AppendList(text, r.Load.Types, row, literal), ',')
		}
		if rows > 0 && (!more || rows >= most || len(text) >= insertBytes) {
			if err := send(first, string(text[:len(text)-1])); err != nil {
				return err
			}
			text, rows = append(text[:0], head...), 0
		}
	}
	return nil
}

// AppendList appends values as a list in parentheses.
func AppendList(dst []byte, types []db.Type, row []db.Value, literal func(dst []byte, t db.Type, v *db.Value) []byte) []byte {
	before := byte('(')
	for i, t := range types {
		dst = literal(append(dst, before), t, &row[i])
		before = ','
	}
	return append(dst, ')')
}

// Stop ends the rows, so that the source is not called any more.
func (r *Rows) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened, r.ended, r.buf, r.at = true, true, nil, 0
}

func (r *Rows) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == len(r.buf) {
		r.fill()
	}
	switch {
	case r.at < len(r.buf):
	case r.Err != nil:
		return 0, r.Err
	default:
		return 0, io.EOF
	}
	n := copy(p, r.buf[r.at:])
	r.at += n
	return n, nil
}

// fill fetches the next chunk, which is empty at the end.
func (r *Rows) fill() {
	const enough = 64 << 10 // bytes
	r.buf, r.at = r.buf[:0], 0
	if !r.opened {
		r.buf, r.opened = append(r.buf, r.Header...), true
	}
	for !r.ended && len(r.buf) < enough {
		row := r.Next()
		if row == nil {
			r.buf = append(r.buf, r.Trailer...)
			return
		}
		if r.buf, r.Err = r.Append(r.buf, row); r.Err != nil {
			r.ended = true
		}
	}
}
