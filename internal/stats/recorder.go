// Package stats computes measurements from recorded transactions: latency distributions, outcomes, and their
// development over time. Latency is End-Due, measured from the intended start time (no coordinated omission);
// service time is End-Sent. Unless stated otherwise, measurements are of committed transactions.
package stats

import (
	"math/bits"
	"time"

	"stroppy/internal/history"
)

// Recorder collects the measurements of one client. It must be used by one goroutine at a time. The zero
// Recorder is empty and small, and grows with the spread of its latencies to about 20 kB; see counts.
type Recorder struct {
	// Limit is the latency above which a committed transaction counts as late; 0: none does.
	Limit int64

	retries, clipped, late uint64

	// In a closed loop, latency and service time nearly always fall into the same bucket. Such pairs are
	// counted once, for both.
	both  counts
	times [timesRetried]timed
	rare  [timeKinds - timesRetried]*timed // nil until there is one
	_     [64]byte                         // the next recorder is on another cache line
}

// timed is one distribution of durations.
type timed struct {
	counts
	exact
}

const (
	timesLatency = iota // of committed transactions, from due to end
	timesService        // of the same from sent to end
	timesRetried        // committed, but not at the first try; from due to end, as the next three
	timesRejected
	timesAborted
	timesUnknown
	timesPaced   // from due to sent, if the client was free when it was due
	timesConnect // to open the connection of a transaction
	timeKinds
)

// Record counts tx, unless it was due in the warm-up, and keeps no reference to it. Ended counts what was
// done in the measured part, whenever it was due.
func (r *Recorder) Record(tx *history.Transaction) {
	if tx.Warmup {
		return
	}
	if tx.Attempts > 1 {
		r.retries += uint64(tx.Attempts - 1)
	}
	latency := tx.End - tx.Due
	switch tx.Outcome {
	case history.Committed:
		r.recordCommitted(latency, tx.End-tx.Sent, tx.Attempts > 1)
	case history.Rejected:
		r.time(timesRejected, latency)
	case history.Aborted:
		r.time(timesAborted, latency)
	default:
		r.time(timesUnknown, latency)
	}
}

func (r *Recorder) recordCommitted(latency, service int64, retried bool) {
	due, sent := threeDigits.index(r.clip(latency)), threeDigits.index(r.clip(service))
	r.times[timesLatency].exact.add(latency)
	r.times[timesService].exact.add(service)
	if due == sent {
		r.both.add(due)
	} else {
		r.times[timesLatency].counts.add(due)
		r.times[timesService].counts.add(sent)
	}
	if r.Limit > 0 && latency > r.Limit {
		r.late++
	}
	if retried {
		r.seldom(timesRetried).record(latency, due)
	}
}

// RecordSent counts the delay between the intended and the actual start of a transaction with a rate or a pause. The
// warm-up does not count. free means that the client was idle at the intended start, so that the delay is the tool's
// own.
func (r *Recorder) RecordSent(tx *history.Transaction, free bool) {
	if free && !tx.Warmup {
		r.time(timesPaced, tx.Sent-tx.Due)
	}
}

// RecordConnect counts the time to open the connection of one transaction.
func (r *Recorder) RecordConnect(ns int64) { r.time(timesConnect, ns) }

func (r *Recorder) time(what int, ns int64) {
	r.seldom(what).record(ns, threeDigits.index(r.clip(ns)))
}

// seldom returns a distribution that a client may not need, and creates it if necessary.
func (r *Recorder) seldom(what int) *timed {
	t := &r.rare[what-timesRetried]
	if *t == nil {
		*t = new(timed)
	}
	return *t
}

func (t *timed) record(ns int64, index int) {
	t.exact.add(ns)
	t.counts.add(index)
}

// clip limits ns to the histograms' range and counts a limited value.
func (r *Recorder) clip(ns int64) int64 {
	if uint64(ns) <= highest {
		return ns
	}
	r.clipped++
	return min(max(ns, 0), highest)
}

// exact holds the values that a histogram has only approximately. The sum has 128 bits.
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

// mean returns the mean rounded down to a nanosecond, and 0 for no values.
func (e *exact) mean() time.Duration {
	if e.count == 0 {
		return 0
	}
	mean, _ := bits.Div64(e.hi, e.lo, e.count) // hi < count, for every value is below 2^63
	return time.Duration(mean)
}

// Ended counts, by outcome, the transactions that ended From or later, whenever they were due, without
// background transactions.
//
// Throughput follows from it, as from the seconds of a Series, and not from Measurements: in an overload,
// transactions due in the warm-up fill the measured part, and those due in it may never be sent.
type Ended struct {
	From                        time.Duration
	Committed, Aborted, Unknown uint64
	Rejected                    map[history.Reason]uint64
	ByKind                      map[history.Kind]uint64 // committed ones
	Writes                      uint64                  // committed and not read-only
	Background                  uint64                  // committed beside them, by background clients
}

// NewEnded returns an empty Ended.
func NewEnded(from time.Duration) *Ended {
	return &Ended{From: from, Rejected: make(map[history.Reason]uint64), ByKind: make(map[history.Kind]uint64)}
}

func (e *Ended) Add(tx *history.Transaction) {
	if time.Duration(tx.End) < e.From {
		return
	}
	if tx.Kind.Background() {
		if tx.Outcome == history.Committed {
			e.Background++
		}
		return
	}
	switch tx.Outcome {
	case history.Committed:
		e.Committed++
		e.ByKind[tx.Kind]++
		if !tx.Kind.ReadOnly() {
			e.Writes++
		}
	case history.Rejected:
		e.Rejected[tx.Reason]++
	case history.Aborted:
		e.Aborted++
	default:
		e.Unknown++
	}
}

// Measurements holds the measurements of all clients without what was due in the warm-up.
type Measurements struct {
	Retries uint64 // attempts beyond the first, of all transactions
	Late    uint64 // committed transactions whose latency was above the limit

	Latency         Summary // of committed ones, from when they were due
	Service         Summary // of committed ones, from when they were sent
	LatencyRetried  Summary // of those committed ones that needed more than one try, from when they were due
	LatencyRejected Summary // from when they were due, as the next two
	LatencyAborted  Summary
	LatencyUnknown  Summary // until they were given up

	// Pacing is the time from due to sent, over all outcomes, if the client was idle when the transaction was
	// due: the tool's own error. It is empty in a closed loop without pauses.
	Pacing Summary

	// Connect is the time to open a connection for each transaction. It is empty if connections are kept.
	Connect Summary

	// Clipped counts the values outside the histograms' range of an hour, which were counted at its nearest
	// end. Mean and Max use the exact values.
	Clipped uint64
}

// Summary describes a distribution of durations. Mean (rounded down to a nanosecond) and Max are exact.
// Percentiles are nearest-rank and the upper end of their bucket: at most a thousandth or half a microsecond
// too high, and never above Max. Without values, all fields are zero.
type Summary struct {
	Count                               uint64
	Mean, P50, P90, P95, P99, P999, Max time.Duration

	all distribution
}

// Buckets returns the distribution with two significant digits, in ascending order without empty buckets. It
// returns nil if there are no values.
func (s *Summary) Buckets() []Bucket {
	if s.Count == 0 {
		return nil
	}
	coarse := make([]uint64, twoDigits.size())
	for i, n := range s.all.dense {
		if n > 0 { // every fine bucket lies in one coarse bucket
			coarse[twoDigits.index(min(threeDigits.value(i), highest))] += n
		}
	}
	return twoDigits.buckets(coarse)
}

// Merge adds up recorders whose clients have ended. Nil recorders are ignored.
func Merge(recorders ...*Recorder) *Measurements {
	f := new(Measurements)
	var all [timeKinds]distribution
	for _, r := range recorders {
		if r == nil {
			continue
		}
		f.Retries, f.Clipped, f.Late = f.Retries+r.retries, f.Clipped+r.clipped, f.Late+r.late
		for i := range r.times {
			all[i].addTimed(&r.times[i])
		}
		for i, t := range r.rare {
			if t != nil {
				all[timesRetried+i].addTimed(t)
			}
		}
		all[timesLatency].addCounts(&r.both)
		all[timesService].addCounts(&r.both)
	}
	for i, into := range f.summaries() {
		*into = all[i].summary()
	}
	return f
}

// distribution is the distribution over all clients.
type distribution struct {
	dense []uint64 // by bucket of three digits; nil if there is nothing
	exact
}

func (d *distribution) counting() []uint64 {
	if d.dense == nil {
		d.dense = make([]uint64, threeDigits.size())
	}
	return d.dense
}

func (d *distribution) addTimed(t *timed) {
	d.merge(t.exact)
	d.addCounts(&t.counts)
}

func (d *distribution) addCounts(c *counts) {
	if len(c.few) > 0 {
		c.addTo(d.counting())
	}
}

func (d *distribution) join(o *distribution) {
	d.merge(o.exact)
	for i, n := range o.dense {
		d.counting()[i] += n
	}
}

// quantile returns a quantile that is at most the largest duration.
func (d *distribution) quantile(q float64) time.Duration {
	return time.Duration(min(threeDigits.quantile(d.dense, q, d.count), d.max))
}

func (d *distribution) summary() Summary {
	return Summary{
		Count: d.count, Mean: d.mean(), Max: time.Duration(d.max), all: *d,
		P50: d.quantile(0.50), P90: d.quantile(0.90), P95: d.quantile(0.95), P99: d.quantile(0.99), P999: d.quantile(0.999),
	}
}

// Waits counts transactions that were due but never sent. For each, only a lower bound of its waiting time is
// known. The zero Waits is empty.
type Waits struct{ all distribution }

// Add counts n transactions that waited at least this long.
func (w *Waits) Add(atLeast time.Duration, n uint64) {
	if ns := max(int64(atLeast), 0); n > 0 {
		w.all.counting()[threeDigits.index(min(ns, highest))] += n
		hi, lo := bits.Mul64(uint64(ns), n)
		w.all.merge(exact{count: n, max: ns, hi: hi, lo: lo})
	}
}

// Due is the distribution of all transactions that were due, from the intended start to the end. A transaction of
// unknown outcome ends when it was given up. A transaction that was never sent ends with the load phase. For both,
// the duration is a lower bound.
type Due struct {
	Summary
	AtLeast []string // those that are lower bounds of mean, p50, p90, p95, p99, p999 and max
}

// Due returns the distribution of all transactions that were due. A percentile is marked as a lower bound if
// it would be more than 1 % higher had the unfinished transactions never ended.
func (f *Measurements) Due(never Waits) Due {
	var ended, all distribution
	for _, s := range []*Summary{&f.Latency, &f.LatencyRejected, &f.LatencyAborted} {
		ended.join(&s.all)
	}
	all.join(&ended)
	all.join(&f.LatencyUnknown.all)
	all.join(&never.all)
	d := Due{Summary: all.summary(), AtLeast: []string{}}
	if all.count == ended.count {
		return d
	}
	d.AtLeast = append(d.AtLeast, "mean")
	for _, p := range []struct {
		name string
		q    float64
		low  time.Duration
	}{{"p50", 0.50, d.P50}, {"p90", 0.90, d.P90}, {"p95", 0.95, d.P95}, {"p99", 0.99, d.P99}, {"p999", 0.999, d.P999}} {
		want := rank(p.q, all.count)
		if want > ended.count || ended.quantile(float64(want)/float64(ended.count)) > p.low+p.low/100 {
			d.AtLeast = append(d.AtLeast, p.name)
		}
	}
	d.AtLeast = append(d.AtLeast, "max")
	return d
}
