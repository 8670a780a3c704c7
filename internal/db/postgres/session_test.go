package postgres

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"stroppy/internal/db"
)

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

func number(n int64) db.Value { return db.Value{Int: n} }

var key0 = []db.Value{{Text: bic}, {Int: 0}}

func balanceOf(t *testing.T, s *session, account int64) int64 {
	t.Helper()
	var cents int64 = -1
	err := s.Query(t.Context(), readAccount, []db.Value{{Text: bic}, number(account)}, func(row []db.Value) error {
		cents = row[0].Int
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cents
}

// TestResultsAreTheSame runs the same transactions one by one, in one round
// trip, and in two.
func TestResultsAreTheSame(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	makeBank(t, d, 10)
	execute1(t, d, "CREATE TABLE things (id BIGINT PRIMARY KEY, i BIGINT, m NUMERIC(20,2), s VARCHAR(40))")
	insert := &db.Statement{
		SQL:    "INSERT INTO things VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
		Params: []db.Type{db.Integer, db.Integer, db.Decimal, db.Text},
	}
	all := &db.Statement{SQL: "SELECT i, m, s FROM things ORDER BY id", Columns: []db.Type{db.Integer, db.Decimal, db.Text}}
	other := &db.Statement{
		SQL:     "SELECT true, 7::int, 8::smallint, count(*), sum(i), 5::bigint, m FROM things GROUP BY m HAVING m = 1.5",
		Columns: []db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Decimal, db.Decimal},
	}
	ignored := &db.Statement{SQL: "SELECT generate_series(1, 3)"}
	empty := &db.Statement{SQL: ""}
	clean := &db.Statement{SQL: "DELETE FROM things"}
	row := func(id int64, i, m db.Value, text string, null bool) statement {
		return statement{insert, []db.Value{number(id), i, m, {Text: []byte(text), Null: null}}}
	}
	work := []statement{
		row(1, number(math.MinInt64), number(math.MinInt64), "smallest", false),
		row(2, number(math.MaxInt64), number(math.MaxInt64), "largest", false),
		row(3, db.Value{Null: true}, db.Value{Null: true}, "", true),
		row(4, number(0), number(0), "", false),
		row(5, number(-1), number(-1), "a 'quoted' \\ text", false),
		row(5, number(9), number(9), "a key that is there", false),
		row(6, number(6), number(150), "x", false),
		{all, nil}, {other, nil}, {ignored, nil}, {empty, nil},
		{readAccount, key0},
		{updateAccount, []db.Value{number(0), number(0), {Text: bic}, number(3)}},
		{updateAccount, []db.Value{number(0), number(0), {Text: []byte("nobody")}, number(3)}},
		{clean, nil},
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
			if want = got; printed == "" {
				printed = fmt.Sprint(got)
			} else if text := fmt.Sprint(got); text != printed {
				t.Errorf("%s: %s, want %s", way.name, text, printed)
			}
		}
	}
	rows := want[7]
	if rows.Rows() != 6 || rows.Row(0)[0].Int != math.MinInt64 || rows.Row(0)[1].Int != math.MinInt64 || rows.Row(1)[1].Int != math.MaxInt64 ||
		!rows.Row(2)[0].Null || !rows.Row(2)[1].Null || !rows.Row(2)[2].Null || rows.Row(3)[2].Null || string(rows.Row(4)[2].Text) != "a 'quoted' \\ text" {
		t.Errorf("rows %+v", rows)
	}
	if r := want[8]; r.Rows() != 1 || r.Row(0)[0].Int != 1 || r.Row(0)[1].Int != 7 || r.Row(0)[2].Int != 8 || r.Row(0)[3].Int != 1 ||
		r.Row(0)[4].Int != 6 || r.Row(0)[5].Int != 500 || r.Row(0)[6].Int != 150 {
		t.Errorf("other types %+v", r)
	}
	if want[0].Affected != 1 || want[5].Affected != 0 || want[9].Rows() != 0 || want[12].Row(0)[0].Int != 1 || want[13].Rows() != 0 || want[14].Affected != 6 {
		t.Errorf("results %+v", want)
	}
}

// TestDecimalsAreExact sends money both ways and lets the server print it.
func TestDecimalsAreExact(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	s := newSession(t, d, db.Pipelined, "")
	echo := &db.Statement{
		SQL:     "SELECT $1::numeric, ($1::numeric * 100)::numeric(30,0)::text, $1::numeric = $2::text::numeric",
		Params:  []db.Type{db.Decimal, db.Text},
		Columns: []db.Type{db.Decimal, db.Text, db.Integer},
	}
	values := moneyValues()[:2000]
	for chunk := range 20 {
		var work []statement
		part := values[chunk*100:][:100]
		for _, v := range part {
			text := fmt.Sprintf("%de-2", v)
			work = append(work, statement{echo, []db.Value{number(v), {Text: []byte(text)}}})
		}
		if err := transact(t.Context(), s, true, chunk%2 == 0, work...); err != nil {
			t.Fatal(err)
		}
		for i, v := range part {
			row := s.Result(i).Row(0)
			if row[0].Int != v || string(row[1].Text) != fmt.Sprint(v) || row[2].Int != 1 {
				t.Fatalf("%d cents came back as %d; the server read %s", v, row[0].Int, row[1].Text)
			}
		}
	}
}

func TestUnreadableResults(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	for sql, typ := range map[string]db.Type{
		"SELECT 0.005": db.Decimal, "SELECT 1.5": db.Integer, "SELECT 'NaN'::numeric": db.Decimal, "SELECT 1e30": db.Decimal,
		"SELECT 9223372036854775807": db.Decimal,
	} {
		unreadable := &db.Statement{SQL: sql, Columns: []db.Type{typ}}
		s := newSession(t, d, db.Interactive, "")
		wantError(t, sql, transact(t.Context(), s, false, false, statement{unreadable, nil}), db.Fatal, "")
		if err := transact(t.Context(), s, false, false); err != nil {
			t.Errorf("%s: the session is not ready: %v", sql, err)
		}
		s = newSession(t, d, db.Pipelined, "")
		wantError(t, sql, transact(t.Context(), s, false, false, statement{unreadable, nil}), db.Unknown, "")
	}
	for _, bad := range []*db.Statement{
		{SQL: "SELECT 1.5::float8", Columns: []db.Type{db.Decimal}},
		{SQL: "SELECT 'x'", Columns: []db.Type{db.Integer}},
		{SQL: "SELECT 1, 2", Columns: []db.Type{db.Integer}},
		{SQL: "DELETE FROM pg_class WHERE false", Columns: []db.Type{db.Integer}},
	} {
		s := newSession(t, d, db.Pipelined, "")
		wantError(t, bad.SQL, transact(t.Context(), s, false, false, statement{bad, nil}), db.Fatal, "")
		if err := transact(t.Context(), s, false, false); err != nil {
			t.Errorf("%s: the session is not ready: %v", bad.SQL, err)
		}
	}
}

func TestBadStatements(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	makeBank(t, d, 3)
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		ctx := t.Context()
		touch := statement{updateAccount, []db.Value{number(100), number(1), {Text: bic}, number(0)}}
		before := balanceOf(t, s, 0)
		for i, tc := range []struct {
			bad   statement
			flush bool
			code  string
		}{
			{statement{&db.Statement{SQL: "SELEC 1"}, nil}, false, "42601"},
			{statement{&db.Statement{SQL: "SELECT 1 FROM nowhere"}, nil}, true, "42P01"},
			{statement{&db.Statement{SQL: "SELECT $1 / 0", Params: []db.Type{db.Integer}}, []db.Value{number(1)}}, false, "22012"},
			{statement{&db.Statement{SQL: "SELECT 2 / ($1 - 1)", Params: []db.Type{db.Integer}}, []db.Value{number(1)}}, true, "22012"},
			{statement{readAccount, key0[:1]}, false, ""},
		} {
			wantError(t, fmt.Sprint(i), transact(ctx, s, false, tc.flush, touch, tc.bad, touch), db.Fatal, tc.code)
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
	})
}

func TestRollbackAndReadOnly(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	makeBank(t, d, 3)
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		ctx := t.Context()
		for _, flush := range []bool{false, true} {
			if err := s.Begin(ctx, false); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Do(ctx, updateAccount, []db.Value{number(100), number(1), {Text: bic}, number(0)}); err != nil {
				t.Fatal(err)
			}
			if flush {
				if err := s.Flush(ctx); err != nil {
					t.Fatal(err)
				}
				if cents := s.Result(0).Row(0)[1].Int; cents != 1000_00+100 {
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
		err := transact(ctx, s, true, true, statement{updateAccount, []db.Value{number(1), number(1), {Text: bic}, number(0)}})
		wantError(t, "a write in a transaction that only reads", err, db.Unavailable, "25006")
		if err := s.Reset(ctx); err != nil {
			t.Fatal(err)
		}
		if err := transact(ctx, s, true, true, statement{readAccount, key0}, statement{readAccount, key0}); err != nil {
			t.Error(err)
		}
	})
}

// TestLargeTransactions sends and receives more than the sockets' buffers hold.
func TestLargeTransactions(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	echo := &db.Statement{SQL: "SELECT $1::text", Params: []db.Type{db.Text}, Columns: []db.Type{db.Text}}
	text := bytes.Repeat([]byte("0123456789abcdef"), 16<<10)
	eachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		var work []statement
		for range 90 {
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
}

func TestQueryStreams(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	s := newSession(t, d, db.Pipelined, "")
	many := &db.Statement{SQL: "SELECT n, n * 0.01, 'row ' || n FROM generate_series($1::bigint, 200000) n", Params: []db.Type{db.Integer},
		Columns: []db.Type{db.Integer, db.Decimal, db.Text}}
	var n int64
	err := s.Query(t.Context(), many, []db.Value{number(1)}, func(row []db.Value) error {
		if n++; row[0].Int != n || row[1].Int != n || string(row[2].Text) != fmt.Sprint("row ", n) {
			return fmt.Errorf("row %d is %+v", n, row)
		}
		return nil
	})
	if err != nil || n != 200_000 {
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
	bad := &db.Statement{SQL: "SELECT 10 / (5 - n) FROM generate_series(1, 9) n", Columns: []db.Type{db.Integer}}
	wantError(t, "an error after some rows", s.Query(t.Context(), bad, nil, func([]db.Value) error { return nil }), db.Fatal, "22012")
	if err := s.Query(t.Context(), many, []db.Value{number(199_999)}, func([]db.Value) error { return nil }); err != nil {
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

// TestNoAllocations: a transaction costs no garbage.
func TestNoAllocations(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	makeBank(t, d, 10)
	s := newSession(t, d, db.Pipelined, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var x transfer
	id := int64(0)
	n := testing.AllocsPerRun(200, func() {
		id++
		if err := s.Begin(ctx, false); err != nil {
			t.Fatal(err)
		}
		if err := x.queue(ctx, s, id, id%10, (id+1)%10, 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a transaction", n)
	}
}
