package stats

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"stroppy/internal/history"
)

// Spell is the time of one fault, since the run's start.
type Spell struct {
	At     time.Duration // it was injected
	Healed time.Duration // the heal was done; of one that never was, the end of the drive
}

// Phase is what was done in one part of a run.
type Phase struct {
	From, To  time.Duration
	Committed uint64
	P99       time.Duration // of committed transactions, from when they were due; 0 of none
}

// TPS returns committed transactions a second; 0 of an empty phase.
func (p Phase) TPS() float64 {
	if p.To <= p.From {
		return 0
	}
	return float64(p.Committed) / (p.To - p.From).Seconds()
}

// Effect is how the database took one fault.
type Effect struct {
	// Before goes back from the injection over the time without a fault, ten
	// seconds at most. During is from the injection to the heal. After is from
	// the end of the fault's effect to the next fault, or to the end of the drive.
	Before, During, After Phase

	// Outage is the longest time with no commit that overlaps the time from the
	// injection to the next fault, and ends there at the latest. A database that
	// never commits again is out to the end of the drive.
	Outage Gap

	// Recovered is when the throughput was back: the end of the outage, or the
	// first time after it from which on a second has at least 90 % of the
	// throughput before. -1: it was not back before the next fault or the end.
	Recovered time.Duration

	// Unknown transactions ended in doubt within the fault's time; of them a
	// look-up found some applied and some not.
	Unknown, FoundCommitted, FoundAborted uint64
}

// Effects are those of all faults of a run.
type Effects struct {
	Faults []Effect // as the spells were given
	// First and Last are the first and the last part of the drive without a
	// fault: a database that takes lasting damage is slower in the last. They
	// are empty where there was no fault or no such part.
	First, Last Phase
}

const (
	step       = 100 * time.Millisecond // in which throughput is counted
	recovery   = time.Second            // over which throughput must be back
	backAgain  = 0.9                    // of the throughput before
	mostBefore = 10 * time.Second
)

// course is what the effects are read from: commits by time.
type course struct {
	from, to time.Duration // the drive, its warm-up left out
	gaps     commits
	steps    []uint32 // committed in each step since the run's start
}

// MeasureEffects reads a recorded history twice and tells what each fault did.
// The drive's figures go from from to to, since the run's start; spells are in
// the order of their injection. What ran in the background does not count.
func MeasureEffects(transactions func() iter.Seq2[history.Record, error], spells []Spell, from, to time.Duration) (Effects, error) {
	if len(spells) == 0 {
		return Effects{}, nil
	}
	if to >= maxSeconds*time.Second || from < 0 {
		return Effects{}, fmt.Errorf("measure the effects of the faults: a drive from %v to %v is none that was ever made", from, to)
	}
	c := &course{from: from, to: to, gaps: commits{width: firstWidth}, steps: make([]uint32, to/step+2)}
	for rec, err := range transactions() {
		if err != nil {
			return Effects{}, err
		}
		c.add(rec.Transaction)
	}
	e := Effects{Faults: make([]Effect, len(spells))}
	for i, s := range spells {
		c.effect(&e.Faults[i], s, i, spells)
	}
	e.First = Phase{From: from, To: max(from, spells[0].At)}
	e.Last = e.Faults[lastEnding(spells)].After
	return e, c.fill(&e, spells, transactions())
}

// lastEnding returns the fault that was healed last.
func lastEnding(spells []Spell) int {
	last := 0
	for i, s := range spells {
		if s.Healed >= spells[last].Healed {
			last = i
		}
	}
	return last
}

func (c *course) add(tx *history.Transaction) {
	if tx.Kind == history.Audit || tx.Outcome != history.Committed || tx.End < 0 {
		return
	}
	c.gaps.add(tx.End)
	if n := int(time.Duration(tx.End) / step); n < len(c.steps) {
		c.steps[n]++
	}
}

// until is when the next fault comes, or the drive ends.
func (c *course) until(i int, spells []Spell) time.Duration {
	if i+1 < len(spells) {
		return spells[i+1].At
	}
	return max(c.to, spells[i].At)
}

// effect sets the times of one fault's effect. The faults before it are done.
func (c *course) effect(e *Effect, s Spell, i int, spells []Spell) {
	until := c.until(i, spells)
	e.Before = Phase{From: max(c.from, s.At-mostBefore), To: s.At}
	for _, earlier := range spells[:i] {
		e.Before.From = max(e.Before.From, min(earlier.Healed, s.At))
	}
	if i > 0 {
		e.Before.From = max(e.Before.From, min(s.At, spells[i-1].At))
	}
	e.During = Phase{From: s.At, To: max(s.At, s.Healed)}
	e.Outage = c.gaps.longestWithin(s.At, until, c.to)
	e.Recovered = c.recovered(e, until)
	ended := max(s.Healed, e.Recovered)
	if e.Recovered < 0 {
		ended = until
	}
	for _, other := range spells[:i] {
		ended = max(ended, other.Healed)
	}
	e.After = Phase{From: min(ended, until), To: until}
}

// recovered finds when the throughput was back.
func (c *course) recovered(e *Effect, until time.Duration) time.Duration {
	if e.Outage.To >= until {
		return -1
	}
	window := int(recovery / step)
	want := backAgain * c.rate(e.Before.From, e.Before.To) * recovery.Seconds()
	first := int(max(e.Outage.To, e.Before.To) / step)
	for n := first; n+window <= int(until/step); n++ {
		var sum uint64
		for _, count := range c.steps[n : n+window] {
			sum += uint64(count)
		}
		if float64(sum) >= want {
			return max(time.Duration(n)*step, e.Outage.To)
		}
	}
	return -1
}

// rate returns the commits a second over whole steps.
func (c *course) rate(from, to time.Duration) float64 {
	first, last := int((from+step-1)/step), int(to/step)
	if last <= first {
		return 0
	}
	var sum uint64
	for _, count := range c.steps[first:last] {
		sum += uint64(count)
	}
	return float64(sum) / (time.Duration(last-first) * step).Seconds()
}

// fill counts what the phases hold, in a second pass.
func (c *course) fill(e *Effects, spells []Spell, transactions iter.Seq2[history.Record, error]) error {
	phases := []*Phase{&e.First, &e.Last}
	for i := range e.Faults {
		f := &e.Faults[i]
		phases = append(phases, &f.Before, &f.During, &f.After)
	}
	latencies := make([]counts, len(phases))
	for i := range latencies {
		latencies[i] = newCounts(threeDigits)
	}
	for rec, err := range transactions {
		if err != nil {
			return err
		}
		tx := rec.Transaction
		if tx.Kind == history.Audit {
			continue
		}
		at := time.Duration(tx.End)
		if tx.Outcome == history.Unknown || tx.LookedUp {
			c.doubt(e.Faults, spells, at, tx)
		}
		if tx.Outcome != history.Committed {
			continue
		}
		latency := min(max(tx.End-tx.Due, 0), highest)
		for i, p := range phases {
			if at >= p.From && at < p.To {
				p.Committed++
				latencies[i].add(latencies[i].index(latency))
			}
		}
	}
	dense := make([]uint64, latencies[0].size())
	for i, p := range phases {
		clear(dense)
		latencies[i].addTo(dense)
		if p.Committed > 0 {
			p.P99 = time.Duration(latencies[i].quantile(dense, 0.99, p.Committed))
		}
	}
	return nil
}

// doubt counts a transaction whose outcome its client had to ask for, or never
// learned, to the fault in whose time it ended.
func (c *course) doubt(faults []Effect, spells []Spell, at time.Duration, tx *history.Transaction) {
	i, found := slices.BinarySearchFunc(spells, at, func(s Spell, at time.Duration) int { return int(s.At - at) })
	if !found {
		i--
	}
	if i < 0 {
		return
	}
	f := &faults[i]
	switch f.Unknown++; tx.Outcome {
	case history.Committed:
		f.FoundCommitted++
	case history.Aborted:
		f.FoundAborted++
	}
}

// longestWithin returns the longest time without a commit that overlaps [from,
// until), as far as it lies before until. After the last commit of all it lasts
// to end.
func (c *commits) longestWithin(from, until, end time.Duration) (g Gap) {
	last := time.Duration(0)
	take := func(next time.Duration) {
		if gap := (Gap{From: last, To: min(next, until)}); next > from && gap.Length() > g.Length() {
			g = gap
		}
	}
	for i, cell := range c.cells {
		if cell.first == 0 {
			continue
		}
		start := time.Duration(int64(i)*c.width - 1)
		take(start + time.Duration(cell.first))
		last = start + time.Duration(cell.last)
	}
	if end > last {
		take(end)
	}
	return g
}
