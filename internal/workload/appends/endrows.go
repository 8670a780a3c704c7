package appends

import (
	"context"
	"fmt"
	"iter"

	"stroppy/internal/check"
	"stroppy/internal/check/lists"
	"stroppy/internal/history"
)

// mostMissing bounds the places in a row at which the end state of a list has no row. A
// transaction appends behind the last row that it sees.
const mostMissing = 1 << 16

// verifyEnd returns an error if EndState cannot have written the end state. EndState writes each list once, with its
// elements at their places, and an object that agrees with them. Anything else is no statement about the database.
func verifyEnd(ctx context.Context, end check.EndState, kept map[uint64]lists.Storage) error {
	v := endVerifier{kept: kept}
	var stop func()
	v.object, stop = iter.Pull2(end.Objects())
	defer stop()
	w := check.Watch{Ctx: ctx}
	for row, err := range end.Rows() {
		if err == nil {
			err = v.row(row)
		}
		if err != nil {
			return fmt.Errorf("read the end state: %w", err)
		}
		if w.Ended() {
			return w.Err
		}
	}
	if err := v.finish(); err != nil {
		return fmt.Errorf("read the end state: %w", err)
	}
	return nil
}

// endVerifier compares the rows of an end state with its objects.
type endVerifier struct {
	kept   map[uint64]lists.Storage
	object func() (history.Object, error, bool)
	last   history.Row
	count  int64 // rows of the list; 0: none is open
}

const downloadAgain = "it is altered or damaged: restore it from a copy, or download it again with --db"

// row takes the next row.
func (v *endVerifier) row(row history.Row) error {
	if v.count > 0 && row.Object != v.last.Object {
		if err := v.close(); err != nil {
			return err
		}
	}
	storage, ours := v.kept[runOf(row.Object)]
	before := uint64(0)
	if v.count > 0 {
		before = v.last.Version
	}
	switch id := row.Transaction; {
	case id.Run() != runOf(row.Object) || id.Sequence() == 0 || row.Number >= 1<<numberBits || row.Mark != 0 || row.State != 0 || row.Amount != 0:
		return fmt.Errorf("%s has a row that is no append of a transaction: %s", listName(row.Object), downloadAgain)
	case row.Version <= before, ours && storage != lists.Pieces && row.Version != before+1, row.Version > before+mostMissing:
		return fmt.Errorf("%s has an element at place %d behind place %d: %s", listName(row.Object), row.Version, before, downloadAgain)
	}
	v.last = row
	v.count++
	return nil
}

// close ends a list, whose object is the next one.
func (v *endVerifier) close() error {
	o, err, ok := v.object()
	if err != nil {
		return err
	}
	if want := (history.Object{N: v.last.Object, Value: v.count, Version: uint64(v.count), Writer: v.last.Transaction}); !ok || o != want {
		return fmt.Errorf("the objects and the rows of %s do not agree: %s", listName(v.last.Object), downloadAgain)
	}
	v.count = 0
	return nil
}

// finish ends the rows.
func (v *endVerifier) finish() error {
	if v.count > 0 {
		if err := v.close(); err != nil {
			return err
		}
	}
	o, err, ok := v.object()
	if err == nil && ok {
		err = fmt.Errorf("%s has an object and no rows: %s", listName(o.N), downloadAgain)
	}
	return err
}

// endRows yields the lists of the end state, whose rows come list by list. Lists of runs without a recording are left
// out.
func endRows(end check.EndState, kept map[uint64]lists.Storage) iter.Seq2[lists.Row, error] {
	return func(yield func(lists.Row, error) bool) {
		var list lists.Row
		open := false
		for row, err := range end.Rows() {
			if err != nil {
				yield(lists.Row{}, err)
				return
			}
			storage, ours := kept[runOf(row.Object)]
			if !ours {
				continue
			}
			if open && row.Object != list.Key {
				if !yield(list, nil) {
					return
				}
				open = false
			}
			if !open {
				list, open = lists.Row{Key: row.Object, List: list.List[:0]}, true
			}
			for storage == lists.Pieces && uint64(len(list.List))+1 < row.Version {
				list.List = append(list.List, lists.Missing)
			}
			list.List = append(list.List, newElement(row.Transaction, uint64(row.Number)))
		}
		if open {
			yield(list, nil)
		}
	}
}
