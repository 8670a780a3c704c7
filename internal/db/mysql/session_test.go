package mysql

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// TestResultsAreEqualInAllModes runs the same transactions statement by statement, in one round trip, and in two.
func TestResultsAreEqualInAllModes(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 10)
	sqltest.Execute(t, d, "CREATE TABLE things (id BIGINT PRIMARY KEY, i BIGINT, m DECIMAL(20,2), s VARCHAR(40))",
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
	const text = "a 'quoted' \\ text;\x01"
	work := append(sqltest.Extremes(insert, text), []sqltest.Statement{
		sqltest.With(all, nil), sqltest.With(other, nil),
		sqltest.With(&db.Statement{SQL: " call three(?)", Params: []db.Type{db.Integer}, Columns: []db.Type{db.Integer, db.Text}}, []db.Value{sqltest.Number(1)}),
		sqltest.With(&db.Statement{SQL: "CALL quiet()"}, nil),
		bank.See(0),
		bank.Touch(3, 0),
		sqltest.With(&db.Statement{SQL: "SELECT id FROM things WHERE id > 100", Columns: []db.Type{db.Integer}}, nil),
		sqltest.With(&db.Statement{SQL: "DELETE FROM things"}, nil),
	}...)
	want := sqltest.SameResults(t, d, work)
	sqltest.WantExtremes(t, want[6], text)
	if r := want[7]; r.Rows() != 1 || r.Row(0)[0].Int != 1 || r.Row(0)[1].Int != 7 || r.Row(0)[2].Int != 6 || r.Row(0)[3].Int != 1 ||
		r.Row(0)[4].Int != 6 || r.Row(0)[5].Int != 500 || r.Row(0)[6].Int != 150 || r.Row(0)[7].Int != 8 || string(r.Row(0)[8].Text) != "6" {
		t.Errorf("other types %+v", r)
	}
	if r := want[8]; r.Rows() != 3 || r.Row(2)[0].Int != 3 || string(r.Row(1)[1].Text) != "two" || !r.Row(2)[1].Null {
		t.Errorf("the procedure's rows %+v", r)
	}
	if want[9].Rows() != 0 || want[10].Rows() != 1 || want[12].Rows() != 0 {
		t.Errorf("results %+v", want)
	}
}

// moneyValues returns amounts at and around every power of ten and of two.
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

// TestDecimalRoundTrip sends money in both directions and through arithmetic, and lets the server print it.
func TestDecimalRoundTrip(t *testing.T) {
	d := openFresh(t)
	echo := &db.Statement{
		SQL:     "SELECT ?, 0.01 + ? - 0.01, CAST(CAST(? * 100 AS DECIMAL(30,0)) AS CHAR)",
		Params:  []db.Type{db.Decimal, db.Decimal, db.Decimal},
		Columns: []db.Type{db.Decimal, db.Decimal, db.Text},
	}
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		s := newSession(t, d, mode, "")
		values := moneyValues()
		var work []sqltest.Statement
		for _, v := range values {
			work = append(work, sqltest.With(echo, []db.Value{sqltest.Number(v), sqltest.Number(v), sqltest.Number(v)}))
		}
		if err := sqltest.Transact(t.Context(), s, true, false, work...); err != nil {
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

// TestTextRoundTrip sends every ASCII character, for any meaning of quotes and backslashes.
func TestTextRoundTrip(t *testing.T) {
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
		d := drivertest.Open(t, Open, url+"?sql_mode="+mode)
		sqltest.EachMode(t, func(t *testing.T, way db.Mode) {
			s := newSession(t, d, way, "")
			var work []sqltest.Statement
			for _, text := range texts {
				work = append(work, sqltest.With(echo, []db.Value{{Text: text}, {Text: text}}))
			}
			if err := sqltest.Transact(t.Context(), s, true, false, work...); err != nil {
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

func TestResultsOfWrongTypeAreRefused(t *testing.T) {
	d := openFresh(t)
	types := map[string]db.Type{
		"SELECT 0.005": db.Decimal, "SELECT 1.5": db.Integer, "SELECT 1e0": db.Decimal, "SELECT 1e30": db.Integer,
		"SELECT 9223372036854775807": db.Decimal, "SELECT 18446744073709551615": db.Integer, "SELECT 'x'": db.Integer, "SELECT 1, 2": db.Integer,
	}
	sqltest.Unreadable(t, d, types)
	for sql, typ := range types {
		s := newSession(t, d, db.Interactive, "")
		bad := &db.Statement{SQL: sql, Columns: []db.Type{typ}}
		sqltest.WantError(t, sql, s.Query(t.Context(), bad, nil, func([]db.Value) error { return nil }), db.Fatal, "")
		if err := sqltest.Transact(t.Context(), s, false, false); err != nil {
			t.Errorf("%s: the session is not ready after a query: %v", sql, err)
		}
	}
}

func TestInvalidStatementsAreFatal(t *testing.T) {
	one := func(sql string, params ...db.Type) sqltest.Statement {
		return sqltest.With(&db.Statement{SQL: sql, Params: params}, make([]db.Value, len(params)))
	}
	sum := one("UPDATE accounts SET version = 9223372036854775807 + ?", db.Integer)
	sum.Args[0].Int = 1
	sqltest.BadStatements(t, openFresh(t), &bank, []sqltest.Bad{
		{Statement: one("SELEC 1"), Code: "1064"},
		{Statement: one("SELECT 1 FROM nowhere"), Flush: true, Code: "1146"},
		{Statement: sum, Flush: true, Code: "1690"},
		{Statement: one("CALL nothing()"), Code: "1305"},
		{Statement: one("SELECT '?'")},
	})
}

func TestRollbackUndoesAndReadOnlyRefusesWrites(t *testing.T) {
	d := openFresh(t)
	sqltest.Rollbacks(t, d, &bank)
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		for _, l := range Isolations.Levels {
			s := newSession(t, d, mode, l.Name)
			sqltest.WantError(t, "a write in a transaction that only reads", sqltest.Transact(t.Context(), s, true, true, bank.Touch(0, 1)), db.Fatal, "1792")
			if err := sqltest.Transact(t.Context(), s, true, true, bank.See(0), bank.See(0)); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestTransactionMayExceedOnePacket checks transactions that are larger than the buffers and one packet.
func TestTransactionMayExceedOnePacket(t *testing.T) {
	d := openFresh(t)
	echo := &db.Statement{SQL: "SELECT ?", Params: []db.Type{db.Text}, Columns: []db.Type{db.Text}}
	sqltest.Large(t, d, echo, 80)
	s := newSession(t, d, db.Pipelined, "")
	text := bytes.Repeat([]byte("x"), 256<<10)
	huge := sqltest.With(echo, []db.Value{{Text: bytes.Repeat(text, 80)}})
	sqltest.WantError(t, "more than max_allowed_packet", sqltest.Transact(t.Context(), s, false, false, huge), db.Fatal, "")
	if err := sqltest.Transact(t.Context(), s, false, false, sqltest.With(echo, []db.Value{{Text: text}})); err != nil {
		t.Error(err)
	}
}

func TestQueryReturnsManyRowsInPieces(t *testing.T) {
	d := openFresh(t)
	sqltest.Execute(t, d, "CREATE TABLE digits (n BIGINT)", "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	sqltest.Streams(t, d, sqltest.Stream{
		Many: &db.Statement{SQL: `SELECT n, n * 0.01, CONCAT('row ', n) FROM (
			SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + 1 AS n FROM digits a, digits b, digits c, digits d, digits e) x
			WHERE n >= ? ORDER BY n`, Params: []db.Type{db.Integer}, Columns: []db.Type{db.Integer, db.Decimal, db.Text}},
		Last: 100_000,
		Bad:  &db.Statement{SQL: "SELECT 9223372036854775800 + n FROM digits", Columns: []db.Type{db.Integer}},
		Code: "1690",
	})
}

func TestSessionServesSuccessiveContexts(t *testing.T) { sqltest.Contexts(t, openFresh(t), &bank) }

func TestProceduresCommitOrLeaveNothing(t *testing.T) { sqltest.Procedures(t, openFresh(t), &bank) }

func TestStatementsMayHaveAnyTypes(t *testing.T) { sqltest.TestFree(t, openFresh(t)) }
