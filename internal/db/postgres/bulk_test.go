package postgres

import (
	"bytes"
	"fmt"
	"math"
	"os/exec"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

const thingsTable = `CREATE TABLE things (id BIGINT NOT NULL, small SMALLINT, mid INTEGER, m NUMERIC(20,2) CHECK (m > -5), s VARCHAR(20))`

// text is the text of each row, formatted with its number.
const text = "thing %d"

// ask returns the only value of a query.
func ask(t *testing.T, d *Database, sql string) string {
	t.Helper()
	var answer string
	err := sqltest.Session(t, d, db.Pipelined, "").Query(t.Context(), &db.Statement{SQL: sql, Columns: []db.Type{db.Text}}, nil, func(row []db.Value) error {
		answer = string(row[0].Text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestBulkLoadFreezesRowsOfNewTables(t *testing.T) {
	d := openFresh(t)
	sqltest.Execute(t, d, "CREATE EXTENSION pg_visibility")
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
			sqltest.Execute(t, d, "DROP TABLE IF EXISTS things", tc.outside)
			var before []string
			if tc.first != "" {
				before = []string{tc.first}
			}
			rows, err := d.BulkLoad(t.Context(), sqltest.Load(before, sqltest.Some(sqltest.Rows, text)))
			if err != nil || rows != sqltest.Rows {
				t.Fatal(rows, err)
			}
			if got := ask(t, d, "SELECT all_frozen > 0 FROM pg_visibility_map_summary('things')"); got != tc.frozen {
				t.Errorf("frozen: %s", got)
			}
			got := ask(t, d, `SELECT concat_ws(' ', count(*), sum(id), sum(small), sum(mid), sum(m), count(m), count(s),
				bool_and(s IS NULL OR s = 'thing ' || id), bool_and(m IS NULL OR m = id * 0.07 - 0.01)) FROM things`)
			want := sqltest.Sums() + " t t"
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func TestFailedBulkLoadLeavesNothing(t *testing.T) {
	d := openFresh(t)
	for _, tc := range []struct {
		name  string
		class db.Class
		code  string
		row   func(row []db.Value)
	}{
		{"check", db.Constraint, "23514", func(row []db.Value) { row[3].Int = -500 }},
		{"not null", db.Constraint, "23502", func(row []db.Value) { row[0].Null = true }},
		{"unique", db.Constraint, "23505", func(row []db.Value) { row[0].Int = 5 }},
		{"text too long", db.Fatal, "22001", func(row []db.Value) { row[4] = db.Value{Text: bytes.Repeat([]byte("x"), 21)} }},
		{"integer too large", db.Fatal, "", func(row []db.Value) { row[2].Int = math.MaxInt32 + 1 }},
	} {
		load := sqltest.Load([]string{thingsTable}, sqltest.Spoilt(text, tc.row))
		rows, err := d.BulkLoad(t.Context(), load)
		if sqltest.WantError(t, tc.name, err, tc.class, tc.code); rows != 0 {
			t.Errorf("%s: %d rows", tc.name, rows)
		}
		if got := ask(t, d, "SELECT count(*) FROM pg_class WHERE relname = 'things'"); got != "0" {
			t.Errorf("%s: the table is there", tc.name)
		}
	}
	_, err := d.BulkLoad(t.Context(), sqltest.Load([]string{"CREATE TABLE things (id BIGINT, small SMALLINT, mid INTEGER, m FLOAT, s TEXT)"}, sqltest.Some(1, text)))
	sqltest.WantError(t, "a column of another type", err, db.Fatal, "")
	_, err = d.BulkLoad(t.Context(), sqltest.Load([]string{"CREATE TABL things"}, sqltest.Some(1, text)))
	sqltest.WantError(t, "a statement that fails", err, db.Fatal, "42601")
	_, err = d.BulkLoad(t.Context(), sqltest.Load(nil, sqltest.Some(1, text)))
	sqltest.WantError(t, "no table", err, db.Fatal, "42P01")
}

// BenchmarkBulkLoad loads the data of pgbench -i -s 10, 1,000,000 accounts with their primary key, and runs
// pgbench on the same server for comparison.
func BenchmarkBulkLoad(b *testing.B) {
	const accounts = 1_000_000
	pg, err := server.Start(b.Context(), cluster.Alone(nil))
	if err != nil {
		b.Skip("skipped engine: postgres: " + err.Error())
	}
	b.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			b.Error(err)
		}
	})
	b.Run("pgbench", func(b *testing.B) {
		pgbench, err := server.PGBin("pgbench")
		if err != nil {
			b.Skip("skipped engine: pgbench: " + err.Error())
		}
		for range b.N {
			out, err := exec.CommandContext(b.Context(), pgbench, "-i", "-s", "10", "-q", pg.URL()).CombinedOutput()
			if err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	})
	b.Run("stroppy", func(b *testing.B) {
		d := drivertest.Open(b, Open, pg.URL())
		for range b.N {
			n := 0
			rows, err := d.BulkLoad(b.Context(), db.BulkLoad{
				Before: []string{
					"DROP TABLE IF EXISTS loaded",
					`CREATE TABLE loaded (bic VARCHAR(8) COLLATE "C" NOT NULL, ban BIGINT NOT NULL, balance NUMERIC(20,2) NOT NULL,
						version BIGINT NOT NULL, last_transfer BIGINT NOT NULL, previous_transfer BIGINT NOT NULL)`,
				},
				Table:   "loaded",
				Columns: []string{"bic", "ban", "balance", "version", "last_transfer", "previous_transfer"},
				Types:   []db.Type{db.Text, db.Integer, db.Decimal, db.Integer, db.Integer, db.Integer},
				Next: func(row []db.Value) bool {
					if n == accounts {
						return false
					}
					row[0].Text = fmt.Appendf(row[0].Text[:0], "BIC%05d", n*7919%99991)
					row[1].Int, row[2].Int = int64(n)*7_368_787%1_000_000_007, 100_000
					n++
					return true
				},
				After: []string{"ALTER TABLE loaded ADD PRIMARY KEY (bic, ban)"},
			})
			if err != nil || rows != accounts {
				b.Fatal(rows, err)
			}
		}
	})
}
