package chains

import (
	"stroppy/internal/check"
	"stroppy/internal/history"
)

// books are what the ledger of the end state says.
type books struct {
	legs       fingerprint
	tombstones []history.ID
	wanted     map[history.ID][]history.Row // the rows of the transactions that were asked for
}

// read goes through the ledger once.
func (b *books) read(w *check.Watch, end check.EndState, wanted map[history.ID][]history.Row) (problem error) {
	b.wanted = wanted
	for row := range check.Each(w, "the end state's ledger", end.Rows(), &problem) {
		switch row.Mark {
		case 0:
			b.legs.add(row.Transaction, row.Object, row.Amount, row.Version)
		case history.Tombstone:
			b.tombstones = append(b.tombstones, row.Transaction)
			continue
		default:
			return unproved("the ledger has a row that is no transaction's")
		}
		if len(wanted) > 0 {
			if rows, ok := wanted[row.Transaction]; ok {
				wanted[row.Transaction] = append(rows, row)
			}
		}
	}
	if problem != nil {
		return unproved("%v", problem)
	}
	return nil
}
