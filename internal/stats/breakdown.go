package stats

import (
	"cmp"
	"slices"
	"time"

	"stroppy/internal/history"
)

// mostColumns limits the time columns of a Breakdown.
const mostColumns = 720

// Breakdown collects the committed transactions of a run by kind and time column, in any order and in one
// pass. A column is one second wide; the width doubles when a run has too many columns. Background
// transactions are ignored. The warm-up counts in the columns but not in the Summary of a kind.
//
// It needs about 5 kB for each column and kind, at most 20 MB for five kinds. The zero Breakdown is empty.
type Breakdown struct {
	doubled uint // how often the width was
	kinds   map[history.Kind]*kindCounts
}

// kindCounts holds the transactions of one kind.
type kindCounts struct {
	measured distribution
	columns  []*timed // of two digits; nil if nothing committed
}

// Add counts one transaction.
func (b *Breakdown) Add(tx *history.Transaction) {
	n := tx.End / int64(time.Second)
	if tx.Kind.Background() || tx.Outcome != history.Committed || tx.End < 0 || n >= maxSeconds {
		return
	}
	for n>>b.doubled >= mostColumns {
		b.widen()
	}
	k := b.kinds[tx.Kind]
	if k == nil {
		if b.kinds == nil {
			b.kinds = make(map[history.Kind]*kindCounts)
		}
		k = new(kindCounts)
		b.kinds[tx.Kind] = k
	}
	latency := max(tx.End-tx.Due, 0)
	if !tx.Warmup {
		k.measured.exact.add(latency)
		k.measured.counting()[threeDigits.index(min(latency, highest))]++
	}
	k.at(int(n>>b.doubled)).record(latency, twoDigits.index(min(latency, highest)))
}

// at returns a column, and creates it if necessary.
func (k *kindCounts) at(n int) *timed {
	k.columns = grown(k.columns, n)
	if k.columns[n] == nil {
		k.columns[n] = new(timed)
	}
	return k.columns[n]
}

// widen merges pairs of adjacent columns.
func (b *Breakdown) widen() {
	b.doubled++
	for _, k := range b.kinds {
		k.columns = halved(k.columns, func(first, second *timed) *timed {
			if first == nil || second == nil {
				return cmp.Or(first, second)
			}
			first.merge(second.exact)
			first.join(&second.counts)
			return first
		})
	}
}

// Width returns the width of a column.
func (b *Breakdown) Width() time.Duration { return time.Second << b.doubled }

// Kinds returns the kinds with a committed transaction, in ascending order.
func (b *Breakdown) Kinds() (kinds []history.Kind) {
	for k := range b.kinds {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return kinds
}

// Measured returns the latencies of a kind's committed transactions without the warm-up.
func (b *Breakdown) Measured(kind history.Kind) Summary {
	if k := b.kinds[kind]; k != nil {
		return k.measured.summary()
	}
	return Summary{}
}

// Column describes the transactions that committed in a time column. Latencies have two digits; Max is exact.
type Column struct {
	From                     time.Duration
	Committed                uint64
	P50, P90, P99, P999, Max time.Duration
	Buckets                  []Bucket // ascending, without the empty ones
}

// Columns returns the non-empty columns of the given kinds together.
func (b *Breakdown) Columns(kinds ...history.Kind) (list []Column) {
	longest := 0
	for _, kind := range kinds {
		if k := b.kinds[kind]; k != nil {
			longest = max(longest, len(k.columns))
		}
	}
	dense := make([]uint64, twoDigits.size())
	for n := range longest {
		clear(dense)
		var all exact
		for _, kind := range kinds {
			if k := b.kinds[kind]; k != nil && n < len(k.columns) && k.columns[n] != nil {
				all.merge(k.columns[n].exact)
				k.columns[n].addTo(dense)
			}
		}
		if all.count == 0 {
			continue
		}
		at := func(q float64) time.Duration {
			return time.Duration(min(twoDigits.quantile(dense, q, all.count), all.max))
		}
		list = append(list, Column{
			From: time.Duration(n) * b.Width(), Committed: all.count,
			P50: at(0.50), P90: at(0.90), P99: at(0.99), P999: at(0.999), Max: time.Duration(all.max), Buckets: twoDigits.buckets(dense),
		})
	}
	return list
}
