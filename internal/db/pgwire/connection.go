package pgwire

import (
	"context"
	"time"

	"stroppy/internal/db/wire"
)

// largeWrite is the size from which a write runs beside the reading: a server
// that waits until its results are read does not read either, and then a client
// that only writes would wait forever. Below it, the buffers of the two sockets
// hold what is written.
const largeWrite = 32 << 10

// connection is a hijacked connection with its time limits.
type connection struct {
	wire.Deadlines
	reader reader
	ended  func() bool // nil, or whether the server has ended it
	last   time.Time   // when arm was called last

	writing chan error // of a large write under way
}

// arm makes the next answer end with ctx, or with the time-out if bounded.
func (b *connection) arm(ctx context.Context, bounded bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now := time.Now()
	if now.Sub(b.last) > wire.RestTime && b.ended != nil && b.ended() {
		return wire.ErrEnded
	}
	b.last = now
	return b.Arm(ctx, now, bounded)
}

// send writes messages, whose answers the caller alone reads next, and returns how many
// bytes went out at least. buf must not change until sent has returned.
func (b *connection) send(buf []byte) (int, error) {
	if len(buf) < largeWrite {
		return wire.RoundTrip(b.Conn, buf)
	}
	b.writing = make(chan error, 1)
	go func() {
		_, err := b.Conn.Write(buf)
		b.writing <- err
	}()
	return 0, nil
}

// sent waits for the end of a large write, which the server has answered.
func (b *connection) sent() error {
	if b.writing == nil {
		return nil
	}
	err := <-b.writing
	b.writing = nil
	return err
}

// close drops the connection without a word, and waits until nothing uses it.
func (b *connection) close() {
	_ = b.Conn.Close() // an error of a connection that is given up changes nothing
	_ = b.sent()
	b.Disarm()
}

// terminate ends the session in good order.
func (b *connection) terminate() {
	if b.Conn.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = b.Conn.Write([]byte(framed('X', ""))) // a courtesy: the server notices the end of the connection too
	}
	b.close()
}
