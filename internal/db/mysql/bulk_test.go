package mysql

import (
	"bytes"
	"context"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/sqltest"
)

const thingsTable = `CREATE TABLE things (id BIGINT NOT NULL, small SMALLINT, mid INTEGER, m DECIMAL(20,2) CHECK (m > -5), s VARCHAR(20)) ENGINE=InnoDB`

// text is the text of each row, formatted with its number: quotes, a tab, a backslash and a line feed.
const text = "'%[1]d'\t\\N\n\\%[1]d"

// eachLoad runs a test with both ways of loading.
func eachLoad(t *testing.T, test func(t *testing.T, d *Database)) {
	for name, local := range map[string]string{"load data": "ON", "insert": "OFF"} {
		t.Run(name, func(t *testing.T) {
			d := openFresh(t)
			d.server.variables["local_infile"] = local
			test(t, d)
		})
	}
}

func TestBulkLoadKeepsTextUnchanged(t *testing.T) {
	eachLoad(t, func(t *testing.T, d *Database) {
		for _, tc := range []struct {
			name           string
			outside, first string
		}{
			{"a new table", "", thingsTable},
			{"a table that was there", thingsTable, "SELECT 1"},
			{"a table that was there and nothing first", thingsTable, ""},
		} {
			sqltest.Execute(t, d, "DROP TABLE IF EXISTS things")
			if tc.outside != "" {
				sqltest.Execute(t, d, tc.outside)
			}
			var before []string
			if tc.first != "" {
				before = []string{tc.first}
			}
			rows, err := d.BulkLoad(t.Context(), sqltest.Load(before, sqltest.Some(sqltest.Rows, text)))
			if err != nil || rows != sqltest.Rows {
				t.Fatal(tc.name, rows, err)
			}
			got := ask(t, d, `SELECT COUNT(*), SUM(id), SUM(small), SUM(mid), SUM(m), COUNT(m), COUNT(s),
				MIN(s IS NULL OR s = CONCAT('''', id, '''', CHAR(9), CHAR(92), 'N', CHAR(10), CHAR(92), id)),
				MIN(m IS NULL OR m = id * 0.07 - 0.01) FROM things`)
			want := sqltest.Sums() + " 1 1"
			if got != want {
				t.Errorf("%s: %s, want %s", tc.name, got, want)
			}
		}
	})
}

func TestFailedBulkLoadLeavesNothing(t *testing.T) {
	eachLoad(t, func(t *testing.T, d *Database) {
		keyed := thingsTable[:len(thingsTable)-len(") ENGINE=InnoDB")] + ", PRIMARY KEY (id)) ENGINE=InnoDB"
		for _, tc := range []struct {
			name  string
			class db.Class
			code  string
			row   func(row []db.Value)
		}{
			{"check", db.Constraint, "4025", func(row []db.Value) { row[3].Int = -500 }},
			{"not null", db.Constraint, "1048", func(row []db.Value) { row[0].Null = true }},
			{"unique", db.Constraint, "1062", func(row []db.Value) { row[0].Int = 5 }},
			{"text too long", db.Fatal, "1406", func(row []db.Value) { row[4] = db.Value{Text: bytes.Repeat([]byte("x"), 21)} }},
			{"integer too large", db.Fatal, "1264", func(row []db.Value) { row[1].Int = 1 << 40 }},
		} {
			for _, there := range []bool{false, true} {
				before := []string{keyed}
				if there {
					sqltest.Execute(t, d, keyed)
					before = nil
				}
				load := sqltest.Load(before, sqltest.Spoilt(text, tc.row))
				load.After = nil
				rows, err := d.BulkLoad(t.Context(), load)
				code := tc.code
				if own, ok := err.(*db.Error); ok && d.server.on("local_infile") {
					switch own.Code { // the numbers of the warnings
					case "1263", "1265":
						code = own.Code
					}
				}
				if sqltest.WantError(t, tc.name, err, tc.class, code); rows != 0 {
					t.Errorf("%s: %d rows", tc.name, rows)
				}
				if there {
					if left := ask(t, d, "SELECT COUNT(*) FROM things"); left != "0" {
						t.Errorf("%s: the table that was there holds %s rows", tc.name, left)
					}
					sqltest.Execute(t, d, "DROP TABLE things")
				} else if left := ask(t, d, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"); left != "0" {
					t.Errorf("%s: the table is there", tc.name)
				}
			}
		}
		_, err := d.BulkLoad(t.Context(), sqltest.Load([]string{"CREATE TABL things"}, sqltest.Some(1, text)))
		sqltest.WantError(t, "a statement that fails", err, db.Fatal, "1064")
		_, err = d.BulkLoad(t.Context(), sqltest.Load(nil, sqltest.Some(1, text)))
		sqltest.WantError(t, "no table", err, db.Fatal, "1146")
		load := sqltest.Load([]string{thingsTable}, sqltest.Some(10, text))
		load.After = []string{"ALTER TABLE things ADD PRIMARY KEY (nothing)"}
		_, err = d.BulkLoad(t.Context(), load)
		sqltest.WantError(t, "a last statement that fails", err, db.Fatal, "1072")
		if left := ask(t, d, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"); left != "0" {
			t.Errorf("the table is there")
		}
		load = sqltest.Load([]string{thingsTable}, sqltest.Some(10, text))
		load.Types = load.Types[1:]
		_, err = d.BulkLoad(t.Context(), load)
		sqltest.WantError(t, "a type too few", err, db.Fatal, "")
	})
}

func TestCancelledBulkLoadLeavesNothing(t *testing.T) {
	eachLoad(t, func(t *testing.T, d *Database) {
		ctx, cancel := context.WithCancel(t.Context())
		endless := sqltest.Some(1<<40, text)
		load := sqltest.Load([]string{thingsTable}, func(n int64, row []db.Value) bool {
			if n == 30_000 {
				cancel()
			}
			return endless(n, row)
		})
		_, err := d.BulkLoad(ctx, load)
		sqltest.WantError(t, "cancelled", err, db.Unavailable, "")
		if left := ask(t, d, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"); left != "0" {
			t.Errorf("the table is there")
		}
	})
}
