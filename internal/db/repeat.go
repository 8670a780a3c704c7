package db

import (
	"context"
	"time"
)

const (
	repeatTries = 20
	repeatPause = 10 * time.Millisecond // before the second try, twice as long before the third …
)

// Transactor is a session of any model whose transactions are begun and committed.
type Transactor interface {
	Begin(ctx context.Context, readOnly bool) error
	Commit(ctx context.Context) error
	Reset(ctx context.Context) error
}

// Repeat carries out one transaction, and repeats it after an error that allows a new try. An earlier try may have been
// applied, so change must write the same every time. If change returns stop, Repeat ends.
func Repeat(ctx context.Context, s Transactor, stop error, change func() error) error {
	var lost error // why the session could not be reset
	for try := 1; ; try++ {
		err := lost
		if err == nil {
			err = s.Begin(ctx, false)
		}
		if err == nil {
			err = change()
		}
		if err == nil {
			err = s.Commit(ctx)
		}
		if err == nil || try == repeatTries || ctx.Err() != nil || err == stop {
			return err
		}
		class := ClassOf(err)
		if class == Fatal || class == Constraint {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try) * repeatPause):
		}
		if lost = nil; class == Unknown || class == Unavailable {
			lost = s.Reset(ctx)
		}
	}
}
