package mysql

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"stroppy/internal/db"
)

func TestConstraints(t *testing.T) {
	d := openFresh(t)
	makeBank(t, d, 3)
	insertAccount := &db.Statement{SQL: "INSERT INTO accounts VALUES (?, ?, ?, 0, 0, 0)", Params: []db.Type{db.Text, db.Integer, db.Decimal}}
	insertLedger := &db.Statement{SQL: "INSERT INTO ledger VALUES (?, 0, ?, ?, 1, 1)", Params: []db.Type{db.Integer, db.Text, db.Integer}}
	account := func(n int64, money db.Value) statement {
		return statement{insertAccount, []db.Value{{Text: bic}, number(n), money}}
	}
	nobody := statement{insertLeg, []db.Value{number(8), number(0), {Text: bic}, number(1), number(1), {Text: bic}, number(77)}}
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		before := balanceOf(t, s, 1)
		for _, tc := range []struct {
			name string
			bad  statement
			kind db.ConstraintKind
			code string
		}{
			{"check", touch(0, -1000_01), db.CheckFailed, "4025"},
			{"not null", account(7, db.Value{Null: true}), db.NotNull, "1048"},
			{"not null of a query", nobody, db.NotNull, "1048"},
			{"foreign key", statement{insertLedger, []db.Value{number(7), {Text: bic}, number(77)}}, db.ForeignKey, "1452"},
			{"unique", account(0, number(1)), db.UniqueKey, "1062"},
		} {
			for _, flush := range []bool{false, true} {
				for _, beside := range []statement{touch(1, 100), read(0)} {
					err := transact(t.Context(), s, false, flush, touch(1, 100), beside, tc.bad, beside, touch(1, 100))
					wantError(t, tc.name, err, db.Constraint, tc.code)
					if db.ConstraintOf(err) != tc.kind {
						t.Errorf("%s: kind %v, want %v", tc.name, db.ConstraintOf(err), tc.kind)
					}
				}
			}
		}
		if after := balanceOf(t, s, 1); after != before {
			t.Errorf("refused transactions have changed a balance from %d to %d", before, after)
		}
		if err := transact(t.Context(), s, false, false, touch(1, 1)); err != nil {
			t.Error(err)
		}
	})
}

func TestConflicts(t *testing.T) {
	_, url := fresh(t)
	d := openAt(t, url)
	makeBank(t, d, 3)
	ctx := t.Context()
	must := func(t *testing.T, _ *db.Result, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	eachMode(t, func(t *testing.T, mode db.Mode) {
		a, b := newSession(t, d, mode, ""), newSession(t, d, mode, "")
		must(t, nil, a.Begin(ctx, false))
		must(t, nil, b.Begin(ctx, false))
		for s, account := range map[*session]int64{a: 1, b: 2} {
			r, err := do(ctx, s, touch(account, 1))
			must(t, r, err)
		}
		errs := make(chan error, 2)
		var wg sync.WaitGroup
		for s, account := range map[*session]int64{a: 2, b: 1} {
			wg.Go(func() {
				_, err := do(ctx, s, touch(account, 1))
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
		wantError(t, "deadlock", first, db.Aborted, "1213")
		must(t, nil, second)

		// InnoDB ends only the statement that waited in vain, so that what the
		// transaction did before must be undone by the driver.
		impatient := openAt(t, url+"?innodb_lock_wait_timeout=1")
		holder, waiter := newSession(t, d, mode, ""), newSession(t, impatient, mode, "")
		before := balanceOf(t, waiter, 0)
		must(t, nil, holder.Begin(ctx, false))
		r, err := do(ctx, holder, touch(1, 1))
		must(t, r, err)
		wantError(t, "lock wait", transact(ctx, waiter, false, true, touch(0, 100), touch(1, 100)), db.Aborted, "1205")
		must(t, nil, transact(ctx, waiter, false, false, touch(2, 1)))
		must(t, nil, holder.Commit(ctx))
		if after := balanceOf(t, waiter, 0); after != before {
			t.Errorf("half a transaction was committed: %d, then %d", before, after)
		}

		slow := openAt(t, url+"?max_statement_time=0.05")
		s := newSession(t, slow, mode, "")
		sleep := statement{&db.Statement{SQL: "SELECT SLEEP(600)", Columns: []db.Type{db.Integer}}, nil}
		wantError(t, "max_statement_time", transact(ctx, s, false, false, touch(0, 1), sleep), db.Aborted, "1969")
		must(t, nil, transact(ctx, s, false, false, touch(0, 1)))
	})
}

// killed runs what a session does until it is at a place that find knows, and then
// sends KILL.
func killed(t *testing.T, s *session, d *Database, kill string, run func() error) error {
	t.Helper()
	row, err := s.row("SELECT CONNECTION_ID()")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- run() }()
	until(t, d, "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep' AND ID = "+row[0])
	execute1(t, d, kill+" "+row[0])
	return <-done
}

func TestKilledInATransaction(t *testing.T) {
	d := openFresh(t)
	makeBank(t, d, 2)
	sleep := statement{&db.Statement{SQL: "SELECT SLEEP(600)", Columns: []db.Type{db.Integer}}, nil}
	asleep := statement{&db.Statement{SQL: "UPDATE accounts SET version = version + SLEEP(600) WHERE ban = 1"}, nil}
	for _, tc := range []struct {
		name  string
		mode  db.Mode
		flush bool
		work  []statement
	}{
		{"interactive", db.Interactive, false, []statement{touch(0, 1), asleep, touch(0, 1)}},
		{"flushed", db.Pipelined, true, []statement{touch(0, 1), asleep, touch(0, 1)}},
		{"with the commit under way", db.Pipelined, false, []statement{touch(0, 1), asleep, touch(0, 1)}},
		{"with the commit under way and rows", db.Pipelined, false, []statement{touch(0, 1), sleep, touch(0, 1)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSession(t, d, tc.mode, "")
			err := killed(t, s, d, "KILL CONNECTION", func() error { return transact(t.Context(), s, false, tc.flush, tc.work...) })
			// The server may tell before it hangs up, and then it has not come to COMMIT.
			var own *db.Error
			want := db.Unavailable
			if errors.As(err, &own); own == nil || own.Code == "" && tc.mode == db.Pipelined && !tc.flush {
				want = db.Unknown
			}
			if own == nil || own.Class != want || own.Code != "" && own.Code != "1927" {
				t.Errorf("want class %v: %v", want, err)
			}
			wantError(t, "a broken session", s.Begin(t.Context(), false), db.Unavailable, "")
			s = newSession(t, d, tc.mode, "")
			err = killed(t, s, d, "KILL QUERY", func() error { return transact(t.Context(), s, false, tc.flush, touch(0, 1), asleep, touch(0, 1)) })
			wantError(t, "KILL QUERY", err, db.Aborted, "1317")
			if cents := balanceOf(t, s, 0); cents != 1000_00 {
				t.Errorf("a transaction that was killed has left %d", cents)
			}
		})
	}
}

// TestInterruptedCommits makes commits wait, once before and once after they are
// done, and kills the server meanwhile.
func TestInterruptedCommits(t *testing.T) {
	m := start(t, map[string]string{"log-bin": "binlog", "rpl-semi-sync-master-timeout": "600000"})
	d := openAt(t, m.URL())
	makeBank(t, d, 2)
	for _, tc := range []struct {
		name  string
		block func(t *testing.T, other *session)
		state string
		done  bool
	}{
		{"before it is done", func(t *testing.T, other *session) {
			if _, err := other.exec("FLUSH TABLES WITH READ LOCK"); err != nil {
				t.Fatal(err)
			}
		}, "Waiting for backup lock", false},
		{"after it is done", func(t *testing.T, other *session) { execute1(t, d, "SET GLOBAL rpl_semi_sync_master_enabled = ON") },
			"Waiting for semi-sync ACK from slave", true},
	} {
		for name, mode := range bothModes {
			for _, flush := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s %v", tc.name, name, flush), func(t *testing.T) {
					s, other := newSession(t, d, mode, ""), newSession(t, d, mode, "")
					before := balanceOf(t, s, 0)
					if err := s.Begin(t.Context(), false); err != nil {
						t.Fatal(err)
					}
					if _, err := s.Do(t.Context(), updateAccount, touch(0, 1).args); err != nil {
						t.Fatal(err)
					}
					if flush || mode == db.Interactive {
						if err := s.Flush(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					tc.block(t, other)
					done := make(chan error, 1)
					go func() { done <- s.Commit(t.Context()) }()
					until(t, d, "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE LIKE '"+tc.state+"%'")
					if err := m.Kill(); err != nil {
						t.Fatal(err)
					}
					wantError(t, "the commit", <-done, db.Unknown, "")
					wantError(t, "a broken session", s.Begin(t.Context(), false), db.Unavailable, "")
					wantError(t, "Reset without a server", s.Reset(t.Context()), db.Unavailable, "")
					if err := m.Restart(t.Context()); err != nil {
						t.Fatal(err)
					}
					if err := s.Reset(t.Context()); err != nil {
						t.Fatal(err)
					}
					want := before
					if tc.done {
						want++
					}
					if after := balanceOf(t, s, 0); after != want {
						t.Errorf("the balance was %d and is %d, want %d: this test needs both outcomes of an unknown commit", before, after, want)
					}
				})
			}
		}
	}
}

func TestRestartBetweenTransactions(t *testing.T) {
	m := start(t, nil)
	d := openAt(t, m.URL())
	makeBank(t, d, 2)
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		for _, down := range []func(context.Context) error{
			m.Restart, // in good order: the session is told
			func(ctx context.Context) error { return errors.Join(m.Kill(), m.Restart(ctx)) },
		} {
			if err := transact(t.Context(), s, false, false, touch(0, 1)); err != nil {
				t.Fatal(err)
			}
			if err := down(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := transact(t.Context(), s, false, false, touch(0, 1))
			if db.ClassOf(err) != db.Unavailable {
				t.Errorf("on a connection of the server before: %v", err)
			}
			if err := s.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := transact(t.Context(), s, false, false, touch(0, 1)); err != nil {
				t.Errorf("after Reset: %v", err)
			}
		}
	})
}

// TestFrozenServer stops the server, which keeps its connections open.
func TestFrozenServer(t *testing.T) {
	m := start(t, nil)
	d := openAt(t, m.URL()+"?timeout=500ms")
	makeBank(t, d, 2)
	d.limit = 100 * time.Millisecond
	ctx := t.Context()
	open := func(mode db.Mode) *session {
		s := newSession(t, d, mode, "")
		if err := transact(ctx, s, false, false, touch(0, 1)); err != nil {
			t.Fatal(err)
		}
		balanceOf(t, s, 0) // prepares the query
		return s
	}
	interactive, pipelined, flushed, querying, cancelled := open(db.Interactive), open(db.Pipelined), open(db.Pipelined), open(db.Pipelined), open(db.Pipelined)
	if err := flushed.Begin(ctx, false); err != nil {
		t.Fatal(err)
	}
	if _, err := do(ctx, flushed, touch(0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := m.Pause(); err != nil {
		t.Fatal(err)
	}
	wantError(t, "interactive", transact(ctx, interactive, false, false, touch(0, 1)), db.Unavailable, "")
	wantError(t, "pipelined", transact(ctx, pipelined, false, false, touch(0, 1)), db.Unknown, "")
	wantError(t, "COMMIT", flushed.Commit(ctx), db.Unknown, "")
	wantError(t, "Query", querying.Query(ctx, readAccount, key0, nil), db.Unknown, "")
	wantError(t, "Reset", querying.Reset(ctx), db.Unavailable, "")
	_, err := d.Info(ctx)
	wantError(t, "Info", err, db.Unavailable, "")
	soon, cancel := context.WithCancelCause(ctx)
	time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("the run is over")) })
	cancelled.wire.limit, cancelled.deadline = time.Hour, time.Time{}
	wantError(t, "cancelled", transact(soon, cancelled, false, false, touch(0, 1)), db.Unknown, "")
	if err := m.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := cancelled.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a context that has ended", transact(soon, cancelled, false, false, touch(0, 1)), db.Unavailable, "")
}

// TestSlowStatementsOutsideTransactions: no time-out ends what the server still
// works on.
func TestSlowStatementsOutsideTransactions(t *testing.T) {
	d := openFresh(t)
	d.limit = 20 * time.Millisecond
	s := newSession(t, d, db.Pipelined, "")
	slow := &db.Statement{SQL: "SELECT SLEEP(0.3)", Columns: []db.Type{db.Integer}}
	if err := s.Query(t.Context(), slow, nil, func([]db.Value) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := d.Exec(t.Context(), slow.SQL); err != nil {
		t.Error(err)
	}
	wantError(t, "a transaction", transact(t.Context(), s, false, true, statement{slow, nil}), db.Unavailable, "")
}

// TestServerMadeReadOnly: a commit that is refused for it is surely not done.
func TestServerMadeReadOnly(t *testing.T) {
	m := start(t, nil)
	d := openAt(t, m.URL())
	makeBank(t, d, 2)
	execute1(t, d, "CREATE USER plain IDENTIFIED BY 'x'", "GRANT ALL ON test.* TO plain")
	plain := openAt(t, m.URLFor("plain", "x", "test"))
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, plain, mode, "")
		if err := s.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if _, err := do(t.Context(), s, touch(0, 1)); err != nil {
			t.Fatal(err)
		}
		execute1(t, d, "SET GLOBAL read_only = ON")
		wantError(t, "the commit", s.Commit(t.Context()), db.Unavailable, "1290")
		if err := s.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantError(t, "the next transaction", transact(t.Context(), s, false, false, touch(0, 1)), db.Unavailable, "1290")
		if err := s.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := transact(t.Context(), s, true, false, read(0)); err != nil {
			t.Errorf("reading: %v", err)
		}
		if cents := balanceOf(t, s, 0); cents != 1000_00 {
			t.Errorf("a refused commit has left %d", cents)
		}
		execute1(t, d, "SET GLOBAL read_only = OFF")
	})
}
