package logs

import (
	"cmp"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// readAcknowledged compares the positions at which appends were acknowledged. Two appends at one position, or
// in an order that contradicts real time, are a violation without the log. If there is a log, only appends
// that are missing in it are compared, because its entries show the others.
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
	furthest := uint32(check.None) // the previous append of the stream with the furthest end
	waiting := list[:0]            // appends at the current place, compared and not yet added
	for _, i := range list {
		if e.Watch.Ended() {
			return e.Watch.Err
		}
		p := &e.places[i]
		if s := &e.stream; !s.begun || p.stream != s.stream {
			*s = newStreamWalk(p.stream)
			furthest, waiting = check.None, waiting[:0]
		}
		if len(waiting) > 0 && e.places[waiting[0]].seen != p.seen {
			for _, w := range waiting {
				e.advance(w)
			}
			waiting = waiting[:0]
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
		e.compare(i, true)
		waiting = append(waiting, i)
	}
	return nil
}

// lost reports whether an acknowledged append is missing in the log.
func (e *checker) lost(i uint32) bool {
	return e.in.End != nil && e.places[i].next == 0 && e.odd[i] == nil
}

// lastOf returns the acknowledged position of an append's last event.
func (e *checker) lastOf(i uint32) uint64 {
	return e.places[i].seen + uint64(e.in.Batch(e.IDOf(i))) - 1
}
