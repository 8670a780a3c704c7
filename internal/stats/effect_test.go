package stats

import (
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"stroppy/internal/history"
)

// steady commits one transaction each interval in [from, to), each with the
// given latency.
func steady(list []history.Transaction, from, to, interval, latency time.Duration) []history.Transaction {
	for at := from; at < to; at += interval {
		list = append(list, history.Transaction{
			Kind: history.Transfer, Outcome: history.Committed, Due: int64(at - latency), End: int64(at),
		})
	}
	return list
}

func measure(t *testing.T, list []history.Transaction, spells []Spell, from, to time.Duration) Effects {
	t.Helper()
	read := func() iter.Seq2[history.Record, error] {
		return func(yield func(history.Record, error) bool) {
			for i := range list {
				if !yield(history.Record{Transaction: &list[i]}, nil) {
					return
				}
			}
		}
	}
	e, err := MeasureEffects(read, spells, from, to)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func near(got, want float64) bool { return math.Abs(got-want) <= want/50 }

// A fault at 10 s: nothing for 2 s, a quarter of the throughput for 3 s with
// five times the latency, then all of it. Healed at 13 s.
func TestEffectOfOneFault(t *testing.T) {
	list := steady(nil, 0, 10*time.Second, 10*time.Millisecond, time.Millisecond)
	list = steady(list, 12*time.Second, 15*time.Second, 40*time.Millisecond, 5*time.Millisecond)
	list = steady(list, 15*time.Second, 30*time.Second, 10*time.Millisecond, time.Millisecond)
	list = append(list,
		history.Transaction{Kind: history.Transfer, Outcome: history.Unknown, End: int64(11 * time.Second)},
		history.Transaction{Kind: history.Transfer, Outcome: history.Aborted, LookedUp: true, End: int64(12 * time.Second)},
		history.Transaction{Kind: history.Transfer, Outcome: history.Committed, LookedUp: true, End: int64(13 * time.Second)},
		history.Transaction{Kind: history.Audit, Outcome: history.Committed, End: int64(11 * time.Second)},
	)
	slices.Reverse(list) // the order of the records does not matter
	e := measure(t, list, []Spell{{At: 10 * time.Second, Healed: 13 * time.Second}}, 2*time.Second, 30*time.Second)
	f := e.Faults[0]
	if got := f.Outage; got.From != 9990*time.Millisecond || got.To != 12*time.Second {
		t.Errorf("outage %v to %v", got.From, got.To)
	}
	// 90 of 100 are there in the second from 14.9 s on: 2 or 3 of the old, 90 of the new.
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
	if e.First.From != 2*time.Second || e.First.To != 10*time.Second || e.Last.To != 30*time.Second || !near(e.Last.TPS(), 100) {
		t.Errorf("first %v, last %v", e.First, e.Last)
	}
}

func TestEffectThatNeverEnds(t *testing.T) {
	list := steady(nil, 0, 5*time.Second, 10*time.Millisecond, time.Millisecond)
	f := measure(t, list, []Spell{{At: 5 * time.Second, Healed: 8 * time.Second}}, 0, 20*time.Second).Faults[0]
	if f.Outage.To != 20*time.Second || f.Recovered != -1 || f.After.Committed != 0 || f.After.TPS() != 0 {
		t.Errorf("got %+v", f)
	}
}

// Two faults: what comes before the second begins when the first was healed, and
// each has its own outage.
func TestEffectsOfTwoFaults(t *testing.T) {
	list := steady(nil, 0, 4*time.Second, 10*time.Millisecond, time.Millisecond)
	list = steady(list, 5*time.Second, 10*time.Second, 10*time.Millisecond, time.Millisecond)
	list = steady(list, 13*time.Second, 20*time.Second, 20*time.Millisecond, time.Millisecond)
	e := measure(t, list, []Spell{{4 * time.Second, 6 * time.Second}, {10 * time.Second, 11 * time.Second}}, 0, 20*time.Second)
	a, b := e.Faults[0], e.Faults[1]
	if !near(a.Outage.Length().Seconds(), 1.01) || !near(b.Outage.Length().Seconds(), 3.01) {
		t.Errorf("outages %v and %v", a.Outage.Length(), b.Outage.Length())
	}
	if b.Before.From != 6*time.Second || b.Before.To != 10*time.Second || a.After.To != 10*time.Second {
		t.Errorf("before the second %v, after the first %v", b.Before, a.After)
	}
	if a.Recovered < 5*time.Second || a.Recovered > 5100*time.Millisecond || b.Recovered != -1 {
		t.Errorf("recovered %v and %v", a.Recovered, b.Recovered)
	}
	if !near(e.First.TPS(), 100) || e.Last.TPS() != 0 {
		t.Errorf("first %v, last %v: a database that does not recover has no part without an effect", e.First.TPS(), e.Last.TPS())
	}
}

func TestNoFaultsNoEffects(t *testing.T) {
	if e := measure(t, steady(nil, 0, time.Second, time.Millisecond, 0), nil, 0, time.Second); len(e.Faults) != 0 || e.First != (Phase{}) {
		t.Errorf("got %+v", e)
	}
}
