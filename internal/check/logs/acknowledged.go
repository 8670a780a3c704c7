package logs

import (
	"cmp"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// readAcknowledged compares the places at which appends were acknowledged. No log agrees with
// two of them that are at one place, or in another order than that of time, so that they show
// a violation without the log. With a log they are looked at where it lacks some of them and
// would not show this by its entries.
func (e *checker) readAcknowledged() error {
	lacks := e.found[lost].Count+e.found[partly].Count+e.found[shared].Count > 0
	if e.in.End != nil && (!lacks || e.shows(Order)) {
		return nil
	}
	var list []uint32
	for i := range e.Txns.List {
		if t := &e.Txns.List[i]; t.Outcome == history.Committed && t.Source != check.FromLedger && e.places[i].seen != 0 {
			list = append(list, uint32(i))
		}
	}
	slices.SortFunc(list, func(i, j uint32) int {
		a, b := &e.places[i], &e.places[j]
		return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.seen, b.seen), cmp.Compare(i, j))
	})
	e.stream = streamWalk{}
	furthest := uint32(check.None) // of those before it in the stream, the one that reaches furthest
	for _, i := range list {
		if e.Watch.Ended() {
			return e.Watch.Err
		}
		p := &e.places[i]
		if s := &e.stream; !s.begun || p.stream != s.stream {
			*s = newStreamWalk(p.stream)
			furthest = check.None
		}
		if furthest != check.None && p.seen <= e.lastOf(furthest) {
			counted := e.find(overlapping, i, fact.LogOverlap{
				Append: e.member(i), First: p.seen, Last: e.lastOf(i), Stream: e.Object(p.stream),
				Other: e.member(furthest), OtherFirst: e.places[furthest].seen, OtherLast: e.lastOf(furthest),
			})
			if counted && (e.lost(i) || e.lost(furthest)) {
				e.found[overlapping].OfLost++
			}
		}
		if furthest == check.None || e.lastOf(i) > e.lastOf(furthest) {
			furthest = i
		}
		e.follow(i, true)
	}
	return nil
}

// lost reports whether an acknowledged append is not in the log.
func (e *checker) lost(i uint32) bool {
	return e.in.End != nil && e.places[i].next == 0 && e.odd[i] == nil
}

// lastOf is the acknowledged place of the last event of an append.
func (e *checker) lastOf(i uint32) uint64 {
	return e.places[i].seen + uint64(e.in.Batch(e.IDOf(i))) - 1
}
