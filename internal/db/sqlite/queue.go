package sqlite

import (
	"context"
	"errors"
	"time"

	"stroppy/internal/db"
)

// queue is the queue of this process's writers for SQLite's only write lock, in order of arrival. A channel of
// capacity 1 is such a queue: Go passes a free place to the sender that has waited longest.
//
// SQLite has no queue: its busy handler sleeps and retries, so the order is random. It is still used for other
// processes. With 16 sessions and synchronous=full, the slowest of 4,000 transfers took 26–41 ms with the queue and
// 1,450–1,550 ms with the handler. The rates were 3,100–4,100 and 2,500–2,600 transfers per second.
type queue chan struct{}

// errQueue is the error of waiting in the queue for longer than busy_timeout. SQLite answers the same if a lock is
// not granted in time.
var errQueue = errors.New("database is locked: the write lock was not free within busy_timeout")

// enter waits for the write lock until timeout or the end of ctx. The caller provides a stopped timer. The error's
// class is Aborted.
func (q queue) enter(ctx context.Context, timer *time.Timer, timeout time.Duration) error {
	select {
	case q <- struct{}{}:
		return nil
	default:
	}
	const op = "wait for the write lock"
	timer.Reset(timeout)
	defer timer.Stop()
	select {
	case q <- struct{}{}:
		return nil
	case <-ctx.Done():
		return cancelled(op, ctx.Err())
	case <-timer.C:
		return &db.Error{Class: db.Aborted, Code: "SQLITE_BUSY", Op: op, Err: errQueue}
	}
}

// leave passes the write lock to the next writer.
func (q queue) leave() { <-q }

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
