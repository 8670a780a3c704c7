package chains

import (
	"sync"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// books summarizes the ledger of the end state.
type books struct {
	legs       fingerprint
	tombstones []history.ID
	rows       map[history.ID][]history.Row // rows of the transactions whose IDs are in the map; nil: of none
	parts      []parted                     // fingerprints of all others, by worker; nil: not needed
	size       int                          // length of each element of parts
	mutex      sync.Mutex                   // guards rows and tombstones
}

// workers is the number of goroutines that read an end state.
const workers = 4

// read reads the ledger once.
func (b *books) read(w *check.Watch, end check.EndState) error {
	var sums [workers]struct {
		fingerprint
		_ [64]byte
	}
	asked := make([]bool, max(b.size, 1)) // so that few rows need the mutex
	for id := range b.rows {
		asked[part(id, len(asked))] = true
	}
	err := check.EachRow(w.Ctx, end, workers, func(worker int, rows []history.Row) error {
		sum := sums[worker].fingerprint
		for i := range rows {
			row := &rows[i]
			if row.Mark != 0 {
				if err := b.mark(row); err != nil {
					return err
				}
				continue
			}
			sum.add(row.Transaction, row.Number, row.Object, row.Amount, row.Version)
			if b.size > 0 {
				b.sort(worker, row, asked)
			}
		}
		sums[worker].fingerprint = sum
		return nil
	})
	for i := range sums {
		b.legs.join(sums[i].fingerprint)
	}
	return unread(w, err)
}

// mark records a row that no committed transaction left.
func (b *books) mark(row *history.Row) error {
	if row.Mark != history.Tombstone {
		return unproved("the ledger has a row that is no transaction's")
	}
	b.mutex.Lock()
	b.tombstones = append(b.tombstones, row.Transaction)
	b.mutex.Unlock()
	return nil
}

// sort adds a row to the rows of its transaction, or to the fingerprint of its part.
func (b *books) sort(worker int, row *history.Row, asked []bool) {
	if asked[part(row.Transaction, len(asked))] {
		b.mutex.Lock()
		list, ok := b.rows[row.Transaction]
		if ok {
			b.rows[row.Transaction] = append(list, *row)
		}
		b.mutex.Unlock()
		if ok {
			return
		}
	}
	if b.parts != nil {
		if b.parts[worker] == nil {
			b.parts[worker] = make(parted, b.size)
		}
		b.parts[worker].add(row.Transaction, row.Number, row.Object, row.Amount, row.Version)
	}
}

// unread wraps a reading error so that it ends the proof without an accusation.
func unread(w *check.Watch, err error) error {
	if w.Cancelled() || err == nil || Open(err) {
		return err
	}
	return unproved("%v", err)
}
