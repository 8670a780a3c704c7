package sqltest

import (
	"math"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// TestFree checks statements whose parameters have no declared types, and whose columns are not declared.
func TestFree(t *testing.T, d db.SQL) {
	own := d.Dialect()
	Execute(t, d, own.CreateTable("free", "id "+own.IntegerType+" NOT NULL", "price REAL", "note "+own.TextType(40), "PRIMARY KEY (id)"))
	insert := free(own, "INSERT INTO free (id, price, note) VALUES (?, ?, ?)")
	change := free(own, "UPDATE free SET id = id + ?, note = 'why?' WHERE id = ?")
	read := free(own, "SELECT note, id AS number FROM free WHERE id >= ? ORDER BY id")
	read.Free = true
	text := func(s string) db.Value { return db.Value{Text: []byte(s)} }
	half := db.Value{Int: int64(math.Float64bits(2.5)), Double: true}
	EachMode(t, func(t *testing.T, mode db.Mode) {
		s := Session(t, d, mode, "")
		drivertest.Must(t, d.Exec(t.Context(), "DELETE FROM free"))
		drivertest.Must(t, Transact(t.Context(), s, false, true,
			With(insert, []db.Value{Number(1), half, text("it's")}), With(insert, []db.Value{text("2"), {Null: true}, {Null: true}}),
			With(change, []db.Value{Number(8), Number(1)}), With(read, []db.Value{Number(2)})))
		r := s.Result(3)
		if strings.Join(r.Names, " ") != "note number" || r.Rows() != 2 {
			t.Fatalf("columns %v, %d rows", r.Names, r.Rows())
		}
		first, second := r.Row(0), r.Row(1)
		if !first[0].Null || string(first[1].Text) != "2" || string(second[0].Text) != "why?" || string(second[1].Text) != "9" {
			t.Errorf("rows %+v", r.Values)
		}
		var rows [][2]string
		drivertest.Must(t, s.Query(t.Context(), read, []db.Value{Number(9)}, func(row []db.Value) error {
			rows = append(rows, [2]string{string(row[0].Text), string(row[1].Text)})
			return nil
		}))
		if len(rows) != 1 || rows[0] != [2]string{"why?", "9"} {
			t.Errorf("a query returned %v", rows)
		}
	})
}

// free returns a statement with Untyped parameters, which are the question marks that stand alone.
func free(d *db.Dialect, sql string) *db.Statement {
	s := &db.Statement{}
	for part := range strings.SplitSeq(sql, "?") {
		if n := len(s.Parts); n > 0 && strings.HasSuffix(s.Parts[n-1], "'why") {
			s.Parts[n-1] += "?" + part
			continue
		}
		s.Parts = append(s.Parts, part)
	}
	for i, part := range s.Parts {
		if i > 0 {
			s.Params = append(s.Params, db.Untyped)
			s.SQL += d.Placeholder(i)
		}
		s.SQL += part
	}
	return s
}
