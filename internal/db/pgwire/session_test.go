package pgwire

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/sqltest"
	"stroppy/internal/tier"
)

// TestResultsAreEqualInAllModes runs the same transactions statement by statement, in one round trip, and in two.
func TestResultsAreEqualInAllModes(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 10)
	sqltest.Execute(t, d, "CREATE TABLE things (id BIGINT PRIMARY KEY, i BIGINT, m NUMERIC(20,2), s VARCHAR(40))")
	insert := &db.Statement{
		SQL:    "INSERT INTO things VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
		Params: []db.Type{db.Integer, db.Integer, db.Decimal, db.Text}, Counted: true,
	}
	all := &db.Statement{SQL: "SELECT i, m, s FROM things ORDER BY id", Columns: []db.Type{db.Integer, db.Decimal, db.Text}}
	other := &db.Statement{
		SQL:     "SELECT true, 7::int, 8::smallint, count(*), sum(i), 5::bigint, m FROM things GROUP BY m HAVING m = 1.5",
		Columns: []db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Decimal, db.Decimal},
	}
	ignored := &db.Statement{SQL: "SELECT generate_series(1, 3)"}
	empty := &db.Statement{SQL: ""}
	clean := &db.Statement{SQL: "DELETE FROM things", Counted: true}
	const text = "a 'quoted' \\ text"
	work := append(sqltest.Extremes(insert, text), []sqltest.Statement{
		sqltest.With(insert, []db.Value{sqltest.Number(5), sqltest.Number(9), sqltest.Number(9), {Text: []byte("a key that is there")}}),
		sqltest.With(all, nil), sqltest.With(other, nil), sqltest.With(ignored, nil), sqltest.With(empty, nil),
		bank.See(0), bank.Touch(3, 0), bank.Touch(77, 0), sqltest.With(clean, nil),
	}...)
	want := sqltest.SameResults(t, d, work)
	if explicit := sqltest.SameResults(t, way{}.on(d), work); fmt.Sprint(explicit) != fmt.Sprint(want) {
		t.Errorf("with BEGIN and COMMIT %+v, want %+v", explicit, want)
	}
	sqltest.WantExtremes(t, want[7], text)
	if r := want[8]; r.Rows() != 1 || r.Row(0)[0].Int != 1 || r.Row(0)[1].Int != 7 || r.Row(0)[2].Int != 8 || r.Row(0)[3].Int != 1 ||
		r.Row(0)[4].Int != 6 || r.Row(0)[5].Int != 500 || r.Row(0)[6].Int != 150 {
		t.Errorf("other types %+v", r)
	}
	if want[0].Affected != 1 || want[6].Affected != 0 || want[9].Rows() != 0 || want[12].Row(0)[0].Int != 1 || want[13].Rows() != 0 || want[14].Affected != 6 {
		t.Errorf("results %+v", want)
	}
}

// TestDecimalRoundTrip sends money in both directions and lets the server print it.
func TestDecimalRoundTrip(t *testing.T) {
	d := openFresh(t)
	s := newSession(t, d, db.Pipelined, "")
	echo := &db.Statement{
		SQL:     "SELECT $1::numeric, ($1::numeric * 100)::numeric(30,0)::text, $1::numeric = $2::text::numeric",
		Params:  []db.Type{db.Decimal, db.Text},
		Columns: []db.Type{db.Decimal, db.Text, db.Integer},
	}
	values := moneyValues()[:2000]
	for chunk := range 20 {
		var work []sqltest.Statement
		part := values[chunk*100:][:100]
		for _, v := range part {
			text := fmt.Sprintf("%de-2", v)
			work = append(work, sqltest.With(echo, []db.Value{sqltest.Number(v), {Text: []byte(text)}}))
		}
		if err := sqltest.Transact(t.Context(), s, true, chunk%2 == 0, work...); err != nil {
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

func TestResultsOfWrongTypeAreRefused(t *testing.T) {
	d := openFresh(t)
	sqltest.Unreadable(t, d, map[string]db.Type{
		"SELECT 0.005": db.Decimal, "SELECT 1.5": db.Integer, "SELECT 'NaN'::numeric": db.Decimal, "SELECT 1e30": db.Decimal,
		"SELECT 9223372036854775807": db.Decimal,
	})
	for _, bad := range []*db.Statement{
		{SQL: "SELECT 1.5::float8", Columns: []db.Type{db.Decimal}},
		{SQL: "SELECT 'x'", Columns: []db.Type{db.Integer}},
		{SQL: "SELECT 1, 2", Columns: []db.Type{db.Integer}},
		{SQL: "DELETE FROM pg_class WHERE false", Columns: []db.Type{db.Integer}},
	} {
		s := newSession(t, d, db.Pipelined, "")
		sqltest.WantError(t, bad.SQL, sqltest.Transact(t.Context(), s, false, false, sqltest.With(bad, nil)), db.Fatal, "")
		if err := sqltest.Transact(t.Context(), s, false, false); err != nil {
			t.Errorf("%s: the session is not ready: %v", bad.SQL, err)
		}
	}
}

func TestInvalidStatementsAreFatal(t *testing.T) {
	one := func(sql string, params ...db.Type) sqltest.Statement {
		return sqltest.With(&db.Statement{SQL: sql, Params: params}, []db.Value{sqltest.Number(1)}[:len(params)])
	}
	sqltest.BadStatements(t, openFresh(t), &bank, []sqltest.Bad{
		{Statement: one("SELEC 1"), Code: "42601"},
		{Statement: one("SELECT 1 FROM nowhere"), Flush: true, Code: "42P01"},
		{Statement: one("SELECT $1 / 0", db.Integer), Code: "22012"},
		{Statement: one("SELECT 2 / ($1 - 1)", db.Integer), Flush: true, Code: "22012"},
	})
}

func TestRollbackUndoesAndReadOnlyRefusesWrites(t *testing.T) {
	d := openFresh(t)
	sqltest.Rollbacks(t, d, &bank)
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		sqltest.WantError(t, "a write in a transaction that only reads", sqltest.Transact(t.Context(), s, true, true, bank.Touch(0, 1)), db.Unavailable, "25006")
		if err := s.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := sqltest.Transact(t.Context(), s, true, true, bank.See(0), bank.See(0)); err != nil {
			t.Error(err)
		}
	})
}

func TestTransactionMayExceedSocketBuffers(t *testing.T) {
	d := openFresh(t)
	sqltest.Large(t, d, &db.Statement{SQL: "SELECT $1::text", Params: []db.Type{db.Text}, Columns: []db.Type{db.Text}}, 90)
}

func TestQueryReturnsManyRowsInPieces(t *testing.T) {
	sqltest.Streams(t, openFresh(t), sqltest.Stream{
		Many: &db.Statement{SQL: "SELECT n, n * 0.01, 'row ' || n FROM generate_series($1::bigint, 200000) n", Params: []db.Type{db.Integer},
			Columns: []db.Type{db.Integer, db.Decimal, db.Text}},
		Last: 200_000,
		Bad:  &db.Statement{SQL: "SELECT 10 / (5 - n) FROM generate_series(1, 9) n", Columns: []db.Type{db.Integer}},
		Code: "22012",
	})
}

// TestTransactionAllocatesNothing checks that a transaction allocates nothing.
func TestTransactionAllocatesNothing(t *testing.T) {
	tier.SkipUnderRace(t)
	d := openFresh(t)
	bank.Make(t, d, 10)
	id := int64(0)
	eachWay(t, func(t *testing.T, w way) {
		s := w.session(t, d, "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var x transfer
		n := testing.AllocsPerRun(200, func() {
			id++
			err := s.Begin(ctx, false)
			if err == nil {
				err = x.queue(ctx, s, id, id%10, (id+1)%10, 1)
			}
			if err == nil && w.flush {
				err = s.Flush(ctx)
			}
			if err == nil {
				err = s.Commit(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		most := 0.0
		if poolForgets {
			most = 2 // of up to eight buffers
		}
		if n > most {
			t.Errorf("%v allocations a transaction", n)
		}
	})
}

func TestProceduresCommitOrLeaveNothing(t *testing.T) {
	sqltest.Procedures(t, openFresh(t), &bank)
}
