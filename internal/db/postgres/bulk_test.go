package postgres

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"stroppy/internal/db"
)

const thingsTable = `CREATE TABLE things (id BIGINT NOT NULL, small SMALLINT, mid INTEGER, m NUMERIC(20,2) CHECK (m > -5), s VARCHAR(20))`

// things loads rows made by make, which returns false at the end.
func things(before []string, fill func(n int64, row []db.Value) bool) db.BulkLoad {
	n := int64(0)
	return db.BulkLoad{
		Before: before, Table: "things",
		Columns: []string{"id", "small", "mid", "m", "s"},
		Types:   []db.Type{db.Integer, db.Integer, db.Integer, db.Decimal, db.Text},
		After:   []string{"ALTER TABLE things ADD PRIMARY KEY (id)"},
		Next: func(row []db.Value) bool {
			n++
			return fill(n, row)
		},
	}
}

func someRows(count int64) func(int64, []db.Value) bool {
	return func(n int64, row []db.Value) bool {
		row[0].Int, row[1].Int, row[2].Int, row[3].Int = n, -n%100, n*1000, n*7-1
		row[4].Text = fmt.Appendf(nil, "thing %d", n)
		if n%10 == 0 {
			row[1].Null, row[3].Null, row[4].Null = true, true, true
		}
		return n <= count
	}
}

// ask returns the only value of a query.
func ask(t *testing.T, d *Database, sql string) string {
	t.Helper()
	var answer string
	err := newSession(t, d, db.Pipelined, "").Query(t.Context(), &db.Statement{SQL: sql, Columns: []db.Type{db.Text}}, nil, func(row []db.Value) error {
		answer = string(row[0].Text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestBulkLoad(t *testing.T) {
	const count = 50_000
	d := openAt(t, start(t, nil).URL())
	execute1(t, d, "CREATE EXTENSION pg_visibility")
	for _, tc := range []struct {
		name           string
		outside, first string
		frozen         string
	}{
		{"a new table", "", thingsTable, "t"},
		{"a table that was there", thingsTable, "SELECT 1", "f"},
		{"a table that was there and nothing first", thingsTable, "", "f"},
		{"a table that is emptied", thingsTable, "TRUNCATE things", "t"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			execute1(t, d, "DROP TABLE IF EXISTS things", tc.outside)
			var before []string
			if tc.first != "" {
				before = []string{tc.first}
			}
			rows, err := d.BulkLoad(t.Context(), things(before, someRows(count)))
			if err != nil || rows != count {
				t.Fatal(rows, err)
			}
			if got := ask(t, d, "SELECT all_frozen > 0 FROM pg_visibility_map_summary('things')"); got != tc.frozen {
				t.Errorf("frozen: %s", got)
			}
			got := ask(t, d, `SELECT concat_ws(' ', count(*), sum(id), sum(small), sum(mid), sum(m), count(m), count(s),
				bool_and(s IS NULL OR s = 'thing ' || id), bool_and(m IS NULL OR m = id * 0.07 - 0.01)) FROM things`)
			var small, cents int64
			for n := int64(1); n <= count; n++ {
				if n%10 != 0 {
					small -= n % 100
					cents += n*7 - 1
				}
			}
			want := fmt.Sprintf("%d %d %d %d %d.%02d %d %d t t", count, count*(count+1)/2, small, count*(count+1)/2*1000,
				cents/100, cents%100, count/10*9, count/10*9)
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func TestBulkLoadIsAllOrNothing(t *testing.T) {
	d := openAt(t, start(t, nil).URL())
	for _, tc := range []struct {
		name  string
		class db.Class
		code  string
		row   func(n int64, row []db.Value)
	}{
		{"check", db.Constraint, "23514", func(_ int64, row []db.Value) { row[3].Int = -500 }},
		{"not null", db.Constraint, "23502", func(_ int64, row []db.Value) { row[0].Null = true }},
		{"unique", db.Constraint, "23505", func(_ int64, row []db.Value) { row[0].Int = 5 }},
		{"text too long", db.Fatal, "22001", func(_ int64, row []db.Value) { row[4] = db.Value{Text: bytes.Repeat([]byte("x"), 21)} }},
		{"integer too large", db.Fatal, "", func(_ int64, row []db.Value) { row[2].Int = math.MaxInt32 + 1 }},
	} {
		load := things([]string{thingsTable}, func(n int64, row []db.Value) bool {
			more := someRows(20_000)(n, row)
			if n == 15_001 {
				tc.row(n, row)
			}
			return more
		})
		rows, err := d.BulkLoad(t.Context(), load)
		if wantError(t, tc.name, err, tc.class, tc.code); rows != 0 {
			t.Errorf("%s: %d rows", tc.name, rows)
		}
		if got := ask(t, d, "SELECT count(*) FROM pg_class WHERE relname = 'things'"); got != "0" {
			t.Errorf("%s: the table is there", tc.name)
		}
	}
	_, err := d.BulkLoad(t.Context(), things([]string{"CREATE TABLE things (id BIGINT, small SMALLINT, mid INTEGER, m FLOAT, s TEXT)"}, someRows(1)))
	wantError(t, "a column of another type", err, db.Fatal, "")
	_, err = d.BulkLoad(t.Context(), things([]string{"CREATE TABL things"}, someRows(1)))
	wantError(t, "a statement that fails", err, db.Fatal, "42601")
	_, err = d.BulkLoad(t.Context(), things(nil, someRows(1)))
	wantError(t, "no table", err, db.Fatal, "42P01")
}
