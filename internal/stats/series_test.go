package stats

import (
	"errors"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/tier"
)

// recorded yields txs like a history, reusing one Transaction.
func recorded(txs []history.Transaction, end error) iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		var tx history.Transaction
		for i := range txs {
			tx = txs[i]
			if !yield(history.Record{Transaction: &tx}, nil) {
				return
			}
		}
		if end != nil {
			yield(history.Record{}, end)
		}
	}
}

// randomRun returns the transactions of clients whose blocks follow each other, with pauses.
func randomRun(r *rand.Rand) (txs []history.Transaction) {
	span := int64(time.Second) * int64(1+r.IntN(20))
	pause := r.Int64N(span)
	for range r.IntN(2000) {
		tx := randomTransaction(r)
		tx.End = r.Int64N(span)
		if r.IntN(3) > 0 && tx.End > pause && tx.End < pause+span/8 {
			tx.End = pause
		}
		tx.Due = tx.End - max(randomNS(r), 0)
		tx.Sent = tx.Due
		if r.IntN(3) == 0 {
			tx.Due -= r.Int64N(span)
		}
		txs = append(txs, tx)
	}
	return txs
}

func TestSeriesEqualsNaiveSeries(t *testing.T) {
	r := newRandom(6)
	for round := range 40 {
		txs := randomRun(r)
		got, err := seriesOf(recorded(txs, nil))
		if err != nil {
			t.Fatal(err)
		}
		last := -1
		latencies := make(map[int][]int64)
		want := make(map[int]Second)
		for _, tx := range txs {
			if tx.Kind.Background() {
				continue
			}
			n := int(tx.End / 1e9)
			last = max(last, n)
			for due, sent := max(0, tx.Due/1e9), min(tx.Sent/1e9, tx.End/1e9); due < sent; due++ {
				s := want[int(due)]
				s.Waiting++
				want[int(due)] = s
			}
			s := want[n]
			switch tx.Outcome {
			case history.Committed:
				s.Committed++
				latencies[n] = append(latencies[n], tx.End-tx.Due)
			case history.Rejected:
				s.Rejected++
			case history.Aborted:
				s.Aborted++
			default:
				s.Unknown++
			}
			want[n] = s
		}
		if len(got) != last+1 {
			t.Fatalf("round %d: %d seconds, want %d", round, len(got), last+1)
		}
		for i, s := range got {
			checkSecond(t, i, s, want[i], latencies[i])
		}
	}
}

func checkSecond(t *testing.T, i int, got, want Second, latencies []int64) {
	t.Helper()
	want.Second = i
	if n := len(latencies); n > 0 {
		slices.Sort(latencies)
		want.Max = time.Duration(latencies[n-1])
		for _, p := range []struct {
			q   float64
			got time.Duration
		}{{0.5, got.P50}, {0.9, got.P90}, {0.99, got.P99}, {0.999, got.P999}} {
			exact := min(latencies[max(int(rank(p.q, uint64(n))), 1)-1], highest)
			if over := int64(p.got) - exact; over < -1 && exact < highest || float64(over) > max(512, float64(exact)/100) {
				t.Errorf("second %d: the share %v of %d lies at %v, want %v", i, p.q, n, p.got, time.Duration(exact))
			}
		}
	}
	want.P50, want.P90, want.P99, want.P999 = got.P50, got.P90, got.P99, got.P999
	if got != want {
		t.Errorf("second %d: got %+v, want %+v", i, got, want)
	}
	if len(latencies) == 0 && (got.P50 != 0 || got.P99 != 0) {
		t.Errorf("second %d: percentiles of nothing: %+v", i, got)
	}
}

// TestUnsentTransactionsWait checks that a transaction that was never sent waits until the end of the load
// phase.
func TestUnsentTransactionsWait(t *testing.T) {
	line := new(Timeline)
	late := history.Transaction{Outcome: history.Committed, Due: 5e8, Sent: 22e8, End: 29e8}
	if err := line.Add(&late); err != nil {
		t.Fatal(err)
	}
	if err := line.AddUnsent([]uint64{0, 2, 0, 3, 1}); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for i, s := range line.Series() {
		if s.Second != i {
			t.Errorf("second %d is %+v", i, s)
		}
		got = append(got, s.Waiting)
	}
	if want := []uint64{1, 3, 2, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if new(Timeline).AddUnsent(make([]uint64, maxSeconds+1)) == nil {
		t.Error("a drive of more than 60 days is taken")
	}
}

func naiveGap(ends []int64) (g Gap) {
	slices.Sort(ends)
	for i := 1; i < len(ends); i++ {
		if ends[i]-ends[i-1] > int64(g.Length()) {
			g = Gap{From: time.Duration(ends[i-1]), To: time.Duration(ends[i])}
		}
	}
	return g
}

func TestLongestGapEqualsNaiveGap(t *testing.T) {
	r := newRandom(7)
	for round := range 100 {
		txs := randomRun(r)
		var ends []int64
		for _, tx := range txs {
			if tx.Outcome == history.Committed && !tx.Kind.Background() {
				ends = append(ends, tx.End)
			}
		}
		got, err := longestGap(recorded(txs, nil))
		want := naiveGap(ends)
		if err != nil {
			t.Fatal(err)
		}
		if want.Length() >= time.Millisecond && got != want || got.Length() > want.Length() {
			t.Errorf("round %d: got %+v, want %+v", round, got, want)
		}
	}
}

func TestLongestGapOfLongRuns(t *testing.T) {
	tier.SkipUnderRace(t)
	r := newRandom(8)
	for round := range 15 {
		var c commits
		span := int64(time.Hour) << r.IntN(11)
		var ends []int64
		for range 2 + r.IntN(3000) {
			at := r.Int64N(span)
			ends = append(ends, at)
			c.add(at)
		}
		if len(c.cells) > maxCells || c.width() >= 1<<32 {
			t.Fatalf("round %d: %d cells of %d ns", round, len(c.cells), c.width())
		}
		if got, want := c.longest(), naiveGap(ends); got != want && want.Length() >= time.Duration(c.width()) {
			t.Errorf("round %d: got %+v, want %+v", round, got, want)
		}
	}
	var c commits // the longest run
	for _, at := range []int64{0, maxSeconds*1e9 - 1, 1, maxSeconds*5e8 + 7} {
		c.add(at)
	}
	if got := c.longest(); got.Length() != maxSeconds*time.Second/2+6 || got.From != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestSeriesReportsErrors(t *testing.T) {
	boom := errors.New("boom")
	ok := history.Transaction{Outcome: history.Committed, End: 1}
	if s, err := seriesOf(recorded([]history.Transaction{ok}, boom)); !errors.Is(err, boom) || len(s) != 1 {
		t.Errorf("%v, %v", s, err)
	}
	for _, end := range []int64{-1, maxSeconds * 1e9, 1<<63 - 1} {
		bad := history.Transaction{ID: history.NewID(1, 2, 3), End: end}
		if _, err := seriesOf(recorded([]history.Transaction{bad}, nil)); err == nil || !strings.Contains(err.Error(), "1-2-3") {
			t.Errorf("an end at %d: %v", end, err)
		}
		if _, err := longestGap(recorded([]history.Transaction{bad}, nil)); err == nil {
			t.Errorf("an end at %d: no error", end)
		}
	}
	if s, err := seriesOf(recorded(nil, nil)); err != nil || len(s) != 0 {
		t.Errorf("nothing: %v, %v", s, err)
	}
}

func TestMedianAndMaximumThroughput(t *testing.T) {
	series := []Second{{Second: 0, Committed: 100}, {Second: 1, Committed: 4}, {Second: 2}, {Second: 3, Committed: 9}, {Second: 4, Committed: 1}}
	for _, c := range []struct {
		from, to     int
		median, most float64 // -1: there is none
	}{
		{0, 5, 4, 100},
		{1, 5, 2.5, 9},
		{1, 4, 4, 9},
		{3, 7, 0.5, 9}, // nothing committed at the end
		{3, 5, 5, 9},
		{3, 4, -1, -1}, // of one second
		{3, 3, -1, -1},
		{5, 1, -1, -1},
	} {
		median, most := TPS(series, c.from, c.to)
		if median == nil {
			median = new(-1.0)
		}
		if most == nil {
			most = new(-1.0)
		}
		if *median != c.median || *most != c.most {
			t.Errorf("from %d to %d: got %v, %v, want %+v", c.from, c.to, *median, *most, c)
		}
	}
}

// TestAnHourTakesLittleMemory keeps the timeline of an hour at 50 commits per second; a higher rate only
// increases the counts.
func TestAnHourTakesLittleMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := newRandom(9)
	line := new(Timeline)
	for s := range int64(3600) {
		for range 50 {
			end := s*1e9 + r.Int64N(1e9)
			tx := history.Transaction{Outcome: history.Committed, End: end, Due: end - int64(1e6*r.ExpFloat64()*100)}
			if err := line.Add(&tx); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	took := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d kB", took/1000)
	if took > 60e6 {
		t.Errorf("%d bytes", took)
	}
	if got := len(line.Series()); got != 3600 {
		t.Errorf("%d seconds", got)
	}
}

func BenchmarkTimeline(b *testing.B) {
	r := newRandom(10)
	txs := make([]history.Transaction, 4096)
	for i := range txs {
		end := int64(i) * 1e7
		txs[i] = history.Transaction{Outcome: history.Committed, Kind: kindTransfer, End: end, Due: end - int64(1e6*r.ExpFloat64())}
	}
	line := new(Timeline)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := line.Add(&txs[i%len(txs)]); err != nil {
			b.Fatal(err)
		}
	}
}

// seriesOf returns a recorded history second by second. With an error, it returns what was read before.
func seriesOf(transactions iter.Seq2[history.Record, error]) ([]Second, error) {
	t := new(Timeline)
	err := t.Read(transactions)
	return t.Series(), err
}

// longestGap returns the longest gap between two commits of a recorded history.
func longestGap(transactions iter.Seq2[history.Record, error]) (Gap, error) {
	t := new(Timeline)
	err := t.Read(transactions)
	return t.gaps.longest(), err
}

// longest returns the longest gap between two commits.
func (c *commits) longest() (g Gap) {
	known := false
	for from, to := range c.between(0) {
		if known && to-from > g.Length() {
			g = Gap{From: from, To: to}
		}
		known = true // the first one begins with the run, and with no commit
	}
	return g
}
