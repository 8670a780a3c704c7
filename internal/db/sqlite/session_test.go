package sqlite_test

import (
	"errors"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/db/sqltest"
)

// constrained creates a table for each kind of constraint.
func constrained(t *testing.T, d *sqlite.Database) {
	run(t, d,
		"CREATE TABLE bank (bic TEXT PRIMARY KEY) STRICT",
		"CREATE TABLE a (n INTEGER PRIMARY KEY, bic TEXT REFERENCES bank, late TEXT REFERENCES bank DEFERRABLE INITIALLY DEFERRED,"+
			" name TEXT UNIQUE, balance INTEGER NOT NULL CHECK (balance >= 0)) STRICT",
		"CREATE TABLE k (x TEXT, y INTEGER, PRIMARY KEY (x, y)) STRICT",
		"CREATE TRIGGER guard BEFORE DELETE ON a BEGIN SELECT RAISE(ABORT, 'accounts stay'); END",
		"INSERT INTO bank VALUES ('B')",
		"INSERT INTO a VALUES (1, 'B', 'B', 'one', 100)",
		"INSERT INTO k VALUES ('x', 1)",
	)
}

func TestConstraintViolationsAreClassified(t *testing.T) {
	for _, test := range []struct {
		sql  string
		kind db.ConstraintKind
		code string
	}{
		{"UPDATE a SET balance = balance - 101 WHERE n = 1", db.CheckFailed, "SQLITE_CONSTRAINT_CHECK"},
		{"UPDATE a SET balance = NULL WHERE n = 1", db.NotNull, "SQLITE_CONSTRAINT_NOTNULL"},
		{"UPDATE a SET bic = 'C' WHERE n = 1", db.ForeignKey, "SQLITE_CONSTRAINT_FOREIGNKEY"},
		{"UPDATE a SET late = 'C' WHERE n = 1", db.ForeignKey, "SQLITE_CONSTRAINT_FOREIGNKEY"}, // reported by COMMIT
		{"INSERT INTO a VALUES (1, 'B', 'B', 'two', 0)", db.UniqueKey, "SQLITE_CONSTRAINT_PRIMARYKEY"},
		{"INSERT INTO a VALUES (2, 'B', 'B', 'one', 0)", db.UniqueKey, "SQLITE_CONSTRAINT_UNIQUE"},
		{"INSERT INTO k VALUES ('x', 1)", db.UniqueKey, "SQLITE_CONSTRAINT_PRIMARYKEY"},
		{"DELETE FROM a", 0, "SQLITE_CONSTRAINT_TRIGGER"},
	} {
		inModes(t, "synchronous=off", func(t *testing.T, d *sqlite.Database, mode db.Mode) {
			constrained(t, d)
			s := openSession(t, d, mode)
			err := transact(t, s, sql("UPDATE a SET balance = 7"), sql(test.sql))
			wantError(t, err, db.Constraint, test.code)
			if got := db.ConstraintOf(err); got != test.kind {
				t.Errorf("%s: kind %d, want %d", test.sql, got, test.kind)
			}
			// Everything is undone, and the session is ready.
			if n := number(t, s, "SELECT balance FROM a"); n != 100 {
				t.Errorf("%s: half a transaction was applied: the balance is %d", test.sql, n)
			}
			if err := transact(t, s, sql("UPDATE a SET balance = 8")); err != nil {
				t.Errorf("%s: the session is not ready: %v", test.sql, err)
			}
		})
	}
}

func TestInvalidStatementsAreFatal(t *testing.T) {
	integers := []db.Type{db.Integer}
	for name, test := range map[string]struct {
		statement *db.Statement
		args      []db.Value
		text      string
	}{
		"syntax":     {sql("UPDTE a"), nil, "SQLITE_ERROR"},
		"no table":   {sql("DELETE FROM nowhere"), nil, "no such table"},
		"two":        {sql("DELETE FROM k; DELETE FROM k"), nil, "more than one"},
		"columns":    {&db.Statement{SQL: "SELECT n, balance FROM a", Columns: integers}, nil, "returns 2 columns where 1"},
		"parameters": {&db.Statement{SQL: "DELETE FROM k WHERE y = ?1 + ?2", Params: integers}, []db.Value{{}}, "takes 2 parameters where 1"},
		"arguments":  {&db.Statement{SQL: "DELETE FROM k WHERE y = ?1", Params: integers}, nil, "0 arguments are given for 1"},
		"type":       {&db.Statement{SQL: "DELETE FROM k WHERE y = ?1", Params: []db.Type{9}}, []db.Value{{}}, "no type has the number 9"},
		"floating":   {&db.Statement{SQL: "SELECT balance / 3.0 FROM a", Columns: []db.Type{db.Decimal}}, nil, "a floating point number, and an integer is declared"},
		"text":       {&db.Statement{SQL: "SELECT name FROM a", Columns: integers}, nil, "a text, and an integer is declared"},
		"integer":    {&db.Statement{SQL: "SELECT n FROM a", Columns: []db.Type{db.Text}}, nil, "an integer, and a text is declared"},
		"strict":     {&db.Statement{SQL: "INSERT INTO k VALUES ('y', ?1)", Params: []db.Type{db.Text}}, []db.Value{{Text: []byte("one")}}, "SQLITE_CONSTRAINT_DATATYPE"},
	} {
		t.Run(name, func(t *testing.T) {
			inModes(t, "synchronous=off", func(t *testing.T, d *sqlite.Database, mode db.Mode) {
				constrained(t, d)
				s := openSession(t, d, mode)
				err := func() error {
					if err := s.Begin(t.Context(), false); err != nil {
						return err
					}
					if _, err := s.Do(t.Context(), test.statement, test.args); err != nil {
						return err
					}
					return s.Commit(t.Context())
				}()
				wantError(t, err, db.Fatal, test.text)
				if err := transact(t, s, sql("UPDATE a SET balance = 8")); err != nil {
					t.Errorf("the session is not ready: %v", err)
				}
			})
		})
	}
}

func TestStatementsReturnExactValues(t *testing.T) {
	inModes(t, "", func(t *testing.T, d *sqlite.Database, mode db.Mode) {
		dialect := d.Dialect()
		run(t, d, "CREATE TABLE m (n "+dialect.IntegerType+" PRIMARY KEY, name "+dialect.TextType(34)+", money "+dialect.DecimalType+")"+dialect.TableOptions)
		insert := &db.Statement{
			SQL:     "INSERT INTO m VALUES (" + dialect.Placeholder(1) + ", " + dialect.Placeholder(2) + ", " + dialect.Placeholder(3) + ")" + dialect.DoNothing,
			Params:  []db.Type{db.Integer, db.Text, db.Decimal},
			Counted: true,
		}
		raise := &db.Statement{
			SQL:     "UPDATE m SET money = money + ?1 WHERE n <= ?2 RETURNING n, name, money",
			Params:  []db.Type{db.Decimal, db.Integer},
			Columns: []db.Type{db.Integer, db.Text, db.Decimal},
		}
		read := &db.Statement{SQL: "SELECT name FROM m ORDER BY n" + dialect.ForUpdate, Columns: []db.Type{db.Text}}
		s := openSession(t, d, mode)
		if err := s.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		name := []byte("first")
		args := []db.Value{{Int: 1}, {Text: name}, {Int: 9_007_199_254_740_993}} // 2^53 + 1: no float64 holds it
		do := func(statement *db.Statement, args ...db.Value) {
			t.Helper()
			if _, err := s.Do(t.Context(), statement, args); err != nil {
				t.Fatal(err)
			}
		}
		do(insert, args...)
		copy(name, "xxxxx") // the arguments must have been copied
		args[0].Int = 5
		do(insert, db.Value{Int: 2}, db.Value{Text: []byte{}}, db.Value{Int: -1})
		do(insert, db.Value{Int: 3}, db.Value{Null: true}, db.Value{Null: true})
		do(insert, db.Value{Int: 3}, db.Value{Text: []byte(strings.Repeat("z", 300))}, db.Value{})
		do(raise, db.Value{Int: 1}, db.Value{Int: 3})
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Do(t.Context(), read, nil); err != nil || n != 5 {
			t.Fatalf("the result has the number %d, %v", n, err)
		}
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int64{1, 1, 1, 0} {
			if got := s.Result(i).Affected; got != want {
				t.Errorf("statement %d affected %d rows, want %d", i, got, want)
			}
		}
		rows := s.Result(4)
		if rows.Rows() != 3 {
			t.Fatalf("%d rows were returned", rows.Rows())
		}
		if r := rows.Row(0); r[0].Int != 1 || string(r[1].Text) != "first" || r[2].Int != 9_007_199_254_740_994 {
			t.Errorf("row 0 is %+v", r)
		}
		if r := rows.Row(1); r[1].Null || len(r[1].Text) != 0 || r[2].Int != 0 {
			t.Errorf("row 1 is %+v", r)
		}
		if r := rows.Row(2); !r[1].Null || !r[2].Null {
			t.Errorf("row 2 is %+v", r)
		}
		if got := s.Result(5); got.Rows() != 3 || string(got.Row(0)[0].Text) != "first" {
			t.Errorf("the select brought %+v", got)
		}
		if s.Result(6).Rows() != 0 || s.Result(-1).Rows() != 0 {
			t.Error("a result that is not there has rows")
		}
	})
}

func TestMisusedSessionReturnsFatalError(t *testing.T) {
	inModes(t, "", func(t *testing.T, d *sqlite.Database, mode db.Mode) {
		constrained(t, d)
		s := openSession(t, d, mode)
		ctx := t.Context()
		_, err := s.Do(ctx, sql("DELETE FROM k"), nil)
		wantError(t, err, db.Fatal, "no transaction is open")
		wantError(t, s.Flush(ctx), db.Fatal, "no transaction is open")
		wantError(t, s.Commit(ctx), db.Fatal, "no transaction is open")
		if err := s.Rollback(ctx); err != nil {
			t.Errorf("a rollback of nothing: %v", err)
		}
		if err := transact(t, s); err != nil {
			t.Errorf("a transaction of nothing: %v", err)
		}
		if err := s.Begin(ctx, false); err != nil {
			t.Fatal(err)
		}
		wantError(t, s.Begin(ctx, false), db.Fatal, "a transaction is open")
		wantError(t, s.Commit(ctx), db.Fatal, "no transaction is open")

		// A rollback undoes what has run, and queued statements never run.
		if err := s.Begin(ctx, false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Do(ctx, sql("UPDATE a SET balance = 1"), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Do(ctx, sql("UPDATE a SET balance = 2"), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
		if err := transact(t, s, sql("UPDATE k SET y = 2")); err != nil {
			t.Fatal(err)
		}
		if n := number(t, s, "SELECT balance FROM a"); n != 100 {
			t.Errorf("the balance is %d after a rollback", n)
		}

		// A read-only transaction cannot write.
		if err := s.Begin(ctx, true); err != nil {
			t.Fatal(err)
		}
		_, err = s.Do(ctx, sql("UPDATE a SET balance = 1"), nil)
		if err == nil {
			err = s.Commit(ctx)
		}
		wantError(t, err, db.Fatal, "read-only")

		// A query within a transaction is refused and ends the transaction.
		if err := s.Begin(ctx, false); err != nil {
			t.Fatal(err)
		}
		one := &db.Statement{SQL: "SELECT 1", Columns: []db.Type{db.Integer}}
		wantError(t, s.Query(ctx, one, nil, func([]db.Value) error { return nil }), db.Fatal, "a transaction is open")

		// After Close, every call fails until Reset.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wantError(t, s.Begin(ctx, false), db.Unavailable, "reset it")
		wantError(t, s.Query(ctx, one, nil, func([]db.Value) error { return nil }), db.Unavailable, "reset it")
		if err := s.Reset(ctx); err != nil {
			t.Fatal(err)
		}
		if n := number(t, s, "SELECT balance FROM a"); n != 100 {
			t.Errorf("the balance is %d after a reset", n)
		}
	})
}

func TestQueryWithReturningClauseWrites(t *testing.T) {
	inModes(t, "", func(t *testing.T, d *sqlite.Database, mode db.Mode) {
		constrained(t, d)
		s := openSession(t, d, mode)
		insert := &db.Statement{
			SQL: "INSERT INTO k VALUES ('q', ?1) ON CONFLICT DO NOTHING RETURNING y", Params: []db.Type{db.Integer}, Columns: []db.Type{db.Integer},
		}
		rows := 0
		count := func([]db.Value) error { rows++; return nil }
		for range 2 {
			if err := s.Query(t.Context(), insert, []db.Value{{Int: 1}}, count); err != nil {
				t.Fatal(err)
			}
		}
		if rows != 1 || number(t, s, "SELECT count(*) FROM k WHERE x = 'q'") != 1 {
			t.Errorf("%d rows were returned", rows)
		}
		stop := errors.New("stop")
		if err := s.Query(t.Context(), insert, []db.Value{{Int: 2}}, func([]db.Value) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("got %v, want %v", err, stop)
		}
		if n := number(t, s, "SELECT count(*) FROM k WHERE x = 'q'"); n != 1 {
			t.Errorf("a query that was given up left %d rows", n)
		}
	})
}

func TestStatementsMayHaveAnyTypes(t *testing.T) {
	d, _ := openNew(t, "")
	sqltest.TestFree(t, d)
}
