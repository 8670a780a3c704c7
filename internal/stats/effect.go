package stats

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"stroppy/internal/history"
)

// FaultInterval is the time of one fault, since the run's start.
type FaultInterval struct {
	At      time.Duration // it was injected
	Healing time.Duration // the heal was begun; 0: not known
	Healed  time.Duration // the heal was done; of one that never was, the end of the load phase
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
//
// A fault's span goes from its injection to the next one, or to the end of the load
// phase. Undisturbed is the load phase before the first fault, and after a fault from
// when it is healed and the throughput is back.
type Effect struct {
	// Before is the undisturbed time that ends with the injection, ten seconds at most;
	// empty if it is less than a second or has no commit. Where the throughput was not
	// back from an earlier fault it is the time since the last heal, and nothing is
	// compared with it. During is from the injection to the heal. After is the rest of the
	// span from when all is healed and, where it came back, the throughput is back.
	Before, During, After Phase
	// Silent is the time within During in which nothing committed for longer than Noise, and for
	// 50 ms at least. The latencies of During show little of it.
	Silent time.Duration

	// Longest is the longest time with no commit that began in the span, from the injection
	// at the earliest and to its true end, or the load phase's. One that the next injection
	// finds no longer than the noise belongs to that fault.
	Longest Gap
	// Noise is twice the longest time between two commits in the undisturbed time
	// before the injection, and 50 ms at least; 0 where there is no such time.
	Noise time.Duration
	// Outage is Longest where it is longer than Noise, and else empty.
	Outage Gap

	// Recovered is when the throughput was back to stay: at the start of the first second
	// that has 90 % of the mean of Before, as have more than half of the five seconds from
	// it on, or at its first commit if it begins in a gap longer than Noise. It is looked for
	// after the fall. A second has fallen that has less than 90 % of the slowest undisturbed
	// second before. The fall ends with the last three fallen seconds of five, or with one
	// that begins within a second after the injection, or from when the heal was begun to a
	// second after it was done, or with an outage that begins until then or lasts a second: a
	// shorter fall at another time is not the fault's.
	// It is the injection where nothing fell, and -1 where it was not back within the span,
	// or cannot be known.
	Recovered time.Duration
	// Uncompared says why the throughput could not be compared; empty if it was.
	Uncompared string

	// Unknown transactions ended in doubt within the span; look-ups decided some.
	Unknown, FoundCommitted, FoundAborted uint64
}

// Effects are those of all faults of a run.
type Effects struct {
	Faults []Effect // as the intervals were given
	// First is the load phase before the first fault, and Last all of it after the last
	// heal, whether or not the throughput came back: a database that takes lasting
	// damage is slower in the last.
	First, Last Phase
	// Around are the commits around the faults, in order and apart from each other.
	Around []Stretch
}

// Stretch is how many transactions committed in each FineStep from From on.
type Stretch struct {
	From      time.Duration
	Committed []uint32
}

// FineStep is the time in which throughput is counted about faults.
const FineStep = 100 * time.Millisecond

const (
	window     = int(time.Second / FineStep)
	backAgain  = 0.9 // of the throughput before
	held       = 5   // seconds, more than half of which decide whether the throughput is back, or fell again
	mostBefore = 10 * time.Second
	around     = 5 * time.Second // before an injection and after a recovery
	noisy      = 2               // times the longest undisturbed gap are within the noise
	leastNoise = 50 * time.Millisecond
)

// commitTimeline is what the effects are read from: commits by time.
type commitTimeline struct {
	faults []FaultInterval
	end    time.Duration // of the load phase
	gaps   commits
	steps  []uint32 // committed in each step since the run's start

	// As far as the faults have been gone through:
	undisturbed []Phase         // in order
	unrecovered Phase           // the latest time without a fault in which the throughput was not back
	mean        float64         // commits a window in the latest time before a fault
	slowest     uint64          // and in the slowest window of all undisturbed time
	limits      []time.Duration // by fault: a gap no longer than this belongs to the next injection
	lastHeal    time.Duration
}

// MeasureEffects reads a recorded history twice and reports what each fault did.
// The measured part goes from from to to, since the run's start; intervals are in
// the order of their injection. What ran in the background does not count.
func MeasureEffects(transactions func() iter.Seq2[history.Record, error], intervals []FaultInterval, from, to time.Duration) (Effects, error) {
	if len(intervals) == 0 {
		return Effects{}, nil
	}
	if to >= maxSeconds*time.Second || from < 0 {
		return Effects{}, fmt.Errorf("measure the effects of the faults: a load phase from %v to %v is none that was ever made", from, to)
	}
	c := &commitTimeline{faults: intervals, end: to, steps: make([]uint32, to/FineStep+2)}
	for rec, err := range transactions() {
		if err != nil {
			return Effects{}, err
		}
		tx := rec.Transaction
		if tx.Kind.Background() || tx.Outcome != history.Committed || tx.End < 0 {
			continue
		}
		c.gaps.add(tx.End)
		if n := int(time.Duration(tx.End) / FineStep); n < len(c.steps) {
			c.steps[n]++
		}
	}
	e := Effects{Faults: make([]Effect, len(intervals))}
	e.First = Phase{From: from, To: max(from, intervals[0].At)}
	c.undisturbed = []Phase{e.First}
	for i := range intervals {
		c.effect(&e.Faults[i], i)
	}
	e.Last = Phase{From: min(max(c.lastHeal, from), to), To: to}
	e.Around = c.around(e.Faults)
	return e, c.fill(&e, transactions())
}

// latest returns the last fault that was injected by then; -1 if none was.
func (c *commitTimeline) latest(then time.Duration) int {
	return sort.Search(len(c.faults), func(i int) bool { return c.faults[i].At > then }) - 1
}

// effect finds the times of one fault's effect. The faults before it are done.
func (c *commitTimeline) effect(e *Effect, i int) {
	s := c.faults[i]
	until := max(c.end, s.At)
	if i+1 < len(c.faults) {
		until = c.faults[i+1].At
	}
	c.lastHeal = max(c.lastHeal, s.Healed)
	e.During = Phase{From: s.At, To: max(s.At, s.Healed)}
	e.Before = c.before(s.At, c.undisturbed[len(c.undisturbed)-1])
	undisturbed := e.Before.To > e.Before.From
	if undisturbed {
		c.compare(e.Before)
	} else {
		e.Before = c.before(s.At, c.unrecovered)
	}
	if longest := c.gaps.longestOf(c.undisturbed); longest > 0 {
		e.Noise = max(noisy*longest, leastNoise)
	}
	e.Silent = c.silent(e.During, max(e.Noise, LeastSilence))
	c.limits = append(c.limits, max(e.Noise, FineStep))
	e.Longest = c.longest(i)
	if e.Longest.Length() > e.Noise {
		e.Outage = e.Longest
	}
	known := false
	e.Recovered, known = c.recovered(s, until, e)
	switch {
	case e.Before.To == e.Before.From:
		e.Uncompared = "there was no second without a fault before it"
	case !undisturbed:
		e.Uncompared = "the throughput was not back yet from an earlier fault"
	case !known:
		e.Uncompared = "there was less than a second until the next fault or the end"
	}
	settled, ended := e.Recovered, max(c.lastHeal, s.At)
	if e.Uncompared != "" {
		e.Recovered = -1
	}
	e.After = Phase{From: min(max(ended, settled), until), To: until}
	switch {
	case e.After.To == e.After.From:
	case settled >= 0 || !known:
		c.undisturbed = append(c.undisturbed, e.After)
	default:
		c.unrecovered = e.After
	}
}

// before returns what of the latest time of its sort lies before an injection;
// nothing where it ended earlier, is too short or had no commit.
func (c *commitTimeline) before(at time.Duration, last Phase) Phase {
	p := Phase{From: max(last.From, at-mostBefore), To: at}
	first, end := c.whole(p.From, p.To)
	if last.To != at || end-first < window || c.total(first, end) == 0 {
		return Phase{From: at, To: at}
	}
	return p
}

// compare takes the time before a fault, and the slowest second of all undisturbed
// time, as what the throughput is compared with.
func (c *commitTimeline) compare(before Phase) {
	first, end := c.whole(before.From, before.To)
	c.mean, c.slowest = float64(c.total(first, end))*float64(window)/float64(end-first), math.MaxUint64
	for _, p := range c.undisturbed {
		first, end := c.whole(p.From, p.To)
		for n := first; n+window <= end; n++ {
			c.slowest = min(c.slowest, c.total(n, n+window))
		}
	}
}

// whole returns the steps wholly between two times: from first to before end.
func (c *commitTimeline) whole(from, to time.Duration) (first, end int) {
	return int((from + FineStep - 1) / FineStep), min(int(to/FineStep), len(c.steps))
}

// total returns what was committed from step first to before end.
func (c *commitTimeline) total(first, end int) (sum uint64) {
	for _, count := range c.steps[first:end] {
		sum += uint64(count)
	}
	return sum
}

// silent returns how much of a phase lies in gaps that are longer than noise.
func (c *commitTimeline) silent(p Phase, noise time.Duration) (sum time.Duration) {
	for from, to := range c.gaps.between(c.end) {
		if to-from > noise {
			sum += max(0, min(to, p.To)-max(from, p.From))
		}
	}
	return sum
}

// longest returns the longest gap that is fault i's; see Effect.Longest.
func (c *commitTimeline) longest(i int) (g Gap) {
	last := i+1 == len(c.faults)
	for from, to := range c.gaps.between(c.end) {
		if to <= c.faults[i].At {
			continue
		}
		if !last && from >= c.faults[i+1].At {
			break
		}
		owner := max(0, c.latest(from))
		began := func() time.Duration { return max(from, c.faults[owner].At) }
		for owner < i && c.faults[owner+1].At-began() <= c.limits[owner] {
			owner++
		}
		next := !last && c.faults[i+1].At < to && c.faults[i+1].At-began() <= c.limits[i]
		if own := (Gap{From: began(), To: to}); owner == i && !next && own.Length() > g.Length() {
			g = own
		}
	}
	return g
}

// recovered finds when the throughput was back to stay, by the latest baseline; -1 if it
// was not, and not known where it cannot be known. See Effect.Recovered.
func (c *commitTimeline) recovered(s FaultInterval, until time.Duration, e *Effect) (back time.Duration, known bool) {
	first, end := c.whole(s.At, until)
	if c.mean == 0 || end-first < window {
		return -1, false
	}
	low, enough := backAgain*float64(c.slowest), backAgain*c.mean
	start := first
	if o := e.Outage; o.Length() >= time.Second || o.Length() > 0 && o.From <= s.Healed+time.Second {
		start = max(start, int(o.To/FineStep))
	}
	healing, _ := c.whole(cmp.Or(s.Healing, s.Healed), until)
	healed, _ := c.whole(s.Healed, until)
	for n := first; n+window <= end; n++ {
		soon := n <= first+window || n >= healing && n <= healed+window
		_, fallen := c.compareHeld(n, end, low)
		if soon && float64(c.total(n, n+window)) < low || 2*fallen > held {
			start = max(start, n+1)
		}
	}
	if start == first {
		return c.gaps.after(s.At, e.Noise), true
	}
	for n := start; n+window <= end; n++ {
		if reached, fallen := c.compareHeld(n, end, enough); reached > fallen && float64(c.total(n, n+window)) >= enough {
			return c.gaps.after(max(time.Duration(n)*FineStep, s.At), e.Noise), true
		}
	}
	return -1, true
}

// compareHeld counts how many of the seconds from step n on, as many as decide, reach a
// number of commits, and how many do not. Those that do not end before end are in neither.
func (c *commitTimeline) compareHeld(n, end int, commits float64) (reached, fallen int) {
	for range held {
		if n+window > end {
			break
		}
		if float64(c.total(n, n+window)) < commits {
			fallen++
		} else {
			reached++
		}
		n += window
	}
	return reached, fallen
}

// around returns the steps that lie wholly within the load phase, from some seconds before
// each injection to some seconds after all is over.
func (c *commitTimeline) around(faults []Effect) (list []Stretch) {
	from, to := 0, 0
	add := func() {
		if to > from {
			list = append(list, Stretch{From: time.Duration(from) * FineStep, Committed: c.steps[from:to]})
		}
	}
	for i, f := range faults {
		at := c.faults[i].At
		first, _ := c.whole(max(at-around, 0), c.end)
		_, end := c.whole(0, min(max(at, c.faults[i].Healed, f.Recovered, f.Outage.To)+around, c.end))
		if first > to {
			add()
			from = first
		}
		to = max(to, end)
	}
	add()
	return list
}

// fill counts what the phases hold, in a second pass. Phases may overlap, so it counts in
// the stretches between all their ends, and then adds up those of each phase.
func (c *commitTimeline) fill(e *Effects, transactions iter.Seq2[history.Record, error]) error {
	phases := []*Phase{&e.First, &e.Last}
	for i := range e.Faults {
		f := &e.Faults[i]
		phases = append(phases, &f.Before, &f.During, &f.After)
	}
	ends := make([]time.Duration, 0, 2*len(phases))
	for _, p := range phases {
		ends = append(ends, p.From, p.To)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	stretches := make([]counts, len(ends)) // latencies of what was committed from each end to the next one
	for rec, err := range transactions {
		if err != nil {
			return err
		}
		tx := rec.Transaction
		if tx.Kind.Background() {
			continue
		}
		at := time.Duration(tx.End)
		// What its client had to ask for, or never learned, is the fault's in whose time it ended.
		if tx.Outcome == history.Unknown || tx.LookedUp {
			if i := c.latest(at); i >= 0 {
				e.Faults[i].Unknown++
				switch tx.Outcome {
				case history.Committed:
					e.Faults[i].FoundCommitted++
				case history.Aborted:
					e.Faults[i].FoundAborted++
				}
			}
		}
		if tx.Outcome != history.Committed {
			continue
		}
		if i := sort.Search(len(ends), func(i int) bool { return ends[i] > at }) - 1; i >= 0 {
			stretches[i].add(threeDigits.index(min(max(tx.End-tx.Due, 0), highest)))
		}
	}
	dense := make([]uint64, threeDigits.size())
	for _, p := range phases {
		clear(dense)
		from, _ := slices.BinarySearch(ends, p.From)
		for i := from; ends[i] < p.To; i++ {
			stretches[i].addTo(dense)
		}
		for _, n := range dense {
			p.Committed += n
		}
		if p.Committed > 0 {
			p.P99 = time.Duration(threeDigits.quantile(dense, 0.99, p.Committed))
		}
	}
	return nil
}
