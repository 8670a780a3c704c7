package mysql

import (
	"errors"
	"fmt"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

func TestConstraintViolationsAreClassified(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 3)
	insertAccount := &db.Statement{SQL: "INSERT INTO accounts VALUES (?, ?, ?, 0, 0, 0)", Params: []db.Type{db.Text, db.Integer, db.Decimal}}
	insertLedger := &db.Statement{SQL: "INSERT INTO ledger VALUES (?, 0, ?, ?, 1, 1)", Params: []db.Type{db.Integer, db.Text, db.Integer}}
	account := func(n int64, money db.Value) sqltest.Statement {
		return sqltest.With(insertAccount, []db.Value{{Text: bic}, sqltest.Number(n), money})
	}
	nobody := sqltest.With(insertLeg, []db.Value{sqltest.Number(8), sqltest.Number(0), {Text: bic}, sqltest.Number(1), sqltest.Number(1), {Text: bic}, sqltest.Number(77)})
	sqltest.Constraints(t, d, &bank, []sqltest.Refused{
		{Name: "check", Statement: bank.Touch(0, -1000_01), Kind: db.CheckFailed, Code: "4025"},
		{Name: "not null", Statement: account(7, db.Value{Null: true}), Kind: db.NotNull, Code: "1048"},
		{Name: "not null of a query", Statement: nobody, Kind: db.NotNull, Code: "1048"},
		{Name: "foreign key", Statement: sqltest.With(insertLedger, []db.Value{sqltest.Number(7), {Text: bic}, sqltest.Number(77)}), Kind: db.ForeignKey, Code: "1452"},
		{Name: "unique", Statement: account(0, sqltest.Number(1)), Kind: db.UniqueKey, Code: "1062"},
	})
}

func TestConflictIsAborted(t *testing.T) {
	_, url := fresh(t)
	d := drivertest.Open(t, Open, url)
	bank.Make(t, d, 3)
	ctx := t.Context()
	must := func(t *testing.T, _ *db.Result, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		sqltest.Deadlock(t, d, &bank, mode, "1213")

		// InnoDB undoes only the statement that waited in vain, so the driver must roll back the transaction.
		impatient := drivertest.Open(t, Open, url+"?innodb_lock_wait_timeout=1")
		holder, waiter := newSession(t, d, mode, ""), newSession(t, impatient, mode, "")
		before := bank.Balance(t, waiter, 0)
		must(t, nil, holder.Begin(ctx, false))
		r, err := sqltest.Do(ctx, holder, bank.Touch(1, 1))
		must(t, r, err)
		sqltest.WantError(t, "lock wait", sqltest.Transact(ctx, waiter, false, true, bank.Touch(0, 100), bank.Touch(1, 100)), db.Aborted, "1205")
		must(t, nil, sqltest.Transact(ctx, waiter, false, false, bank.Touch(2, 1)))
		must(t, nil, holder.Commit(ctx))
		if after := bank.Balance(t, waiter, 0); after != before {
			t.Errorf("half a transaction was committed: %d, then %d", before, after)
		}

		slow := drivertest.Open(t, Open, url+"?max_statement_time=0.5")
		s := newSession(t, slow, mode, "")
		sleep := sqltest.With(&db.Statement{SQL: "SELECT SLEEP(600)", Columns: []db.Type{db.Integer}}, nil)
		sqltest.WantError(t, "max_statement_time", sqltest.Transact(ctx, s, false, false, bank.Touch(0, 1), sleep), db.Aborted, "1969")
		must(t, nil, sqltest.Transact(ctx, s, false, false, bank.Touch(0, 1)))
	})
}

// killed runs a session up to a place that find recognizes, and then sends KILL.
func killed(t *testing.T, s *session, d *Database, kill string, run func() error) error {
	t.Helper()
	row, err := s.row("SELECT CONNECTION_ID()")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- run() }()
	until(t, d, "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep' AND ID = "+row[0])
	sqltest.Execute(t, d, kill+" "+row[0])
	return <-done
}

func TestKilledConnectionAppliesNothing(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	sleep := sqltest.With(&db.Statement{SQL: "SELECT SLEEP(600)", Columns: []db.Type{db.Integer}}, nil)
	asleep := sqltest.With(&db.Statement{SQL: "UPDATE accounts SET version = version + SLEEP(600) WHERE ban = 1"}, nil)
	for _, tc := range []struct {
		name  string
		mode  db.Mode
		flush bool
		work  []sqltest.Statement
	}{
		{"interactive", db.Interactive, false, []sqltest.Statement{bank.Touch(0, 1), asleep, bank.Touch(0, 1)}},
		{"flushed", db.Pipelined, true, []sqltest.Statement{bank.Touch(0, 1), asleep, bank.Touch(0, 1)}},
		{"with the commit under way", db.Pipelined, false, []sqltest.Statement{bank.Touch(0, 1), asleep, bank.Touch(0, 1)}},
		{"with the commit under way and rows", db.Pipelined, false, []sqltest.Statement{bank.Touch(0, 1), sleep, bank.Touch(0, 1)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSession(t, d, tc.mode, "")
			err := killed(t, s, d, "KILL CONNECTION", func() error { return sqltest.Transact(t.Context(), s, false, tc.flush, tc.work...) })
			// The server may report before it closes the connection; then it has not reached COMMIT.
			var own *db.Error
			want := db.Unavailable
			if errors.As(err, &own); own == nil || own.Code == "" && tc.mode == db.Pipelined && !tc.flush {
				want = db.Unknown
			}
			if own == nil || own.Class != want || own.Code != "" && own.Code != "1927" {
				t.Errorf("want class %v: %v", want, err)
			}
			sqltest.WantError(t, "a broken session", s.Begin(t.Context(), false), db.Unavailable, "")
			s = newSession(t, d, tc.mode, "")
			err = killed(t, s, d, "KILL QUERY", func() error {
				return sqltest.Transact(t.Context(), s, false, tc.flush, bank.Touch(0, 1), asleep, bank.Touch(0, 1))
			})
			if want = db.Aborted; tc.mode == db.Pipelined && !tc.flush {
				want = db.Unknown // the server may have come to COMMIT
				drivertest.Must(t, s.Reset(t.Context()))
			}
			sqltest.WantError(t, "KILL QUERY", err, want, "1317")
			if cents := bank.Balance(t, s, 0); cents != 1000_00 {
				t.Errorf("a transaction that was killed has left %d", cents)
			}
		})
	}
}

// TestInterruptedCommitIsUnknown makes commits wait, once before and once after they are applied, and kills the
// server meanwhile.
func TestInterruptedCommitIsUnknown(t *testing.T) {
	m := start(t, map[string]string{"log-bin": "binlog", "rpl-semi-sync-master-timeout": "600000"})
	d := drivertest.Open(t, Open, m.URL())
	bank.Make(t, d, 2)
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
		{"after it is done", func(t *testing.T, other *session) {
			sqltest.Execute(t, d, "SET GLOBAL rpl_semi_sync_master_enabled = ON")
		},
			"Waiting for semi-sync ACK from slave", true},
	} {
		for name, mode := range sqltest.Modes {
			for _, flush := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s %v", tc.name, name, flush), func(t *testing.T) {
					s, other := newSession(t, d, mode, ""), newSession(t, d, mode, "")
					before := bank.Balance(t, s, 0)
					if err := s.Begin(t.Context(), false); err != nil {
						t.Fatal(err)
					}
					if _, err := s.Do(t.Context(), updateAccount, bank.Touch(0, 1).Args); err != nil {
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
					if err := m.Kill(t.Context()); err != nil {
						t.Fatal(err)
					}
					sqltest.WantError(t, "the commit", <-done, db.Unknown, "")
					sqltest.WantError(t, "a broken session", s.Begin(t.Context(), false), db.Unavailable, "")
					sqltest.WantError(t, "Reset without a server", s.Reset(t.Context()), db.Unavailable, "")
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
					if after := bank.Balance(t, s, 0); after != want {
						t.Errorf("the balance was %d and is %d, want %d: this test needs both outcomes of an unknown commit", before, after, want)
					}
				})
			}
		}
	}
}

func TestSessionsSurviveRestarts(t *testing.T) {
	m := start(t, nil)
	sqltest.Restarts(t, m, drivertest.Open(t, Open, m.URL()), &bank)
}

func TestCommitToFrozenServerIsUnknown(t *testing.T) {
	m := start(t, nil)
	d := drivertest.Open(t, Open, m.URL()+"?timeout=500ms")
	sqltest.Frozen(t, m, d, &bank, impatient(d))
}

func TestSlowStatementOutsideTransactionIsNotTimedOut(t *testing.T) {
	d := openFresh(t)
	sqltest.Slow(t, d, &db.Statement{SQL: "SELECT SLEEP(0.3)", Columns: []db.Type{db.Integer}}, impatient(d))
}

// TestReadOnlyServerAppliesNoCommit checks that a commit refused by a server that became read-only was not
// applied.
func TestReadOnlyServerAppliesNoCommit(t *testing.T) {
	m := start(t, nil)
	d := drivertest.Open(t, Open, m.URL())
	bank.Make(t, d, 2)
	sqltest.Execute(t, d, "CREATE USER plain IDENTIFIED BY 'x'", "GRANT ALL ON test.* TO plain")
	plain := drivertest.Open(t, Open, m.URLFor("plain", "x", "test"))
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, plain, mode, "")
		if err := s.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if _, err := sqltest.Do(t.Context(), s, bank.Touch(0, 1)); err != nil {
			t.Fatal(err)
		}
		sqltest.Execute(t, d, "SET GLOBAL read_only = ON")
		sqltest.WantError(t, "the commit", s.Commit(t.Context()), db.Unavailable, "1290")
		if err := s.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		sqltest.WantError(t, "the next transaction", sqltest.Transact(t.Context(), s, false, false, bank.Touch(0, 1)), db.Unavailable, "1290")
		if err := s.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := sqltest.Transact(t.Context(), s, true, false, bank.See(0)); err != nil {
			t.Errorf("reading: %v", err)
		}
		if cents := bank.Balance(t, s, 0); cents != 1000_00 {
			t.Errorf("a refused commit has left %d", cents)
		}
		sqltest.Execute(t, d, "SET GLOBAL read_only = OFF")
	})
}
