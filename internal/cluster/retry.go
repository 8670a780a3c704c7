package cluster

import (
	"context"
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

// PollEvery is the time between two tries of Retry.
const PollEvery = 10 * time.Millisecond

// Retry tries until it succeeds. When ctx ends the error says why, and what the
// last try said that ctx did not cut off.
func Retry(ctx context.Context, try func() error) error { return RetryEvery(ctx, PollEvery, try) }

// RetryEvery is Retry with so much time between two tries.
func RetryEvery(ctx context.Context, every time.Duration, try func() error) error {
	var said error
	for {
		err := try()
		if err == nil {
			return nil
		}
		if said == nil || ctx.Err() == nil {
			said = err
		}
		if ended := Sleep(ctx, every); ended != nil {
			return fmt.Errorf("%w; at last: %w", ended, said)
		}
	}
}
