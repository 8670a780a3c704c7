package sqlite_test

import (
	"context"
	"testing"

	"stroppy/internal/db"
)

// ladder returns a load of n rows; the row at bad has a negative amount.
func ladder(n, bad int64) db.BulkLoad {
	i := int64(0)
	return db.BulkLoad{
		Before:  []string{"CREATE TABLE ladder (n INTEGER PRIMARY KEY, name TEXT, amount INTEGER NOT NULL CHECK (amount >= 0)) STRICT"},
		Table:   "ladder",
		Columns: []string{"n", "name", "amount"},
		Types:   []db.Type{db.Integer, db.Text, db.Decimal},
		Next: func(row []db.Value) bool {
			if i == n {
				return false
			}
			i++
			row[0] = db.Value{Int: i}
			row[1] = db.Value{Text: []byte("step"), Null: i%2 == 0}
			row[2] = db.Value{Int: 100}
			if i == bad {
				row[2].Int = -1
			}
			return true
		},
		After: []string{"CREATE INDEX by_name ON ladder (name)"},
	}
}

func TestBulkLoadLoadsAllRows(t *testing.T) {
	d, _ := openNew(t, "")
	rows, err := d.BulkLoad(t.Context(), ladder(5000, 0))
	if err != nil || rows != 5000 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	s := openSession(t, d, db.Interactive)
	for text, want := range map[string]int64{
		"SELECT count(*) FROM ladder":                               5000,
		"SELECT sum(amount) FROM ladder":                            500_000,
		"SELECT count(*) FROM ladder WHERE name = 'step'":           2500,
		"SELECT count(*) FROM ladder WHERE name IS NULL":            2500,
		"SELECT count(*) FROM sqlite_schema WHERE name = 'by_name'": 1,
	} {
		if n := number(t, s, text); n != want {
			t.Errorf("%s: %d, want %d", text, n, want)
		}
	}
}

func TestBulkLoadIsAtomic(t *testing.T) {
	cancelledContext, cancel := context.WithCancel(t.Context())
	badAfter := ladder(3000, 0)
	badAfter.After = []string{"CREATE INDEX i ON nowhere (n)"}
	badBefore := ladder(3000, 0)
	badBefore.Before = append(badBefore.Before, "CREATE TABLE ladder (n INTEGER)")
	badColumn := ladder(3000, 0)
	badColumn.Columns = []string{"n", "name", "quantity"}
	badTypes := ladder(3000, 0)
	badTypes.Types = badTypes.Types[:2]
	late := ladder(3000, 0)
	next := late.Next
	late.Next = func(row []db.Value) bool { cancel(); return next(row) }
	for name, test := range map[string]struct {
		ctx   context.Context
		load  db.BulkLoad
		class db.Class
		text  string
	}{
		"row":       {t.Context(), ladder(3000, 2999), db.Constraint, "load the table ladder"},
		"before":    {t.Context(), badBefore, db.Fatal, "already exists"},
		"after":     {t.Context(), badAfter, db.Fatal, "nowhere"},
		"column":    {t.Context(), badColumn, db.Fatal, "quantity"},
		"types":     {t.Context(), badTypes, db.Fatal, "2 types"},
		"cancelled": {cancelledContext, late, db.Aborted, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := openNew(t, "")
			_, err := d.BulkLoad(test.ctx, test.load)
			wantError(t, err, test.class, test.text)
			s := openSession(t, d, db.Interactive)
			if n := number(t, s, "SELECT count(*) FROM sqlite_schema"); n != 0 {
				t.Errorf("%d tables or indexes are left", n)
			}
			if _, err := d.BulkLoad(t.Context(), ladder(10, 0)); err != nil {
				t.Errorf("the next load: %v", err)
			}
		})
	}
}
