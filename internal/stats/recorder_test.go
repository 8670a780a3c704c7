package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"stroppy/internal/history"
)

// lowest is the start of the histograms' buckets: a microsecond.
const lowest = 1_000

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

// randomNS returns a duration of any magnitude up to an hour, and sometimes longer.
func randomNS(r *rand.Rand) int64 {
	switch r.IntN(30) {
	case 0:
		return []int64{0, 1, lowest - 1, lowest, 1<<20 - 1, 1 << 20, highest - 1, highest, highest + 1, math.MaxInt64, -1}[r.IntN(11)]
	case 1:
		return int64(r.Uint64() >> 1 >> r.IntN(63))
	}
	return int64(float64(200_000) * math.Exp(2*r.NormFloat64()))
}

func randomTransaction(r *rand.Rand) history.Transaction {
	tx := history.Transaction{
		Kind: history.Kind(r.IntN(6)), Outcome: history.Outcome(r.IntN(4)), Reason: history.Reason(r.IntN(4)),
		LookedUp: r.IntN(5) == 0, Warmup: r.IntN(5) == 0, Attempts: uint32(r.IntN(4)),
	}
	if r.IntN(2) == 0 {
		tx.Outcome = history.Committed
	}
	if r.IntN(100) == 0 {
		tx.Kind, tx.Reason, tx.Outcome = 200, 200, 200
	}
	tx.Sent = int64(r.IntN(1e9))
	tx.Due = tx.Sent
	if r.IntN(2) == 0 {
		tx.Due -= int64(r.IntN(1e6))
	}
	tx.End = tx.Sent + randomNS(r)/2
	return tx
}

// checkSummary recomputes a Summary from all values.
func checkSummary(t *testing.T, what string, got Summary, values []int64) {
	t.Helper()
	want := hdrhistogram.New(lowest, highest, 3)
	sum, top := new(big.Int), int64(0)
	for i, v := range values {
		v = max(v, 0)
		values[i] = v
		sum.Add(sum, big.NewInt(v))
		top = max(top, v)
		if err := want.RecordValue(min(v, highest)); err != nil {
			t.Fatal(err)
		}
	}
	if got.Count != uint64(len(values)) || got.Max != time.Duration(top) {
		t.Errorf("%s: count %d, max %v, want %d, %v", what, got.Count, got.Max, len(values), time.Duration(top))
	}
	if !equalCounts(want.Export().Counts, got.all.dense) {
		t.Errorf("%s: the merged histogram is not the one of all values", what)
	}
	if len(values) == 0 {
		if got.Mean != 0 || got.P999 != 0 {
			t.Errorf("%s: measurements of nothing: %+v", what, got)
		}
		return
	}
	if mean := sum.Div(sum, big.NewInt(int64(len(values)))); got.Mean != time.Duration(mean.Int64()) {
		t.Errorf("%s: mean %v, want %v", what, got.Mean, mean)
	}
	slices.Sort(values)
	for _, p := range []struct {
		q   float64
		got time.Duration
	}{{0.5, got.P50}, {0.9, got.P90}, {0.95, got.P95}, {0.99, got.P99}, {0.999, got.P999}} {
		exact := min(values[max(int(rank(p.q, uint64(len(values)))), 1)-1], highest)
		over := int64(p.got) - exact
		if over < -1 && exact < highest || float64(over) > max(512, float64(exact)/1000) {
			t.Errorf("%s: the share %v of %d lies at %v, want %v", what, p.q, len(values), p.got, time.Duration(exact))
		}
	}
}

// equalCounts compares counts by bucket. A bucket that only one side has must be empty.
func equalCounts(want []int64, got []uint64) bool {
	for i := range max(len(want), len(got)) {
		var w, g uint64
		if i < len(want) {
			w = uint64(want[i])
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			return false
		}
	}
	return true
}

func TestMergedRecordersEqualNaiveFigures(t *testing.T) {
	r := newRandom(1)
	for round := range 25 {
		var want Measurements
		var latency, service, retried, rejected, aborted, unknown, paced []int64
		recorders := []*Recorder{nil}
		outside := func(v int64) {
			if v < 0 || v > highest {
				want.Clipped++
			}
		}
		for range r.IntN(6) {
			rec := new(Recorder)
			recorders = append(recorders, rec)
			for range r.IntN(3000) {
				tx := randomTransaction(r)
				rec.Record(&tx)
				sent, free := r.IntN(2) == 0, r.IntN(2) == 0
				if sent {
					rec.RecordSent(&tx, free)
				}
				if tx.Warmup {
					continue
				}
				if sent && free {
					paced = append(paced, tx.Sent-tx.Due)
				}
				want.Retries += uint64(max(tx.Attempts, 1) - 1)
				switch tx.Outcome {
				case history.Committed:
					latency, service = append(latency, tx.End-tx.Due), append(service, tx.End-tx.Sent)
					outside(tx.End - tx.Due)
					outside(tx.End - tx.Sent)
					if tx.Attempts > 1 {
						retried = append(retried, tx.End-tx.Due)
					}
				case history.Rejected:
					rejected = append(rejected, tx.End-tx.Due)
					outside(tx.End - tx.Due)
				case history.Aborted:
					aborted = append(aborted, tx.End-tx.Due)
					outside(tx.End - tx.Due)
				default:
					unknown = append(unknown, tx.End-tx.Due)
					outside(tx.End - tx.Due)
				}
			}
		}
		got := Merge(recorders...)
		checkSummary(t, "latency", got.Latency, latency)
		checkSummary(t, "service", got.Service, service)
		checkSummary(t, "retried", got.LatencyRetried, retried)
		checkSummary(t, "rejected", got.LatencyRejected, rejected)
		checkSummary(t, "aborted", got.LatencyAborted, aborted)
		checkSummary(t, "unknown", got.LatencyUnknown, unknown)
		checkSummary(t, "pacing", got.Pacing, paced)
		for _, s := range []*Summary{&got.Latency, &got.Service, &got.LatencyRetried, &got.LatencyRejected, &got.LatencyAborted, &got.LatencyUnknown, &got.Pacing} {
			*s = Summary{}
		}
		if diff := cmp.Diff(want, *got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("round %d: -want +got:\n%s", round, diff)
		}
	}
}

// TestBucketsAreThoseOfHdrHistogram compares the ends of every bucket.
func TestBucketsAreThoseOfHdrHistogram(t *testing.T) {
	h, c := hdrhistogram.New(lowest, highest, 3), threeDigits
	dense := h.Export().Counts
	for i := range c.index(highest) + 1 {
		low, high := c.value(i), c.value(i+1)-1
		if c.index(low) != i || c.index(high) != i {
			t.Fatalf("bucket %d is from %d to %d, whose buckets are %d and %d", i, low, high, c.index(low), c.index(high))
		}
		if low <= highest {
			if err := h.RecordValue(low); err != nil {
				t.Fatal(err)
			}
		}
		if got := h.ValuesAreEquivalent(low, high); !got || i > 0 && h.ValuesAreEquivalent(low-1, low) {
			t.Fatalf("bucket %d from %d to %d is not one of HdrHistogram's", i, low, high)
		}
	}
	if got := h.Export().Counts; len(got) != len(dense) || slices.Max(got) != 1 {
		t.Errorf("%d buckets, the fullest has %d", len(got), slices.Max(got))
	}
}

func TestCountsBeyondAByteAreCarried(t *testing.T) {
	c := counts{}
	want := map[int]uint64{0: 255, 1: 256, 700: 257, 2000: 100_000, threeDigits.index(highest): 512}
	for index, n := range want {
		for range n {
			c.add(index)
		}
	}
	got := map[int]uint64{}
	dense := make([]uint64, threeDigits.size())
	c.addTo(dense)
	for index, count := range dense {
		if count > 0 {
			got[index] = count
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestClippedValuesAreCounted(t *testing.T) {
	r := new(Recorder)
	hour := int64(time.Hour)
	for _, v := range []int64{hour, hour + 1, 5 * hour} {
		r.Record(&history.Transaction{Outcome: history.Committed, Due: 0, Sent: v - 1000, End: v})
	}
	f := Merge(r)
	if f.Clipped != 2 || f.Latency.Max != 5*time.Hour || f.Latency.Mean != (7*time.Hour+1)/3 || f.Latency.Count != 3 || f.Latency.all.dense[threeDigits.index(highest)] != 3 {
		t.Errorf("clipped %d, max %v, mean %v", f.Clipped, f.Latency.Max, f.Latency.Mean)
	}
}

// manyRecorders returns recorders with n transactions each. Latencies spread from about 30 µs to 300 ms.
func manyRecorders(r *rand.Rand, recorders, n int, openLoop bool) []*Recorder {
	all := make([]*Recorder, recorders)
	for i := range all {
		all[i] = new(Recorder)
		for k := range n {
			tx := history.Transaction{Outcome: history.Committed, Kind: kindTransfer, Sent: int64(r.IntN(500))}
			if openLoop {
				tx.Due = -int64(1e6 * r.ExpFloat64())
			}
			tx.End = tx.Sent + int64(3e6*math.Exp(1.2*r.NormFloat64()))
			if k%50 == 0 {
				tx.Outcome = history.Rejected
			}
			all[i].Record(&tx)
		}
	}
	return all
}

func TestRecorderIsSmall(t *testing.T) {
	for _, openLoop := range []bool{false, true} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		recorders := manyRecorders(newRandom(2), 50, 6000, openLoop)
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / int64(len(recorders))
		runtime.KeepAlive(recorders)
		t.Logf("open loop %v: %d bytes a recorder", openLoop, each)
		if each > 30_000 {
			t.Errorf("open loop %v: %d bytes a recorder", openLoop, each)
		}
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	r := newRandom(3)
	txs := make([]history.Transaction, 1000)
	for i := range txs {
		txs[i] = randomTransaction(r)
	}
	rec := new(Recorder)
	round := func() {
		for i := range txs {
			rec.Record(&txs[i])
		}
	}
	for range 300 {
		round()
	}
	if got := testing.AllocsPerRun(100, round); got > 0 {
		t.Errorf("%v allocations in 1000 transactions", got)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := newRandom(4)
	txs := make([]history.Transaction, 4096)
	for i := range txs {
		txs[i] = history.Transaction{Outcome: history.Committed, Kind: kindTransfer, Attempts: 1, End: int64(1e6 * r.ExpFloat64())}
	}
	rec := new(Recorder)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		rec.Record(&txs[i%len(txs)])
	}
}

func BenchmarkMerge10000(b *testing.B) {
	recorders := make([]*Recorder, 0, 10_000)
	few := manyRecorders(newRandom(5), 100, 6000, false)
	for range 100 {
		recorders = append(recorders, few...)
	}
	b.ReportAllocs()
	for b.Loop() {
		Merge(recorders...)
	}
}
