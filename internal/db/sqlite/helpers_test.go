package sqlite_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqlite"
)

var (
	modes     = []db.Mode{db.Pipelined, db.Interactive}
	modeNames = map[db.Mode]string{db.Pipelined: "pipelined", db.Interactive: "interactive"}
)

// inModes runs a test in both modes, each on a new database.
func inModes(t *testing.T, parameters string, test func(t *testing.T, d *sqlite.Database, mode db.Mode)) {
	for _, mode := range modes {
		t.Run(modeNames[mode], func(t *testing.T) {
			d, _ := openNew(t, parameters)
			test(t, d, mode)
		})
	}
}

// openNew opens a new database and also returns its path.
func openNew(tb testing.TB, parameters string) (*sqlite.Database, string) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "bank.db")
	return openAt(tb, path, parameters), path
}

func openAt(tb testing.TB, path, parameters string) *sqlite.Database {
	tb.Helper()
	return drivertest.Open(tb, sqlite.Open, "sqlite:"+path+"?"+parameters)
}

func openSession(tb testing.TB, d *sqlite.Database, mode db.Mode) db.SQLSession {
	tb.Helper()
	s, err := d.Session(tb.Context(), db.SessionOptions{Mode: mode})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func run(tb testing.TB, d *sqlite.Database, statements ...string) {
	tb.Helper()
	for _, s := range statements {
		if err := d.Exec(tb.Context(), s); err != nil {
			tb.Fatal(err)
		}
	}
}

// transact runs statements without parameters and results in one transaction.
func transact(tb testing.TB, s db.SQLSession, statements ...*db.Statement) error {
	tb.Helper()
	if err := s.Begin(tb.Context(), false); err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := s.Do(tb.Context(), statement, nil); err != nil {
			return err
		}
	}
	return s.Commit(tb.Context())
}

func sql(text string) *db.Statement { return &db.Statement{SQL: text} }

// number returns the only integer of a query.
func number(tb testing.TB, s db.SQLSession, text string) int64 {
	tb.Helper()
	n, rows := int64(0), 0
	statement := &db.Statement{SQL: text, Columns: []db.Type{db.Integer}}
	if err := s.Query(tb.Context(), statement, nil, func(row []db.Value) error { n, rows = row[0].Int, rows+1; return nil }); err != nil {
		tb.Fatal(err)
	}
	if rows != 1 {
		tb.Fatalf("%s brought %d rows", text, rows)
	}
	return n
}

// wantError fails unless err is a *db.Error of the class and contains the texts.
func wantError(tb testing.TB, err error, class db.Class, texts ...string) {
	tb.Helper()
	var e *db.Error
	if !errors.As(err, &e) || e.Class != class {
		tb.Fatalf("got %v (%v), want class %v", err, db.ClassOf(err), class)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			tb.Errorf("%q does not hold %q", err, text)
		}
	}
}
