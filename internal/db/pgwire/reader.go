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
	// readRoom is the initial size of a session's buffer. pgproto3's own reader starts with 8 kB, a third of
	// the memory of each of 10,000 connections.
	readRoom = 1 << 10
	// readMost is the size up to which the buffer grows if much data arrives at once. It grows further only
	// for a longer message.
	readMost = 32 << 10
	// longest is the limit of a message's length: a field has at most 1 GB (PostgreSQL documentation,
	// Appendix K, "PostgreSQL Limits").
	longest = 1 << 30
)

// reader splits the messages of a server (PostgreSQL documentation 55.7, "Message Formats"). It supports the
// messages of a started session without COPY, and skips unneeded ones.
type reader struct {
	source io.Reader
	buf    []byte // nil at rest
	from   int    // where the next message begins
	to     int    // where what was read ends

	row      pgproto3.DataRow
	complete pgproto3.CommandComplete
	ready    pgproto3.ReadyForQuery
}

// restBuffers holds the buffers of idle readers, so that a connection that waits for its answer has none.
var restBuffers = sync.Pool{New: func() any { return new([readRoom]byte) }}

// unneeded lists ParseComplete, BindComplete, NoData, ParameterDescription, ParameterStatus and
// NotificationResponse.
const unneeded = "12ntSA"

// Receive returns the next message, which is valid until the next call. It returns an error of the source
// unchanged, and io.ErrUnexpectedEOF for a truncated message.
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

// message decodes a message of the given kind.
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

// rest releases the buffer, unless it contains unread data or has grown. The last message becomes invalid.
func (r *reader) rest() {
	if r.from == r.to && len(r.buf) == readRoom {
		restBuffers.Put((*[readRoom]byte)(r.buf))
		r.buf, r.from, r.to = nil, 0, 0
	}
}

// need reads until n bytes from the beginning of the next message are available.
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

// makeRoom makes room for at least one byte. The buffer grows with the received data, never with a claimed
// length.
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
