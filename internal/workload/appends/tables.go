package appends

import (
	"context"
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// ofKind holds the counts of the committed transactions of one kind.
type ofKind struct{ transactions, appends, reads, elements, tries uint64 }

// lengths counts reads by the length of the list that they read.
type lengths [len(lengthNames)]uint64

// mostOfLength holds the bounds of the lengths, and lengthNames their names.
var (
	mostOfLength = [...]int64{0, 1, 3, 7, 15, 31, 63}
	lengthNames  = [...]string{"empty", "1", "2 to 3", "4 to 7", "8 to 15", "16 to 31", "32 to 63", "64 and more"}
)

// tables returns the tables of the transactions of a recorded run and of the lengths of its lists.
func tables(ctx context.Context, recorded *history.Reader) ([]workload.Table, error) {
	var of [len(kinds)]ofKind
	var read lengths
	var err error
	for record := range check.Each(&check.Watch{Ctx: ctx}, "the history", recorded.Transactions(), &err) {
		number := slices.IndexFunc(kinds[:], func(d history.Declared) bool { return d.Number == uint8(record.Kind) })
		if record.Warmup || number < 0 || record.Outcome != history.Committed {
			continue
		}
		of[number].add(record.Transaction, &read)
	}
	if err != nil {
		return nil, fmt.Errorf("add up the operations of each kind of transaction: %w", err)
	}
	operations := workload.Table{
		Title:   "Transactions and their operations",
		Columns: []string{"", "committed", "tries", "appends", "reads", "elements read"},
		Notes:   []string{"Counted are transactions that were committed after the warm-up. A transaction that was tried again counts each try."},
	}
	for i, k := range of {
		if k.transactions > 0 {
			operations.Rows = append(operations.Rows, []string{
				kinds[i].Name, fmt.Sprint(k.transactions), fmt.Sprint(k.tries), fmt.Sprint(k.appends), fmt.Sprint(k.reads), fmt.Sprint(k.elements),
			})
		}
	}
	if len(operations.Rows) == 0 {
		return nil, nil
	}
	lists := workload.Table{Title: "Lists as they were read", Columns: []string{"elements", "reads"}}
	for i, n := range read {
		if n > 0 {
			lists.Rows = append(lists.Rows, []string{lengthNames[i], fmt.Sprint(n)})
		}
	}
	return []workload.Table{operations, lists}, nil
}

func (k *ofKind) add(tx *history.Transaction, read *lengths) {
	k.transactions++
	k.tries += uint64(tx.Attempts)
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if op.Write {
			k.appends++
			continue
		}
		k.reads++
		k.elements += uint64(op.Value)
		place, _ := slices.BinarySearch(mostOfLength[:], op.Value)
		read[place]++
	}
}
