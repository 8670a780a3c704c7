package stats

import (
	"slices"
	"time"

	"stroppy/internal/history"
)

// mostColumns bounds the columns of time of a Breakdown.
const mostColumns = 720

// Breakdown gathers the committed transactions of a run by kind and by columns of time, in
// any order, in one pass. A column is a second wide, or twice that each time a run is too
// long for its columns. What ran in the background does not count; the warm-up counts in
// the columns and not in the Summary of a kind. It takes some 5 kB for each column and
// kind, and so 20 MB at most for five kinds. The zero Breakdown has nothing in it.
type Breakdown struct {
	doubled uint // how often the width was
	kinds   map[history.Kind]*kindCounts
}

// kindCounts are the transactions of one kind.
type kindCounts struct {
	measured distribution
	columns  []*column // nil where nothing committed
}

type column struct {
	counts // two digits
	exact
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
	c := k.at(int(n >> b.doubled))
	c.exact.add(latency)
	c.counts.add(twoDigits.index(min(latency, highest)))
}

// at returns a column, which it makes.
func (k *kindCounts) at(n int) *column {
	if more := n + 1 - len(k.columns); more > 0 {
		k.columns = append(k.columns, make([]*column, more)...)
	}
	if k.columns[n] == nil {
		k.columns[n] = new(column)
	}
	return k.columns[n]
}

// widen joins each two neighbouring columns.
func (b *Breakdown) widen() {
	b.doubled++
	for _, k := range b.kinds {
		halves := k.columns
		k.columns = nil
		for n, c := range halves {
			if c == nil {
				continue
			}
			if n%2 == 0 || halves[n-1] == nil {
				k.at(n / 2)
				k.columns[n/2] = c
				continue
			}
			joined := k.columns[n/2]
			joined.merge(c.exact)
			joined.join(&c.counts)
		}
	}
}

// Width is that of a column.
func (b *Breakdown) Width() time.Duration { return time.Second << b.doubled }

// Kinds are those of which one committed, ascending.
func (b *Breakdown) Kinds() (kinds []history.Kind) {
	for k := range b.kinds {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return kinds
}

// Measured describes the latencies of a kind's committed transactions, without what was due
// in the warm-up.
func (b *Breakdown) Measured(kind history.Kind) Summary {
	if k := b.kinds[kind]; k != nil {
		return k.measured.summary()
	}
	return Summary{}
}

// Column is what committed in a column of time. Latencies are to two digits, Max is exact.
type Column struct {
	From                     time.Duration
	Committed                uint64
	P50, P90, P99, P999, Max time.Duration
	Buckets                  []Bucket // ascending, without the empty ones
}

// Columns returns those of some kinds together in which one committed.
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
