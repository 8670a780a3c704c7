package load

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/tier"
)

// quick is a client whose database takes no time. It reads and changes two accounts.
type quick struct {
	number, made uint64
}

func (c *quick) Next(tx *history.Transaction) {
	c.made++
	tx.ID = history.NewID(1, c.number, c.made)
	tx.Kind = kindTransfer
	h := c.made * 0x9e3779b97f4a7c15
	tx.Ops = append(tx.Ops[:0],
		history.Op{Object: h >> 44, Write: true, Amount: -int64(h & 0xffff)},
		history.Op{Object: h >> 24 & (1<<20 - 1), Write: true, Amount: int64(h & 0xffff)})
}

func (c *quick) Attempt(_ context.Context, tx *history.Transaction) error {
	for i := range tx.Ops {
		op := &tx.Ops[i]
		op.Observed, op.Value, op.Version, op.Writer = true, 1_000_000-op.Amount, c.made, tx.ID-1
	}
	tx.Outcome = history.Committed
	return nil
}

func (*quick) ResolveUnknown(context.Context, *history.Transaction) error { return nil }
func (*quick) Reset(context.Context) error                                { return nil }
func (*quick) Close() error                                               { return nil }

// drive runs quick clients with the given options.
func drive(b *testing.B, o Options, clients int) *Result {
	b.Helper()
	for i := range clients {
		o.Clients = append(o.Clients, &quick{number: uint64(i)})
	}
	var err error
	if o.History, err = history.Create(b.TempDir(), history.Header{Run: 1}, clients); err != nil {
		b.Fatal(err)
	}
	o.Start = time.Now()
	d := New(o)
	b.ResetTimer()
	r, err := d.Run(b.Context())
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	if err := o.History.Close(); err != nil {
		b.Fatal(err)
	}
	return r
}

// BenchmarkTransaction measures the cost of the load generator for each transaction, including history and
// histograms.
func BenchmarkTransaction(b *testing.B) {
	for _, clients := range []int{1, 2, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			b.ReportAllocs()
			r := drive(b, Options{Count: uint64(b.N)}, clients)
			b.ReportMetric(r.CPUSeconds*1e9/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkOpenLoop measures how late transactions are sent and what waiting costs. Each iteration is one
// transaction.
func BenchmarkOpenLoop(b *testing.B) {
	for _, c := range []struct {
		clients int
		rate    float64
	}{{1, 100}, {1, 1000}, {1, 100_000}, {16, 1000}, {16, 10_000}, {16, 20_000}, {64, 50_000}} {
		b.Run(fmt.Sprintf("clients=%d/rate=%.0f", c.clients, c.rate), func(b *testing.B) {
			b.ReportAllocs()
			r := drive(b, Options{Count: uint64(b.N), Plan: constant(c.rate)}, c.clients)
			b.ReportMetric(float64(r.Measurements.Pacing.P50.Nanoseconds()), "pacing-p50-ns")
			b.ReportMetric(float64(r.Measurements.Pacing.P99.Nanoseconds()), "pacing-p99-ns")
			b.ReportMetric(float64(r.Measurements.Latency.P99.Nanoseconds()), "p99-ns")
			b.ReportMetric(r.CPUSeconds*1e9/float64(b.N), "cpu-ns/op")
		})
	}
}

// TestTransactionsAllocateNothing checks that a load phase with a hundred times as many transactions
// allocates no more, except for history buffers.
func TestTransactionsAllocateNothing(t *testing.T) {
	tier.SkipUnderRace(t)
	run := func(count uint64) float64 {
		return testing.AllocsPerRun(3, func() {
			w, err := history.Create(t.TempDir(), history.Header{Run: 1}, 1)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Clients: []Client{&quick{}}, Count: count, History: w, Start: time.Now()}
			if _, err := New(o).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := run(1_000), run(100_000)
	if more := math.Max(0, many-few) / 99_000; more > 0.01 {
		t.Errorf("%.3f allocations a transaction", more)
	}
}
