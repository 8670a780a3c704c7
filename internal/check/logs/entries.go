package logs

import (
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// streamWalk is the position in the log, with what was seen of the current stream.
type streamWalk struct {
	begun    bool
	stream   uint64
	place    uint64
	previous history.Row
	latest   map[uint64]*uint64   // by run and client: the latest sequence number of an acknowledged append
	tries    map[uint16]*lateness // by history

	surely, perhaps check.Latest // earliest and latest possible beginnings over all histories on one clock

	client   uint64 // the client of the last append
	source   uint16
	sequence *uint64   // the entry of that client in latest; nil at first
	late     *lateness // the entry of that history in tries
}

func newStreamWalk(stream uint64) streamWalk {
	return streamWalk{begun: true, stream: stream, latest: map[uint64]*uint64{}, tries: map[uint16]*lateness{}}
}

// lateness is the latest beginning among the acknowledged appends so far.
type lateness struct {
	try int64 // ns
	by  uint32
}

// readLog reads the entries of all streams in order.
func (e *checker) readLog() (problem error) {
	if e.in.End == nil {
		return nil
	}
	for leg := range check.Each(&e.Watch, "the end state's log", e.in.End.Rows(), &problem) {
		if !written(&leg) {
			return fmt.Errorf("the end state's log has an entry at place %d of %s that a download cannot contain: it is damaged",
				leg.Version, e.in.Name(leg.Object))
		}
		if err := e.step(leg); err != nil {
			return err
		}
		e.entry(leg)
		e.stream.previous = leg
	}
	if problem != nil {
		return problem
	}
	e.leave()
	for _, row := range e.in.End.Unexpected() {
		what := fact.LogUnexpected{Text: row}
		e.found[unexpected].Add(what, "")
		e.Show(Whole, "", 0, "", what)
	}
	e.findLate()
	return nil
}

// written reports whether a download can contain such a row: an event, or an empty tombstone, at a position
// from 1.
func written(leg *history.Row) bool {
	switch {
	case leg.Version == 0:
		return false
	case leg.State == history.Broken && leg.Mark <= history.Tombstone:
		return true
	case leg.Mark == history.Tombstone:
		return leg.State == 0 && leg.Amount == 0
	}
	return leg.Mark == 0 && leg.State == history.Whole
}

// leave records the end of the stream.
func (e *checker) leave() {
	if s := &e.stream; s.begun {
		e.last[s.stream] = lastEntry{s.place, s.previous.Transaction}
	}
}

// step moves to the position of an entry and looks for holes before it.
func (e *checker) step(leg history.Row) error {
	s := &e.stream
	if !s.begun || leg.Object != s.stream {
		if s.begun && leg.Object < s.stream {
			return fmt.Errorf("the end state's log has %s after %s: it is damaged", e.in.Name(leg.Object), e.in.Name(s.stream))
		}
		e.leave()
		*s = newStreamWalk(leg.Object)
		if leg.Object >= e.in.Streams {
			e.note(foreignStreams, leg.Transaction, leg.Object, fact.LogForeignStream{
				Stream: e.Object(leg.Object), Entries: true,
			})
		}
	}
	if leg.Version == s.place+1 {
		s.place = leg.Version
		e.entries++
		return nil
	}
	writer := fact.Member{ID: leg.Transaction}
	switch {
	case leg.Version < s.place:
		return fmt.Errorf("the end state's log has place %d of %s after place %d: it is damaged",
			leg.Version, e.in.Name(leg.Object), s.place)
	case leg.Version == s.place:
		e.note(shared, leg.Transaction, leg.Object, fact.LogShared{
			Stream: e.Object(leg.Object), Place: leg.Version, Append: writer,
		})
	default:
		e.note(holes, leg.Transaction, leg.Object, fact.LogHole{
			Stream: e.Object(leg.Object), First: s.place + 1, Last: leg.Version - 1, Before: writer,
		})
	}
	s.place = leg.Version
	e.entries++
	return nil
}

// entry assigns an entry to its append.
func (e *checker) entry(leg history.Row) {
	i, ok := e.Txns.Find(leg.Transaction)
	if !ok {
		i = e.Txns.AddFromLedger(leg.Transaction)
		e.places = append(e.places, place{stream: leg.Object})
	}
	t, p := &e.Txns.List[i], &e.places[i]
	if leg.State == history.Broken {
		e.find(damaged, i, fact.LogDamaged{
			Append: e.member(i), Event: leg.Number, Tombstone: leg.Mark == history.Tombstone, Stream: e.Object(leg.Object), Place: leg.Version,
		})
	}
	if leg.Mark == history.Tombstone {
		e.tombstone(i, leg)
		return
	}
	odd := e.oddOf(i)
	begins := p.next == 0 && odd == nil
	switch {
	case leg.Number < p.next || odd[leg.Number]:
		e.find(twice, i, fact.LogTwice{Append: e.member(i), Event: leg.Number})
		return
	case leg.Number > p.next:
		if odd == nil {
			e.odd[i] = map[uint32]bool{}
		}
		e.odd[i][leg.Number] = true
		e.find(apart, i, e.apartAt(i, leg, p.next))
	default:
		before := e.stream.previous
		if p.next > 0 && (before.Transaction != leg.Transaction || before.Number != leg.Number-1 || before.Mark == history.Tombstone || before.Object != leg.Object || before.Version != leg.Version-1) {
			e.find(apart, i, e.apartAt(i, leg, leg.Number-1))
		}
		for p.next++; odd[p.next]; {
			p.next++
		}
	}
	if leg.State == history.Broken {
		p.broken = true
	}
	if t.Source == check.FromLedger {
		return
	}
	e.checkEntry(i, leg)
	if begins && t.Outcome == history.Committed {
		e.follow(i, false)
	}
}

// apartAt returns the fact that the previous event is not directly before an event of append i.
func (e *checker) apartAt(i uint32, leg history.Row, before uint32) fact.Fact {
	return fact.LogApart{Append: e.member(i), Event: leg.Number, Stream: e.Object(leg.Object), Place: leg.Version, Before: before}
}

// tombstone assigns a tombstone to its append.
func (e *checker) tombstone(i uint32, leg history.Row) {
	t, p := &e.Txns.List[i], &e.places[i]
	e.voids++
	switch {
	case t.Flags&check.Tombstone != 0:
		e.find(twice, i, fact.LogTwice{Append: e.member(i), Tombstone: true})
	case t.Source != check.FromLedger && leg.Object != p.stream:
		e.find(otherStream, i, fact.LogOtherStream{
			Append: e.member(i), Tombstone: true, Sent: e.Object(p.stream), Found: e.Object(leg.Object),
		})
	case t.Source == check.FromLedger && e.Txns.Covers(leg.Transaction.Run()):
		e.find(unsent, i, fact.LogUnsent{Append: e.member(i), Tombstone: true})
	}
	t.Flags |= check.Tombstone
}

// oddOf returns the events of an append that precede an event which should come first.
func (e *checker) oddOf(i uint32) map[uint32]bool {
	if len(e.odd) == 0 {
		return nil
	}
	return e.odd[i]
}

// checkEntry compares an entry with what its client sent and saw.
func (e *checker) checkEntry(i uint32, leg history.Row) {
	t, p := &e.Txns.List[i], &e.places[i]
	if batch := e.in.Batch(t.ID); leg.Number >= batch {
		e.find(extra, i, fact.LogExtraEvent{Append: e.member(i), Event: leg.Number, Events: int(batch)})
		return
	}
	if want := e.in.Length(t.ID, leg.Number); leg.State != history.Broken && leg.Amount != want {
		p.broken = true
		e.find(lengths, i, fact.LogLength{Append: e.member(i), Event: leg.Number, Found: leg.Amount, Sent: want})
	}
	switch {
	case leg.Object != p.stream:
		e.find(otherStream, i, fact.LogOtherStream{
			Append: e.member(i), Event: leg.Number, Sent: e.Object(p.stream), Found: e.Object(leg.Object),
		})
	case p.seen != 0 && leg.Version != p.seen+uint64(leg.Number):
		e.find(otherPlace, i, fact.LogOtherPlace{
			Append: e.member(i), Event: leg.Number, Stream: e.Object(leg.Object), Acknowledged: p.seen + uint64(leg.Number), Found: leg.Version,
		})
	}
}

// follow checks that an acknowledged append comes after all appends of its client or its history that were
// acknowledged before it began. It uses the acknowledged positions or the log.
func (e *checker) follow(i uint32, acknowledged bool) {
	e.compare(i, acknowledged)
	e.advance(i)
}

// compare compares an acknowledged append with the ones at lower places.
func (e *checker) compare(i uint32, acknowledged bool) {
	t, s := &e.Txns.List[i], &e.stream
	client := uint64(t.ID) >> history.SequenceBits
	s.turn(client, t.Source)
	if later := *s.sequence; t.ID.Sequence() < later {
		e.find(behindOwn, i, fact.LogBehindOwn{
			Append: e.member(i), Later: fact.Member{ID: history.ID(client<<history.SequenceBits | later)},
			Stream: e.Object(s.stream), Acknowledged: acknowledged,
		})
	}
	if t.End < s.late.try {
		e.findBehind(i, s.late.by, acknowledged)
	}
	if e.together != nil && e.together[t.Source] {
		e.compareOthers(i, acknowledged)
	}
}

// advance adds an acknowledged append to what the appends at higher places are compared with.
func (e *checker) advance(i uint32) {
	t, s := &e.Txns.List[i], &e.stream
	s.turn(uint64(t.ID)>>history.SequenceBits, t.Source)
	*s.sequence = max(*s.sequence, t.ID.Sequence())
	if s.late.by == check.None || t.Try > s.late.try {
		*s.late = lateness{t.Try, i}
	}
	if e.together != nil && e.together[t.Source] {
		clock, group := e.Clocks[t.Source], uint32(t.Source)
		s.surely.Add(t.Try+clock.From, group)
		s.perhaps.Add(t.Try+clock.To, group)
	}
}

// findBehind records that an append was acknowledged before a later one began, but is placed after it.
func (e *checker) findBehind(i, later uint32, acknowledged bool) {
	e.find(behindLater, i, fact.LogBehindLater{
		Append: e.member(i), Later: e.member(later), Stream: e.Object(e.stream.stream), Acknowledged: acknowledged,
	})
}

// compareOthers is like compare, for appends of other histories on the same clock, as far as their times are
// known.
func (e *checker) compareOthers(i uint32, acknowledged bool) {
	t, s := &e.Txns.List[i], &e.stream
	clock, group := e.Clocks[t.Source], uint32(t.Source)
	if at, ok := s.surely.Beside(group); ok && at > t.End+clock.To {
		for source, other := range s.tries {
			if source != t.Source && e.together[source] && other.by != check.None && other.try+e.Clocks[source].From == at {
				e.findBehind(i, other.by, acknowledged)
				break
			}
		}
	} else if at, ok := s.perhaps.Beside(group); ok && at > t.End+clock.From {
		e.doubt.Note(at - t.End - clock.From)
	}
}

// turn sets sequence and late to the values of a client and a history. Usually these are the ones of the previous
// append.
func (s *streamWalk) turn(client uint64, source uint16) {
	if s.sequence == nil || s.client != client {
		if s.client, s.sequence = client, s.latest[client]; s.sequence == nil {
			s.sequence = new(uint64)
			s.latest[client] = s.sequence
		}
	}
	if s.late == nil || s.source != source {
		if s.source, s.late = source, s.tries[source]; s.late == nil {
			s.late = &lateness{try: -1 << 63, by: check.None}
			s.tries[source] = s.late
		}
	}
}

// findLate looks for a run that may have continued after the end state was downloaded: the log lacks an
// append that was or may have been applied.
func (e *checker) findLate() {
	if len(e.in.Early) == 0 {
		return
	}
	for i := range e.Txns.List {
		t := &e.Txns.List[i]
		if e.Watch.Ended() {
			return
		}
		applied := t.Outcome == history.Committed || t.Outcome == history.Unknown && t.Flags&check.Tombstone == 0
		if t.Source != check.FromLedger && applied && e.places[i].next == 0 && slices.Contains(e.in.Early, t.ID.Run()) {
			e.Unended = t.ID.Run()
			return
		}
	}
}
