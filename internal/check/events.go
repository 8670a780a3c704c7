package check

import (
	"context"
	"fmt"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// EventsInput is all that the checks of a log of events look at. An append is a
// transaction with one operation: its account is the stream, its version, where it was
// observed, the place behind which its events stand. A leg of the end state is an
// entry: its account is the stream, its version the place, from 1, its amount the
// length in bytes, or 0 if it is not whole; legs come in the order of streams and
// places. An account is a stream, its version the place at which it ends.
type EventsInput struct {
	Expect  isolation.Level                          // the claim that the verdict is about
	Streams uint64                                   // that the load made
	Name    func(stream uint64) string               // a stream as people know it
	Batch   func(id history.ID) uint32               // events of an append of a run whose history is given
	Length  func(id history.ID, member uint32) int64 // bytes of one of them
	History []Source                                 // of distinct runs; none: the checks that need one are unknown
	End     EndState                                 // nil: it was not downloaded
	Early   []uint64                                 // as in Input
	Tell    func(Violation)                          // as in Input
}

// The names of the checks of events beside durable, no-ghost and exactly-once.
const (
	EventsOrder      = "order"
	EventsContinuous = "continuous"
	EventsWhole      = "whole"
)

// AboutEvents says in one line what each check of events holds, in the order in which
// they are told.
func AboutEvents() [][2]string {
	return [][2]string{
		{Durable, "every acknowledged event was read back, whole"},
		{NoGhost, "nothing aborted is in the log, and nothing there was never sent"},
		{ExactlyOnce, "no event is in the log twice"},
		{EventsWhole, "every entry is byte for byte what its writer made, and every batch is there as a whole or not at all"},
		{EventsOrder, "batches stand together, where their writers were told, and in the order in which they were acknowledged"},
		{EventsContinuous, "no stream has a hole before its end"},
	}
}

// Events makes all checks of a log of events. It takes time linear in the history and
// the log, and memory linear in the history. An error in reading either makes unknown
// what could not be decided without it. The only error that Events returns wraps the
// cause for which the context ended.
func Events(ctx context.Context, in EventsInput) ([]Result, error) {
	e := newEvents(ctx, in, 0)
	results := e.results()
	if !e.watch.ask() && e.early != 0 {
		in.End = nil
		e = newEvents(ctx, in, e.early)
		results = e.results()
	}
	if e.watch.ask() {
		return nil, fmt.Errorf("check the history: %w", e.watch.err)
	}
	return results, nil
}

// events is the material of the checks. What it has in common with those of the bank
// is there: the table of transactions, the watch, the damage.
type events struct {
	*bank
	in     EventsInput
	places []place // of the transactions, by their number

	commits, unknown, applied int // acknowledged appends; those of unknown outcome, and how many of them are there
	entries, voids            uint64
	last                      map[uint64]uint64 // the last place of each stream in the log
	odd                       map[uint32]map[uint32]bool
	stream                    streamWalk

	lost, partly, broken         finding // durable
	ghosts, closed, never        finding // no-ghost
	twice                        finding // exactly-once
	strange, lengths, torn       finding // whole
	elsewhere, apart, client, rt finding // order
	holes, ends, absent, shared  finding // continuous
}

// place is where an append stands in the log.
type place struct {
	stream uint64
	told   uint64 // where its first event stands by what its client saw; 0: it saw nothing
	next   uint32 // events 0 … next-1 are there
	broken bool   // one of them is not whole
}

func newEvents(ctx context.Context, in EventsInput, early uint64) *events {
	b := &bank{in: Input{History: in.History, End: in.End, Early: in.Early, Tell: in.Tell}, words: eventsWords, watch: watch{ctx: ctx}, early: early}
	return &events{bank: b, in: in, last: map[uint64]uint64{}, odd: map[uint32]map[uint32]bool{}}
}

// results makes the checks; they are worth nothing once the watch has ended.
func (e *events) results() []Result {
	problem := e.readAll()
	if e.watch.ask() || e.in.End != nil && e.early != 0 {
		return nil
	}
	e.damage = problem
	results := []Result{e.durable(), e.noGhost(), e.exactlyOnce(), e.whole(), e.order(), e.continuous()}
	e.settle(results, problem)
	locate(e.in.History, &e.watch, results)
	return results
}

func (e *events) readAll() error {
	for _, step := range []func() error{e.readAppends, e.readLog, e.judgeAppends, e.readEnds} {
		if err := step(); err != nil {
			return err
		}
		if e.early != 0 && e.in.End != nil || e.watch.ask() {
			return nil
		}
	}
	return nil
}

func (e *events) readAppends() error {
	for number, source := range e.in.History {
		e.txns.runs = append(e.txns.runs, source.Header().Run)
		for rec, err := range source.Transactions() {
			if err != nil {
				return fmt.Errorf("the history could not be read: %w", err)
			}
			if e.watch.ended() {
				return e.watch.err
			}
			if len(rec.Ops) != 1 || rec.Kind != history.Append {
				return fmt.Errorf("the history has transaction %v, which is a %v with %d operations and no append", rec.ID, rec.Kind, len(rec.Ops))
			}
			if err := e.txns.add(rec.Transaction, number); err != nil {
				return err
			}
			op := &rec.Ops[0]
			p := place{stream: op.Account}
			if op.Observed {
				p.told = op.Version + 1
			}
			e.places = append(e.places, p)
		}
	}
	return nil
}

// judgeAppends holds what every append came to against what is in the log of it.
func (e *events) judgeAppends() error {
	if e.in.End == nil {
		return nil
	}
	for i := range e.txns.list {
		if e.watch.ended() {
			return e.watch.err
		}
		e.judge(uint32(i))
	}
	return nil
}

func (e *events) judge(i uint32) {
	t, p := &e.txns.list[i], &e.places[i]
	there := p.next > 0 || e.odd[i] != nil
	if t.source == fromLedger {
		if there && e.txns.covers(t.id.Run()) {
			e.find(NoGhost, &e.never, i, "is in the log, and no client ever sent it")
		}
		return
	}
	batch := e.in.Batch(t.id)
	whole := p.next >= batch
	if there && t.flags&voided != 0 {
		e.find(NoGhost, &e.closed, i, "was closed by a look-up that found its place free, and was applied later")
	}
	switch t.outcome {
	case history.Committed:
		e.commits++
		switch {
		case !there:
			e.find(Durable, &e.lost, i, "was acknowledged and is not in the log")
		case !whole:
			e.find(Durable, &e.partly, i, "was acknowledged, and some of its events are not in the log")
		case p.broken:
			e.find(Durable, &e.broken, i, "was acknowledged, and an event of it is not whole")
		}
		return
	case history.Unknown:
		e.unknown++
		if there {
			e.applied++
		}
	default:
		if there && t.flags&voided == 0 {
			e.find(NoGhost, &e.ghosts, i, "was "+t.outcome.String()+", and is in the log")
		}
	}
	if there && !whole {
		e.find(EventsWhole, &e.torn, i, fmt.Sprintf("is in the log with only some of its %d events", batch))
	}
}

// readEnds holds the streams' ends against their entries.
func (e *events) readEnds() error {
	if e.in.End == nil {
		return nil
	}
	seen := map[uint64]bool{}
	for a, err := range e.in.End.Accounts() {
		if err != nil {
			return fmt.Errorf("the end state's streams could not be read: %w", err)
		}
		if e.watch.ended() {
			return e.watch.err
		}
		switch {
		case a.N >= e.in.Streams:
			e.note(EventsContinuous, &e.absent, a.Last, a.N, fmt.Sprintf("%s, which no load made, is there", e.in.Name(a.N)), "is the last in a stream that no load made")
		case seen[a.N]:
			e.note(EventsContinuous, &e.ends, a.Last, a.N, fmt.Sprintf("%s has two ends", e.in.Name(a.N)), "is the last of a stream that has two ends")
		case a.Version != e.last[a.N]:
			e.note(EventsContinuous, &e.ends, a.Last, a.N, fmt.Sprintf("%s ends at %d by its own account, and its last entry is at %d", e.in.Name(a.N), a.Version, e.last[a.N]),
				fmt.Sprintf("is named as the writer of place %d, the last of its stream, whose last entry is at %d", a.Version, e.last[a.N]))
		}
		seen[a.N] = true
	}
	for n := range e.in.Streams {
		if e.watch.ended() {
			return e.watch.err
		}
		if !seen[n] {
			e.note(EventsContinuous, &e.absent, 0, n, fmt.Sprintf("%s, which the load made, is gone", e.in.Name(n)), "was made by the load and is gone")
		}
	}
	return nil
}
