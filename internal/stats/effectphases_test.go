package stats

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stroppy/internal/history"
)

// TestPhasesHoldWhatEndedInThem recounts every phase of overlapping faults, transaction by transaction.
func TestPhasesHoldWhatEndedInThem(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		var list []history.Transaction
		for range 4000 {
			end := rng.Int64N(int64(40 * time.Second))
			list = append(list, history.Transaction{Kind: kindTransfer, Outcome: history.Committed, Due: end - rng.Int64N(int64(time.Second)), End: end})
		}
		var intervals []interval
		for range 1 + rng.IntN(8) {
			at := time.Duration(rng.IntN(36_000)) * time.Millisecond
			intervals = append(intervals, interval{At: at, Healed: at + time.Duration(rng.IntN(6000))*time.Millisecond})
		}
		slices.SortFunc(intervals, func(a, b interval) int { return int(a.At - b.At) })
		e := measure(t, list, intervals, 2*time.Second, 40*time.Second)
		phases := []Phase{e.First, e.Last}
		for _, f := range e.Faults {
			phases = append(phases, f.Before, f.During, f.After)
		}
		for _, p := range phases {
			var latencies []time.Duration
			for _, tx := range list {
				if at := time.Duration(tx.End); at >= p.From && at < p.To {
					latencies = append(latencies, time.Duration(tx.End-tx.Due))
				}
			}
			if p.Committed != uint64(len(latencies)) {
				t.Fatalf("%v to %v: %d committed, not %d", p.From, p.To, p.Committed, len(latencies))
			}
			if len(latencies) == 0 {
				continue
			}
			slices.Sort(latencies)
			want := latencies[max(int(rank(0.99, uint64(len(latencies)))), 1)-1]
			if d := p.P99 - want; d < 0 || d > want/1000+time.Microsecond {
				t.Fatalf("%v to %v: p99 %v, not %v", p.From, p.To, p.P99, want)
			}
		}
	}
}
