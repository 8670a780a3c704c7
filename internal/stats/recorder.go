// Package stats turns recorded transactions into figures: latency
// distributions, outcomes, and their course over time.
//
// Latency is End-Due, so that it counts from when the work was due, whether or
// not a client could begin then (no coordinated omission); service time is
// End-Sent. Both are taken of committed transactions.
package stats

import (
	"math/bits"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stroppy/internal/history"
)

// slots is the room for kinds and for reasons in a Recorder. One beyond it
// counts in slot 0, as unknown.
const slots = 8

// Recorder takes the figures of one client. One goroutine uses it at a time. A
// new one takes next to nothing and grows with the spread of its latencies, to
// about 20 kB; see counts for why.
type Recorder struct {
	committed, aborted, unknown uint64
	rejected, kinds             [slots]uint64
	lookedUp, retries, clipped  uint64

	// In a closed loop latency and service time nearly always fall into the same
	// bucket; such pairs are counted once, in both.
	both, latency, service     counts
	latencyExact, serviceExact exact
	latencyRejected            counts
	latencyRejectedExact       exact
	_                          [64]byte // the next recorder is on another cache line
}

// NewRecorder returns a Recorder with nothing in it.
func NewRecorder() *Recorder {
	c := newCounts(threeDigits)
	return &Recorder{both: c, latency: c, service: c, latencyRejected: c}
}

// Record counts tx, unless it belongs to the warm-up. It keeps nothing of it.
func (r *Recorder) Record(tx *history.Transaction) {
	if tx.Warmup {
		return
	}
	if tx.Attempts > 1 {
		r.retries += uint64(tx.Attempts - 1)
	}
	if tx.LookedUp {
		r.lookedUp++
	}
	switch tx.Outcome {
	case history.Committed:
		r.committed++
		r.kinds[slot(uint8(tx.Kind))]++
		r.latencyExact.add(tx.End - tx.Due)
		r.serviceExact.add(tx.End - tx.Sent)
		latency := r.both.index(r.clip(tx.End - tx.Due))
		service := r.both.index(r.clip(tx.End - tx.Sent))
		if latency == service {
			r.both.add(latency)
		} else {
			r.latency.add(latency)
			r.service.add(service)
		}
	case history.Rejected:
		r.rejected[slot(uint8(tx.Reason))]++
		r.latencyRejectedExact.add(tx.End - tx.Due)
		r.latencyRejected.add(r.latencyRejected.index(r.clip(tx.End - tx.Due)))
	case history.Aborted:
		r.aborted++
	default:
		r.unknown++
	}
}

func slot(v uint8) uint8 {
	if v < slots {
		return v
	}
	return 0
}

// clip brings ns into the histograms' range, and counts where it had to.
func (r *Recorder) clip(ns int64) int64 {
	if uint64(ns) <= highest {
		return ns
	}
	r.clipped++
	return min(max(ns, 0), highest)
}

// exact keeps what a histogram only knows roughly. The sum has 128 bits, so that
// no run is too long for it.
type exact struct {
	count  uint64
	max    int64 // ns
	hi, lo uint64
}

func (e *exact) add(ns int64) {
	ns = max(ns, 0)
	e.count++
	e.max = max(e.max, ns)
	var carry uint64
	e.lo, carry = bits.Add64(e.lo, uint64(ns), 0)
	e.hi += carry
}

func (e *exact) merge(o exact) {
	var carry uint64
	e.count += o.count
	e.max = max(e.max, o.max)
	e.lo, carry = bits.Add64(e.lo, o.lo, 0)
	e.hi, _ = bits.Add64(e.hi, o.hi, carry)
}

// mean is rounded down to a nanosecond; 0 of nothing.
func (e *exact) mean() time.Duration {
	if e.count == 0 {
		return 0
	}
	mean, _ := bits.Div64(e.hi, e.lo, e.count) // hi < count, for every value is below 2^63
	return time.Duration(mean)
}

// Figures are those of all clients together, without the warm-up.
type Figures struct {
	Committed uint64
	Rejected  map[history.Reason]uint64
	Aborted   uint64
	Unknown   uint64
	LookedUp  uint64                  // outcomes that a look-up by id settled
	ByKind    map[history.Kind]uint64 // committed ones
	Retries   uint64                  // attempts beyond the first, of all transactions

	Latency         Summary // of committed ones, from when they were due
	Service         Summary // of committed ones, from when they were sent
	LatencyRejected Summary // of rejected ones, from when they were due

	// Clipped counts the values that lie outside the histograms' range of up to
	// an hour and were taken as its nearest end. Mean and Max have them as they are.
	Clipped uint64
}

// RejectedTotal returns the number of rejected transactions for any reason.
func (f *Figures) RejectedTotal() (n uint64) {
	for _, count := range f.Rejected {
		n += count
	}
	return n
}

// Summary tells a distribution of durations. Mean (rounded down to a
// nanosecond) and Max are exact. A percentile is the nearest-rank one: the
// smallest value that at least so many per cent do not exceed. It is told as the
// upper end of its histogram bucket, at most a thousandth or half a microsecond
// too high, and never above Max. Without values all are zero.
type Summary struct {
	Count                               uint64
	Mean, P50, P90, P95, P99, P999, Max time.Duration

	histogram *hdrhistogram.Histogram
}

// Histogram returns the whole distribution, in nanoseconds from a microsecond to
// an hour with three significant digits. The caller must not change it; it is
// nil in the zero Summary.
func (s *Summary) Histogram() *hdrhistogram.Histogram { return s.histogram }

// Merge adds up the recorders of a run, after their clients have ended. A nil
// recorder counts nothing.
func Merge(recorders ...*Recorder) *Figures {
	f := &Figures{Rejected: make(map[history.Reason]uint64), ByKind: make(map[history.Kind]uint64)}
	buckets := newCounts(threeDigits)
	latency, service, rejected := make([]uint64, buckets.size()), make([]uint64, buckets.size()), make([]uint64, buckets.size())
	var latencyExact, serviceExact, rejectedExact exact
	for _, r := range recorders {
		if r == nil {
			continue
		}
		f.Committed += r.committed
		f.Aborted += r.aborted
		f.Unknown += r.unknown
		f.LookedUp += r.lookedUp
		f.Retries += r.retries
		f.Clipped += r.clipped
		for i := range slots {
			if n := r.rejected[i]; n > 0 {
				f.Rejected[history.Reason(i)] += n
			}
			if n := r.kinds[i]; n > 0 {
				f.ByKind[history.Kind(i)] += n
			}
		}
		r.both.addTo(latency)
		r.both.addTo(service)
		r.latency.addTo(latency)
		r.service.addTo(service)
		r.latencyRejected.addTo(rejected)
		latencyExact.merge(r.latencyExact)
		serviceExact.merge(r.serviceExact)
		rejectedExact.merge(r.latencyRejectedExact)
	}
	f.Latency = summarize(latency, latencyExact)
	f.Service = summarize(service, serviceExact)
	f.LatencyRejected = summarize(rejected, rejectedExact)
	return f
}

func summarize(dense []uint64, e exact) Summary {
	buckets := newCounts(threeDigits)
	at := func(q float64) time.Duration {
		return time.Duration(min(buckets.quantile(dense, q, e.count), e.max))
	}
	return Summary{
		Count: e.count, Mean: e.mean(), Max: time.Duration(e.max),
		P50: at(0.50), P90: at(0.90), P95: at(0.95), P99: at(0.99), P999: at(0.999),
		histogram: buckets.histogram(dense),
	}
}
