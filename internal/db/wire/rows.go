package wire

import (
	"io"
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
