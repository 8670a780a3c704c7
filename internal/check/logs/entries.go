package logs

import (
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// streamWalk is where the reading of the log is, and what it has seen of the stream.
type streamWalk struct {
	begun    bool
	stream   uint64
	place    uint64
	previous history.Row
	latest   map[uint64]*uint64   // by run and client: the latest sequence of an acknowledged append
	tries    map[uint16]*lateness // by history

	surely, perhaps check.Latest // beginning of all histories on one clock, at the earliest and at the latest

	client   uint64 // of the append that was followed last
	source   uint16
	sequence *uint64   // of that client in latest; nil at first
	late     *lateness // of that history in tries
}

func newStreamWalk(stream uint64) streamWalk {
	return streamWalk{begun: true, stream: stream, latest: map[uint64]*uint64{}, tries: map[uint16]*lateness{}}
}

// lateness is the latest beginning among the acknowledged appends so far.
type lateness struct {
	try int64 // ns
	by  uint32
}

// readLog walks over the entries of all streams in their order.
func (e *checker) readLog() (problem error) {
	if e.in.End == nil {
		return nil
	}
	for leg := range check.Each(&e.Watch, "the end state's log", e.in.End.Rows(), &problem) {
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
		e.found[strange].Add(row)
		e.Report(Whole, "", 0, "", row)
	}
	e.findLate()
	return nil
}

// leave notes where the stream ends.
func (e *checker) leave() {
	if s := &e.stream; s.begun {
		e.last[s.stream] = s.place
	}
}

// step moves on to the place of an entry and looks for holes before it.
func (e *checker) step(leg history.Row) error {
	s := &e.stream
	if !s.begun || leg.Object != s.stream {
		if s.begun && leg.Object < s.stream {
			return fmt.Errorf("the end state's log has %s after %s: it is damaged", e.in.Name(leg.Object), e.in.Name(s.stream))
		}
		e.leave()
		*s = newStreamWalk(leg.Object)
		if leg.Object >= e.in.Streams {
			e.note(absent, leg.Transaction, leg.Object, fmt.Sprintf("%s, which no load made, has entries", e.in.Name(leg.Object)), "stands in a stream that no load made")
		}
	}
	if leg.Version == s.place+1 {
		s.place = leg.Version
		e.entries++
		return nil
	}
	name := e.in.Name(leg.Object)
	switch {
	case leg.Version < s.place:
		return fmt.Errorf("the end state's log has place %d of %s after place %d: it is damaged", leg.Version, name, s.place)
	case leg.Version == s.place:
		e.note(shared, leg.Transaction, leg.Object, fmt.Sprintf("place %d of %s has two entries", leg.Version, name),
			fmt.Sprintf("stands at place %d, where another entry stands too", leg.Version))
	case leg.Version == s.place+2:
		e.note(holes, leg.Transaction, leg.Object, fmt.Sprintf("place %d of %s is empty", s.place+1, name),
			fmt.Sprintf("stands at place %d, and the place before it is empty", leg.Version))
	case leg.Version > s.place+2:
		e.note(holes, leg.Transaction, leg.Object, fmt.Sprintf("places %d to %d of %s are empty", s.place+1, leg.Version-1, name),
			fmt.Sprintf("stands at place %d, and the %d places before it are empty", leg.Version, leg.Version-1-s.place))
	}
	s.place = leg.Version
	e.entries++
	return nil
}

// entry gives an entry to the append that it is of.
func (e *checker) entry(leg history.Row) {
	i, ok := e.Txns.Find(leg.Transaction)
	if !ok {
		i = e.Txns.AddFromLedger(leg.Transaction)
		e.places = append(e.places, place{stream: leg.Object})
	}
	t, p := &e.Txns.List[i], &e.places[i]
	if leg.Mark == history.Tombstone {
		t.Flags |= check.Tombstone
		e.voids++
		if t.Source == check.FromLedger && e.Txns.Covers(leg.Transaction.Run()) {
			e.find(never, i, "has a tombstone in the log, and no client ever sent it")
		}
		return
	}
	odd := e.oddOf(i)
	begins := p.next == 0 && odd == nil
	switch {
	case leg.Number < p.next || odd[leg.Number]:
		e.find(twice, i, "has its event %d in the log twice", leg.Number)
		return
	case leg.Number > p.next:
		if odd == nil {
			e.odd[i] = map[uint32]bool{}
		}
		e.odd[i][leg.Number] = true
		e.find(apart, i, "has its event %d at place %d, and event %d not before it", leg.Number, leg.Version, p.next)
	default:
		before := e.stream.previous
		if p.next > 0 && (before.Transaction != leg.Transaction || before.Number != leg.Number-1 || before.Mark == history.Tombstone || before.Object != leg.Object || before.Version != leg.Version-1) {
			e.find(apart, i, "has its event %d at place %d, and event %d is not right before it", leg.Number, leg.Version, leg.Number-1)
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
		e.follow(i, "stands")
	}
}

// oddOf are the events of an append that stand before one that should come first.
func (e *checker) oddOf(i uint32) map[uint32]bool {
	if len(e.odd) == 0 {
		return nil
	}
	return e.odd[i]
}

// checkEntry checks an entry against what its client sent and saw.
func (e *checker) checkEntry(i uint32, leg history.Row) {
	t, p := &e.Txns.List[i], &e.places[i]
	if batch := e.in.Batch(t.ID); leg.Number >= batch {
		e.find(never, i, "has an event %d in the log, and was sent with %d", leg.Number, batch)
		return
	}
	if want := e.in.Length(t.ID, leg.Number); leg.State != history.Broken && leg.Amount != want {
		p.broken = true
		e.find(lengths, i, "has its event %d in the log with %d bytes, and sent it with %d", leg.Number, leg.Amount, want)
	}
	switch {
	case leg.Object != p.stream:
		e.find(elsewhere, i, "was sent to %s, and has its event %d in %s", e.in.Name(p.stream), leg.Number, e.in.Name(leg.Object))
	case p.seen != 0 && leg.Version != p.seen+uint64(leg.Number):
		e.find(elsewhere, i, "was acknowledged with its event %d at place %d, and it stands at %d", leg.Number, p.seen+uint64(leg.Number), leg.Version)
	}
}

// follow looks whether an acknowledged append stands behind all that had been
// acknowledged before it began, of its client or of others of the same history. stands says
// how that is known.
func (e *checker) follow(i uint32, stands string) {
	t, s := &e.Txns.List[i], &e.stream
	client, sequence := uint64(t.ID)>>history.SequenceBits, t.ID.Sequence()
	s.turn(client, t.Source)
	if later := *s.sequence; sequence < later {
		e.find(behindOwn, i, "%s behind %v of the same client, which was sent after it", stands, history.ID(client<<history.SequenceBits|later))
	} else {
		*s.sequence = sequence
	}
	if t.End < s.late.try {
		e.find(behindLater, i, "was acknowledged before %v began, and %s behind it", e.IDOf(s.late.by), stands)
	}
	if e.together != nil && e.together[t.Source] {
		e.followOthers(i, stands)
	}
	if s.late.by == check.None || t.Try > s.late.try {
		*s.late = lateness{t.Try, i}
	}
}

// followOthers is follow for appends of other histories on the same clock, as far as their times
// are known.
func (e *checker) followOthers(i uint32, stands string) {
	t, s := &e.Txns.List[i], &e.stream
	clock, group := e.Clocks[t.Source], uint32(t.Source)
	if at, ok := s.surely.Beside(group); ok && at > t.End+clock.To {
		for source, other := range s.tries {
			if source != t.Source && e.together[source] && other.by != check.None && other.try+e.Clocks[source].From == at {
				e.find(behindLater, i, "was acknowledged before %v began, and %s behind it", e.IDOf(other.by), stands)
				break
			}
		}
	} else if at, ok := s.perhaps.Beside(group); ok && at > t.End+clock.From {
		e.doubt.Note(at - t.End - clock.From)
	}
	s.surely.Add(t.Try+clock.From, group)
	s.perhaps.Add(t.Try+clock.To, group)
}

// turn makes sequence and late be those of a client and of a history. Mostly they are
// those of the append before.
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

// findLate looks for a run that may have gone on after the end state was downloaded:
// the log lacks an append that was applied, or may have been.
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
