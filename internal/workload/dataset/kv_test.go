package dataset

import (
	"context"
	"errors"
	"testing"

	"stroppy/internal/db"
)

// unreachable is a session whose server is lost. Its context ends when it could not be
// reset.
type unreachable struct {
	transactor
	end context.CancelFunc
}

var errLost, errAway = &db.Error{Class: db.Unavailable, Err: errors.New("lost")}, &db.Error{Class: db.Unavailable, Err: errors.New("away")}

func (unreachable) Begin(context.Context, bool) error { return errLost }
func (u unreachable) Reset(context.Context) error     { u.end(); return errAway }

// TestWriteReportsWhy: a write that ends because the session could not be reset says why.
func TestWriteReportsWhy(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	if err := write(ctx, unreachable{end: end}, nil); err != error(errAway) {
		t.Errorf("the error is %v", err)
	}
}
