package appends

import (
	"context"
	"fmt"
	"iter"

	"stroppy/internal/check"
	"stroppy/internal/check/lists"
	"stroppy/internal/history"
	"stroppy/internal/workload/recording"
)

func checks(ctx context.Context, recorded recording.Input) ([]check.Result, error) {
	kept, err := storages(recorded.History)
	if err != nil {
		return nil, err
	}
	in := lists.Input{
		Expect: recorded.Expect, Transactions: transactions(recorded.Input, true), Complete: complete(recorded.History),
		RealTime:    len(recorded.History) == 1,
		Storage:     func(key uint64) lists.Storage { return kept[runOf(key)] },
		List:        listName,
		Element:     elementName,
		OnViolation: recorded.OnViolation,
	}
	if errors, ok := workerClocks(recorded.History); ok {
		in.RealTime, in.Errors = true, errors
	}
	if recorded.End != nil && len(recorded.Early) == 0 {
		in.End = endRows(recorded.End, kept)
	}
	report, err := lists.Check(ctx, in)
	if err != nil {
		return nil, err
	}
	if recorded.End != nil {
		unexpected(report.Results, recorded.End.Unexpected())
	}
	return report.Results, nil
}

// workerClocks are the errors of the clocks of one run's workers, each of which has a source; false where
// there are none, or they cannot be compared.
func workerClocks(sources []check.Source) (errors []int64, ok bool) {
	if len(sources) < 2 {
		return nil, false
	}
	first, _ := check.ClockOf(sources[0].Header())
	for _, source := range sources {
		clock, known := check.ClockOf(source.Header())
		if !known || clock.ID != first.ID || source.Header().Run != sources[0].Header().Run {
			return nil, false
		}
		errors = append(errors, clock.Error())
	}
	return errors, true
}

// storages are how the lists of each run are kept.
func storages(sources []check.Source) (map[uint64]lists.Storage, error) {
	kept := map[uint64]lists.Storage{}
	for _, source := range sources {
		storage, err := lists.ParseStorage(source.Header().Keys["storage"])
		if err != nil {
			return nil, fmt.Errorf("read how the lists of run %d are kept: %w: take the version of stroppy that recorded it", source.Header().Run, err)
		}
		kept[source.Header().Run] = storage
	}
	return kept, nil
}

// unexpected adds what the end state has that no transaction makes.
func unexpected(results []check.Result, texts []string) {
	if len(texts) == 0 {
		return
	}
	text := check.Capital(texts[0])
	if more := len(texts) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	for i := range results {
		if r := &results[i]; r.Name == check.NoGhost {
			if r.Status == check.Invalid {
				text = r.Detail + "\n" + text
			}
			r.Status, r.Detail = check.Invalid, text+"."
		}
	}
}

// elementName is an element as reports show it.
func elementName(element uint64) string {
	if element == 0 {
		return "what no transaction writes"
	}
	w := writer(0, element)
	return fmt.Sprintf("append %d of transaction %d of client %d", numberOf(element), w.Sequence(), w.Client())
}

func complete(sources []check.Source) bool {
	for _, s := range sources {
		if !s.Complete() {
			return false
		}
	}
	return true
}

// transactions are those of recordings as the checker takes them, with or without what clients read
// in order to append.
func transactions(in check.Input, bases bool) iter.Seq2[*lists.Transaction, error] {
	return func(yield func(*lists.Transaction, error) bool) {
		committed := uint64(0)
		defer func() { in.SetCommitted(committed) }()
		for clock, source := range in.History {
			ranges := source.Header().Keys["access"] == Predicate
			a := adapter{ranges: ranges, bases: bases, clock: uint32(clock)}
			for record, err := range source.Transactions() {
				if err != nil {
					yield(nil, err)
					return
				}
				if record.Outcome == history.Committed && !record.Kind.Background() {
					committed++
				}
				if !yield(a.transaction(record.Transaction), nil) {
					return
				}
			}
		}
	}
}

// adapter turns recorded transactions into the checker's. Its buffers are used again.
type adapter struct {
	ranges bool
	bases  bool // what was read in order to append is a read
	clock  uint32
	tx     lists.Transaction
	rows   []lists.Row
}

// garbage is what a read returned that no transaction writes.
var garbage = []uint64{0}

func (a *adapter) transaction(tx *history.Transaction) *lists.Transaction {
	to := &a.tx
	*to = lists.Transaction{
		ID: tx.ID, Client: tx.ID.Run()<<history.ClientBits | tx.ID.Client(), Outcome: tx.Outcome, Begin: tx.Try, End: tx.End, Clock: a.clock, Ops: to.Ops[:0],
	}
	if tx.Outcome != history.Committed && tx.Outcome != history.Unknown {
		to.Begin = tx.Sent // one that was applied all the same was so at some time after it was sent first
	}
	a.rows = a.rows[:0]
	elements, appended := tx.Elements, uint64(0)
	for i := 0; i < len(tx.Ops); {
		op := &tx.Ops[i]
		if op.Write {
			if op.Observed {
				base := a.list(op, &elements)
				if a.bases {
					to.Ops = append(to.Ops, lists.Op{Kind: lists.Read, Key: op.Object, Known: true, List: base})
				}
			}
			to.Ops = append(to.Ops, lists.Op{Kind: lists.Append, Key: op.Object, Element: newElement(tx.ID, appended)})
			appended++
			i++
			continue
		}
		width := 1
		if a.ranges {
			width = rangeOf(tx.Ops[i:])
		}
		read := lists.Op{Kind: lists.Read, Key: op.Object, Known: op.Observed}
		if a.ranges {
			read.Kind, read.High = lists.Range, op.Object+uint64(width)-1
		}
		first := len(a.rows)
		for k := range width {
			op := &tx.Ops[i+k]
			list := a.list(op, &elements)
			if read.List = list; a.ranges && len(list) > 0 {
				a.rows = append(a.rows, lists.Row{Key: op.Object, List: list})
			}
		}
		if a.ranges {
			read.List, read.Rows = nil, a.rows[first:len(a.rows):len(a.rows)]
		}
		to.Ops = append(to.Ops, read)
		i += width
	}
	return to
}

// list takes what an operation read from the elements that are left.
func (*adapter) list(op *history.Op, left *[]uint64) []uint64 {
	if op.State == history.Broken {
		return garbage
	}
	n := min(max(int(op.Value), 0), len(*left))
	list := (*left)[:n]
	*left = (*left)[n:]
	return list
}

// endRows are the lists of the end state, whose rows come list by list.
// Those of runs whose recordings are not given are left out.
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
