package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"stroppy/internal/db"
)

func TestConstraints(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	makeBank(t, d, 3)
	insertAccount := &db.Statement{SQL: "INSERT INTO accounts VALUES ($1, $2, $3, 0, 0, 0)", Params: []db.Type{db.Text, db.Integer, db.Decimal}}
	insertLedger := &db.Statement{SQL: "INSERT INTO ledger VALUES ($1, 0, $2, $3, 1, 1)", Params: []db.Type{db.Integer, db.Text, db.Integer}}
	account := func(n int64, money db.Value) statement {
		return statement{insertAccount, []db.Value{{Text: bic}, number(n), money}}
	}
	touch := statement{updateAccount, []db.Value{number(100), number(1), {Text: bic}, number(1)}}
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		before := balanceOf(t, s, 1)
		for _, tc := range []struct {
			name string
			bad  statement
			kind db.ConstraintKind
			code string
		}{
			{"check", statement{updateAccount, []db.Value{number(-1000_01), number(1), {Text: bic}, number(0)}}, db.CheckFailed, "23514"},
			{"not null", account(7, db.Value{Null: true}), db.NotNull, "23502"},
			{"foreign key", statement{insertLedger, []db.Value{number(7), {Text: bic}, number(77)}}, db.ForeignKey, "23503"},
			{"unique", account(0, number(1)), db.UniqueKey, "23505"},
		} {
			for _, flush := range []bool{false, true} {
				err := transact(t.Context(), s, false, flush, touch, tc.bad, touch)
				wantError(t, tc.name, err, db.Constraint, tc.code)
				if db.ConstraintOf(err) != tc.kind {
					t.Errorf("%s: kind %v, want %v", tc.name, db.ConstraintOf(err), tc.kind)
				}
			}
		}
		if after := balanceOf(t, s, 1); after != before {
			t.Errorf("refused transactions have changed a balance from %d to %d", before, after)
		}
		if err := transact(t.Context(), s, false, false, touch); err != nil {
			t.Error(err)
		}
	})
}

func TestDeferredConstraint(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	execute1(t, d, "CREATE TABLE p (n BIGINT PRIMARY KEY)",
		"CREATE TABLE c (n BIGINT REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
	orphan := statement{&db.Statement{SQL: "INSERT INTO c VALUES (1)"}, nil}
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		for _, flush := range []bool{false, true} {
			wantError(t, "refused by the commit itself", transact(t.Context(), s, false, flush, orphan), db.Constraint, "23503")
		}
		if err := transact(t.Context(), s, false, false); err != nil {
			t.Error(err)
		}
	})
}

func TestConflicts(t *testing.T) {
	d := openAt(t, start(t, map[string]string{"deadlock_timeout": "20ms"}).URL())
	makeBank(t, d, 3)
	ctx := t.Context()
	touch := func(account int64) statement {
		return statement{updateAccount, []db.Value{number(1), number(1), {Text: bic}, number(account)}}
	}
	do := func(t *testing.T, s *session, x statement) error {
		t.Helper()
		_, err := s.Do(ctx, x.s, x.args)
		if err == nil {
			err = s.Flush(ctx)
		}
		return err
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	eachMode(t, func(t *testing.T, mode db.Mode) {
		a, b := newSession(t, d, mode, "repeatable read"), newSession(t, d, mode, "repeatable read")
		must(t, a.Begin(ctx, false))
		must(t, do(t, a, statement{readAccount, key0}))
		must(t, transact(ctx, b, false, false, touch(0)))
		wantError(t, "lost update", do(t, a, touch(0)), db.Aborted, "40001")
		must(t, transact(ctx, a, false, false, touch(0)))

		a, b = newSession(t, d, mode, "serializable"), newSession(t, d, mode, "serializable")
		must(t, a.Begin(ctx, false))
		must(t, b.Begin(ctx, false))
		must(t, do(t, a, statement{readAccount, []db.Value{{Text: bic}, number(1)}}))
		must(t, do(t, b, statement{readAccount, []db.Value{{Text: bic}, number(2)}}))
		must(t, do(t, a, touch(2)))
		must(t, do(t, b, touch(1)))
		must(t, a.Commit(ctx))
		wantError(t, "write skew", b.Commit(ctx), db.Aborted, "40001")
		must(t, transact(ctx, b, false, false, touch(0)))

		a, b = newSession(t, d, mode, ""), newSession(t, d, mode, "")
		must(t, a.Begin(ctx, false))
		must(t, b.Begin(ctx, false))
		must(t, do(t, a, touch(1)))
		must(t, do(t, b, touch(2)))
		errs := make(chan error, 2)
		var wg sync.WaitGroup
		for s, account := range map[*session]int64{a: 2, b: 1} {
			wg.Go(func() {
				err := do(t, s, touch(account))
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
		wantError(t, "deadlock", first, db.Aborted, "40P01")
		must(t, second)
	})
}

func TestServerSideTimeouts(t *testing.T) {
	pg := start(t, nil)
	d := openAt(t, pg.URL()+"&statement_timeout=50")
	sleep := statement{&db.Statement{SQL: "SELECT pg_sleep(600)"}, nil}
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		wantError(t, "statement_timeout", transact(t.Context(), s, false, false, sleep), db.Aborted, "57014")
		if err := transact(t.Context(), s, false, false); err != nil {
			t.Error(err)
		}
	})
	d = openAt(t, pg.URL()+"&lock_timeout=50")
	makeBank(t, d, 2)
	holder, waiter := newSession(t, d, db.Interactive, ""), newSession(t, d, db.Pipelined, "")
	touch := []db.Value{number(1), number(1), {Text: bic}, number(0)}
	if err := holder.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Do(t.Context(), updateAccount, touch); err != nil {
		t.Fatal(err)
	}
	wantError(t, "lock_timeout", transact(t.Context(), waiter, false, false, statement{updateAccount, touch}), db.Aborted, "55P03")
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// raw runs a statement on a session's connection behind its back.
func raw(t *testing.T, s *session, sql string) {
	t.Helper()
	message, err := (&pgproto3.Query{String: sql}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.conn.Write(message); err != nil {
		t.Fatal(err)
	}
	for {
		message, err := s.frontend.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if _, ready := message.(*pgproto3.ReadyForQuery); ready {
			return
		}
	}
}

func TestCommitThatAnswersOtherwise(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	makeBank(t, d, 2)
	read := func(s *session) {
		t.Helper()
		if err := s.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Do(t.Context(), readAccount, key0); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		read(s)
		raw(t, s, "SELECT 1/0")
		err := s.Commit(t.Context())
		wantError(t, "COMMIT answered by ROLLBACK", err, db.Aborted, "")
		if !errors.Is(err, errRolledBack) {
			t.Error(err)
		}
		read(s) // the session is ready
		raw(t, s, "ROLLBACK")
		err = s.Commit(t.Context())
		var own *db.Error
		if wantError(t, "COMMIT of nothing", err, db.Unknown, ""); !errors.As(err, &own) || !own.Final {
			t.Errorf("COMMIT of nothing: %v", err)
		}
		wantError(t, "a broken session", s.Begin(t.Context(), false), db.Unavailable, "")
	})
}

// waiting returns once a backend waits for the synchronous standby, and its
// process number.
func waiting(t *testing.T, observer *session) int64 {
	t.Helper()
	find := &db.Statement{SQL: "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'", Columns: []db.Type{db.Integer}}
	for {
		var pid int64
		err := observer.Query(t.Context(), find, nil, func(row []db.Value) error { pid = row[0].Int; return nil })
		if err != nil {
			t.Error(err)
			return 0
		}
		if pid != 0 {
			return pid
		}
		time.Sleep(time.Millisecond)
	}
}

// TestInterruptedCommits makes every commit wait for a standby that does not
// exist, and then does things to the waiting server process.
func TestInterruptedCommits(t *testing.T) {
	pg := start(t, nil)
	d := openAt(t, pg.URL())
	makeBank(t, d, 2)
	execute1(t, d, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "ALTER SYSTEM SET synchronous_commit = 'off'")
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits := openAt(t, pg.URL()+"&synchronous_commit=on")
	touch := statement{updateAccount, []db.Value{number(1), number(1), {Text: bic}, number(0)}}
	signal := func(function string) func(*testing.T, *session, int64) {
		send := &db.Statement{SQL: "SELECT " + function + "($1::int)", Params: []db.Type{db.Integer}, Columns: []db.Type{db.Integer}}
		return func(t *testing.T, observer *session, pid int64) {
			if err := observer.Query(t.Context(), send, []db.Value{number(pid)}, func([]db.Value) error { return nil }); err != nil {
				t.Error(err)
			}
		}
	}
	for _, tc := range []struct {
		name  string
		do    func(*testing.T, *session, int64)
		final bool
	}{
		{"cancel", signal("pg_cancel_backend"), true},
		{"terminate", signal("pg_terminate_backend"), true},
		{"kill", func(t *testing.T, _ *session, _ int64) {
			if err := pg.Kill(); err != nil {
				t.Error(err)
			}
		}, false},
	} {
		for name, mode := range bothModes {
			for _, flush := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s %v", tc.name, name, flush), func(t *testing.T) {
					if err := pg.Restart(t.Context()); err != nil {
						t.Fatal(err)
					}
					s, observer := newSession(t, waits, mode, ""), newSession(t, d, db.Pipelined, "")
					before := balanceOf(t, observer, 0)
					done := make(chan error, 1)
					go func() { done <- transact(t.Context(), s, false, flush, touch) }()
					tc.do(t, observer, waiting(t, observer))
					err := <-done
					var own *db.Error
					if wantError(t, tc.name, err, db.Unknown, ""); errors.As(err, &own) && own.Final != tc.final {
						t.Errorf("final is %v: %v", own.Final, err)
					}
					wantError(t, "a broken session", s.Begin(t.Context(), false), db.Unavailable, "")
					if err := pg.Restart(t.Context()); err != nil {
						t.Fatal(err)
					}
					if err := s.Reset(t.Context()); err != nil {
						t.Fatal(err)
					}
					if after := balanceOf(t, s, 0); after != before+1 {
						t.Errorf("the balance was %d and is %d: this test needs a commit that is done and not acknowledged", before, after)
					}
				})
			}
		}
	}
	t.Run("a statement of its own", func(t *testing.T) {
		observer := newSession(t, d, db.Pipelined, "")
		done := make(chan error, 1)
		go func() { done <- waits.Exec(t.Context(), "UPDATE accounts SET version = version") }()
		signal("pg_cancel_backend")(t, observer, waiting(t, observer))
		var own *db.Error
		if err := <-done; !errors.As(err, &own) || own.Class != db.Unknown || !own.Final {
			t.Errorf("%v", err)
		}
	})
}

func TestRestartBetweenTransactions(t *testing.T) {
	pg := start(t, nil)
	d := openAt(t, pg.URL())
	makeBank(t, d, 2)
	touch := statement{updateAccount, []db.Value{number(1), number(1), {Text: bic}, number(0)}}
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		for _, down := range []func(context.Context) error{
			pg.Restart, // in good order: the session is told
			func(ctx context.Context) error { return errors.Join(pg.Kill(), pg.Restart(ctx)) },
		} {
			if err := transact(t.Context(), s, false, false, touch); err != nil {
				t.Fatal(err)
			}
			if err := down(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := transact(t.Context(), s, false, false, touch)
			if db.ClassOf(err) != db.Unavailable {
				t.Errorf("on a connection of the server before: %v", err)
			}
			if err := s.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := transact(t.Context(), s, false, false, touch); err != nil {
				t.Errorf("after Reset: %v", err)
			}
		}
		if err := pg.Kill(); err != nil {
			t.Fatal(err)
		}
		wantError(t, "Reset without a server", s.Reset(t.Context()), db.Unavailable, "")
		if err := pg.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTerminatedInATransaction(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	makeBank(t, d, 2)
	self := statement{&db.Statement{SQL: "SELECT pg_terminate_backend(pg_backend_pid())"}, nil}
	touch := statement{updateAccount, []db.Value{number(1), number(1), {Text: bic}, number(0)}}
	s := newSession(t, d, db.Interactive, "")
	wantError(t, "before the commit", transact(t.Context(), s, false, false, touch, self, touch), db.Unavailable, "57P01")
	s = newSession(t, d, db.Pipelined, "")
	wantError(t, "before the commit", transact(t.Context(), s, false, true, touch, self, touch), db.Unavailable, "57P01")
	s = newSession(t, d, db.Pipelined, "")
	wantError(t, "with the commit under way", transact(t.Context(), s, false, false, touch, self, touch), db.Unknown, "57P01")
}

// TestFrozenServer stops all processes of a server, which keeps its connections
// open.
func TestFrozenServer(t *testing.T) {
	pg := start(t, nil)
	d := openAt(t, pg.URL()+"&connect_timeout=1")
	makeBank(t, d, 2)
	d.timeout = 100 * time.Millisecond
	ctx := t.Context()
	touch := statement{updateAccount, []db.Value{number(1), number(1), {Text: bic}, number(0)}}
	open := func(mode db.Mode) *session {
		s := newSession(t, d, mode, "")
		if err := transact(ctx, s, false, false, touch); err != nil {
			t.Fatal(err)
		}
		balanceOf(t, s, 0) // prepares the query
		return s
	}
	interactive, pipelined, flushed, querying, cancelled := open(db.Interactive), open(db.Pipelined), open(db.Pipelined), open(db.Pipelined), open(db.Pipelined)
	if err := flushed.Begin(ctx, false); err != nil {
		t.Fatal(err)
	}
	if _, err := flushed.Do(ctx, touch.s, touch.args); err != nil {
		t.Fatal(err)
	}
	if err := flushed.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := pg.Pause(); err != nil {
		t.Fatal(err)
	}
	wantError(t, "interactive", transact(ctx, interactive, false, false, touch), db.Unavailable, "")
	wantError(t, "pipelined", transact(ctx, pipelined, false, false, touch), db.Unknown, "")
	wantError(t, "COMMIT", flushed.Commit(ctx), db.Unknown, "")
	wantError(t, "Query", querying.Query(ctx, readAccount, key0, nil), db.Unknown, "")
	wantError(t, "Reset", querying.Reset(ctx), db.Unavailable, "")
	_, err := d.Info(ctx)
	wantError(t, "Info", err, db.Unavailable, "")
	soon, cancel := context.WithCancelCause(ctx)
	time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("the run is over")) })
	cancelled.timeout = time.Hour
	cancelled.deadline = time.Time{}
	wantError(t, "cancelled", transact(soon, cancelled, false, false, touch), db.Unknown, "")
	if err := pg.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := cancelled.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a context that has ended", transact(soon, cancelled, false, false, touch), db.Unavailable, "")
}

// TestContexts uses one session with one context after another.
func TestContexts(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	makeBank(t, d, 2)
	s := newSession(t, d, db.Pipelined, "")
	touch := statement{updateAccount, []db.Value{number(1), number(1), {Text: bic}, number(0)}}
	for i := range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		if err := transact(ctx, s, false, i%2 == 0, touch); err != nil {
			t.Fatal(err)
		}
		cancel() // at rest: it must not harm the next transaction
	}
}

// TestSlowStatementsOutsideTransactions: no time-out ends what the server still
// works on.
func TestSlowStatementsOutsideTransactions(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	d.timeout = 20 * time.Millisecond
	s := newSession(t, d, db.Pipelined, "")
	slow := &db.Statement{SQL: "SELECT pg_sleep(0.3)"}
	if err := s.Query(t.Context(), slow, nil, nil); err != nil {
		t.Error(err)
	}
	if err := d.Exec(t.Context(), slow.SQL); err != nil {
		t.Error(err)
	}
	wantError(t, "a transaction", transact(t.Context(), s, false, true, statement{slow, nil}), db.Unavailable, "")
}
