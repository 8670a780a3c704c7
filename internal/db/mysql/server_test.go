package mysql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/mariadb"
	"stroppy/internal/db"
)

// shared is the server of all tests that do it no harm. It is set by the first
// that needs it and stopped by TestMain.
var shared struct {
	server *mariadb.Server
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// quick are settings without the cost of fsync: no test pulls a plug. What is
// committed is written to the file all the same, so that it outlives kill -9.
var quick = map[string]string{"innodb-flush-log-at-trx-commit": "2", "innodb-buffer-pool-size": "32M", "innodb-flush-method": "nosync"}

func launch(ctx context.Context, settings map[string]string) (*mariadb.Server, error) {
	all := map[string]string{}
	for _, m := range []map[string]string{quick, settings} {
		for name, value := range m {
			all[name] = value
		}
	}
	return mariadb.Start(ctx, mariadb.Options{Settings: all})
}

func skipMissing(t testing.TB, err error) {
	t.Helper()
	if missing := new(cluster.MissingError); errors.As(err, missing) {
		t.Skip("skipped engine: mariadb: install the Debian package " + missing.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a server of the test's own.
func start(t testing.TB, settings map[string]string) *mariadb.Server {
	t.Helper()
	s, err := launch(t.Context(), settings)
	skipMissing(t, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var databases atomic.Int64

// fresh returns the shared server and the address of a new, empty database on it.
func fresh(t testing.TB) (*mariadb.Server, string) {
	t.Helper()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = launch(context.Background(), nil)
	}
	skipMissing(t, shared.err)
	name := fmt.Sprintf("test%d", databases.Add(1))
	if _, err := shared.server.SQL(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return shared.server, shared.server.URLFor(mariadb.Superuser, "", name)
}

// openFresh opens a new, empty database on the shared server.
func openFresh(t testing.TB) *Database {
	t.Helper()
	_, url := fresh(t)
	return openAt(t, url)
}

func openAt(t testing.TB, url string) *Database {
	t.Helper()
	d, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func execute1(t testing.TB, d *Database, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := d.Exec(context.WithoutCancel(t.Context()), s); err != nil {
			t.Fatal(err)
		}
	}
}

func newSession(t testing.TB, d *Database, mode db.Mode, isolation string) *session {
	t.Helper()
	s, err := d.Session(t.Context(), db.SessionOptions{Isolation: isolation, Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(*session)
}

// ask returns the first row of a query, run as somebody else, with spaces between
// its columns.
func ask(t testing.TB, d *Database, sql string) string {
	t.Helper()
	var answer string
	err := d.control(t.Context(), "ask", func(c *control) error {
		rows, err := c.table(sql)
		if err == nil && len(rows) > 0 {
			answer = strings.Join(rows[0], " ")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// until asks the same again and again until the answer is not empty.
func until(t testing.TB, d *Database, sql string) string {
	t.Helper()
	for t.Context().Err() == nil {
		if answer := ask(t, d, sql); answer != "" {
			return answer
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal(t.Context().Err())
	return ""
}

// bank is a schema with every kind of constraint, and statements on it.
var (
	bank = []string{
		`CREATE TABLE accounts (
			bic VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, ban BIGINT NOT NULL,
			balance DECIMAL(20,2) NOT NULL CHECK (balance >= 0),
			version BIGINT NOT NULL, last_transfer BIGINT NOT NULL, previous_transfer BIGINT NOT NULL,
			PRIMARY KEY (bic, ban)) ENGINE=InnoDB`,
		`CREATE TABLE ledger (
			transfer BIGINT NOT NULL, leg BIGINT NOT NULL,
			bic VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, ban BIGINT NOT NULL,
			amount DECIMAL(20,2) NOT NULL, version BIGINT NOT NULL,
			PRIMARY KEY (transfer, leg), FOREIGN KEY (bic, ban) REFERENCES accounts (bic, ban)) ENGINE=InnoDB`,
	}
	updateAccount = &db.Statement{
		SQL: `UPDATE accounts SET balance = balance + ?, version = version + 1,
			previous_transfer = last_transfer, last_transfer = ? WHERE bic = ? AND ban = ?`,
		Params: []db.Type{db.Decimal, db.Integer, db.Text, db.Integer},
	}
	setBalance = &db.Statement{
		SQL:    `UPDATE accounts SET balance = ? WHERE bic = ? AND ban = ?`,
		Params: []db.Type{db.Decimal, db.Text, db.Integer},
	}
	insertLeg = &db.Statement{
		SQL: `INSERT INTO ledger (transfer, leg, bic, ban, amount, version)
			VALUES (?, ?, ?, ?, ?, (SELECT version FROM accounts WHERE bic = ? AND ban = ?))`,
		Params: []db.Type{db.Integer, db.Integer, db.Text, db.Integer, db.Decimal, db.Text, db.Integer},
	}
	readAccount = &db.Statement{
		SQL:     `SELECT balance, version FROM accounts WHERE bic = ? AND ban = ?`,
		Params:  []db.Type{db.Text, db.Integer},
		Columns: []db.Type{db.Decimal, db.Integer},
	}
)

var bic = []byte("ABCDEFGH")

// makeBank makes the schema with n accounts of 1000.00 each.
func makeBank(t testing.TB, d *Database, n int) {
	t.Helper()
	execute1(t, d, bank...)
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf("('%s', %d, 1000, 0, 0, 0)", bic, i)
	}
	execute1(t, d, "INSERT INTO accounts VALUES "+strings.Join(rows, ", "))
}

// touch adds cents to an account.
func touch(account, cents int64) statement {
	return statement{updateAccount, []db.Value{number(cents), number(1), {Text: bic}, number(account)}}
}

// read reads an account.
func read(account int64) statement {
	return statement{readAccount, []db.Value{{Text: bic}, number(account)}}
}

var bothModes = map[string]db.Mode{"pipelined": db.Pipelined, "interactive": db.Interactive}

func eachMode(t *testing.T, test func(*testing.T, db.Mode)) {
	for name, mode := range bothModes {
		t.Run(name, func(t *testing.T) { test(t, mode) })
	}
}

// statement is one statement of a transaction in a test.
type statement struct {
	s    *db.Statement
	args []db.Value
}

// transact runs statements in one transaction and commits it.
func transact(ctx context.Context, s *session, readOnly, flush bool, statements ...statement) error {
	if err := s.Begin(ctx, readOnly); err != nil {
		return err
	}
	for i, x := range statements {
		if n, err := s.Do(ctx, x.s, x.args); err != nil {
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

// do runs one statement of an open transaction at once.
func do(ctx context.Context, s *session, x statement) (*db.Result, error) {
	i, err := s.Do(ctx, x.s, x.args)
	if err == nil {
		err = s.Flush(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s.Result(i), nil
}

func number(n int64) db.Value { return db.Value{Int: n} }

var key0 = []db.Value{{Text: bic}, {Int: 0}}

func balanceOf(t *testing.T, s *session, account int64) int64 {
	t.Helper()
	var cents int64 = -1
	x := read(account)
	err := s.Query(t.Context(), x.s, x.args, func(row []db.Value) error {
		cents = row[0].Int
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cents
}

const secret = "s3cr3t-w0rd"

// wantError checks an error's class, and that the password is not in it.
func wantError(t *testing.T, what string, err error, class db.Class, code string) {
	t.Helper()
	var e *db.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: %v (%T) is no *db.Error", what, err, err)
	}
	if e.Class != class || e.Code != code {
		t.Errorf("%s: class %v, code %q, want %v, %q: %v", what, e.Class, e.Code, class, code, err)
	}
	if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "w0rd") {
		t.Errorf("%s: the error tells the password: %v", what, err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: the error is more than one line: %q", what, err)
	}
}
