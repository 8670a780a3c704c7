// Package wait waits for a condition, a time or a lock until a context ends.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lock is a mutex with a wait that ends with a context. Create it with NewLock.
type Lock chan struct{}

// NewLock returns a free lock.
func NewLock() Lock { return make(Lock, 1) }

// Acquire takes the lock, or returns the cause of the end of ctx.
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

// Try takes the lock if nobody holds it, and reports whether it did.
func (l Lock) Try() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// Release releases the lock.
func (l Lock) Release() { <-l }

// Sleep waits for d, or returns the cause of the end of ctx.
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

// PollEvery is the shortest interval between two attempts of Retry, and pollAtMost the longest.
const PollEvery, pollAtMost = 10 * time.Millisecond, 50 * time.Millisecond

// Retry calls try until it succeeds. The interval is a tenth of the time since the start, between PollEvery and 50
// ms, because attempts take processor time from the servers. When ctx ends, the error contains the cause and the last
// error that ctx did not cause. If that error is a time-out of the attempt itself, the error before it is added.
func Retry(ctx context.Context, try func() error) error {
	began := time.Now()
	return retry(ctx, func() time.Duration { return min(max(PollEvery, time.Since(began)/10), pollAtMost) }, try)
}

// RetryEvery is like Retry with a fixed interval.
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

// timedOut reports whether an attempt ended by its own time-out.
func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// SeenWithin bounds the wait for an effect that comes by itself.
const SeenWithin = 2 * time.Second

// Until calls seen until it returns nil, for at most limit. It returns the last error of seen.
func Until(ctx context.Context, limit time.Duration, seen func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := seen()
		if err == nil || Sleep(ctx, 5*time.Millisecond) != nil {
			return err
		}
	}
}

// Healing returns the Heal of an Effect. It undoes the fault and verifies within a limit that its effect has ended.
func Healing(limit time.Duration, heal func() error, ended func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (seen string, err error) {
		if err := Until(ctx, SeenWithin, heal); err != nil {
			return "", err
		}
		err = Until(ctx, limit, func() (err error) { seen, err = ended(ctx); return err })
		return seen, err
	}
}
