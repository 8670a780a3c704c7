package stats

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"stroppy/internal/fault"
	"stroppy/internal/history"
)

// interval is the time of one fault, since the run's start.
type interval struct {
	At      time.Duration // it was injected
	Healing time.Duration // the heal was begun; 0: not known
	Healed  time.Duration // the heal was done, or else the load phase ended
}

// Phase describes the transactions in one part of a run.
type Phase struct {
	From, To  time.Duration
	Committed uint64
	P99       time.Duration // of committed transactions, from when they were due; 0 of none
}

// TPS returns the committed transactions per second, and 0 for an empty phase.
func (p Phase) TPS() float64 {
	if p.To <= p.From {
		return 0
	}
	return float64(p.Committed) / (p.To - p.From).Seconds()
}

// Effect describes the effect of one fault on the database.
//
// The span of a fault is from its injection to the next injection, or to the end of the load phase. The undisturbed
// time is the time before the first fault, and the time after the heal and recovery of each fault.
type Effect struct {
	// Before is the undisturbed time before the injection, at most ten seconds. It is empty if that is less
	// than a second or has no commit. If the throughput had not recovered from an earlier fault, Before is
	// the time since the last heal and is not used for comparison. During is from the injection to the heal.
	// After is the rest of the span, from the heal and the recovery, if there was one.
	Before, During, After Phase
	// Silent is the total time within During that belongs to gaps without a commit longer than Noise and at
	// least 50 ms. The latencies of During hardly show it.
	Silent time.Duration

	// Longest is the longest gap without a commit that began in the span. It is counted from the injection to
	// the gap's end, or to the end of the load phase. If a gap is not longer than the noise at the next
	// injection, it belongs to that fault.
	Longest Gap
	// Noise is twice the longest gap between two commits in the undisturbed time before the injection, and at
	// least 50 ms. It is 0 if there is no such time.
	Noise time.Duration
	// Outage is Longest if that is longer than Noise, and empty otherwise.
	Outage Gap

	// Recovered is the time from which the throughput was permanently back. It is the start of the first second with
	// 90 % of the mean of Before. More than half of the five seconds from it on must have that too. If that second
	// begins in a gap longer than Noise, it is the first commit.
	//
	// The search starts after the fall. A second has fallen if it has less than 90 % of the slowest undisturbed
	// second before. The fall ends with the last three fallen seconds of five.
	//
	// A shorter fall counts in three cases:
	// - it begins within a second after the injection;
	// - it begins between the begin of the heal and a second after its end;
	// - it begins with an outage that begins until then or lasts a second.
	//
	// Recovered is the injection if nothing fell. It is -1 if the throughput did not recover within the span, or if
	// that is not known.
	Recovered time.Duration
	// Uncompared states why the throughput could not be compared; empty if it was.
	Uncompared string

	// Unknown counts the transactions without a known outcome that ended within the span. Look-ups decided
	// some of them.
	Unknown, FoundCommitted, FoundAborted uint64
}

// Effects holds the effects of all faults of a run.
type Effects struct {
	Faults []Effect // of the faults that were injected within the load phase
	// First is the load phase before the first fault, and Last all of it after the last
	// heal, whether or not the throughput came back: a database that takes lasting
	// damage is slower in the last.
	First, Last Phase
	// Around holds the commits around the faults, in order and without overlap.
	Around []Stretch
}

// Stretch holds the number of commits in each FineStep from From on.
type Stretch struct {
	From      time.Duration
	Committed []uint32
}

// FineStep is the resolution of the throughput around faults.
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

// commitTimeline holds the commits by time, from which the effects are computed.
type commitTimeline struct {
	faults []interval
	end    time.Duration // of the load phase
	gaps   commits
	steps  []uint32 // committed in each step since the run's start

	// The following fields cover the faults that have been processed.
	undisturbed []Phase         // in order
	unrecovered Phase           // the latest time without a fault in which the throughput was not back
	mean        float64         // commits a window in the latest time before a fault
	slowest     uint64          // and in the slowest window of all undisturbed time
	limits      []time.Duration // by fault: a gap no longer than this belongs to the next injection
	lastHeal    time.Duration
}

// MeasureEffects reads a recorded history twice and sets in each fault its effect. The measured
// part is between from and to, since the run's start. The faults are in the order of their
// injection. Transactions that ran in the background do not count.
func MeasureEffects(transactions func() iter.Seq2[history.Record, error], faults []fault.Record, from, to time.Duration) (Effects, error) {
	intervals, measured := injectedBefore(faults, to)
	if len(intervals) == 0 {
		return Effects{}, nil
	}
	if to >= maxSeconds*time.Second || from < 0 {
		return Effects{}, fmt.Errorf("measure the effects of the faults: a load phase from %v to %v is impossible", from, to)
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
	if err := c.fill(&e, transactions()); err != nil {
		return Effects{}, err
	}
	for i, f := range measured {
		e.Faults[i].describe(f)
	}
	return e, nil
}

// injectedBefore returns the intervals of the faults that were injected before to, and those faults.
func injectedBefore(faults []fault.Record, to time.Duration) (intervals []interval, injected []*fault.Record) {
	for i := range faults {
		f := &faults[i]
		s := interval{At: time.Duration(f.At), Healed: to}
		if f.Healed != nil {
			s.Healed = min(time.Duration(*f.Healed), to)
		}
		if f.Healing != nil {
			s.Healing = min(time.Duration(*f.Healing), s.Healed)
		}
		if f.Done() && s.At < to {
			intervals, injected = append(intervals, s), append(injected, f)
		}
	}
	return intervals, injected
}

// leastPhase is the shortest time with a reported throughput.
const leastPhase = 100 * time.Millisecond

// describe sets the effect in the record of the fault.
func (e *Effect) describe(f *fault.Record) {
	f.Outage, f.LongestGap = new(fault.Seconds(e.Outage.Length())), new(fault.Seconds(e.Longest.Length()))
	f.Uncompared, f.Unknown, f.FoundCommitted, f.FoundAborted = e.Uncompared, e.Unknown, e.FoundCommitted, e.FoundAborted
	if e.Noise > 0 {
		f.Noise = new(fault.Seconds(e.Noise))
	}
	if *f.Outage > 0 {
		f.OutageAt = new(fault.Seconds(e.Outage.From))
	}
	if e.Recovered >= 0 {
		f.Recovered = new(max(0, fault.Seconds(e.Recovered)-f.At))
	}
	f.TPSBefore, f.P99Before = e.Before.reported()
	f.TPSDuring, f.P99During = e.During.reported()
	f.TPSAfter, f.P99After = e.After.reported()
	if f.TPSDuring != nil {
		f.SilentDuring = new(e.Silent.Seconds() / (e.During.To - e.During.From).Seconds())
	}
}

// reported returns the throughput of a phase that is long enough, and its latency in milliseconds.
func (p Phase) reported() (tps, p99 *float64) {
	if p.To-p.From < leastPhase {
		return nil, nil
	}
	if p.Committed > 0 {
		p99 = new(float64(p.P99) / float64(time.Millisecond))
	}
	return new(p.TPS()), p99
}

// latest returns the last fault injected until then, or -1.
func (c *commitTimeline) latest(then time.Duration) int {
	return sort.Search(len(c.faults), func(i int) bool { return c.faults[i].At > then }) - 1
}

// effect determines the times of one fault's effect. The earlier faults must be done.
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

// before returns the part of a phase before an injection. It is empty if the phase ended earlier, is too
// short or had no commit.
func (c *commitTimeline) before(at time.Duration, last Phase) Phase {
	p := Phase{From: max(last.From, at-mostBefore), To: at}
	first, end := c.whole(p.From, p.To)
	if last.To != at || end-first < window || c.total(first, end) == 0 {
		return Phase{From: at, To: at}
	}
	return p
}

// compare sets the baseline: the time before a fault, and the slowest second of all undisturbed time.
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

// whole returns the steps that lie completely between two times: from first to end-1.
func (c *commitTimeline) whole(from, to time.Duration) (first, end int) {
	return int((from + FineStep - 1) / FineStep), min(int(to/FineStep), len(c.steps))
}

// total returns the number of commits in the steps from first to end-1.
func (c *commitTimeline) total(first, end int) (sum uint64) {
	for _, count := range c.steps[first:end] {
		sum += uint64(count)
	}
	return sum
}

// silent returns the total time of a phase in gaps longer than noise.
func (c *commitTimeline) silent(p Phase, noise time.Duration) (sum time.Duration) {
	for from, to := range c.gaps.between(c.end) {
		if to-from > noise {
			sum += max(0, min(to, p.To)-max(from, p.From))
		}
	}
	return sum
}

// longest returns the longest gap of fault i; see Effect.Longest.
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

// recovered returns when the throughput was permanently back, by the latest baseline, or -1. See Effect.Recovered.
func (c *commitTimeline) recovered(s interval, until time.Duration, e *Effect) (back time.Duration, known bool) {
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

// compareHeld counts the deciding seconds from step n on that reach a number of commits, and those that do
// not. Seconds that end after end are ignored.
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

// around returns the steps within the load phase from some seconds before each injection to some seconds
// after the recovery.
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

// fill counts the transactions of the phases in a second pass. Phases may overlap, so it counts in the
// intervals between all their ends and then sums up each phase.
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
		// A look-up or an unknown outcome belongs to the fault during which the transaction ended.
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
