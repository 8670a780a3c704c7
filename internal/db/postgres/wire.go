package postgres

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// largeWrite is the size from which a write runs beside the reading: a server
// that waits until its results are read does not read either, and then a client
// that only writes would wait for ever. Below it, the buffers of the two sockets
// hold what is written.
const largeWrite = 32 << 10

// wire is a bare connection with its time limits.
type wire struct {
	conn     net.Conn
	frontend *pgproto3.Frontend
	timeout  time.Duration // of an answer

	// deadline is the one that is set on the connection. It is moved on only when
	// less than the time-out is left, not for each answer, because setting it
	// costs a timer: an answer may take up to an eighth longer than the time-out.
	deadline time.Time

	// The watched context. A session is used with the same one again and again,
	// so that it is registered once.
	done  <-chan struct{}
	stop  func() bool
	fired chan struct{}

	peeker *peeker
	last   time.Time // when arm was called last

	writing chan error // of a large write under way
}

// restTime is how long a connection must have been at rest to be looked at
// before it is used. What is then sent on one that the server had ended before
// would be lost in the network, and its outcome unknown without need.
const restTime = 10 * time.Millisecond

var errEnded = errors.New("the server had ended the connection")

// arm makes the next answer end with ctx, or with the time-out if bounded.
func (w *wire) arm(ctx context.Context, bounded bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if done := ctx.Done(); done != w.done {
		w.disarm()
		if done != nil {
			fired, conn := make(chan struct{}), w.conn
			w.stop = context.AfterFunc(ctx, func() {
				_ = conn.SetDeadline(time.Unix(1, 0)) // a closed connection needs none
				close(fired)
			})
			w.done, w.fired = done, fired
		}
	}
	now := time.Now()
	if now.Sub(w.last) > restTime && w.peeker.ended() {
		return errEnded
	}
	w.last = now
	var want time.Time
	if bounded {
		if w.deadline.Sub(now) >= w.timeout {
			return nil
		}
		want = now.Add(w.timeout + w.timeout/8)
	} else if w.deadline.IsZero() {
		return nil
	}
	w.deadline = want
	if err := w.conn.SetDeadline(want); err != nil {
		return err
	}
	if ctx.Err() != nil { // it may have ended between, and its deadline was overwritten
		return context.Cause(ctx)
	}
	return nil
}

// disarm forgets the watched context.
func (w *wire) disarm() {
	if w.stop != nil && !w.stop() {
		<-w.fired
		w.deadline = time.Unix(1, 0)
	}
	w.done, w.stop, w.fired = nil, nil, nil
}

// send writes messages and returns how many bytes went out at least. buf must
// not change until sent has returned.
func (w *wire) send(buf []byte) (int, error) {
	if len(buf) < largeWrite {
		return w.conn.Write(buf)
	}
	w.writing = make(chan error, 1)
	go func() {
		_, err := w.conn.Write(buf)
		w.writing <- err
	}()
	return 0, nil
}

// sent waits for the end of a large write, which the server has answered.
func (w *wire) sent() error {
	if w.writing == nil {
		return nil
	}
	err := <-w.writing
	w.writing = nil
	return err
}

// close drops the connection without a word, and waits until nothing uses it.
func (w *wire) close() {
	_ = w.conn.Close() // an error of a connection that is given up changes nothing
	_ = w.sent()
	w.disarm()
}

// terminate ends the session in good order.
func (w *wire) terminate() {
	if message, err := (&pgproto3.Terminate{}).Encode(nil); err == nil && w.conn.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = w.conn.Write(message) // a courtesy: the server notices the end of the connection too
	}
	w.close()
}
