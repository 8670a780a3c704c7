package stats

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"stroppy/internal/history"
)

// Second describes one second of a run: what ended in it, and the latency of what committed.
type Second struct {
	Second    int           `csv:"second"` // whole seconds since the run's start: [Second, Second+1)
	Committed uint64        `csv:"committed"`
	Rejected  uint64        `csv:"rejected,optional"`
	Aborted   uint64        `csv:"aborted,optional"`
	Unknown   uint64        `csv:"unknown,optional"`
	P50       time.Duration `csv:"p50_ms,optional"` // to two digits; 0 where nothing committed
	P99       time.Duration `csv:"p99_ms,optional"`
	Max       time.Duration `csv:"max_ms,optional"`  // exact
	Waiting   uint64        `csv:"waiting,optional"` // transactions that were due and not sent at its end
	P90       time.Duration `csv:"p90_ms,optional"`
	P999      time.Duration `csv:"p999_ms,optional"`
}

// maxSeconds limits a series to a run of 60 days.
const maxSeconds = 60 * 24 * 60 * 60

// Timeline collects a run second by second from its transactions, in any order and in one pass. It takes
// about 2 kB for each second of the run, and at most 24 MB for the gaps. Background transactions are ignored;
// the warm-up counts. The zero Timeline is empty.
type Timeline struct {
	seconds  []*bin // nil where nothing ended
	gaps     commits
	requests silences
	waiting  []int64 // by second: how many more wait at its end than at the end before
}

// bin is one second while it is being collected.
type bin struct {
	Second
	latency counts
	max     int64
}

// Add counts one transaction. A transaction that did not end within 60 days after the run's start is an
// error.
func (t *Timeline) Add(tx *history.Transaction) error {
	if tx.Kind.Background() {
		return nil
	}
	n := tx.End / int64(time.Second)
	if tx.End < 0 || n >= maxSeconds {
		return fmt.Errorf("make the series of the run: transaction %s ended %v after the run's start, which is beyond the limit: the history is damaged",
			tx.ID, time.Duration(tx.End))
	}
	t.seconds = grown(t.seconds, int(n))
	// The transaction waits at the end of each second from the one in which it was due to the last one before
	// it was sent.
	sent := min(max(tx.Sent/int64(time.Second), 0), n)
	if due := min(max(tx.Due/int64(time.Second), 0), sent); due < sent {
		t.waitFrom(due, 1)
		t.waitFrom(sent, -1)
	}
	t.requests.add(tx.Due, tx.Sent, tx.End)
	b := t.seconds[n]
	if b == nil {
		b = new(bin)
		t.seconds[n] = b
	}
	switch tx.Outcome {
	case history.Committed:
		latency := max(tx.End-tx.Due, 0)
		b.Committed++
		b.max = max(b.max, latency)
		b.latency.add(twoDigits.index(min(latency, highest)))
		t.gaps.add(tx.End)
	case history.Rejected:
		b.Rejected++
	case history.Aborted:
		b.Aborted++
	default:
		b.Unknown++
	}
	return nil
}

// waitFrom adds more to the number of waiting transactions at the ends of the seconds from n on.
func (t *Timeline) waitFrom(n, more int64) {
	t.waiting = grown(t.waiting, int(n))
	t.waiting[n] += more
}

// AddUnsent counts transactions that were due but never sent, which no history contains, by the second in
// which they were due. They wait until the last second of byDue, in which the load phase ended.
func (t *Timeline) AddUnsent(byDue []uint64) error {
	if len(byDue) > maxSeconds {
		return fmt.Errorf("make the series of the run: a load phase of %d seconds is impossible", len(byDue))
	}
	var all int64
	for n, count := range byDue {
		if count > 0 {
			t.waitFrom(int64(n), int64(count))
			all += int64(count)
		}
	}
	if all > 0 {
		t.waitFrom(int64(len(byDue)), -all)
	}
	return nil
}

// Series returns every second from the run's start to the last one in which a transaction ended or at whose
// end one waited.
func (t *Timeline) Series() []Second {
	series := make([]Second, max(len(t.seconds), len(t.waiting)-1))
	dense := make([]uint64, twoDigits.size())
	for i, b := range t.seconds {
		if b != nil {
			series[i] = b.Second
			clear(dense)
			b.latency.addTo(dense)
			series[i].Max = time.Duration(b.max)
			at := func(q float64) time.Duration {
				return time.Duration(min(twoDigits.quantile(dense, q, b.Committed), b.max))
			}
			series[i].P50, series[i].P90, series[i].P99, series[i].P999 = at(0.50), at(0.90), at(0.99), at(0.999)
		}
	}
	var waiting int64
	for i := range series {
		if i < len(t.waiting) {
			waiting += t.waiting[i]
		}
		series[i].Second, series[i].Waiting = i, uint64(waiting)
	}
	return series
}

// LongestGapUntil returns the longest time without a commit; see Gap. The run's start and the end of its load
// phase limit gaps too.
func (t *Timeline) LongestGapUntil(end time.Duration) (g Gap) {
	for from, to := range t.gaps.between(end) {
		if gap := (Gap{From: from, To: min(to, end)}); gap.Length() > g.Length() {
			g = gap
		}
	}
	return g
}

// Adder collects transactions; examples are Ended and Breakdown.
type Adder interface{ Add(tx *history.Transaction) }

// Read adds all transactions of a recorded history, also to the others. After an error it contains the
// earlier transactions.
func (t *Timeline) Read(transactions iter.Seq2[history.Record, error], others ...Adder) error {
	for rec, err := range transactions {
		if err != nil {
			return err
		}
		for _, other := range others {
			other.Add(rec.Transaction)
		}
		if err := t.Add(rec.Transaction); err != nil {
			return err
		}
	}
	return nil
}

// TPS returns the median and the maximum of the Throughput. Both are nil for fewer than two seconds.
func TPS(series []Second, from, to int) (middle, most *float64) {
	committed := Throughput(series, from, to)
	if len(committed) < 2 {
		return nil, nil
	}
	return new(Median(committed)), new(slices.Max(committed))
}

// Median sorts values, which must not be empty, and returns their median. For an even number it is the mean
// of the middle two.
func Median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
