package tpcb

import (
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/workload/dataset"
)

// The columns of numbers in a census.
const (
	columnBalance = "balance"
	columnVersion = "version"
	columnAmount  = "amount"
	columnDelta   = "delta"
	columnBare    = "CASE WHEN place < 0 THEN 1 ELSE 0 END" // of an opening: it marks a run that keeps no history
)

// accountsForAll reports whether the history in a census has all that the rows got.
func accountsForAll(c dataset.Census) bool {
	for i := range c {
		if !c[i].Whole {
			return false
		}
	}
	return len(c) <= int(noKind)+1 || c[noKind+1].Sums[columnBare] == 0
}

// untouched reports whether a census shows tables that `pgbench -i` has made: the history is empty, and every balance
// is zero.
func untouched(c dataset.Census) bool {
	for k := range noKind {
		if c[k].Missing != nil || c[k].Sums[columns[k].balance] != 0 {
			return false
		}
	}
	history := &c[noKind]
	return history.Missing == nil && history.Whole && history.Rows == 0
}

// threeTablesRule returns what contradicts the data in a census of branches, tellers, accounts
// and the history, and of the openings if they are there: each table must have the rows of the
// load, and the balances of each must have grown by the sum of the history.
func threeTablesRule(f *facts, c dataset.Census) string {
	moved := int64(0)
	for k, rows := range f.size {
		p := &c[k]
		if p.Whole && p.Rows != rows {
			return fmt.Sprintf("%s has %s rows and the metadata say %s", p.Name, check.Group(p.Rows), check.Group(rows))
		}
		moved += p.Sums[columns[k].balance]
	}
	if len(c) > int(noKind)+1 {
		moved -= c[noKind+1].Sums[columnBalance]
	}
	if history := &c[noKind]; accountsForAll(c) && moved != int64(noKind)*history.Sums[columnDelta] {
		return fmt.Sprintf("the balances of the three tables grew by %s together, and the rows in %s explain %s",
			signed(moved), history.Name, signed(int64(noKind)*history.Sums[columnDelta]))
	}
	return ""
}

// oneTableRule returns what contradicts the data in a census. The parts are rows with versions, the history, runs
// that kept none, and rows without versions.
func oneTableRule(f *facts, c dataset.Census) string {
	rows, history, bare := &c[0], &c[1], &c[2]
	if !f.versions && len(c) > 3 { // rows without versions have a part of their own
		rows = &c[3]
	}
	versions := rows.Sums[columnVersion]
	switch {
	case !rows.Whole:
	case rows.Rows != f.size.rows():
		return fmt.Sprintf("%s has %s rows and the load made %s",
			rows.Name, check.Group(rows.Rows), check.Group(f.size.rows()))
	case rows.Sums[columnBalance]%int64(noKind) != 0:
		return fmt.Sprintf("the balances in %s add up to %s, and each transaction adds three times the same",
			rows.Name, signed(rows.Sums[columnBalance]))
	case bare.Rows > 0:
	case versions > 0 && history.Rows == 0:
		return fmt.Sprintf("%s has no entry for %s changes of rows", history.Name, check.Group(uint64(versions)))
	case f.versions && versions == 0 && history.Sums[columnVersion] > 0:
		return fmt.Sprintf("%s has %s entries for no change of a row", history.Name, check.Group(history.Rows))
	}
	return ""
}

func signed(n int64) string {
	if n < 0 {
		return "-" + check.Group(uint64(-n))
	}
	return check.Group(uint64(n))
}
