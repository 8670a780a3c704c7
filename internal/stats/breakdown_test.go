package stats

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/tier"
)

// TestBreakdownAgainstPlainCount compares a breakdown in any order, with merged columns, with a plain count of each
// column.
func TestBreakdownAgainstPlainCount(t *testing.T) {
	tier.SkipUnderRace(t)
	random := rand.New(rand.NewPCG(7, 8))
	for _, seconds := range []int64{1, mostColumns, mostColumns + 1, 5000, 36_000} {
		var b Breakdown
		var list []history.Transaction
		for range 60_000 {
			end := random.Int64N(seconds * int64(time.Second))
			list = append(list, history.Transaction{
				Kind: []history.Kind{kindTransfer, kindTransfer, kindTransfer + 1, kindAudit}[random.IntN(4)], Warmup: end < int64(300*time.Millisecond),
				Outcome: []history.Outcome{history.Committed, history.Committed, history.Aborted}[random.IntN(3)],
				Due:     end - int64(random.ExpFloat64()*float64(20*time.Millisecond)) + 1000, End: end,
			})
		}
		for i := range list {
			b.Add(&list[i])
		}
		if got := b.Kinds(); !slices.Equal(got, []history.Kind{kindTransfer, kindTransfer + 1}) {
			t.Fatalf("kinds %v", got)
		}
		if columns := (time.Duration(seconds)*time.Second + b.Width() - 1) / b.Width(); columns > mostColumns || b.Width() > time.Second && columns < mostColumns/2 {
			t.Errorf("%d s: columns of %v", seconds, b.Width())
		}
		for _, kinds := range [][]history.Kind{{kindTransfer}, {kindTransfer, kindTransfer + 1}} {
			want := map[time.Duration][]time.Duration{} // latencies by column
			measured := uint64(0)
			for _, tx := range list {
				if tx.Outcome == history.Committed && slices.Contains(kinds, tx.Kind) {
					from := time.Duration(tx.End).Truncate(b.Width())
					want[from] = append(want[from], max(time.Duration(tx.End-tx.Due), 0))
					if !tx.Warmup {
						measured++
					}
				}
			}
			got := b.Columns(kinds...)
			if len(got) != len(want) {
				t.Errorf("%d s: %d columns, want %d", seconds, len(got), len(want))
			}
			for _, c := range got {
				all := want[c.From]
				slices.Sort(all)
				if len(all) == 0 || c.Committed != uint64(len(all)) || c.Max != all[len(all)-1] {
					t.Fatalf("%d s: the column at %v has %d with the maximum %v, want %d", seconds, c.From, c.Committed, c.Max, len(all))
				}
				for _, p := range []struct {
					q   float64
					got time.Duration
				}{{0.5, c.P50}, {0.9, c.P90}, {0.99, c.P99}, {0.999, c.P999}} {
					exact := all[rank(p.q, uint64(len(all)))-1]
					if p.got < exact || p.got > exact+exact/100+time.Microsecond {
						t.Fatalf("%d s: the quantile %v at %v is %v, want %v", seconds, p.q, c.From, p.got, exact)
					}
				}
				sum := uint64(0)
				for _, bucket := range c.Buckets {
					sum += bucket.Count
				}
				if sum != c.Committed {
					t.Fatalf("%d in the buckets of %d", sum, c.Committed)
				}
			}
			sum := uint64(0)
			for _, kind := range kinds {
				s := b.Measured(kind)
				sum += s.Count
			}
			if sum != measured {
				t.Errorf("%d s: measured %d, want %d", seconds, sum, measured)
			}
		}
	}
}

func TestBreakdownOfNothing(t *testing.T) {
	var b Breakdown
	b.Add(&history.Transaction{Kind: kindTransfer, Outcome: history.Committed, End: -1})
	if s := b.Measured(kindTransfer); len(b.Kinds()) != 0 || len(b.Columns(kindTransfer)) != 0 || s.Count != 0 {
		t.Error("something committed")
	}
}
