// Package logs compares the entries of append-only streams with what was sent and acknowledged.
package logs

import (
	"context"
	"fmt"
	"runtime"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// Input is the input of the checks of a log. Objects are streams.
//
// An append is a transaction with one operation. Amount is the total length of its events in bytes. Version,
// if observed, is the position before its first event.
//
// A row of the end state is an entry. Version is its position from 1, Amount its length in bytes, and State
// shows whether it is complete. Rows are sorted by stream and position. An object's Version is the position
// of its last entry, and its Writer is the writer of that entry.
type Input struct {
	check.Input
	Words   check.Words
	Streams uint64                                   // number of streams of the load
	Batch   func(id history.ID) uint32               // number of events in an append of a given run
	Length  func(id history.ID, member uint32) int64 // length of one of them in bytes
}

// These constants name the checks of a log, in addition to durable, no-ghost and exactly-once.
const (
	Order      = "order"
	Continuous = "continuous"
	Whole      = "whole"
)

// Check runs all checks in time linear in the history and the log, and memory linear in the history. If
// either cannot be read completely, the checks that depend on the rest are unknown. Without an end state,
// nothing is valid, and Order is invalid if the acknowledged positions contradict each other. The only error
// that Check returns wraps the cause of the context's end.
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
	places []place // by number of the transaction

	commits, unknown, applied int // number of acknowledged appends, of unknown ones, and of unknown ones in the log
	entries, voids            uint64
	last                      map[uint64]lastEntry // by stream in the log
	odd                       map[uint32]map[uint32]bool
	stream                    streamWalk
	found                     [kinds]check.Finding
	together                  []bool // by history: it shares the common clock with another one
	doubt                     check.Doubt
	latest                    [kinds]history.ID // the last transaction of each kind that was passed to find
}

// place is the position of an append in the log.
type place struct {
	stream uint64
	seen   uint64 // position of the first event according to the client; 0: not seen
	next   uint32 // events 0 to next-1 were found
	broken bool   // one of them is damaged or has the wrong length

	lookedUp bool // a look-up determined the outcome
}

// lastEntry is the last entry of a stream with its writer.
type lastEntry struct {
	place  uint64
	writer history.ID
}

func newChecker(ctx context.Context, in Input, early uint64) *checker {
	ev := check.Evidence{Input: in.Input, Words: in.Words, Watch: check.Watch{Ctx: ctx}, Unended: early}
	return &checker{Evidence: ev, in: in, last: map[uint64]lastEntry{}, odd: map[uint32]map[uint32]bool{}, found: noFindings()}
}

// results returns the results of the checks. They are invalid if the watch has ended.
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
	if missing, found := e.Txns.Gap(e.Recorded); found {
		return fmt.Errorf("the history lacks transaction %v, and has later ones of its client: it was altered or "+
			"damaged: restore it from a copy", missing)
	}
	e.together = e.onOneClock()
	return nil
}

// onOneClock reports for each history whether it is on the first clock that several histories share. It
// returns nil if there is none.
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

// addAppend records append i. Several workers may call it concurrently.
func (e *checker) addAppend(i uint32, tx *history.Transaction) error {
	if len(tx.Ops) != 1 || tx.Kind.ReadOnly() {
		return fmt.Errorf("the history has transaction %v, which has %d operations and is no %s",
			tx.ID, len(tx.Ops), e.Words.One)
	}
	op := &tx.Ops[0]
	bytes := int64(0)
	for member := range e.in.Batch(tx.ID) {
		bytes += e.in.Length(tx.ID, member)
	}
	wrong := ""
	switch {
	case !op.Write:
		wrong = "appended nothing"
	case op.Amount != bytes:
		wrong = fmt.Sprintf("appended %d bytes, and its events have %d", op.Amount, bytes)
	case tx.Outcome == history.Committed && !op.Observed:
		wrong = "was acknowledged, and not at which place"
	}
	if wrong != "" {
		return fmt.Errorf("the history contradicts itself: transaction %v %s: it was altered or damaged: restore it "+
			"from a copy", tx.ID, wrong)
	}
	e.places[i] = place{stream: op.Object, lookedUp: tx.LookedUp}
	if op.Observed {
		e.places[i].seen = op.Version + 1
	}
	return nil
}

// judgeAppends compares the outcome of every append with its entries in the log.
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
			e.find(unsent, i, fact.LogUnsent{Append: e.member(i)})
		}
		return
	}
	batch := e.in.Batch(t.ID)
	whole := p.next >= batch
	tombstone := t.Flags&check.Tombstone != 0
	switch {
	case there && tombstone:
		e.find(closed, i, fact.LogClosed{Append: e.member(i)})
	case tombstone && !p.lookedUp && t.Outcome != history.Unknown: // no look-up wrote it
		e.find(unsent, i, fact.LogUnsent{Append: e.member(i), Tombstone: true})
	}
	if there && !whole {
		e.find(torn, i, fact.LogTorn{
			Append: e.member(i), Stream: e.Object(p.stream), Events: int(batch), Missing: e.missing(i, batch),
		})
	}
	switch t.Outcome {
	case history.Committed:
		e.commits++
		switch {
		case !there:
			e.find(lost, i, fact.LogLost{Append: e.member(i), Stream: e.Object(p.stream), Events: int(batch)})
		case !whole:
			e.find(partly, i, fact.LogLostPart{
				Append: e.member(i), Stream: e.Object(p.stream), Events: int(batch), Missing: e.missing(i, batch),
			})
		case p.broken:
			e.find(spoilt, i, fact.LogSpoilt{Append: e.member(i), Stream: e.Object(p.stream)})
		}
	case history.Unknown:
		e.unknown++
		if there {
			e.applied++
		}
	default:
		if there && !tombstone {
			e.find(ghosts, i, fact.LogRefused{Append: e.member(i), Outcome: t.Outcome})
		}
	}
}

// missing returns the number of an append's events that are missing in the log.
func (e *checker) missing(i uint32, batch uint32) (n int) {
	for member := e.places[i].next; member < batch; member++ {
		if !e.odd[i][member] {
			n++
		}
	}
	return n
}

// readEnds compares the ends of the streams with their entries.
func (e *checker) readEnds() (problem error) {
	if e.in.End == nil {
		return nil
	}
	seen := map[uint64]bool{}
	for a := range check.Each(&e.Watch, "the end state's streams", e.in.End.Objects(), &problem) {
		switch last := e.last[a.N]; {
		case a.N >= e.in.Streams:
			e.note(foreignStreams, a.Writer, a.N, fact.LogForeignStream{Stream: e.Object(a.N)})
		case seen[a.N]:
			e.note(twoEnds, a.Writer, a.N, fact.LogTwoEnds{Stream: e.Object(a.N)})
		case a.Version != last.place:
			e.note(ends, a.Writer, a.N, fact.LogEnd{Stream: e.Object(a.N), End: a.Version, Last: last.place})
		case a.Writer != last.writer:
			e.note(endWriters, a.Writer, a.N, fact.LogEndWriter{
				Stream: e.Object(a.N), Place: last.place, Named: fact.Member{ID: a.Writer}, Writer: fact.Member{ID: last.writer},
			})
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
			e.note(lostStreams, 0, n, fact.LogLostStream{Stream: e.Object(n)})
		}
	}
	return nil
}
