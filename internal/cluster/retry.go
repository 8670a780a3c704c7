package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lock is a mutex for which one can wait no longer than a context lasts. Create
// one with NewLock.
type Lock chan struct{}

// NewLock returns a lock that nobody holds.
func NewLock() Lock { return make(Lock, 1) }

// Acquire takes the lock, or returns why ctx has ended.
func (l Lock) Acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Try takes the lock if nobody holds it.
func (l Lock) Try() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// Release gives the lock back.
func (l Lock) Release() { <-l }

// Sleep waits, or returns why ctx has ended.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// PollEvery is the least time between two tries of Retry, and pollAtMost the longest.
const PollEvery, pollAtMost = 10 * time.Millisecond, 50 * time.Millisecond

// Retry tries until it succeeds: what takes long is tried less often, because each try takes
// processors from the servers. It succeeds later than it could by a tenth of the time that it
// took, or by PollEvery, and never by more than 50 ms. When ctx ends the error says why, and what
// the last try said that ctx did not cut off. If that try had no answer in its own time, which
// says nothing of what is waited for, it says the answer before that too.
func Retry(ctx context.Context, try func() error) error {
	began := time.Now()
	return retry(ctx, func() time.Duration { return min(max(PollEvery, time.Since(began)/10), pollAtMost) }, try)
}

// RetryEvery is Retry with so much time between two tries.
func RetryEvery(ctx context.Context, every time.Duration, try func() error) error {
	return retry(ctx, func() time.Duration { return every }, try)
}

func retry(ctx context.Context, pause func() time.Duration, try func() error) error {
	var said, silent error
	for {
		err := try()
		switch {
		case err == nil:
			return nil
		case said == nil:
			said = err
		case ctx.Err() != nil:
		case timedOut(err):
			silent = err
		default:
			said, silent = err, nil
		}
		ended := Sleep(ctx, pause())
		switch {
		case ended != nil && silent != nil:
			return fmt.Errorf("%w; at last: %w; before that: %w", ended, silent, said)
		case ended != nil:
			return fmt.Errorf("%w; at last: %w", ended, said)
		}
	}
}

// timedOut says whether a try had no answer in its own time.
func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
