package load

import (
	"context"
	"math/rand/v2"
	"time"
)

// These constants limit the waits. A conflict lasts as long as the other transaction, about a millisecond. A
// server restart takes seconds, and the server must not meet all its clients at once.
const (
	conflictBase = 500 * time.Microsecond
	conflictCap  = 100 * time.Millisecond
	outageBase   = time.Millisecond
	outageCap    = time.Second
)

// flushBefore is the wait before which a client delivers its records, so that no record stays in its buffer
// for much longer than a second.
const flushBefore = 250 * time.Millisecond

// fullJitter returns the n-th wait, from 0: uniformly distributed in (0, min(most, base*2^n)] (Brooker,
// "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
func fullJitter(r *rand.Rand, base, most time.Duration, n int) time.Duration {
	limit := most
	if n < 32 && base<<n < most {
		limit = base << n
	}
	return 1 + time.Duration(r.Int64N(int64(limit)))
}

// sleep returns true after d, or false as soon as ctx is done.
func (w *worker) sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	if d >= flushBefore {
		w.flush()
	}
	w.timer.Reset(d)
	select {
	case <-w.timer.C:
		return true
	case <-w.wake:
		w.timer.Stop()
		w.woken = true
		return true
	case <-ctx.Done():
		w.timer.Stop()
		return false
	}
}
