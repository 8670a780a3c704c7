// Package sqltest holds the tests that every driver of an SQL database must pass, whatever its protocol. It also holds
// a bank of two tables on the driver's own server, and transactions in one line.
package sqltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

var BIC = []byte("ABCDEFGH")

// Opening is the first balance of each account of a Bank, in cents.
const Opening = 1000_00

// Bank is the schema of a driver's tests, with every kind of constraint: accounts (bic, ban, balance ≥ 0, version,
// last_transfer, previous_transfer) and ledger (transfer, leg, bic, ban, amount, version).
type Bank struct {
	Schema []string
	Update *db.Statement // adds $1 cents for the transfer $2 to the account $3, $4
	Read   *db.Statement // returns the balance and the version of the account $1, $2
}

// Make makes the schema with n accounts of 1000.00 each.
func (b *Bank) Make(t testing.TB, d db.SQL, n int) {
	t.Helper()
	Execute(t, d, b.Schema...)
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf("('%s', %d, 1000, 0, 0, 0)", BIC, i)
	}
	Execute(t, d, "INSERT INTO accounts VALUES "+strings.Join(rows, ", "))
}

func (b *Bank) Touch(account, cents int64) Statement {
	return Statement{b.Update, []db.Value{Number(cents), Number(1), {Text: BIC}, Number(account)}}
}

func (b *Bank) See(account int64) Statement {
	return Statement{b.Read, []db.Value{{Text: BIC}, Number(account)}}
}

func (b *Bank) Balance(t testing.TB, s db.SQLSession, account int64) int64 {
	t.Helper()
	var cents int64 = -1
	x := b.See(account)
	drivertest.Must(t, s.Query(t.Context(), x.S, x.Args, func(row []db.Value) error {
		cents = row[0].Int
		return nil
	}))
	return cents
}

type Statement struct {
	S    *db.Statement
	Args []db.Value
}

func With(s *db.Statement, args []db.Value) Statement { return Statement{S: s, Args: args} }

// Counted returns x with a request for the number of affected rows.
func Counted(x Statement) Statement {
	s := *x.S
	s.Counted = true
	return Statement{&s, x.Args}
}

func Number(n int64) db.Value { return db.Value{Int: n} }

// Transact runs statements in one transaction and commits it. If flush is set, it calls Flush before the commit.
func Transact(ctx context.Context, s db.SQLSession, readOnly, flush bool, statements ...Statement) error {
	if err := s.Begin(ctx, readOnly); err != nil {
		return err
	}
	for i, x := range statements {
		if n, err := s.Do(ctx, x.S, x.Args); err != nil {
			return err
		} else if n != i {
			return fmt.Errorf("the result of statement %d has the number %d", i, n)
		}
	}
	if flush {
		if err := s.Flush(ctx); err != nil {
			return err
		}
	}
	return s.Commit(ctx)
}

// Do runs one statement of an open transaction at once.
func Do(ctx context.Context, s db.SQLSession, x Statement) (*db.Result, error) {
	i, err := s.Do(ctx, x.S, x.Args)
	if err == nil {
		err = s.Flush(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s.Result(i), nil
}

// Modes are the modes in which each test runs.
var Modes = map[string]db.Mode{"pipelined": db.Pipelined, "interactive": db.Interactive}

func EachMode(t *testing.T, test func(*testing.T, db.Mode)) {
	for name, mode := range Modes {
		t.Run(name, func(t *testing.T) { test(t, mode) })
	}
}

// Execute runs statements outside any transaction.
func Execute(t testing.TB, d db.SQL, statements ...string) {
	t.Helper()
	for _, s := range statements {
		drivertest.Must(t, d.Exec(context.WithoutCancel(t.Context()), s))
	}
}

// Session opens a session until the test ends. An interactive session asks to wait for its answers in the system call,
// so a driver that has both ways is tested with both.
func Session(t testing.TB, d db.SQL, mode db.Mode, isolation string) db.SQLSession {
	t.Helper()
	s, err := d.Session(t.Context(), db.SessionOptions{Isolation: isolation, Mode: mode, Blocking: mode == db.Interactive})
	drivertest.Must(t, err)
	drivertest.Close(t, s)
	return s
}

const Secret = "s3cr3t-w0rd"

// WantError checks the class and the code of an error. The error must be one line and contain no part of Secret.
func WantError(t testing.TB, what string, err error, class db.Class, code string) {
	t.Helper()
	var e *db.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: %v (%T) is no *db.Error", what, err, err)
	}
	if e.Class != class || e.Code != code {
		t.Errorf("%s: class %v, code %q, want %v, %q: %v", what, e.Class, e.Code, class, code, err)
	}
	for part := range strings.SplitSeq(Secret, "-") {
		if strings.Contains(err.Error(), part) {
			t.Errorf("%s: the error shows the password: %v", what, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: the error is more than one line: %q", what, err)
	}
}
