package pgwire

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	// readRoom is where a session's buffer begins. pgproto3's own reader begins with
	// 8 kB, which was a third of what each of 10,000 connections took.
	readRoom = 1 << 10
	// readMost is up to where it grows because much arrives at once. It grows further
	// for a longer message alone.
	readMost = 32 << 10
	// longest is the length that a message of a working server stays below: a field has
	// at most 1 GB (PostgreSQL documentation, Appendix K, "PostgreSQL Limits").
	longest = 1 << 30
)

// reader takes the messages of a server apart (PostgreSQL documentation 55.7,
// "Message Formats"). It knows those that a session without COPY gets after its start,
// and passes over the unneeded ones.
type reader struct {
	source io.Reader
	buf    []byte // nil at rest
	from   int    // where the next message begins
	to     int    // where what was read ends

	row      pgproto3.DataRow
	complete pgproto3.CommandComplete
	ready    pgproto3.ReadyForQuery
}

// restBuffers are those of readers at rest, so that a connection whose answer has not come
// has none.
var restBuffers = sync.Pool{New: func() any { return new([readRoom]byte) }}

// unneeded are ParseComplete, BindComplete, NoData, ParameterDescription, ParameterStatus
// and NotificationResponse.
const unneeded = "12ntSA"

// Receive returns the next message, which is valid until the next call. The error of
// the source is returned as it is, and io.ErrUnexpectedEOF where a message is cut.
func (r *reader) Receive() (pgproto3.BackendMessage, error) {
	const header = 5
	for {
		if err := r.need(header); err != nil {
			return nil, err
		}
		kind, length := r.buf[r.from], int64(binary.BigEndian.Uint32(r.buf[r.from+1:]))
		if length < 4 || length > longest {
			return nil, fmt.Errorf("the server sent a message %q of %d bytes", kind, length)
		}
		whole := int(length) + 1
		if err := r.need(whole); err != nil {
			return nil, err
		}
		body := r.buf[r.from+header : r.from+whole : r.from+whole]
		r.from += whole
		if strings.IndexByte(unneeded, kind) >= 0 {
			continue
		}
		m := r.message(kind, body)
		if m == nil {
			return nil, fmt.Errorf("the server sent an unexpected message %q", kind)
		}
		return m, m.Decode(body)
	}
}

// message is what a kind of message is decoded to.
func (r *reader) message(kind byte, body []byte) pgproto3.BackendMessage {
	switch kind {
	case 'D':
		if len(body) >= 2 { // as many values as come, where pgproto3 makes room for 32
			r.row.Values = slices.Grow(r.row.Values[:0], int(binary.BigEndian.Uint16(body)))
		}
		return &r.row
	case 'C':
		return &r.complete
	case 'Z':
		return &r.ready
	case 'T':
		return &pgproto3.RowDescription{}
	case 'I':
		return &pgproto3.EmptyQueryResponse{}
	case 'E':
		return &pgproto3.ErrorResponse{}
	case 'N':
		return &pgproto3.NoticeResponse{}
	}
	return nil
}

// rest gives up the buffer, unless something in it has not been received or it has grown.
// What Receive returned last is not valid any more.
func (r *reader) rest() {
	if r.from == r.to && len(r.buf) == readRoom {
		restBuffers.Put((*[readRoom]byte)(r.buf))
		r.buf, r.from, r.to = nil, 0, 0
	}
}

// need waits until n bytes from the next message's beginning on are there.
func (r *reader) need(n int) error {
	for r.to-r.from < n {
		r.makeRoom(n)
		got, err := r.source.Read(r.buf[r.to:])
		r.to += got
		switch {
		case got > 0:
		case err == io.EOF && r.to > r.from:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return nil
}

// makeRoom makes room for at least one byte. The buffer grows with what has arrived,
// never with what a length promises.
func (r *reader) makeRoom(n int) {
	full := r.to == len(r.buf)
	if r.from > 0 && (full || r.from == r.to || r.from+n > len(r.buf)) {
		r.to = copy(r.buf, r.buf[r.from:r.to])
		r.from = 0
	}
	if r.buf == nil {
		r.buf = restBuffers.Get().(*[readRoom]byte)[:]
		return
	}
	if r.to == len(r.buf) || full && len(r.buf) < readMost {
		bigger := make([]byte, 2*len(r.buf))
		copy(bigger, r.buf[:r.to])
		r.buf = bigger
	}
}
