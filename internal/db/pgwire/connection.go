package pgwire

import (
	"context"
	"time"

	"stroppy/internal/db/wire"
)

// largeWrite is the size from which a write runs concurrently with reading. A server that waits for its
// results to be read does not read, so a client that only writes would block forever. Smaller writes fit into
// the socket buffers.
const largeWrite = 32 << 10

// connection is a hijacked connection with its time limits.
type connection struct {
	wire.Deadlines
	reader reader
	ended  func() bool // nil, or whether the server has ended it
	last   time.Time   // when arm was called last

	writing chan error // of a large write under way
}

// arm sets the deadline of the next answer: the end of ctx and, if bounded, the time-out.
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

// send writes messages and returns the minimal number of bytes sent. Only the caller may read the answers.
// buf must not change until sent returns.
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

// sent waits for the end of a large write that the server has answered.
func (b *connection) sent() error {
	if b.writing == nil {
		return nil
	}
	err := <-b.writing
	b.writing = nil
	return err
}

// close closes the connection without a message, and waits until it is unused.
func (b *connection) close() {
	_ = b.Conn.Close() // an error of a connection that is given up changes nothing
	_ = b.sent()
	b.Disarm()
}

// terminate ends the session with a Terminate message.
func (b *connection) terminate() {
	if b.Conn.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = b.Conn.Write([]byte(framed('X', ""))) // a courtesy: the server notices the end of the connection too
	}
	b.close()
}
