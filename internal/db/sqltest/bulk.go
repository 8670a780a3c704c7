package sqltest

import (
	"fmt"

	"stroppy/internal/db"
)

// Rows is the number of rows of a load that succeeds. They need more than one statement of 1 MB.
const Rows = 30_000

// Load returns a load of the table things (id, small, mid, m, s). fill makes each row, and returns false at the end.
func Load(before []string, fill func(n int64, row []db.Value) bool) db.BulkLoad {
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

// Some makes count rows. The text of each is its number in the given format.
func Some(count int64, format string) func(int64, []db.Value) bool {
	return func(n int64, row []db.Value) bool {
		row[0].Int, row[1].Int, row[2].Int, row[3].Int = n, -n%100, n*1000, n*7-1
		row[4].Text = fmt.Appendf(nil, format, n)
		if n%10 == 0 {
			row[1].Null, row[3].Null, row[4].Null = true, true, true
		}
		return n <= count
	}
}

// Spoilt makes 21,000 rows. spoil changes the 20,001st. CockroachDB's driver inserts 5,000 rows at once on each of four
// connections, in one transaction for each statement. So the connection that gets the fifth statement has committed
// another one before.
func Spoilt(format string, spoil func(row []db.Value)) func(int64, []db.Value) bool {
	fill := Some(21_000, format)
	return func(n int64, row []db.Value) bool {
		more := fill(n, row)
		if n == 20_001 {
			spoil(row)
		}
		return more
	}
}

// Sums returns the expected answer of a server about Rows rows of Some, separated by spaces: count(*), sum(id),
// sum(small), sum(mid), sum(m), count(m), count(s).
func Sums() string {
	var small, cents int64
	for n := int64(1); n <= Rows; n++ {
		if n%10 != 0 {
			small -= n % 100
			cents += n*7 - 1
		}
	}
	ids := int64(Rows * (Rows + 1) / 2)
	return fmt.Sprintf("%d %d %d %d %d.%02d %d %d", Rows, ids, small, ids*1000, cents/100, cents%100, Rows/10*9, Rows/10*9)
}
