package pgwire

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// TestBlockingSessionWaitsInSystemCall checks that a session waits in the system call if that is requested and the
// system is Linux, also after Reset.
func TestBlockingSessionWaitsInSystemCall(t *testing.T) {
	d := openFresh(t)
	for _, blocking := range []bool{true, false} {
		s, err := d.Session(t.Context(), db.SessionOptions{Mode: db.Pipelined, Blocking: blocking})
		drivertest.Must(t, err)
		drivertest.Close(t, s)
		for range 2 {
			drivertest.Must(t, sqltest.Transact(t.Context(), s, false, false))
			if got := db.Blocks(s); got != (blocking && runtime.GOOS == "linux") {
				t.Errorf("asked to block: %v; it does: %v", blocking, got)
			}
			drivertest.Must(t, s.Reset(t.Context()))
		}
	}
}

func TestConstraintViolationsAreClassified(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 3)
	insertAccount := &db.Statement{SQL: "INSERT INTO accounts VALUES ($1, $2, $3, 0, 0, 0)", Params: []db.Type{db.Text, db.Integer, db.Decimal}}
	insertLedger := &db.Statement{SQL: "INSERT INTO ledger VALUES ($1, 0, $2, $3, 1, 1)", Params: []db.Type{db.Integer, db.Text, db.Integer}}
	account := func(n int64, money db.Value) sqltest.Statement {
		return sqltest.With(insertAccount, []db.Value{{Text: bic}, sqltest.Number(n), money})
	}
	refused := []sqltest.Refused{
		{Name: "check", Statement: bank.Touch(0, -1000_01), Kind: db.CheckFailed, Code: "23514"},
		{Name: "not null", Statement: account(7, db.Value{Null: true}), Kind: db.NotNull, Code: "23502"},
		{Name: "foreign key", Statement: sqltest.With(insertLedger, []db.Value{sqltest.Number(7), {Text: bic}, sqltest.Number(77)}), Kind: db.ForeignKey, Code: "23503"},
		{Name: "unique", Statement: account(0, sqltest.Number(1)), Kind: db.UniqueKey, Code: "23505"},
	}
	for _, implicit := range []bool{true, false} {
		sqltest.Constraints(t, way{implicit: implicit}.on(d), &bank, refused)
	}
}

func TestDeferredConstraintFailsAtCommit(t *testing.T) {
	d := openFresh(t)
	sqltest.Execute(t, d, "CREATE TABLE p (n BIGINT PRIMARY KEY)",
		"CREATE TABLE c (n BIGINT REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
	orphan := sqltest.With(&db.Statement{SQL: "INSERT INTO c VALUES (1)"}, nil)
	eachWay(t, func(t *testing.T, w way) {
		s := w.session(t, d, "")
		for range 2 {
			sqltest.WantError(t, "refused by the commit itself", w.transact(t.Context(), s, orphan), db.Constraint, "23503")
		}
		if err := sqltest.Transact(t.Context(), s, false, false); err != nil {
			t.Error(err)
		}
	})
}

func TestConflictIsAborted(t *testing.T) {
	_, name, url := fresh(t)
	sqltest.Execute(t, drivertest.Open(t, openURL, url), "ALTER DATABASE "+name+" SET deadlock_timeout = '20ms'")
	d := drivertest.Open(t, openURL, url)
	bank.Make(t, d, 3)
	ctx := t.Context()
	at := func(t *testing.T, s *session, x sqltest.Statement) error {
		t.Helper()
		_, err := sqltest.Do(ctx, s, x)
		return err
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		a, b := newSession(t, d, mode, "repeatable read"), newSession(t, d, mode, "repeatable read")
		must(t, a.Begin(ctx, false))
		must(t, at(t, a, bank.See(0)))
		must(t, sqltest.Transact(ctx, b, false, false, bank.Touch(0, 1)))
		sqltest.WantError(t, "lost update", at(t, a, bank.Touch(0, 1)), db.Aborted, "40001")
		must(t, sqltest.Transact(ctx, a, false, false, bank.Touch(0, 1)))

		a, b = newSession(t, d, mode, "serializable"), newSession(t, d, mode, "serializable")
		must(t, a.Begin(ctx, false))
		must(t, b.Begin(ctx, false))
		must(t, at(t, a, bank.See(1)))
		must(t, at(t, b, bank.See(2)))
		must(t, at(t, a, bank.Touch(2, 1)))
		must(t, at(t, b, bank.Touch(1, 1)))
		must(t, a.Commit(ctx))
		sqltest.WantError(t, "write skew", b.Commit(ctx), db.Aborted, "40001")
		must(t, sqltest.Transact(ctx, b, false, false, bank.Touch(0, 1)))

		sqltest.Deadlock(t, d, &bank, mode, "40P01")
	})
}

func TestServerSideTimeoutIsAborted(t *testing.T) {
	_, _, url := fresh(t)
	d := drivertest.Open(t, openURL, url+"&statement_timeout=50")
	sleep := sqltest.With(&db.Statement{SQL: "SELECT pg_sleep(600)"}, nil)
	eachWay(t, func(t *testing.T, w way) {
		s := w.session(t, d, "")
		sqltest.WantError(t, "statement_timeout", w.transact(t.Context(), s, sleep), db.Aborted, "57014")
		if err := sqltest.Transact(t.Context(), s, false, false); err != nil {
			t.Error(err)
		}
	})
	d = drivertest.Open(t, openURL, url+"&lock_timeout=50")
	bank.Make(t, d, 2)
	holder, waiter := newSession(t, d, db.Interactive, ""), newSession(t, d, db.Pipelined, "")
	if err := holder.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Do(t.Context(), updateAccount, bank.Touch(0, 1).Args); err != nil {
		t.Fatal(err)
	}
	sqltest.WantError(t, "lock_timeout", sqltest.Transact(t.Context(), waiter, false, false, bank.Touch(0, 1)), db.Aborted, "55P03")
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// raw runs a statement directly on a session's connection.
func raw(t *testing.T, s *session, sql string) {
	t.Helper()
	message, err := (&pgproto3.Query{String: sql}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Conn.Write(message); err != nil {
		t.Fatal(err)
	}
	for {
		message, err := s.reader.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if _, ready := message.(*pgproto3.ReadyForQuery); ready {
			return
		}
	}
}

func TestCommitAnsweredByRollbackIsAborted(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	begin := func(s *session) {
		t.Helper()
		err := s.Begin(t.Context(), false)
		if err == nil {
			_, err = sqltest.Do(t.Context(), s, bank.See(0))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		begin(s)
		raw(t, s, "SELECT 1/0")
		err := s.Commit(t.Context())
		sqltest.WantError(t, "COMMIT answered by ROLLBACK", err, db.Aborted, "")
		if !errors.Is(err, errRolledBack) {
			t.Error(err)
		}
		begin(s) // the session is ready
		raw(t, s, "ROLLBACK")
		err = s.Commit(t.Context())
		var own *db.Error
		if sqltest.WantError(t, "COMMIT of nothing", err, db.Unknown, ""); !errors.As(err, &own) || !own.Final {
			t.Errorf("COMMIT of nothing: %v", err)
		}
		sqltest.WantError(t, "a broken session", s.Begin(t.Context(), false), db.Unavailable, "")
	})
}

// waiting waits until a backend waits for the synchronous standby, and returns its process number.
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

// signal returns a function that calls a server function with a process number.
func signal(function string) func(*testing.T, *session, int64) {
	send := &db.Statement{SQL: "SELECT " + function + "($1::int)", Params: []db.Type{db.Integer}, Columns: []db.Type{db.Integer}}
	return func(t *testing.T, observer *session, pid int64) {
		if err := observer.Query(t.Context(), send, []db.Value{sqltest.Number(pid)}, func([]db.Value) error { return nil }); err != nil {
			t.Error(err)
		}
	}
}

// wantLocalOnly checks the error of a commit that was not replicated.
func wantLocalOnly(t *testing.T, err error) {
	t.Helper()
	var own *db.Error
	if !errors.As(err, &own) || own.Class != db.Unknown || !own.Final || !strings.Contains(err.Error(), "may not have replicated it") {
		t.Errorf("%v", err)
	}
}

// alone starts a server on which each commit of the second database waits for a standby that does not exist.
func alone(t *testing.T) (pg *server.Server, d, waits *Database) {
	t.Helper()
	pg = start(t, nil)
	d = drivertest.Open(t, openURL, pg.URL())
	bank.Make(t, d, 2)
	sqltest.Execute(t, d, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "ALTER SYSTEM SET synchronous_commit = 'off'")
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	return pg, d, drivertest.Open(t, openURL, pg.URL()+"&synchronous_commit=on")
}

// TestInterruptedCommitIsUnknown interrupts the server process of a waiting commit in several ways.
func TestInterruptedCommitIsUnknown(t *testing.T) {
	pg, d, waits := alone(t)
	for _, tc := range []struct {
		name  string
		do    func(*testing.T, *session, int64)
		final bool
	}{
		{"cancel", signal("pg_cancel_backend"), true},
		{"terminate", signal("pg_terminate_backend"), true},
		{"kill", func(t *testing.T, _ *session, _ int64) {
			if err := pg.Kill(t.Context()); err != nil {
				t.Error(err)
			}
		}, false},
	} {
		for _, w := range ways {
			t.Run(tc.name+" "+w.name, func(t *testing.T) {
				if err := pg.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				s, observer := w.session(t, waits, ""), newSession(t, d, db.Pipelined, "")
				before := bank.Balance(t, observer, 0)
				done := make(chan error, 1)
				go func() { done <- w.transact(t.Context(), s, bank.Touch(0, 1)) }()
				tc.do(t, observer, waiting(t, observer))
				err := <-done
				var own *db.Error
				if sqltest.WantError(t, tc.name, err, db.Unknown, ""); errors.As(err, &own) && own.Final != tc.final {
					t.Errorf("final is %v: %v", own.Final, err)
				}
				sqltest.WantError(t, "a broken session", s.Begin(t.Context(), false), db.Unavailable, "")
				if err := pg.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := s.Reset(t.Context()); err != nil {
					t.Fatal(err)
				}
				if after := bank.Balance(t, s, 0); after != before+1 {
					t.Errorf("the balance was %d and is %d: this test needs a commit that is done and not acknowledged", before, after)
				}
			})
		}
	}
}

// TestCancelledReplicationWaitIsNoSuccess cancels commits that wait for a standby, for any client_min_messages.
func TestCancelledReplicationWaitIsNoSuccess(t *testing.T) {
	pg, d, waits := alone(t)
	sqltest.Execute(t, d, "CREATE ROLE hidden SUPERUSER LOGIN", "ALTER ROLE hidden SET client_min_messages = 'error'")
	for name, hears := range map[string]*Database{
		"default": waits,
		"by URL":  drivertest.Open(t, openURL, pg.URL()+"&synchronous_commit=on&client_min_messages=error"),
		"by role": drivertest.Open(t, openURL, pg.URLFor("hidden", "", "postgres")+"&synchronous_commit=on"),
	} {
		observer := newSession(t, d, db.Pipelined, "")
		cancelled := func(do func() error) error {
			done := make(chan error, 1)
			go func() { done <- do() }()
			signal("pg_cancel_backend")(t, observer, waiting(t, observer))
			return <-done
		}
		for _, w := range ways {
			t.Run(name+" "+w.name, func(t *testing.T) {
				s := w.session(t, hears, "")
				wantLocalOnly(t, cancelled(func() error { return w.transact(t.Context(), s, bank.Touch(0, 1)) }))
			})
		}
		t.Run(name+" a statement of its own", func(t *testing.T) {
			wantLocalOnly(t, cancelled(func() error { return hears.Exec(t.Context(), "UPDATE accounts SET version = version") }))
		})
		t.Run(name+" a load", func(t *testing.T) {
			load := sqltest.Load([]string{"DROP TABLE IF EXISTS things", "CREATE TABLE things (id BIGINT, small BIGINT, mid BIGINT, m NUMERIC(20,2), s VARCHAR(40))"}, sqltest.Some(10, "row %d"))
			wantLocalOnly(t, cancelled(func() error { _, err := BulkLoader(hears).BulkLoad(t.Context(), load); return err }))
		})
	}
}

func TestSessionsSurviveRestarts(t *testing.T) {
	pg := start(t, nil)
	sqltest.Restarts(t, pg, drivertest.Open(t, openURL, pg.URL()), &bank)
}

func TestTerminatedSessionFailsItsTransaction(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	self := sqltest.With(&db.Statement{SQL: "SELECT pg_terminate_backend(pg_backend_pid())"}, nil)
	eachWay(t, func(t *testing.T, w way) {
		class := db.Unavailable
		if w.together() { // the commit was under way
			class = db.Unknown
		}
		s := w.session(t, d, "")
		sqltest.WantError(t, w.name, w.transact(t.Context(), s, bank.Touch(0, 1), self, bank.Touch(0, 1)), class, "57P01")
	})
}

func TestCommitToFrozenServerIsUnknown(t *testing.T) {
	pg := start(t, nil)
	d := drivertest.Open(t, openURL, pg.URL()+"&connect_timeout=1")
	sqltest.Frozen(t, pg, d, &bank, impatient(d))
}

func TestSessionServesSuccessiveContexts(t *testing.T) {
	sqltest.Contexts(t, openFresh(t), &bank)
}

func TestSlowStatementOutsideTransactionIsNotTimedOut(t *testing.T) {
	d := openFresh(t)
	sqltest.Slow(t, d, &db.Statement{SQL: "SELECT pg_sleep(0.3)"}, impatient(d))
}

func TestStatementsMayHaveAnyTypes(t *testing.T) { sqltest.TestFree(t, openFresh(t)) }
