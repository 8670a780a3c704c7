package chains

import (
	"sync"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// books are what the ledger of the end state says.
type books struct {
	legs       fingerprint
	tombstones []history.ID
	rows       map[history.ID][]history.Row // of the transactions whose ids are in it; nil: of none
	parts      []parted                     // of all others, by worker; nil: nobody asks
	size       int                          // of each
	mutex      sync.Mutex                   // of rows and tombstones
}

// workers is by how many goroutines an end state is read.
const workers = 4

// read goes through the ledger once.
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

// mark takes up a row that no committed transaction left.
func (b *books) mark(row *history.Row) error {
	if row.Mark != history.Tombstone {
		return unproved("the ledger has a row that is no transaction's")
	}
	b.mutex.Lock()
	b.tombstones = append(b.tombstones, row.Transaction)
	b.mutex.Unlock()
	return nil
}

// sort puts a row to those of its transaction, or else to the part of its id.
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

// unread is an error of reading as one that accuses nobody.
func unread(w *check.Watch, err error) error {
	if w.Cancelled() || err == nil || Open(err) {
		return err
	}
	return unproved("%v", err)
}
