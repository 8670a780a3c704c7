package sqltest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// Contexts uses one session with several contexts in turn.
func Contexts(t *testing.T, d db.SQL, b *Bank) {
	b.Make(t, d, 2)
	EachMode(t, func(t *testing.T, mode db.Mode) {
		s := Session(t, d, mode, "")
		for i := range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			drivertest.Must(t, Transact(ctx, s, false, i%2 == 0, b.Touch(0, 1)))
			cancel() // the session is idle: this must not harm the next transaction
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		WantError(t, "a context that has ended", Transact(ctx, s, false, false, b.Touch(0, 1)), db.Unavailable, "")
	})
}

// Bad is a statement that fails before a commit and does not harm the session.
type Bad struct {
	Statement Statement
	Flush     bool
	Code      string
}

// BadStatements runs each bad statement between two good ones. It also calls the methods of a session in a wrong order.
func BadStatements(t *testing.T, d db.SQL, b *Bank, bad []Bad) {
	b.Make(t, d, 3)
	few := b.See(0)
	few.Args = few.Args[:1]
	bad = append(bad, Bad{few, false, ""})
	EachMode(t, func(t *testing.T, mode db.Mode) {
		s, ctx := Session(t, d, mode, ""), t.Context()
		before := b.Balance(t, s, 0)
		for i, x := range bad {
			good := b.Touch(0, 100)
			WantError(t, fmt.Sprint(i), Transact(ctx, s, false, x.Flush, good, x.Statement, good), db.Fatal, x.Code)
			WantError(t, fmt.Sprint(i), Transact(ctx, s, false, x.Flush, good, b.See(0), x.Statement, good), db.Fatal, x.Code)
		}
		if after := b.Balance(t, s, 0); after != before {
			t.Errorf("statements beside those that failed were applied: %d, then %d", before, after)
		}
		misuse(t, s, b)
	})
}

func misuse(t *testing.T, s db.SQLSession, b *Bank) {
	ctx, x := t.Context(), b.See(0)
	_, err := s.Do(ctx, x.S, x.Args)
	WantError(t, "Do without Begin", err, db.Fatal, "")
	WantError(t, "Flush without Begin", s.Flush(ctx), db.Fatal, "")
	WantError(t, "Commit without Begin", s.Commit(ctx), db.Fatal, "")
	if err := s.Rollback(ctx); err != nil {
		t.Error(err)
	}
	drivertest.Must(t, s.Begin(ctx, false))
	WantError(t, "Begin twice", s.Begin(ctx, false), db.Fatal, "")
	drivertest.Must(t, errors.Join(s.Rollback(ctx), s.Begin(ctx, false)))
	WantError(t, "Query in a transaction", s.Query(ctx, x.S, x.Args, nil), db.Fatal, "")
	if err := errors.Join(s.Rollback(ctx), s.Close()); err != nil {
		t.Error(err)
	}
	WantError(t, "Begin after Close", s.Begin(ctx, false), db.Unavailable, "")
	WantError(t, "Query after Close", s.Query(ctx, x.S, x.Args, nil), db.Unavailable, "")
}

// Rollbacks checks that changes disappear if they are rolled back or if their session is closed. It leaves the accounts
// as they were.
func Rollbacks(t *testing.T, d db.SQL, b *Bank) {
	b.Make(t, d, 3)
	EachMode(t, func(t *testing.T, mode db.Mode) {
		s, ctx := Session(t, d, mode, ""), t.Context()
		for _, flush := range []bool{false, true} {
			drivertest.Must(t, s.Begin(ctx, false))
			x := b.Touch(0, 100)
			_, err := s.Do(ctx, x.S, x.Args)
			drivertest.Must(t, err)
			if flush {
				r, err := Do(ctx, s, b.See(0))
				drivertest.Must(t, err)
				if cents := r.Row(0)[0].Int; cents != Opening+100 {
					t.Errorf("the transaction sees %d", cents)
				}
			}
			drivertest.Must(t, s.Rollback(ctx))
			if cents := b.Balance(t, s, 0); cents != Opening {
				t.Errorf("after a rollback: %d", cents)
			}
		}
		closing, err := d.Session(ctx, db.SessionOptions{Mode: mode})
		drivertest.Must(t, err)
		drivertest.Must(t, closing.Begin(ctx, false))
		_, err = Do(ctx, closing, b.Touch(0, 100))
		drivertest.Must(t, errors.Join(err, closing.Close()))
		if cents := b.Balance(t, s, 0); cents != Opening {
			t.Errorf("after a session was closed: %d", cents)
		}
	})
}

// Refused is a statement that violates a constraint.
type Refused struct {
	Name      string
	Statement Statement
	Kind      db.ConstraintKind
	Code      string
}

// Constraints checks that a transaction changes nothing if one of its statements is refused.
func Constraints(t *testing.T, d db.SQL, b *Bank, refused []Refused) {
	EachMode(t, func(t *testing.T, mode db.Mode) {
		s, touch := Session(t, d, mode, ""), b.Touch(1, 100)
		before := b.Balance(t, s, 1)
		for _, x := range refused {
			for _, flush := range []bool{false, true} {
				for _, beside := range []Statement{touch, b.See(0)} {
					err := Transact(t.Context(), s, false, flush, touch, beside, x.Statement, beside, touch)
					WantError(t, x.Name, err, db.Constraint, x.Code)
					if db.ConstraintOf(err) != x.Kind {
						t.Errorf("%s: kind %v, want %v", x.Name, db.ConstraintOf(err), x.Kind)
					}
				}
			}
		}
		if after := b.Balance(t, s, 1); after != before {
			t.Errorf("refused transactions have changed a balance from %d to %d", before, after)
		}
		if err := Transact(t.Context(), s, false, false, touch); err != nil {
			t.Error(err)
		}
	})
}

// Deadlock lets two transactions wait for each other. The server aborts one of them with code, and commits the other.
func Deadlock(t *testing.T, d db.SQL, b *Bank, mode db.Mode, code string) {
	t.Helper()
	ctx := t.Context()
	a, z := Session(t, d, mode, ""), Session(t, d, mode, "")
	drivertest.Must(t, errors.Join(a.Begin(ctx, false), z.Begin(ctx, false)))
	for s, account := range map[db.SQLSession]int64{a: 1, z: 2} {
		_, err := Do(ctx, s, b.Touch(account, 1))
		drivertest.Must(t, err)
	}
	errs := make(chan error, 2)
	var wg sync.WaitGroup
	for s, account := range map[db.SQLSession]int64{a: 2, z: 1} {
		wg.Go(func() {
			_, err := Do(ctx, s, b.Touch(account, 1))
			if err == nil {
				err = s.Commit(ctx)
			}
			errs <- err
		})
	}
	wg.Wait()
	first, second := <-errs, <-errs
	if first == nil {
		first, second = second, first
	}
	WantError(t, "deadlock", first, db.Aborted, code)
	drivertest.Must(t, second)
}

// Server controls the processes of the server in a test.
type Server interface {
	Kill(context.Context) error
	Restart(context.Context) error
	Pause(context.Context) error
	Resume(context.Context) error
}

// Restarts checks that a transaction on a connection to the earlier server process is reported as not applied. Reset
// returns the server to which it has connected.
func Restarts(t *testing.T, server Server, d db.SQL, b *Bank) {
	b.Make(t, d, 2)
	EachMode(t, func(t *testing.T, mode db.Mode) {
		s, ctx := Session(t, d, mode, ""), t.Context()
		for _, down := range []func(context.Context) error{
			server.Restart, // an orderly restart: the session gets a message
			func(ctx context.Context) error { return errors.Join(server.Kill(ctx), server.Restart(ctx)) },
		} {
			drivertest.Must(t, Transact(ctx, s, false, false, b.Touch(0, 1)))
			drivertest.Must(t, down(ctx))
			if err := Transact(ctx, s, false, false, b.Touch(0, 1)); err == nil || db.ClassOf(err) != db.Unavailable {
				t.Errorf("on a connection of the server before: %v", err)
			}
			connected := ""
			drivertest.Must(t, s.Reset(db.WithConnected(ctx, func(to string) { connected = to })))
			if _, port, err := net.SplitHostPort(connected); err != nil || port == "" {
				t.Errorf("connected to %q: %v", connected, err)
			}
			if err := Transact(ctx, s, false, false, b.Touch(0, 1)); err != nil {
				t.Errorf("after Reset: %v", err)
			}
		}
		drivertest.Must(t, server.Kill(ctx))
		WantError(t, "Reset without a server", s.Reset(ctx), db.Unavailable, "")
		drivertest.Must(t, server.Restart(ctx))
	})
}

// Frozen stops all processes of a server, which keeps its connections open. impatient limits how long a session waits
// for an answer, or the database if the session is nil.
func Frozen(t *testing.T, server Server, d db.SQL, b *Bank, impatient func(db.SQLSession, time.Duration)) {
	b.Make(t, d, 2)
	ctx, soon := t.Context(), 100*time.Millisecond
	touch, see := b.Touch(0, 1), b.See(0)
	open := func(mode db.Mode) db.SQLSession {
		s := Session(t, d, mode, "")
		drivertest.Must(t, Transact(ctx, s, false, false, touch))
		b.Balance(t, s, 0) // prepares the query
		return s
	}
	interactive, pipelined, flushed, querying, cancelled := open(db.Interactive), open(db.Pipelined), open(db.Pipelined), open(db.Pipelined), open(db.Pipelined)
	drivertest.Must(t, flushed.Begin(ctx, false))
	_, err := Do(ctx, flushed, touch)
	drivertest.Must(t, err)
	for _, s := range []db.SQLSession{nil, interactive, pipelined, flushed, querying} {
		impatient(s, soon)
	}
	drivertest.Must(t, server.Pause(ctx))
	WantError(t, "interactive", Transact(ctx, interactive, false, false, touch), db.Unavailable, "")
	WantError(t, "pipelined", Transact(ctx, pipelined, false, false, touch), db.Unknown, "")
	WantError(t, "COMMIT", flushed.Commit(ctx), db.Unknown, "")
	WantError(t, "Query", querying.Query(ctx, see.S, see.Args, nil), db.Unknown, "")
	WantError(t, "Reset", querying.Reset(ctx), db.Unavailable, "")
	_, err = d.Info(ctx)
	WantError(t, "Info", err, db.Unavailable, "")
	over, cancel := context.WithCancelCause(ctx)
	time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("the run is over")) })
	impatient(cancelled, time.Hour)
	WantError(t, "cancelled", Transact(over, cancelled, false, false, touch), db.Unknown, "")
	drivertest.Must(t, server.Resume(ctx))
	impatient(nil, time.Minute)
	drivertest.Must(t, cancelled.Reset(ctx))
	WantError(t, "a context that has ended", Transact(over, cancelled, false, false, touch), db.Unavailable, "")
}

// Slow checks that no time-out ends a statement outside a transaction while the server still works on it. slow takes a
// few tenths of a second. impatient is the same as for Frozen.
func Slow(t *testing.T, d db.SQL, slow *db.Statement, impatient func(db.SQLSession, time.Duration)) {
	const limit = 100 * time.Millisecond // less than slow takes, and enough to prepare it
	s := Session(t, d, db.Pipelined, "")
	impatient(nil, limit)
	impatient(s, limit)
	if err := s.Query(t.Context(), slow, nil, func([]db.Value) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := d.Exec(t.Context(), slow.SQL); err != nil {
		t.Error(err)
	}
	WantError(t, "a transaction", Transact(t.Context(), s, false, true, Statement{slow, nil}), db.Unavailable, "")
}
