package kv

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// ofKind holds the measurements of the committed transactions of one kind.
type ofKind struct {
	count         uint64
	nothing       uint64 // found no record
	read, written uint64 // bytes of keys and values
	latency       *hdrhistogram.Histogram
	sum, slowest  int64 // ns
}

const (
	// The histograms have the bounds of package stats, so that a report has one value of a quantile.
	leastLatency, mostLatency = int64(time.Microsecond), int64(time.Hour)
	digits                    = 3 // of a histogram: an error of at most 0.1 %
)

// measured holds one goroutine's measurements of a recorded run.
type measured struct {
	keySize    uint64
	begin, end int64 // ns: when the first counted transaction was due, and the last answer; begin is never at first
	of         [len(kinds)]ofKind
}

const never = math.MaxInt64

// kindAt holds the place in kinds of each kind number, plus one; 0: no kind.
var kindAt = func() (at [256]uint8) {
	for i, kind := range kinds {
		at[kind.Number] = uint8(i + 1)
	}
	return at
}()

func (m *measured) add(tx *history.Transaction) {
	at := kindAt[tx.Kind]
	if tx.Warmup || at == 0 {
		return
	}
	m.begin = min(m.begin, tx.Due)
	if tx.Outcome == history.Committed {
		m.end = max(m.end, tx.End)
		m.of[at-1].add(tx, m.keySize)
	}
}

// join adds what another has measured.
func (m *measured) join(other *measured) {
	m.begin, m.end = min(m.begin, other.begin), max(m.end, other.end)
	for i := range m.of {
		m.of[i].join(&other.of[i])
	}
}

// measurement holds the measurements of a recorded run by all goroutines.
type measurement struct {
	check.Meter
	keySize uint64
	parts   []*measured
}

func measure(h history.Header) *measurement {
	m := &measurement{keySize: formulaOf(h).key}
	m.Worker = func() func(tx *history.Transaction) {
		part := &measured{keySize: m.keySize, begin: never}
		m.parts = append(m.parts, part)
		return part.add
	}
	return m
}

// tables returns the measurements of each kind of transaction in a recorded run.
func tables(ctx context.Context, recorded *history.Reader) ([]workload.Table, error) {
	m := measure(recorded.Header())
	if err := m.Read(ctx, recorded); err != nil {
		return nil, fmt.Errorf("add up the transactions of each kind: %w", err)
	}
	return m.tables(), nil
}

func (m *measurement) tables() []workload.Table {
	all := measured{begin: never}
	for _, part := range m.parts {
		all.join(part)
	}
	if all.end <= all.begin {
		return nil
	}
	seconds := float64(all.end-all.begin) / 1e9
	table := workload.Table{
		Title:   "Reads and writes",
		Columns: []string{"", "committed", "per second", "mean ms", "p50 ms", "p95 ms", "p99 ms", "found nothing", "read MB/s", "written MB/s"},
		Notes: []string{fmt.Sprintf("Per second of the %.4g s from when the first counted transaction was due to the last answer. "+
			"Latency counts from when a transaction was due. Bytes count keys and values of committed transactions; 1 MB is 1,000,000 bytes.", seconds)},
	}
	for i := range all.of {
		if k := &all.of[i]; k.count > 0 {
			table.Rows = append(table.Rows, k.row(kinds[i].Name, seconds))
		}
	}
	return []workload.Table{table}
}

func (k *ofKind) add(tx *history.Transaction, keySize uint64) {
	if k.latency == nil {
		k.latency = hdrhistogram.New(leastLatency, mostLatency, digits)
	}
	k.count++
	took := max(tx.End-tx.Due, 0)
	k.sum, k.slowest = k.sum+took, max(k.slowest, took)
	_ = k.latency.RecordValue(min(took, mostLatency)) // within its bounds it has no error
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if op.Write {
			k.written += keySize + uint64(op.Amount)
		}
		switch {
		case op.Observed && op.State != history.Absent:
			k.read += keySize + uint64(op.Value)
		case op.Observed && i == 0 && len(tx.Ops) == 1 && tx.Kind != insert:
			k.nothing++
		}
	}
}

func (k *ofKind) join(other *ofKind) {
	if other.count == 0 {
		return
	}
	if k.latency == nil {
		k.latency = hdrhistogram.New(leastLatency, mostLatency, digits)
	}
	k.latency.Merge(other.latency)
	k.sum, k.slowest = k.sum+other.sum, max(k.slowest, other.slowest)
	k.count, k.nothing = k.count+other.count, k.nothing+other.nothing
	k.read, k.written = k.read+other.read, k.written+other.written
}

func (k *ofKind) row(name string, seconds float64) []string {
	at := func(q float64) string { return check.LatencyText(float64(k.quantile(q)) / 1e6) }
	rate := func(bytes uint64) string { return check.RateText(float64(bytes) / 1e6 / seconds) }
	return []string{
		name, check.Group(k.count), check.RateText(float64(k.count) / seconds),
		check.LatencyText(float64(k.sum) / float64(k.count) / 1e6), at(0.50), at(0.95), at(0.99), check.Group(k.nothing), rate(k.read), rate(k.written),
	}
}

// quantile returns the nearest-rank quantile, in nanoseconds. The histogram's own quantile sometimes rounds the rank
// down.
func (k *ofKind) quantile(q float64) int64 {
	rank := math.Ceil(q * float64(k.count))
	return min(k.latency.ValueAtQuantile(100*rank/float64(k.count)), k.slowest)
}
