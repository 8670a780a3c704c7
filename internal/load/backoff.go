package load

import (
	"context"
	"math/rand/v2"
	"time"
)

// The bounds of the waits. A conflict is over when the other transaction is, in
// a millisecond or so; a server that restarts takes seconds, and must not meet
// all its clients at once.
const (
	conflictBase = 500 * time.Microsecond
	conflictCap  = 100 * time.Millisecond
	outageBase   = time.Millisecond
	outageCap    = time.Second
)

// flushBefore is the wait before which a client hands its records over, so that
// no record stays in memory alone for much longer than a second.
const flushBefore = 250 * time.Millisecond

// fullJitter is the n-th wait, from 0: evenly distributed in (0, min(most,
// base*2^n)], as in Brooker, "Exponential Backoff And Jitter", AWS Architecture
// Blog, 2015.
func fullJitter(r *rand.Rand, base, most time.Duration, n int) time.Duration {
	limit := most
	if n < 32 && base<<n < most {
		limit = base << n
	}
	return 1 + time.Duration(r.Int64N(int64(limit)))
}

// sleep returns after d, or false as soon as ctx is done.
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
	case <-ctx.Done():
		w.timer.Stop()
		return false
	}
}
