package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// wire is the connection below the client library, which knows what the library
// does not tell: how many bytes went out, why the connection ended, and when to
// give up waiting. The library's own time-outs and its goroutine for contexts are
// not used.
type wire struct {
	*net.TCPConn
	limit time.Duration // of an answer

	out    int64 // bytes that the kernel has taken
	broken error // the first error of the connection

	// deadline is the one that is set on the connection. It is moved on only when
	// less than the limit is left, not for each answer, because setting it costs
	// a timer: an answer may take up to an eighth longer than the limit.
	deadline time.Time

	// The watched context. A session is used with the same one again and again,
	// so that it is registered once.
	done  <-chan struct{}
	stop  func() bool
	fired chan struct{}
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.TCPConn.Read(p)
	w.note(err)
	return n, err
}

// Write implements net.Conn.
func (w *wire) Write(p []byte) (int, error) {
	n, err := w.TCPConn.Write(p)
	w.out += int64(n)
	w.note(err)
	return n, err
}

func (w *wire) note(err error) {
	if err != nil && w.broken == nil {
		w.broken = err
	}
}

// arm makes the next answer end with ctx, or with the limit if bounded.
func (w *wire) arm(ctx context.Context, bounded bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if done := ctx.Done(); done != w.done {
		w.disarm()
		if done != nil {
			fired, conn := make(chan struct{}), w.TCPConn
			w.stop = context.AfterFunc(ctx, func() {
				_ = conn.SetDeadline(time.Unix(1, 0)) // a closed connection needs none
				close(fired)
			})
			w.done, w.fired = done, fired
		}
	}
	var want time.Time
	if bounded {
		now := time.Now()
		if w.deadline.Sub(now) >= w.limit {
			return nil
		}
		want = now.Add(w.limit + w.limit/8)
	} else if w.deadline.IsZero() {
		return nil
	}
	w.deadline = want
	if err := w.SetDeadline(want); err != nil {
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

// because says why a connection gave no answer.
func (w *wire) because(ctx context.Context, err error) error {
	if w.broken != nil {
		err = w.broken
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no answer within %v", w.limit)
	}
	return fmt.Errorf("the connection was lost: %w", err)
}
