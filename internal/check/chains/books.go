package chains

import (
	"iter"
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
	err := each(w, "the end state's ledger", end.Rows(), rowsOf(end), func(worker int, row history.Row) error {
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
	return err
}

// several has all of T in an end state read by several workers; *history.End has such
// functions.
type several[T any] func(workers int, do func(worker int, list []T) error) error

func rowsOf(end check.EndState) several[history.Row] {
	if e, ok := end.(interface {
		EachRow(workers int, do func(worker int, rows []history.Row) error) error
	}); ok {
		return e.EachRow
	}
	return nil
}

func objectsOf(end check.EndState) several[history.Object] {
	if e, ok := end.(interface {
		EachObject(workers int, do func(worker int, objects []history.Object) error) error
	}); ok {
		return e.EachObject
	}
	return nil
}

// each has everything read by several workers where that is possible, and else by one.
func each[T any](w *check.Watch, what string, all iter.Seq2[T, error], several several[T], do func(worker int, v T) error) (problem error) {
	if several == nil {
		for v := range check.Each(w, what, all, &problem) {
			if err := do(0, v); err != nil {
				return err
			}
		}
	} else {
		problem = several(workers, func(worker int, list []T) error {
			if w.Ctx.Err() != nil {
				return w.Ctx.Err()
			}
			for i := range list {
				if err := do(worker, list[i]); err != nil {
					return err
				}
			}
			return nil
		})
		w.Cancelled()
	}
	if problem != nil && !Open(problem) {
		return unproved("%v", problem)
	}
	return problem
}
