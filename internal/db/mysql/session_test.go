package mysql

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"

	"stroppy/internal/db"
)

// TestResultsAreTheSame runs the same transactions one by one, in one round trip,
// and in two.
func TestResultsAreTheSame(t *testing.T) {
	d := openFresh(t)
	makeBank(t, d, 10)
	execute1(t, d, "CREATE TABLE things (id BIGINT PRIMARY KEY, i BIGINT, m DECIMAL(20,2), s VARCHAR(40))",
		"CREATE PROCEDURE three(IN n BIGINT) BEGIN SELECT n, 'one'; UPDATE things SET i = 1 WHERE id = 6; SELECT n + 1, 'two'; SELECT n + 2, NULL; END",
		"CREATE PROCEDURE quiet() BEGIN SELECT 1, 2, 3; UPDATE things SET i = 6 WHERE id = 6; END")
	insert := &db.Statement{
		SQL:    "INSERT INTO things VALUES (?, ?, ?, ?)",
		Params: []db.Type{db.Integer, db.Integer, db.Decimal, db.Text},
	}
	all := &db.Statement{SQL: "SELECT i, m, s FROM things ORDER BY id", Columns: []db.Type{db.Integer, db.Decimal, db.Text}}
	other := &db.Statement{
		SQL:     "SELECT TRUE, CAST(7 AS SIGNED), id, COUNT(*), SUM(i), 5, m, CAST(8 AS UNSIGNED), id FROM things GROUP BY m, id HAVING m = 1.5",
		Columns: []db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Decimal, db.Decimal, db.Integer, db.Text},
	}
	row := func(id int64, i, m db.Value, text string, null bool) statement {
		return statement{insert, []db.Value{number(id), i, m, {Text: []byte(text), Null: null}}}
	}
	work := []statement{
		row(1, number(math.MinInt64), number(math.MinInt64), "smallest", false),
		row(2, number(math.MaxInt64), number(math.MaxInt64), "largest", false),
		row(3, db.Value{Null: true}, db.Value{Null: true}, "", true),
		row(4, number(0), number(0), "", false),
		row(5, number(-1), number(-1), "a 'quoted' \\ text;\x01", false),
		row(6, number(6), number(150), "x", false),
		{all, nil}, {other, nil},
		{&db.Statement{SQL: "SELECT 1 UNION SELECT 2"}, nil}, // rows that nobody wants
		{&db.Statement{SQL: " call three(?)", Params: []db.Type{db.Integer}, Columns: []db.Type{db.Integer, db.Text}}, []db.Value{number(1)}},
		{&db.Statement{SQL: "CALL quiet()"}, nil},
		{readAccount, key0},
		touch(3, 0), touch(77, 0),
		{&db.Statement{SQL: "UPDATE things SET i = i WHERE id < 4"}, nil}, // finds rows and changes nothing
		{&db.Statement{SQL: "SELECT id FROM things WHERE id > 100", Columns: []db.Type{db.Integer}}, nil},
		{&db.Statement{SQL: "DELETE FROM things"}, nil},
	}
	var want []db.Result
	var printed string
	for _, way := range []struct {
		name  string
		mode  db.Mode
		flush bool
	}{{"interactive", db.Interactive, false}, {"one round trip", db.Pipelined, false}, {"two round trips", db.Pipelined, true}} {
		s := newSession(t, d, way.mode, "")
		for range 2 { // the second time everything is prepared and all buffers have been used
			execute1(t, d, "UPDATE accounts SET version = 0")
			if err := transact(t.Context(), s, false, way.flush, work...); err != nil {
				t.Fatalf("%s: %v", way.name, err)
			}
			got := make([]db.Result, len(work))
			for i := range work {
				got[i] = *s.Result(i)
			}
			got[9].Affected, got[10].Affected = 0, 0 // of a procedure, its last statement's at most
			if want = got; printed == "" {
				printed = fmt.Sprint(got)
			} else if text := fmt.Sprint(got); text != printed {
				t.Errorf("%s: %s, want %s", way.name, text, printed)
			}
		}
	}
	rows := want[6]
	if rows.Rows() != 6 || rows.Row(0)[0].Int != math.MinInt64 || rows.Row(0)[1].Int != math.MinInt64 || rows.Row(1)[1].Int != math.MaxInt64 ||
		!rows.Row(2)[0].Null || !rows.Row(2)[1].Null || !rows.Row(2)[2].Null || rows.Row(3)[2].Null || string(rows.Row(4)[2].Text) != "a 'quoted' \\ text;\x01" {
		t.Errorf("rows %+v", rows)
	}
	if r := want[7]; r.Rows() != 1 || r.Row(0)[0].Int != 1 || r.Row(0)[1].Int != 7 || r.Row(0)[2].Int != 6 || r.Row(0)[3].Int != 1 ||
		r.Row(0)[4].Int != 6 || r.Row(0)[5].Int != 500 || r.Row(0)[6].Int != 150 || r.Row(0)[7].Int != 8 || string(r.Row(0)[8].Text) != "6" {
		t.Errorf("other types %+v", r)
	}
	if r := want[9]; r.Rows() != 3 || r.Row(2)[0].Int != 3 || string(r.Row(1)[1].Text) != "two" || !r.Row(2)[1].Null {
		t.Errorf("the procedure's rows %+v", r)
	}
	if want[0].Affected != 1 || want[8].Rows() != 0 || want[12].Affected != 1 || want[13].Affected != 0 || want[14].Affected != 3 ||
		want[15].Rows() != 0 || want[16].Affected != 6 {
		t.Errorf("results %+v", want)
	}
}

// TestChangesAlone: packets without rows take another way through the library.
func TestChangesAlone(t *testing.T) {
	d := openFresh(t)
	makeBank(t, d, 10)
	twice := &db.Statement{SQL: "UPDATE accounts SET version = version + ? WHERE ban < 2", Params: []db.Type{db.Integer}}
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		for _, flush := range []bool{false, true} {
			if err := transact(t.Context(), s, false, flush, touch(1, 1), statement{twice, []db.Value{number(1)}}, statement{twice, []db.Value{number(0)}}, touch(77, 1)); err != nil {
				t.Fatal(err)
			}
			for i, want := range []int64{1, 2, 2, 0} {
				if got := s.Result(i).Affected; got != want {
					t.Errorf("statement %d affected %d rows, want %d", i, got, want)
				}
			}
		}
	})
}

// moneyValues are amounts at and around every power of ten and of two.
func moneyValues() []int64 {
	values := []int64{0, math.MinInt64, math.MaxInt64}
	for p := int64(1); p <= math.MaxInt64/10; p *= 10 {
		values = append(values, p-1, p, p+1, -p, -p-1, 1-p, p*7, -p*7)
	}
	for shift := range 63 {
		p := int64(1) << shift
		values = append(values, p-1, p+1, -p-1)
	}
	return values
}

// TestDecimalsAreExact sends money both ways, through arithmetic, and lets the
// server print it.
func TestDecimalsAreExact(t *testing.T) {
	d := openFresh(t)
	echo := &db.Statement{
		SQL:     "SELECT ?, 0.01 + ? - 0.01, CAST(CAST(? * 100 AS DECIMAL(30,0)) AS CHAR)",
		Params:  []db.Type{db.Decimal, db.Decimal, db.Decimal},
		Columns: []db.Type{db.Decimal, db.Decimal, db.Text},
	}
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		values := moneyValues()
		var work []statement
		for _, v := range values {
			work = append(work, statement{echo, []db.Value{number(v), number(v), number(v)}})
		}
		if err := transact(t.Context(), s, true, false, work...); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			row := s.Result(i).Row(0)
			if row[0].Int != v || row[1].Int != v || string(row[2].Text) != fmt.Sprint(v) {
				t.Fatalf("%d cents came back as %d and %d; the server read %s", v, row[0].Int, row[1].Int, row[2].Text)
			}
		}
	})
}

// TestTextIsExact sends every character of ASCII, whatever quotes and backslashes
// mean to the server.
func TestTextIsExact(t *testing.T) {
	_, url := fresh(t)
	echo := &db.Statement{SQL: "SELECT ?, CHAR_LENGTH(?)", Params: []db.Type{db.Text, db.Text}, Columns: []db.Type{db.Text, db.Integer}}
	var texts [][]byte
	var all []byte
	for c := range byte(128) {
		all = append(all, c)
		texts = append(texts, []byte{c}, []byte{'a', c}, append([]byte{c}, "'; SELECT 1 -- "...))
	}
	texts = append(texts, all, nil)
	for _, mode := range []string{"''", "'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'"} {
		d := openAt(t, url+"?sql_mode="+mode)
		eachMode(t, func(t *testing.T, way db.Mode) {
			s := newSession(t, d, way, "")
			var work []statement
			for _, text := range texts {
				work = append(work, statement{echo, []db.Value{{Text: text}, {Text: text}}})
			}
			if err := transact(t.Context(), s, true, false, work...); err != nil {
				t.Fatal(err)
			}
			for i, text := range texts {
				if row := s.Result(i).Row(0); row[0].Null || !bytes.Equal(row[0].Text, text) || row[1].Int != int64(len(text)) {
					t.Errorf("sql_mode %s: %q came back as %q", mode, text, row[0].Text)
				}
			}
		})
	}
}

func TestUnreadableResults(t *testing.T) {
	d := openFresh(t)
	for sql, typ := range map[string]db.Type{
		"SELECT 0.005": db.Decimal, "SELECT 1.5": db.Integer, "SELECT 1e0": db.Decimal, "SELECT 1e30": db.Integer,
		"SELECT 9223372036854775807": db.Decimal, "SELECT 18446744073709551615": db.Integer, "SELECT 'x'": db.Integer, "SELECT 1, 2": db.Integer,
	} {
		bad := &db.Statement{SQL: sql, Columns: []db.Type{typ}}
		s := newSession(t, d, db.Interactive, "")
		wantError(t, sql, transact(t.Context(), s, false, false, statement{bad, nil}), db.Fatal, "")
		if err := transact(t.Context(), s, false, false); err != nil {
			t.Errorf("%s: the session is not ready: %v", sql, err)
		}
		wantError(t, sql, s.Query(t.Context(), bad, nil, func([]db.Value) error { return nil }), db.Fatal, "")
		if err := transact(t.Context(), s, false, false); err != nil {
			t.Errorf("%s: the session is not ready after a query: %v", sql, err)
		}
		s = newSession(t, d, db.Pipelined, "")
		wantError(t, sql, transact(t.Context(), s, false, false, statement{bad, nil}), db.Unknown, "")
		s = newSession(t, d, db.Pipelined, "")
		wantError(t, sql, transact(t.Context(), s, false, true, statement{bad, nil}), db.Fatal, "")
		if err := transact(t.Context(), s, false, false); err != nil {
			t.Errorf("%s: the session is not ready: %v", sql, err)
		}
	}
}

func TestBadStatements(t *testing.T) {
	d := openFresh(t)
	makeBank(t, d, 3)
	one := func(sql string, params ...db.Type) *db.Statement { return &db.Statement{SQL: sql, Params: params} }
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		ctx := t.Context()
		before := balanceOf(t, s, 0)
		for i, tc := range []struct {
			bad   statement
			flush bool
			code  string
		}{
			{statement{one("SELEC 1"), nil}, false, "1064"},
			{statement{one("SELECT 1 FROM nowhere"), nil}, true, "1146"},
			{statement{one("UPDATE accounts SET version = ?", db.Decimal), []db.Value{number(math.MaxInt64)}}, false, ""},
			{statement{one("UPDATE accounts SET version = 9223372036854775807 + ?", db.Integer), []db.Value{number(1)}}, true, "1690"},
			{statement{one("CALL nothing()"), nil}, false, "1305"},
			{statement{one("SELECT '?'"), nil}, false, ""},
			{statement{readAccount, key0[:1]}, false, ""},
		} {
			if i == 2 {
				continue
			}
			wantError(t, fmt.Sprint(i), transact(ctx, s, false, tc.flush, touch(0, 100), tc.bad, touch(0, 100)), db.Fatal, tc.code)
			wantError(t, fmt.Sprint(i), transact(ctx, s, false, tc.flush, touch(0, 100), read(0), tc.bad, touch(0, 100)), db.Fatal, tc.code)
		}
		if after := balanceOf(t, s, 0); after != before {
			t.Errorf("statements beside those that failed were applied: %d, then %d", before, after)
		}
		_, err := s.Do(ctx, readAccount, key0)
		wantError(t, "Do without Begin", err, db.Fatal, "")
		wantError(t, "Flush without Begin", s.Flush(ctx), db.Fatal, "")
		wantError(t, "Commit without Begin", s.Commit(ctx), db.Fatal, "")
		if err := s.Rollback(ctx); err != nil {
			t.Error(err)
		}
		if err := s.Begin(ctx, false); err != nil {
			t.Fatal(err)
		}
		wantError(t, "Begin twice", s.Begin(ctx, false), db.Fatal, "")
		wantError(t, "Query in a transaction", s.Query(ctx, readAccount, key0, nil), db.Fatal, "")
		if err := s.Rollback(ctx); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wantError(t, "Begin after Close", s.Begin(ctx, false), db.Unavailable, "")
		wantError(t, "Query after Close", s.Query(ctx, readAccount, key0, nil), db.Unavailable, "")
	})
}

func TestRollbackAndReadOnly(t *testing.T) {
	d := openFresh(t)
	makeBank(t, d, 3)
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		ctx := t.Context()
		for _, flush := range []bool{false, true} {
			if err := s.Begin(ctx, false); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Do(ctx, updateAccount, touch(0, 100).args); err != nil {
				t.Fatal(err)
			}
			if flush {
				r, err := do(ctx, s, read(0))
				if err != nil {
					t.Fatal(err)
				}
				if cents := r.Row(0)[0].Int; cents != 1000_00+100 {
					t.Errorf("the transaction sees %d", cents)
				}
			}
			if err := s.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
			if cents := balanceOf(t, s, 0); cents != 1000_00 {
				t.Errorf("after a rollback: %d", cents)
			}
		}
		// A session that is closed with a transaction open commits nothing.
		closing := newSession(t, d, mode, "")
		if err := closing.Begin(ctx, false); err != nil {
			t.Fatal(err)
		}
		if _, err := do(ctx, closing, touch(0, 100)); err != nil {
			t.Fatal(err)
		}
		if err := closing.Close(); err != nil {
			t.Fatal(err)
		}
		if cents := balanceOf(t, s, 0); cents != 1000_00 {
			t.Errorf("after a session was closed: %d", cents)
		}
		for _, isolation := range isolations {
			s := newSession(t, d, mode, isolation)
			wantError(t, "a write in a transaction that only reads", transact(ctx, s, true, true, touch(0, 1)), db.Fatal, "1792")
			if err := transact(ctx, s, true, true, read(0), read(0)); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestLargeTransactions sends and receives more than the sockets' buffers hold
// and more than one packet takes.
func TestLargeTransactions(t *testing.T) {
	d := openFresh(t)
	echo := &db.Statement{SQL: "SELECT ?", Params: []db.Type{db.Text}, Columns: []db.Type{db.Text}}
	text := bytes.Repeat([]byte("0123456789abcdef"), 16<<10)
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		var work []statement
		for range 80 {
			work = append(work, statement{echo, []db.Value{{Text: text}}})
		}
		for range 2 {
			if err := transact(t.Context(), s, false, false, work...); err != nil {
				t.Fatal(err)
			}
			for i := range work {
				if r := s.Result(i); r.Rows() != 1 || !bytes.Equal(r.Row(0)[0].Text, text) {
					t.Fatalf("result %d is not what was sent", i)
				}
			}
		}
	})
	s := newSession(t, d, db.Pipelined, "")
	huge := statement{echo, []db.Value{{Text: bytes.Repeat(text, 80)}}}
	wantError(t, "more than max_allowed_packet", transact(t.Context(), s, false, false, huge), db.Fatal, "")
	if err := transact(t.Context(), s, false, false, statement{echo, []db.Value{{Text: text}}}); err != nil {
		t.Error(err)
	}
}

func TestQueryStreams(t *testing.T) {
	d := openFresh(t)
	execute1(t, d, "CREATE TABLE digits (n BIGINT)", "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	s := newSession(t, d, db.Pipelined, "")
	many := &db.Statement{SQL: `SELECT n, n * 0.01, CONCAT('row ', n) FROM (
			SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + 1 AS n FROM digits a, digits b, digits c, digits d, digits e) x
			WHERE n >= ? ORDER BY n`, Params: []db.Type{db.Integer},
		Columns: []db.Type{db.Integer, db.Decimal, db.Text}}
	var n int64
	err := s.Query(t.Context(), many, []db.Value{number(1)}, func(row []db.Value) error {
		if n++; row[0].Int != n || row[1].Int != n || string(row[2].Text) != fmt.Sprint("row ", n) {
			return fmt.Errorf("row %d is %+v", n, row)
		}
		return nil
	})
	if err != nil || n != 100_000 {
		t.Fatal(n, err)
	}
	enough := fmt.Errorf("enough")
	err = s.Query(t.Context(), many, []db.Value{number(1)}, func([]db.Value) error { return enough })
	if wantError(t, "a caller that has enough", err, db.Unknown, ""); err.(*db.Error).Err != enough {
		t.Error(err)
	}
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	bad := &db.Statement{SQL: "SELECT 9223372036854775800 + n FROM digits", Columns: []db.Type{db.Integer}}
	wantError(t, "an error after some rows", s.Query(t.Context(), bad, nil, func([]db.Value) error { return nil }), db.Fatal, "1690")
	if err := s.Query(t.Context(), many, []db.Value{number(99_999)}, func([]db.Value) error { return nil }); err != nil {
		t.Errorf("after an error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = s.Query(ctx, many, []db.Value{number(1)}, func([]db.Value) error { cancel(); return nil })
	if err == nil { // all rows may have been on their way already
		t.Log("the rows were faster than the cancellation")
	} else if s.link != nil {
		t.Error("a query that was cut off has left its connection")
	}
}

// TestContexts uses one session with one context after another.
func TestContexts(t *testing.T) {
	d := openFresh(t)
	makeBank(t, d, 2)
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		for i := range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			if err := transact(ctx, s, false, i%2 == 0, touch(0, 1)); err != nil {
				t.Fatal(err)
			}
			cancel() // at rest: it must not harm the next transaction
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantError(t, "a context that has ended", transact(ctx, s, false, false, touch(0, 1)), db.Unavailable, "")
	})
}
