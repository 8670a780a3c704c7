package dataset

import (
	"errors"
	"slices"
	"testing"

	"stroppy/internal/db"
)

// partOf takes the rows of a table of a number and a text.
func partOf(t *testing.T, rows ...[]db.Value) Part {
	t.Helper()
	tally := newTally("the table x", "rows", []db.Field{{Name: "n", Type: db.Integer}, {Name: "words", Type: db.Text}}, nil)
	for _, row := range rows {
		if err := tally.row(row); err != nil {
			t.Fatal(err)
		}
	}
	p, err := tally.close(nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func row(n int64, text string) []db.Value { return []db.Value{{Int: n}, {Text: []byte(text)}} }

func TestCensusDetectsChangedRows(t *testing.T) {
	rows := [][]db.Value{row(1, "a"), row(2, "bc"), row(3, "")}
	one := partOf(t, rows...)
	if one.Rows != 3 || !one.Whole || one.Sums["n"] != 6 {
		t.Errorf("the part is %+v", one)
	}
	slices.Reverse(rows)
	if other := partOf(t, rows...); other.text() != one.text() {
		t.Errorf("the order of the rows makes %s of %s", other.text(), one.text())
	}
	null := []db.Value{{Int: 3}, {Null: true}}
	for _, changed := range [][][]db.Value{
		{row(1, "a"), row(2, "bc")},
		{row(1, "a"), row(2, "bc"), row(4, "")},
		{row(1, "a"), row(2, "bc"), null},
		{row(1, "ab"), row(2, "c"), row(3, "")},
		{row(2, "a"), row(1, "bc"), row(3, "")},
	} {
		if other := partOf(t, changed...); other.text() == one.text() {
			t.Errorf("%v look like the other rows", changed)
		}
	}
	if text := one.text(); len(text) > 32 {
		t.Errorf("%q is longer than the metadata take", text)
	}
}

func TestCensusStopsAtItsRowLimit(t *testing.T) {
	tally := newTally("the table x", "rows", []db.Field{{Name: "n", Type: db.Integer}}, nil)
	var err error
	for n := int64(0); err == nil && n < 2*censusRows; n++ {
		err = tally.row([]db.Value{{Int: n}})
	}
	if p, closed := tally.close(err); !errors.Is(err, errCensusFull) || closed != nil || p.Rows != censusRows || p.Whole {
		t.Errorf("%v: %d rows, whole %v", err, p.Rows, p.Whole)
	}
	long := Listing{Bytes: func(*Metadata) int { return 1 << 20 }}
	if rows := long.rows(&Metadata{}); rows > censusBytes>>20+1 {
		t.Errorf("%d rows of a megabyte are read", rows)
	}
}

// TestSealNamesTheChangedTable checks that a table that lost rows is named before a table with other contents.
func TestSealNamesTheChangedTable(t *testing.T) {
	accounts, ledger := partOf(t, row(1, "a")), partOf(t, row(1, "a"), row(2, "b"))
	accounts.Name, ledger.Name = "the accounts", "the ledger"
	s := seal{parts: Census{accounts, ledger}.texts()}
	if what, _ := s.difference(Census{accounts, ledger}); what != "" {
		t.Error(what)
	}
	changed, shorter := accounts, ledger
	changed.Digest++
	shorter.Rows--
	for _, test := range []struct {
		census Census
		want   string
		fewer  bool
	}{
		{Census{changed, ledger}, "the accounts has other contents in its 1 rows", false},
		{Census{changed, shorter}, "the ledger had 2 rows and has 1", true},
	} {
		if what, fewer := s.difference(test.census); what != test.want || fewer != test.fewer {
			t.Errorf("it says %q, %v", what, fewer)
		}
	}
	s.parts[0] = "many"
	if what, _ := s.difference(Census{accounts, ledger}); what == "" {
		t.Error("a part that makes no sense passes")
	}
}
