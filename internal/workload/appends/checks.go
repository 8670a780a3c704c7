package appends

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/lists"
	"stroppy/internal/history"
	"stroppy/internal/workload/recording"
)

func checks(ctx context.Context, recorded recording.Input) ([]check.Result, error) {
	kept, err := storages(recorded.History)
	if err != nil {
		return nil, err
	}
	clients := &sequences{}
	if recorded.Part || !complete(recorded.History) {
		clients = nil // what is missing may have been recorded elsewhere, or not at all
	}
	in := lists.Input{
		Expect: recorded.Expect, Transactions: transactions(recorded.Input, true, clients), Complete: complete(recorded.History),
		RealTime:    len(recorded.History) == 1,
		Storage:     func(key uint64) lists.Storage { return kept[runOf(key)] },
		List:        listName,
		Element:     elementName,
		Appended:    func(id history.ID, number uint32) uint64 { return newElement(id, uint64(number)) },
		OnViolation: recorded.OnViolation,
	}
	if !recorded.Part {
		in.Size = check.CountTransactions(recorded.History)
		if percent := garbagePercent(in.Size); percent < defaultGarbage {
			defer debug.SetGCPercent(debug.SetGCPercent(percent))
		}
	}
	if clients != nil {
		in.Damage = func() fact.Fact { return clients.wrong }
	}
	if errors, ok := workerClocks(recorded.History); ok {
		in.RealTime, in.Errors = true, errors
	}
	switch {
	case recorded.End == nil:
	case len(recorded.Early) > 0:
		in.NoEnd = fact.NoEnd{Run: recorded.Early[0]}
	default:
		if err := verifyEnd(ctx, recorded.End, kept); err != nil {
			in.NoEnd = fact.Unreadable{Problem: err.Error()}
			break
		}
		in.End = endRows(recorded.End, kept)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	report, err := lists.Check(ctx, in)
	if err != nil {
		return nil, err
	}
	if in.End != nil {
		unexpected(report.Results, recorded.End.Unexpected())
	}
	return report.Results, nil
}

const (
	// memoryTarget is the memory in bytes that a check may use if less would do. It is met up to ten million
	// transactions.
	memoryTarget = 900 << 20

	// liveBytes is the memory in bytes that a check needs for each transaction (measured: make bench, check-memory).
	liveBytes = 88

	// defaultGarbage is Go's default of GOGC in percent, and sparseGarbage the least value in use here. Nearly all
	// allocations of a check stay, so that collecting often finds little.
	defaultGarbage, sparseGarbage = 100, 10
)

// garbagePercent returns the percentage of the garbage collector (GOGC) for a check of so many transactions: as much garbage
// as the memory target has room for.
func garbagePercent(transactions int) int {
	live := transactions * liveBytes
	if live == 0 {
		return defaultGarbage
	}
	return min(max((memoryTarget-live)*100/live, sparseGarbage), defaultGarbage)
}

// workerClocks returns the errors of the clocks of one run's workers, each of which has a source. ok is false if
// there are none, or if they cannot be compared.
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

// storages returns how the lists of each run are kept.
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
	found := check.Finding{Check: check.NoGhost}
	for _, text := range texts {
		found.Add(fact.ListUnexpected{Found: text}, "")
	}
	for i := range results {
		if r := &results[i]; r.Name == check.NoGhost {
			r.Status, r.Why, r.Findings = check.Invalid, nil, append(r.Findings, found)
		}
	}
}

// elementName returns the name of an element in reports: the transaction that appended it, and the number of the
// append there.
func elementName(object, element uint64) string {
	if element == 0 {
		return "(text that no transaction writes)"
	}
	return fmt.Sprintf("%v.%d", writer(object, element), numberOf(element))
}

func complete(sources []check.Source) bool {
	for _, s := range sources {
		if !s.Complete() {
			return false
		}
	}
	return true
}

// transactions yields the transactions of recordings in the checker's form, with or without the reads that serve an
// append. It adds their ids to clients, if clients is not nil.
func transactions(in check.Input, bases bool, clients *sequences) iter.Seq2[*lists.Transaction, error] {
	return func(yield func(*lists.Transaction, error) bool) {
		committed := uint64(0)
		if clients != nil {
			*clients = sequences{}
		}
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
				if clients != nil {
					clients.add(record.ID)
				}
				if !yield(a.transaction(record.Transaction), nil) {
					return
				}
			}
		}
	}
}

// sequences holds the sequence numbers of clients, which follow each other from 1.
type sequences struct {
	last   map[history.ID]uint64 // by the client's first id
	client history.ID            // the client that was looked up last
	at     uint64                // and its last number
	wrong  fact.Fact             // the first transaction that is not where it should be; nil: none
}

func (s *sequences) add(id history.ID) {
	client := id - history.ID(id.Sequence())
	if s.last == nil {
		s.last = map[history.ID]uint64{}
	}
	if client != s.client {
		s.last[s.client] = s.at
		s.client, s.at = client, s.last[client]
	}
	switch next := s.at + 1; {
	case s.wrong != nil:
	case id.Sequence() > next:
		s.wrong = fact.ListHistoryLacks{Transaction: client + history.ID(next)}
	case id.Sequence() < next:
		s.wrong = fact.ListHistoryRepeats{Transaction: id}
	}
	s.at = max(s.at, id.Sequence())
}

// adapter turns recorded transactions into the checker's. Its buffers are used again.
type adapter struct {
	ranges bool
	bases  bool // what was read in order to append is a read
	clock  uint32
	tx     lists.Transaction
	rows   []lists.Row
}

// garbage stands for a read that returned elements that no transaction writes.
var garbage = []uint64{0}

func (a *adapter) transaction(tx *history.Transaction) *lists.Transaction {
	to := &a.tx
	*to = lists.Transaction{
		ID: tx.ID, Client: tx.ID.Run()<<history.ClientBits | tx.ID.Client(), Outcome: tx.Outcome, Begin: tx.Try, End: tx.End,
		Clock: a.clock, Retried: tx.Attempts > 1, Ops: to.Ops[:0],
	}
	if tx.Outcome != history.Committed && tx.Outcome != history.Unknown {
		to.Begin = tx.Sent // if it was applied, then after it was first sent
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

// list returns the elements that an operation read, and removes them from left.
func (*adapter) list(op *history.Op, left *[]uint64) []uint64 {
	if op.State == history.Broken {
		return garbage
	}
	n := min(max(int(op.Value), 0), len(*left))
	list := (*left)[:n]
	*left = (*left)[n:]
	return list
}
