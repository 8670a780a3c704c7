package sqlite

import (
	"context"
	"errors"
	"time"

	"stroppy/internal/db"
)

// queue is where the writers of this process wait for SQLite's one write lock,
// first come, first served. A channel of capacity 1 is such a queue: Go hands a
// freed place to the sender that has waited longest.
//
// SQLite itself has no queue: its busy handler sleeps and tries again, so that
// luck decides who is next, and whoever has just committed is the luckiest, as
// it alone is awake. That handler remains for other processes. Measured with 16
// sessions, synchronous=full, 4,000 transfers of two legs, on two busy cores:
//
//	                     transfers/s     p99       slowest transfer
//	WAL, queue           3,100–4,100     16–18 ms  26–41 ms
//	WAL, handler         2,500–2,600     2 ms      1,450–1,550 ms
//	delete, queue        1,060–1,080     31–51 ms  44–73 ms
//	delete, handler      520–990         4–18 ms   3,900–6,900 ms
//
// The handler's better p99 is that of the session which runs on alone while
// fifteen sleep: the same luck also keeps its page cache warm, which with
// synchronous=off halves the CPU of a transfer (40 µs against 77 µs).
type queue chan struct{}

func newQueue() queue { return make(queue, 1) }

// errQueue is what waiting in the queue longer than busy_timeout ends with: the
// same that SQLite itself answers when the lock is not granted in time.
var errQueue = errors.New("database is locked: the write lock was not free within busy_timeout")

// enter waits for the write lock, as long as timeout and ctx allow; timer is
// the caller's own, stopped. The error's class is Aborted.
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

// leave hands the write lock to the next in the queue.
func (q queue) leave() { <-q }

// stoppedTimer makes a timer for enter.
func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
