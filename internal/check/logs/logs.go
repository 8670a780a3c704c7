// Package logs compares the entries of append-only streams with what was sent and acknowledged.
package logs

import (
	"context"
	"fmt"
	"runtime"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// Input is all that the checks of a log of events look at. Objects are streams. An append
// is a transaction with one operation, whose Version, where it was observed, is the place
// behind which its events stand. A row of the end state is an entry: its Version is the
// place, from 1, its Amount the length in bytes, its State whether it is whole. Rows come
// in the order of streams and places. An object's Version is the place at which it ends.
type Input struct {
	check.Input
	Words   check.Words
	Streams uint64                                   // that the load made
	Batch   func(id history.ID) uint32               // events of an append of a run whose history is given
	Length  func(id history.ID, member uint32) int64 // bytes of one of them
}

// The names of the checks of a log beside durable, no-ghost and exactly-once.
const (
	Order      = "order"
	Continuous = "continuous"
	Whole      = "whole"
)

// Check makes all checks, in time linear in the history and the log, and memory linear in
// the history. An error in reading either makes unknown what cannot be decided without it.
// Without an end state nothing is valid, and Order is invalid where what was acknowledged
// contradicts itself. The only error that Check returns wraps the cause for which the context
// ended.
func Check(ctx context.Context, in Input) ([]check.Result, error) {
	e := newChecker(ctx, in, 0)
	results := e.results()
	if !e.Watch.Cancelled() && e.Unended != 0 {
		in.End, in.Meter = nil, nil
		e = newChecker(ctx, in, e.Unended)
		results = e.results()
	}
	if e.Watch.Cancelled() {
		return nil, fmt.Errorf("check the history: %w", e.Watch.Err)
	}
	return results, nil
}

type checker struct {
	check.Evidence
	in     Input
	places []place // of the transactions, by their number

	commits, unknown, applied int // acknowledged appends; those of unknown outcome, and how many of them are there
	entries, voids            uint64
	last                      map[uint64]uint64 // the last place of each stream in the log
	odd                       map[uint32]map[uint32]bool
	stream                    streamWalk
	found                     [kinds]check.Findings
	together                  []bool // of each history: it is on one clock with another, as all of these are
	doubt                     check.Doubt
	latest                    [kinds]history.ID // the last transaction of each that find was given
}

// place is where an append stands in the log.
type place struct {
	stream uint64
	seen   uint64 // where its first event stands by what its client saw; 0: it saw nothing
	next   uint32 // events 0 … next-1 are there
	broken bool   // one of them is not whole
}

func newChecker(ctx context.Context, in Input, early uint64) *checker {
	ev := check.Evidence{Input: in.Input, Words: in.Words, Watch: check.Watch{Ctx: ctx}, Unended: early}
	return &checker{Evidence: ev, in: in, last: map[uint64]uint64{}, odd: map[uint32]map[uint32]bool{}, found: noFindings(in.Words.One)}
}

// results makes the checks; they are worth nothing once the watch has ended.
func (e *checker) results() []check.Result {
	problem := e.readAll()
	if e.Watch.Cancelled() || e.in.End != nil && e.Unended != 0 {
		return nil
	}
	e.Damage = problem
	e.in.SetCommitted(e.Txns.Committed)
	if e.in.End != nil && problem == nil {
		e.in.SetResolved(check.Resolved{Unknown: uint64(e.unknown), Applied: uint64(e.applied), By: "log"})
	}
	results := e.decide()
	e.Settle(results, problem)
	check.Locate(e.in.History, &e.Watch, results)
	return results
}

func (e *checker) readAll() error {
	for _, step := range []func() error{e.readAppends, e.readLog, e.judgeAppends, e.readAcknowledged, e.readEnds} {
		if err := step(); err != nil {
			return err
		}
		if e.Unended != 0 && e.in.End != nil || e.Watch.Cancelled() {
			return nil
		}
	}
	return nil
}

func (e *checker) readAppends() (problem error) {
	workers := runtime.GOMAXPROCS(0)
	measure := e.in.Meter.Workers(workers)
	defer func() { e.in.Meter.End(problem) }()
	add := func(worker int, i uint32, tx *history.Transaction) error {
		if measure[worker] != nil {
			measure[worker](tx)
		}
		return e.addAppend(i, tx)
	}
	for number, source := range e.in.History {
		e.AddSource(number, source)
		grow := func(n int) { e.places = check.Lengthen(e.places, n) }
		if err := e.Txns.AddAll(&e.Watch, source, number, workers, grow, add); err != nil {
			return err
		}
	}
	e.together = e.onOneClock()
	return nil
}

// onOneClock says of each history that it is on the first clock that several are on; nil is none.
func (e *checker) onOneClock() []bool {
	for i, c := range e.Clocks {
		together, n := make([]bool, len(e.Clocks)), 0
		for j := i; j < len(e.Clocks); j++ {
			if together[j] = e.Clocks[j].ID == c.ID; together[j] {
				n++
			}
		}
		if n > 1 {
			return together
		}
	}
	return nil
}

// addAppend notes append i; several workers may do so at once.
func (e *checker) addAppend(i uint32, tx *history.Transaction) error {
	if len(tx.Ops) != 1 || tx.Kind.ReadOnly() {
		return fmt.Errorf("the history has transaction %v, which has %d operations and is no %s", tx.ID, len(tx.Ops), e.Words.One)
	}
	op := &tx.Ops[0]
	e.places[i] = place{stream: op.Object}
	if op.Observed {
		e.places[i].seen = op.Version + 1
	}
	return nil
}

// judgeAppends compares what every append came to with what is in the log of it.
func (e *checker) judgeAppends() error {
	if e.in.End == nil {
		return nil
	}
	for i := range e.Txns.List {
		if e.Watch.Ended() {
			return e.Watch.Err
		}
		e.judge(uint32(i))
	}
	return nil
}

func (e *checker) judge(i uint32) {
	t, p := &e.Txns.List[i], &e.places[i]
	there := p.next > 0 || e.odd[i] != nil
	if t.Source == check.FromLedger {
		if there && e.Txns.Covers(t.ID.Run()) {
			e.find(never, i, "is in the log, and no client ever sent it")
		}
		return
	}
	batch := e.in.Batch(t.ID)
	whole := p.next >= batch
	if there && t.Flags&check.Tombstone != 0 {
		e.find(closed, i, "was closed by a look-up that found its place free, and was applied later")
	}
	switch t.Outcome {
	case history.Committed:
		e.commits++
		switch {
		case !there:
			e.find(lost, i, "was acknowledged and is not in the log")
		case !whole:
			e.find(partly, i, "was acknowledged, and some of its events are not in the log")
		case p.broken:
			e.find(broken, i, "was acknowledged, and an event of it is not whole")
		}
		return
	case history.Unknown:
		e.unknown++
		if there {
			e.applied++
		}
	default:
		if there && t.Flags&check.Tombstone == 0 {
			e.find(ghosts, i, "was %v, and is in the log", t.Outcome)
		}
	}
	if there && !whole {
		e.find(torn, i, "is in the log with only some of its %d events", batch)
	}
}

// readEnds compares the streams' ends with their entries.
func (e *checker) readEnds() (problem error) {
	if e.in.End == nil {
		return nil
	}
	seen := map[uint64]bool{}
	for a := range check.Each(&e.Watch, "the end state's streams", e.in.End.Objects(), &problem) {
		switch {
		case a.N >= e.in.Streams:
			e.note(absent, a.Writer, a.N, fmt.Sprintf("%s, which no load made, is there", e.in.Name(a.N)), "is the last in a stream that no load made")
		case seen[a.N]:
			e.note(ends, a.Writer, a.N, fmt.Sprintf("%s has two ends", e.in.Name(a.N)), "is the last of a stream that has two ends")
		case a.Version != e.last[a.N]:
			e.note(ends, a.Writer, a.N, fmt.Sprintf("%s ends at %d by its own account, and its last entry is at %d", e.in.Name(a.N), a.Version, e.last[a.N]),
				fmt.Sprintf("is named as the writer of place %d, the last of its stream, whose last entry is at %d", a.Version, e.last[a.N]))
		}
		seen[a.N] = true
	}
	if problem != nil {
		return problem
	}
	for n := range e.in.Streams {
		if e.Watch.Ended() {
			return e.Watch.Err
		}
		if !seen[n] {
			e.note(absent, 0, n, fmt.Sprintf("%s, which the load made, is gone", e.in.Name(n)), "was made by the load and is gone")
		}
	}
	return nil
}
