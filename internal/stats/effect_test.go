package stats

import (
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/tier"
)

// steady adds one commit at each interval in [from, to), each with the given latency.
func steady(list []history.Transaction, from, to, interval, latency time.Duration) []history.Transaction {
	for at := from; at < to; at += interval {
		list = append(list, history.Transaction{
			Kind: kindTransfer, Outcome: history.Committed, Due: int64(at - latency), End: int64(at),
		})
	}
	return list
}

// reading returns a function that reads the transactions once.
func reading(list []history.Transaction) func() iter.Seq2[history.Record, error] {
	return func() iter.Seq2[history.Record, error] {
		return func(yield func(history.Record, error) bool) {
			for i := range list {
				if !yield(history.Record{Transaction: &list[i]}, nil) {
					return
				}
			}
		}
	}
}

func measure(t *testing.T, list []history.Transaction, intervals []interval, from, to time.Duration) Effects {
	t.Helper()
	var faults []fault.Record
	for _, i := range intervals {
		f := fault.Record{Injection: fault.Injection{At: fault.Seconds(i.At), Healed: new(fault.Seconds(i.Healed))}}
		if i.Healing > 0 {
			f.Healing = new(fault.Seconds(i.Healing))
		}
		faults = append(faults, f)
	}
	e, err := MeasureEffects(reading(list), faults, from, to)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func near(got, want float64) bool { return math.Abs(got-want) <= want/50 }

// TestEffectOfOneFault injects a fault at 10 s: no commits for 2 s, a quarter of the throughput with five
// times the latency for 3 s, then normal. The heal is at 13 s.
func TestEffectOfOneFault(t *testing.T) {
	list := steady(nil, 0, 10*time.Second, 10*time.Millisecond, time.Millisecond)
	list = steady(list, 12*time.Second, 15*time.Second, 40*time.Millisecond, 5*time.Millisecond)
	list = steady(list, 15*time.Second, 30*time.Second, 10*time.Millisecond, time.Millisecond)
	list = append(list,
		history.Transaction{Kind: kindTransfer, Outcome: history.Unknown, End: int64(11 * time.Second)},
		history.Transaction{Kind: kindTransfer, Outcome: history.Aborted, LookedUp: true, End: int64(12 * time.Second)},
		history.Transaction{Kind: kindTransfer, Outcome: history.Committed, LookedUp: true, End: int64(13 * time.Second)},
		history.Transaction{Kind: kindAudit, Outcome: history.Committed, End: int64(11 * time.Second)},
	)
	slices.Reverse(list) // the order of the records does not matter
	e := measure(t, list, []interval{{At: 10 * time.Second, Healed: 13 * time.Second}}, 2*time.Second, 30*time.Second)
	f := e.Faults[0]
	if f.Silent != 2*time.Second {
		t.Errorf("nothing committed for %v during the fault, want 2s", f.Silent)
	}
	if got := f.Outage; got.From != 10*time.Second || got.To != 12*time.Second {
		t.Errorf("outage %v to %v", got.From, got.To)
	}
	// The second from 14.9 s on has 90 of 100 commits: 2 or 3 old and 90 new ones.
	if f.Recovered < 14700*time.Millisecond || f.Recovered > 15100*time.Millisecond {
		t.Errorf("recovered at %v", f.Recovered)
	}
	if !near(f.Before.TPS(), 100) || !near(f.After.TPS(), 100) || f.During.Committed != 25 {
		t.Errorf("throughput %v, %v (%d), %v", f.Before.TPS(), f.During.TPS(), f.During.Committed, f.After.TPS())
	}
	if f.Before.From != 2*time.Second {
		t.Errorf("the warm-up counts: %v", f.Before.From)
	}
	if !near(f.Before.P99.Seconds(), 0.001) || !near(f.During.P99.Seconds(), 13) && !near(f.During.P99.Seconds(), 0.005) {
		t.Errorf("p99 %v, %v", f.Before.P99, f.During.P99)
	}
	if f.Unknown != 3 || f.FoundAborted != 1 || f.FoundCommitted != 1 {
		t.Errorf("in doubt %d, applied %d, not %d", f.Unknown, f.FoundCommitted, f.FoundAborted)
	}
	if e.First.From != 2*time.Second || e.First.To != 10*time.Second || e.Last.From != 13*time.Second || e.Last.To != 30*time.Second || e.Last.Committed != 50+1501 {
		t.Errorf("first %v, last %v", e.First, e.Last)
	}
}

func TestEffectThatNeverEnds(t *testing.T) {
	list := steady(nil, 0, 5*time.Second, 10*time.Millisecond, time.Millisecond)
	f := measure(t, list, []interval{{At: 5 * time.Second, Healed: 8 * time.Second}}, 0, 20*time.Second).Faults[0]
	if f.Outage.To != 20*time.Second || f.Recovered != -1 || f.After.Committed != 0 || f.After.TPS() != 0 {
		t.Errorf("got %+v", f)
	}
}

// TestEffectsOfTwoFaults checks that the time before the second fault begins at the heal of the first, and
// that each has its own outage.
func TestEffectsOfTwoFaults(t *testing.T) {
	list := steady(nil, 0, 4*time.Second, 10*time.Millisecond, time.Millisecond)
	list = steady(list, 5*time.Second, 10*time.Second, 10*time.Millisecond, time.Millisecond)
	list = steady(list, 13*time.Second, 20*time.Second, 20*time.Millisecond, time.Millisecond)
	e := measure(t, list, []interval{{At: 4 * time.Second, Healed: 6 * time.Second}, {At: 10 * time.Second, Healed: 11 * time.Second}}, 0, 20*time.Second)
	a, b := e.Faults[0], e.Faults[1]
	if !near(a.Outage.Length().Seconds(), 1) || !near(b.Outage.Length().Seconds(), 3) {
		t.Errorf("outages %v and %v", a.Outage.Length(), b.Outage.Length())
	}
	if b.Before.From != 6*time.Second || b.Before.To != 10*time.Second || a.After.To != 10*time.Second {
		t.Errorf("before the second %v, after the first %v", b.Before, a.After)
	}
	if a.Recovered < 5*time.Second || a.Recovered > 5100*time.Millisecond || b.Recovered != -1 {
		t.Errorf("recovered %v and %v", a.Recovered, b.Recovered)
	}
	// Seven of the nine seconds after the last heal have half the throughput.
	if !near(e.First.TPS(), 100) || e.Last.From != 11*time.Second || !near(e.Last.TPS(), 350.0/9) {
		t.Errorf("first %v, last %v", e.First.TPS(), e.Last)
	}
}

func TestNoFaultsNoEffects(t *testing.T) {
	if e := measure(t, steady(nil, 0, time.Second, time.Millisecond, 0), nil, 0, time.Second); len(e.Faults) != 0 || e.First != (Phase{}) {
		t.Errorf("got %+v", e)
	}
}

// TestLastingDamageIsCompared checks that a database with permanently reduced throughput is compared although it never
// recovers.
func TestLastingDamageIsCompared(t *testing.T) {
	list := steady(nil, 0, 5*time.Second, time.Millisecond, time.Millisecond)
	list = steady(list, 5*time.Second, 18*time.Second, 4*time.Millisecond, time.Millisecond)
	e := measure(t, list, []interval{{At: 5 * time.Second, Healed: 5100 * time.Millisecond}}, 0, 18*time.Second)
	f := e.Faults[0]
	if !near(e.First.TPS(), 1000) || !near(e.Last.TPS(), 250) {
		t.Errorf("first %v, last %v", e.First.TPS(), e.Last.TPS())
	}
	if f.Recovered != -1 || f.Uncompared != "" || f.Outage.Length() != 0 || !near(f.After.TPS(), 250) {
		t.Errorf("got %+v", f)
	}
}

// TestHarmlessFault checks that pauses that also occur without a fault are not an effect.
func TestHarmlessFault(t *testing.T) {
	pauses := map[time.Duration]time.Duration{ // the longest of them is after the fault
		3 * time.Second: 60 * time.Millisecond, 7 * time.Second: 30 * time.Millisecond,
		13 * time.Second: 70 * time.Millisecond, 17 * time.Second: 50 * time.Millisecond,
	}
	var list []history.Transaction
	for at := time.Duration(0); at < 20*time.Second; at += time.Millisecond {
		at += pauses[at.Truncate(time.Millisecond)]
		list = steady(list, at, at+1, time.Second, time.Millisecond)
	}
	f := measure(t, list, []interval{{At: 10 * time.Second, Healed: 12 * time.Second}}, 0, 20*time.Second).Faults[0]
	if f.Recovered != 10*time.Second || f.Outage != (Gap{}) || f.Uncompared != "" {
		t.Errorf("a fault that did nothing: %+v", f)
	}
	if f.Noise < 120*time.Millisecond || f.Noise > 124*time.Millisecond || f.Longest.Length() < 70*time.Millisecond {
		t.Errorf("noise %v, longest gap %v", f.Noise, f.Longest.Length())
	}
}

// TestFallAfterRecovery checks that the recovery counts when it is permanent, and from the injection rather
// than a later pause.
func TestFallAfterRecovery(t *testing.T) {
	const s = time.Second
	list := steady(nil, 0, 10*s, time.Millisecond, time.Millisecond)
	list = steady(list, 10*s, 13*s, 2*time.Millisecond, time.Millisecond)                   // half of it
	list = steady(list, 13*s, 15*s, time.Millisecond, time.Millisecond)                     // back
	list = steady(list, 15*s, 19*s, 2*time.Millisecond, time.Millisecond)                   // not for good
	list = steady(list, 19*s, 25*s, time.Millisecond, time.Millisecond)                     // and now for good
	list = steady(list, 25*s+80*time.Millisecond, 30*s, time.Millisecond, time.Millisecond) // a pause
	f := measure(t, list, []interval{{At: 10 * s, Healed: 12 * s}}, 0, 30*s).Faults[0]
	if f.Recovered < 18700*time.Millisecond || f.Recovered > 19100*time.Millisecond {
		t.Errorf("back at %v", f.Recovered)
	}
	if f.After.From != f.Recovered {
		t.Errorf("after begins at %v", f.After.From)
	}
}

// TestNothingToCompareWith checks that the recovery is unknown without a second of commits before the
// injection.
func TestNothingToCompareWith(t *testing.T) {
	const s = time.Second
	whole := steady(nil, 0, 20*s, time.Millisecond, time.Millisecond)
	for name, c := range map[string]struct {
		list     []history.Transaction
		from, at time.Duration
	}{
		"at the start":           {whole, 0, 100 * time.Millisecond},
		"within the warm-up":     {whole, 4 * s, 2 * s},
		"at the end":             {whole, 0, 19500 * time.Millisecond},
		"nothing committed then": {steady(nil, 10*s, 20*s, time.Millisecond, 0), 0, 5 * s},
	} {
		f := measure(t, c.list, []interval{{At: c.at, Healed: c.at + s}}, c.from, 20*s).Faults[0]
		if f.Recovered != -1 || f.Uncompared == "" {
			t.Errorf("%s: back at %v, %q", name, f.Recovered, f.Uncompared)
		}
	}
}

// TestBeforeBeginsAfterRecovery checks that the time in which an earlier fault still had an effect is not
// used for comparison.
func TestBeforeBeginsAfterRecovery(t *testing.T) {
	const s = time.Second
	list := steady(nil, 0, 5*s, time.Millisecond, time.Millisecond)
	list = steady(list, 8*s, 20*s, time.Millisecond, time.Millisecond)
	e := measure(t, list, []interval{{At: 5 * s, Healed: 6 * s}, {At: 12 * s, Healed: 13 * s}}, 0, 20*s)
	a, b := e.Faults[0], e.Faults[1]
	if a.Recovered != 8*s || b.Before.From != 8*s || !near(b.Before.TPS(), 1000) || b.Recovered != 12*s {
		t.Errorf("the first back at %v, before the second %+v, back at %v", a.Recovered, b.Before, b.Recovered)
	}
	late := measure(t, list, []interval{{At: 5 * s, Healed: 6 * s}, {At: 7 * s, Healed: 7500 * time.Millisecond}, {At: 12 * s, Healed: 13 * s}}, 0, 20*s).Faults
	if late[1].Before.TPS() != 0 || late[1].Uncompared == "" || late[2].Before.From != 8*s || late[2].Recovered != 12*s {
		t.Errorf("a fault before the one before was over: %+v, then %+v", late[1], late[2])
	}
}

// TestOutageBelongsToItsFault checks that a gap belongs to the fault in whose span it began, up to its end. A
// gap that had just begun at the next injection belongs to that one.
func TestOutageBelongsToItsFault(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for name, c := range map[string]struct {
		stops  time.Duration // the last commit before 14 s
		owner  int
		outage time.Duration
	}{
		"began before the second": {11 * s, 0, 3 * s},
		"began with the second":   {12*s - 3*ms, 1, 2 * s},
		"began in the second":     {13 * s, 1, s},
	} {
		list := steady(nil, 0, c.stops+1, ms, ms)
		list = steady(list, 14*s, 20*s, ms, ms)
		faults := measure(t, list, []interval{{At: 10 * s, Healed: 13 * s}, {At: 12 * s, Healed: 13 * s}}, 0, 20*s).Faults
		for i, f := range faults {
			want := time.Duration(0)
			if i == c.owner {
				want = c.outage
			}
			if got := f.Outage.Length(); got != want {
				t.Errorf("%s: outage of fault %d is %v, not %v", name, i, got, want)
			}
			if f.Recovered >= 0 && f.Recovered < f.Outage.To {
				t.Errorf("%s: fault %d is back at %v, before its outage ends at %v", name, i, f.Recovered, f.Outage.To)
			}
		}
	}
}

// TestFaultBeforeRecovery checks that, without recovery from one fault, the time before the next is reported
// but not used for comparison.
func TestFaultBeforeRecovery(t *testing.T) {
	const s = time.Second
	list := steady(nil, 0, 5*s, time.Millisecond, time.Millisecond)
	list = steady(list, 5*s, 20*s, 2*time.Millisecond, time.Millisecond)
	f := measure(t, list, []interval{{At: 5 * s, Healed: 6 * s}, {At: 12 * s, Healed: 13 * s}}, 0, 20*s).Faults[1]
	if f.Before.From != 6*s || !near(f.Before.TPS(), 500) || f.Recovered != -1 || !strings.Contains(f.Uncompared, "not back yet") {
		t.Errorf("%+v", f)
	}
}

// TestBackIsRobust checks that single slow seconds, which also occur without faults, do not decide the
// recovery. A fall caused by the fault does, however short it is.
func TestBackIsRobust(t *testing.T) {
	tier.SkipUnderRace(t)
	const s, ms = time.Second, time.Millisecond
	run := func(healed time.Duration, rate func(at time.Duration) time.Duration) Effect {
		var list []history.Transaction
		for at := time.Duration(0); at < 60*s; at += rate(at) {
			list = steady(list, at, at+1, s, ms)
		}
		return measure(t, list, []interval{{At: 10 * s, Healing: 20 * s, Healed: healed}}, 0, 60*s).Faults[0]
	}
	slow := func(at time.Duration, seconds ...time.Duration) time.Duration {
		for _, n := range seconds {
			if at >= n*s && at < (n+1)*s {
				return 2 * ms
			}
		}
		return ms
	}
	for name, c := range map[string]struct {
		healed   time.Duration
		rate     func(at time.Duration) time.Duration
		from, to time.Duration
	}{
		"slow seconds and no fault's fall": {20 * s, func(at time.Duration) time.Duration { return slow(at, 15, 30, 45, 58, 59) }, 10 * s, 10 * s},
		"a fall, then a slow second":       {20 * s, func(at time.Duration) time.Duration { return slow(at, 10, 11, 12, 13, 16, 40) }, 13700 * ms, 14100 * ms},
		"a slow second just after it":      {20 * s, func(at time.Duration) time.Duration { return slow(at, 10, 11, 12, 14) }, 12700 * ms, 13100 * ms},
		"a short fall at the injection":    {20 * s, func(at time.Duration) time.Duration { return slow(at, 10) }, 10700 * ms, 11100 * ms},
		"a short fall at the heal":         {20 * s, func(at time.Duration) time.Duration { return slow(at, 20) }, 20700 * ms, 21100 * ms},
		"a short fall while it heals":      {25 * s, func(at time.Duration) time.Duration { return slow(at, 22) }, 22700 * ms, 23100 * ms},
		"three slow seconds later":         {20 * s, func(at time.Duration) time.Duration { return slow(at, 40, 41, 42) }, 42700 * ms, 43100 * ms},
		"it never comes back": {20 * s, func(at time.Duration) time.Duration {
			if at >= 10*s && at%(5*s) >= s {
				return 2 * ms
			}
			return ms
		}, -1, -1},
		"half a second without a commit": {20 * s, func(at time.Duration) time.Duration {
			if at == 10*s+200*ms {
				return 500 * ms
			}
			return slow(at, 30)
		}, 10700 * ms, 10700 * ms},
	} {
		if f := run(c.healed, c.rate); f.Recovered < c.from || f.Recovered > c.to || f.Uncompared != "" {
			t.Errorf("%s: back at %v, want %v to %v", name, f.Recovered, c.from, c.to)
		}
	}
}

// TestAroundShowsShortOutages checks that an outage of half a second shows zero commits in the steps around
// its fault. The steps begin five seconds before the fault and end five seconds after the recovery; close
// faults share one stretch.
func TestAroundShowsShortOutages(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	list := steady(nil, 0, 20*s+1, ms, ms)
	list = steady(list, 20*s+500*ms, 99*s+950*ms, ms, ms)
	e := measure(t, list, []interval{{At: 20 * s, Healed: 22 * s}, {At: 33 * s, Healed: 34 * s}, {At: 40 * s, Healed: 42 * s}, {At: 97 * s, Healed: 98 * s}}, 0, 99*s+950*ms)
	var spans [][2]time.Duration
	for _, a := range e.Around {
		spans = append(spans, [2]time.Duration{a.From, a.From + time.Duration(len(a.Committed))*FineStep})
	}
	if want := [][2]time.Duration{{15 * s, 27 * s}, {28 * s, 47 * s}, {92 * s, 99*s + 900*ms}}; !slices.Equal(spans, want) {
		t.Fatalf("stretches %v, want %v", spans, want)
	}
	steps := e.Around[0].Committed
	if !slices.Equal(steps[49:56], []uint32{100, 1, 0, 0, 0, 0, 100}) {
		t.Errorf("about the outage %v", steps[45:60])
	}
}
