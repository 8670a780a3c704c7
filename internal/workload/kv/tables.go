package kv

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// ofKind is what the committed transactions of one kind came to.
type ofKind struct {
	count         uint64
	nothing       uint64 // found no record
	read, written uint64 // bytes of keys and values
	latency       *hdrhistogram.Histogram
}

const (
	mostLatency = int64(24 * time.Hour)
	digits      = 3 // of a histogram: an error of at most 0.1 %
)

// tables are the measurements of each kind of transaction in a recorded run.
func tables(ctx context.Context, recorded *history.Reader) ([]workload.Table, error) {
	var err error
	keySize := formulaOf(recorded.Header()).key
	var of [len(kinds)]ofKind
	begin, end := int64(-1), int64(0)
	for rec := range check.Each(&check.Watch{Ctx: ctx}, "the history", recorded.Transactions(), &err) {
		number := slices.IndexFunc(kinds[:], func(d history.Declared) bool { return d.Number == uint8(rec.Kind) })
		if rec.Warmup || number < 0 {
			continue
		}
		if begin < 0 || rec.Due < begin {
			begin = rec.Due
		}
		if rec.Outcome == history.Committed {
			end = max(end, rec.End)
			of[number].add(rec.Transaction, keySize)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("add up the transactions of each kind: %w", err)
	}
	if end <= begin {
		return nil, nil
	}
	seconds := float64(end-begin) / 1e9
	table := workload.Table{
		Title:   "Reads and writes",
		Columns: []string{"", "committed", "per second", "mean ms", "p50 ms", "p95 ms", "p99 ms", "found nothing", "read MB/s", "written MB/s"},
		Notes: []string{fmt.Sprintf("Per second of the %.4g s from when the first counted transaction was due to the last answer. "+
			"Latency counts from when a transaction was due. Bytes are those of keys and values of committed transactions; 1 MB is 1,000,000 bytes.", seconds)},
	}
	for i := range of {
		if k := &of[i]; k.count > 0 {
			table.Rows = append(table.Rows, k.row(kinds[i].Name, seconds))
		}
	}
	return []workload.Table{table}, nil
}

func (k *ofKind) add(tx *history.Transaction, keySize uint64) {
	if k.latency == nil {
		k.latency = hdrhistogram.New(1, mostLatency, digits)
	}
	k.count++
	_ = k.latency.RecordValue(min(max(tx.End-tx.Due, 1), mostLatency)) // within its bounds it has no error
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

func (k *ofKind) row(name string, seconds float64) []string {
	ms := func(ns float64) string { return figure(ns/1e6, 3) }
	at := func(quantile float64) string { return ms(float64(k.latency.ValueAtQuantile(quantile))) }
	rate := func(bytes uint64) string { return figure(float64(bytes)/1e6/seconds, 4) }
	return []string{
		name, fmt.Sprint(k.count), figure(float64(k.count)/seconds, 6),
		ms(k.latency.Mean()), at(50), at(95), at(99), fmt.Sprint(k.nothing), rate(k.read), rate(k.written),
	}
}

// figure writes a number with so many digits that matter, and no exponent.
func figure(x float64, digits int) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
