package db

import (
	"context"
	"errors"
	"testing"
)

// unreachable is a session whose server is lost. Its context ends when it could not be
// reset.
type unreachable struct {
	Transactor
	end context.CancelFunc
}

var errLost, errAway = &Error{Class: Unavailable, Err: errors.New("lost")}, &Error{Class: Unavailable, Err: errors.New("away")}

func (unreachable) Begin(context.Context, bool) error { return errLost }
func (u unreachable) Reset(context.Context) error     { u.end(); return errAway }

// TestRepeatReportsFailedReset checks that a repetition returns the reason if the session could not be reset.
func TestRepeatReportsFailedReset(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	if err := Repeat(ctx, unreachable{end: end}, nil, nil); err != error(errAway) {
		t.Errorf("the error is %v", err)
	}
}
