package mysql

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"stroppy/internal/db"
)

const thingsTable = `CREATE TABLE things (id BIGINT NOT NULL, small SMALLINT, mid INTEGER, m DECIMAL(20,2) CHECK (m > -5), s VARCHAR(20)) ENGINE=InnoDB`

// things loads rows made by fill, which returns false at the end.
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
		row[4].Text = fmt.Appendf(nil, "'%d'\t\\N\n\\%d", n, n%7)
		if n%10 == 0 {
			row[1].Null, row[3].Null, row[4].Null = true, true, true
		}
		return n <= count
	}
}

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

func TestBulkLoad(t *testing.T) {
	const count = 50_000
	eachLoad(t, func(t *testing.T, d *Database) {
		for _, tc := range []struct {
			name           string
			outside, first string
		}{
			{"a new table", "", thingsTable},
			{"a table that was there", thingsTable, "SELECT 1"},
			{"a table that was there and nothing first", thingsTable, ""},
		} {
			execute1(t, d, "DROP TABLE IF EXISTS things")
			if tc.outside != "" {
				execute1(t, d, tc.outside)
			}
			var before []string
			if tc.first != "" {
				before = []string{tc.first}
			}
			rows, err := d.BulkLoad(t.Context(), things(before, someRows(count)))
			if err != nil || rows != count {
				t.Fatal(tc.name, rows, err)
			}
			got := ask(t, d, `SELECT COUNT(*), SUM(id), SUM(small), SUM(mid), SUM(m), COUNT(m), COUNT(s),
				MIN(s IS NULL OR s = CONCAT('''', id, '''', CHAR(9), CHAR(92), 'N', CHAR(10), CHAR(92), id % 7)),
				MIN(m IS NULL OR m = id * 0.07 - 0.01) FROM things`)
			var small, cents int64
			for n := int64(1); n <= count; n++ {
				if n%10 != 0 {
					small -= n % 100
					cents += n*7 - 1
				}
			}
			want := fmt.Sprintf("%d %d %d %d %d.%02d %d %d 1 1", count, count*(count+1)/2, small, count*(count+1)/2*1000,
				cents/100, cents%100, count/10*9, count/10*9)
			if got != want {
				t.Errorf("%s: %s, want %s", tc.name, got, want)
			}
		}
	})
}

func TestBulkLoadIsAllOrNothing(t *testing.T) {
	eachLoad(t, func(t *testing.T, d *Database) {
		keyed := thingsTable[:len(thingsTable)-len(") ENGINE=InnoDB")] + ", PRIMARY KEY (id)) ENGINE=InnoDB"
		for _, tc := range []struct {
			name  string
			class db.Class
			code  string
			row   func(n int64, row []db.Value)
		}{
			{"check", db.Constraint, "4025", func(_ int64, row []db.Value) { row[3].Int = -500 }},
			{"not null", db.Constraint, "1048", func(_ int64, row []db.Value) { row[0].Null = true }},
			{"unique", db.Constraint, "1062", func(_ int64, row []db.Value) { row[0].Int = 5 }},
			{"text too long", db.Fatal, "1406", func(_ int64, row []db.Value) { row[4] = db.Value{Text: bytes.Repeat([]byte("x"), 21)} }},
			{"integer too large", db.Fatal, "1264", func(_ int64, row []db.Value) { row[1].Int = 1 << 40 }},
		} {
			for _, there := range []bool{false, true} {
				before := []string{keyed}
				if there {
					execute1(t, d, keyed)
					before = nil
				}
				load := things(before, func(n int64, row []db.Value) bool {
					more := someRows(20_000)(n, row)
					if n == 15_001 {
						tc.row(n, row)
					}
					return more
				})
				load.After = nil
				rows, err := d.BulkLoad(t.Context(), load)
				code := tc.code
				if own, ok := err.(*db.Error); ok && d.server.on("local_infile") {
					switch own.Code { // the numbers of the warnings
					case "1263", "1265":
						code = own.Code
					}
				}
				if wantError(t, tc.name, err, tc.class, code); rows != 0 {
					t.Errorf("%s: %d rows", tc.name, rows)
				}
				if there {
					if left := ask(t, d, "SELECT COUNT(*) FROM things"); left != "0" {
						t.Errorf("%s: the table that was there holds %s rows", tc.name, left)
					}
					execute1(t, d, "DROP TABLE things")
				} else if left := ask(t, d, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"); left != "0" {
					t.Errorf("%s: the table is there", tc.name)
				}
			}
		}
		_, err := d.BulkLoad(t.Context(), things([]string{"CREATE TABL things"}, someRows(1)))
		wantError(t, "a statement that fails", err, db.Fatal, "1064")
		_, err = d.BulkLoad(t.Context(), things(nil, someRows(1)))
		wantError(t, "no table", err, db.Fatal, "1146")
		load := things([]string{thingsTable}, someRows(10))
		load.After = []string{"ALTER TABLE things ADD PRIMARY KEY (nothing)"}
		_, err = d.BulkLoad(t.Context(), load)
		wantError(t, "a last statement that fails", err, db.Fatal, "1072")
		if left := ask(t, d, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"); left != "0" {
			t.Errorf("the table is there")
		}
		load = things([]string{thingsTable}, someRows(10))
		load.Types = load.Types[1:]
		_, err = d.BulkLoad(t.Context(), load)
		wantError(t, "a type too few", err, db.Fatal, "")
	})
}

func TestBulkLoadThatIsCancelled(t *testing.T) {
	eachLoad(t, func(t *testing.T, d *Database) {
		ctx, cancel := context.WithCancel(t.Context())
		load := things([]string{thingsTable}, func(n int64, row []db.Value) bool {
			if n == 30_000 {
				cancel()
			}
			return someRows(1<<40)(n, row)
		})
		_, err := d.BulkLoad(ctx, load)
		wantError(t, "cancelled", err, db.Unavailable, "")
		if left := ask(t, d, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"); left != "0" {
			t.Errorf("the table is there")
		}
	})
}
