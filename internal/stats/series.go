package stats

import (
	"cmp"
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
	P50       time.Duration `csv:"p50_ms,optional"` // to two digits; 0 if nothing committed
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
	seconds  []*bin // nil if nothing ended
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

// Gap is a time without commits between two commits, relative to the run's start. The zero Gap stands for
// fewer than two commits.
//
// A Gap of at least the resolution is exact to the nanosecond. A shorter one only shows that no gap reaches
// the resolution. The resolution is a millisecond for runs up to 17 minutes, and doubles each time the run is
// twice as long.
type Gap struct{ From, To time.Duration }

// Length returns the length of the gap.
func (g Gap) Length() time.Duration { return g.To - g.From }

const (
	firstWidth = int64(time.Millisecond)
	maxCells   = 1 << 20
)

// commits keeps the first and the last commit of each time cell. A gap of at least a cell's width lies between two
// cells. So it is found exactly, in any order of the commits (the linear-time maximum gap, Gonzalez 1975).
type commits struct {
	cells   []cell
	doubled uint // how often the width was
}

// width returns the width of a cell in nanoseconds.
func (c *commits) width() int64 { return firstWidth << c.doubled }

// cell holds the times of two commits, where 1 is the run's start and 0 means none.
type cell struct{ first, last int64 }

// add adds one commit at t ≥ 0.
func (c *commits) add(t int64) {
	for t/c.width() >= maxCells {
		c.widen()
	}
	n := int(t / c.width())
	c.cells = grown(c.cells, n)
	cell := &c.cells[n]
	if cell.first == 0 || t < cell.first {
		cell.first = t + 1
	}
	cell.last = max(cell.last, t+1)
}

// widen merges pairs of adjacent cells.
func (c *commits) widen() {
	c.doubled++
	c.cells = halved(c.cells, func(a, b cell) cell { return cell{cmp.Or(a.first, b.first), cmp.Or(b.last, a.last)} })
}

// halved merges pairs of adjacent elements. The second half of the list becomes free, and zero.
func halved[T any](list []T, join func(a, b T) T) []T {
	for i, half := range list {
		if i%2 == 0 {
			list[i/2] = half
		} else {
			list[i/2] = join(list[i/2], half)
		}
	}
	n := (len(list) + 1) / 2
	clear(list[n:])
	return list[:n]
}

// longestOf returns the longest time between two commits within one of the phases, which must be in order.
func (c *commits) longestOf(phases []Phase) (longest time.Duration) {
	first := true // the gap before the first commit
	for from, to := range c.between(0) {
		for len(phases) > 0 && phases[0].To < to {
			phases = phases[1:]
		}
		if !first && len(phases) > 0 && from >= phases[0].From {
			longest = max(longest, to-from)
		}
		first = false
	}
	return longest
}

// after returns t, or the end of the gap longer than noise that contains t.
func (c *commits) after(t, noise time.Duration) time.Duration {
	for from, to := range c.between(0) {
		if from <= t && t < to && to-from > noise {
			return to
		}
		if from > t {
			break
		}
	}
	return t
}

// between yields the gaps in order: from the run's start to the first commit, between commits, and from the
// last commit to end if that is later.
func (c *commits) between(end time.Duration) iter.Seq2[time.Duration, time.Duration] {
	return func(yield func(from, to time.Duration) bool) {
		last := time.Duration(0)
		for _, cell := range c.cells {
			if cell.first == 0 {
				continue
			}
			if !yield(last, time.Duration(cell.first-1)) {
				return
			}
			last = time.Duration(cell.last - 1)
		}
		if end > last {
			yield(last, end)
		}
	}
}

// LeastSilence is the shortest time without a request that counts as silence. Every database has shorter
// pauses.
const LeastSilence = leastNoise

// longAgainst is the factor by which a silence must exceed the latency.
const longAgainst = 10

// SilenceFrom returns the time without a request that counts as long, given the 99th percentile of the
// latency.
func SilenceFrom(p99 time.Duration) time.Duration { return max(LeastSilence, longAgainst*p99) }

// Silence is the time in which clients that waited for the database sent nothing. The requests that they
// would have sent are in no percentile (coordinated omission). Its lengths are exact to two cells; see
// silences. The zero Silence means none.
type Silence struct {
	Total   time.Duration
	Longest Gap
	Count   int
}

// silences counts, for each time cell, the requests that were sent, and those that began and stopped waiting
// for a reply. A cell is a millisecond wide in a run of up to 17 minutes; the width doubles each time the run
// is twice as long. It takes at most 8 MB.
type silences struct {
	cells   []request
	doubled uint  // how often the width was
	last    int64 // when the last request was sent
}

type request struct {
	sent    uint32
	waiting int32 // more wait at its end than at its beginning
}

func (s *silences) width() int64 { return firstWidth << s.doubled }

// cell returns the number of the cell of a time. Division by a constant is cheap.
func (s *silences) cell(at int64) int { return int(at / firstWidth >> s.doubled) }

// add counts one request with its intended start, its actual start and its end.
func (s *silences) add(due, sent, end int64) {
	for s.cell(end) >= maxCells {
		s.widen()
	}
	s.last = max(s.last, sent)
	last := s.cell(end)
	s.cells = grown(s.cells, last)
	began := min(max(s.cell(due), 0), last)
	s.cells[last].waiting--
	s.cells[began].waiting++
	if sent == due {
		s.cells[began].sent++
		return
	}
	s.cells[min(max(s.cell(sent), 0), last)].sent++
}

// widen merges pairs of adjacent cells.
func (s *silences) widen() {
	s.doubled++
	s.cells = halved(s.cells, func(a, b request) request { return request{a.sent + b.sent, a.waiting + b.waiting} })
}

// LastSent returns when the last request was sent, relative to the run's start.
func (t *Timeline) LastSent() time.Duration { return time.Duration(t.requests.last) }

// Silence returns the silence of a closed loop in [from, to], counting periods of at least least. If the
// clients pause between transactions, only time in which one waits for a reply counts; otherwise they always
// wait.
func (t *Timeline) Silence(from, to, least time.Duration, pauses bool) (s Silence) {
	w := t.requests.width()
	var waiting int64
	begin := from
	end := func(at time.Duration) {
		if g := (Gap{From: begin, To: min(at, to)}); g.Length() >= least {
			s.Total += g.Length()
			s.Count++
			if g.Length() > s.Longest.Length() {
				s.Longest = g
			}
		}
	}
	for i, c := range t.requests.cells {
		at := time.Duration(int64(i) * w)
		if at >= to {
			break
		}
		before := waiting
		waiting += int64(c.waiting)
		next := at + time.Duration(w)
		if next <= from {
			continue
		}
		if c.sent > 0 || pauses && (before <= 0 || waiting <= 0) {
			end(at)
			begin = max(next, from)
		}
	}
	if known := time.Duration(int64(len(t.requests.cells)) * w); !pauses || known >= to {
		end(to)
	}
	return s
}
