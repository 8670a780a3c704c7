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
	var mutex sync.Mutex // of rows and tombstones
	err := check.EachRow(w.Ctx, end, workers, func(worker int, row history.Row) error {
		switch row.Mark {
		case 0:
			sums[worker].add(row.Transaction, row.Number, row.Object, row.Amount, row.Version)
			if asked[part(row.Transaction, len(asked))] {
				mutex.Lock()
				list, ok := b.rows[row.Transaction]
				if ok {
					b.rows[row.Transaction] = append(list, row)
				}
				mutex.Unlock()
				if ok {
					return nil
				}
			}
			if b.parts != nil {
				if b.parts[worker] == nil {
					b.parts[worker] = make(parted, b.size)
				}
				b.parts[worker].add(row.Transaction, row.Number, row.Object, row.Amount, row.Version)
			}
		case history.Tombstone:
			mutex.Lock()
			b.tombstones = append(b.tombstones, row.Transaction)
			mutex.Unlock()
		default:
			return unproved("the ledger has a row that is no transaction's")
		}
		return nil
	})
	for i := range sums {
		b.legs.join(sums[i].fingerprint)
	}
	return unread(w, err)
}

// unread is an error of reading as one that accuses nobody.
func unread(w *check.Watch, err error) error {
	if w.Cancelled() || err == nil || Open(err) {
		return err
	}
	return unproved("%v", err)
}
