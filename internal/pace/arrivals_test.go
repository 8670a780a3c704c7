package pace

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// all returns the arrivals of all clients before end, and the number of each client.
func all(p Plan, a Arrival, clients int, seed uint64, end time.Duration) (list []time.Duration, each []int) {
	each = make([]int, clients)
	for i := range clients {
		arrivals := NewArrivals(p, a, clients, i, seed)
		for at, ok := arrivals.Next(); ok && at < end; at, ok = arrivals.Next() {
			list = append(list, at)
			each[i]++
		}
	}
	slices.Sort(list)
	return list, each
}

func TestUniformArrivalsAreEvenlySpaced(t *testing.T) {
	for _, clients := range []int{1, 3, 7} {
		list, each := all(parse(t, "100 for 2s, 50..150 for 4s"), Uniform, clients, 1, time.Hour)
		if len(list) != 600 || slices.Max(each)-slices.Min(each) > 1 {
			t.Fatalf("%d clients: %d arrivals, %v", clients, len(list), each)
		}
		for n, at := range list[:201] {
			if want := time.Duration(n) * 10 * time.Millisecond; (at - want).Abs() > 1 {
				t.Errorf("arrival %d at %v, want %v", n, at, want)
			}
		}
		for n := 202; n < len(list); n++ {
			if before, gap := list[n-1]-list[n-2], list[n]-list[n-1]; gap > before+2 || gap < 6*time.Millisecond {
				t.Errorf("arrival %d comes %v after the last one, which came after %v", n, gap, before)
			}
		}
	}
}

// TestPoissonArrivalsMatchPoissonDistribution checks two properties of a Poisson process: the variance of the
// number in an interval equals its mean, and the gaps are exponentially distributed. The bounds are five standard
// deviations and the 0.1 % point of the Kolmogorov-Smirnov statistic.
func TestPoissonArrivalsMatchPoissonDistribution(t *testing.T) {
	const rate, seconds = 2000.0, 100
	list, each := all(parse(t, "2000"), Poisson, 8, 42, seconds*time.Second)
	n := float64(len(list))
	if math.Abs(n-rate*seconds) > 5*math.Sqrt(rate*seconds) {
		t.Errorf("%v arrivals", n)
	}
	for i, count := range each {
		if mean := rate * seconds / 8; math.Abs(float64(count)-mean) > 5*math.Sqrt(mean) {
			t.Errorf("client %d has %d", i, count)
		}
	}
	var counts [seconds * 100]float64
	for _, at := range list {
		counts[at/(10*time.Millisecond)]++
	}
	var squares float64
	for _, c := range counts {
		squares += (c - rate/100) * (c - rate/100)
	}
	dispersion := squares / rate * 100 / float64(len(counts))
	if deviation := math.Sqrt(2 / float64(len(counts))); math.Abs(dispersion-1) > 5*deviation {
		t.Errorf("the counts in 10 ms vary %v times as much as those of a Poisson process", dispersion)
	}
	var gaps []float64
	for i := 1; i < len(list); i++ {
		gaps = append(gaps, (list[i] - list[i-1]).Seconds())
	}
	slices.Sort(gaps)
	worst := 0.0
	for i, g := range gaps {
		worst = max(worst, math.Abs(1-math.Exp(-rate*g)-float64(i)/float64(len(gaps))))
	}
	if worst*math.Sqrt(n) > 1.95 {
		t.Errorf("the gaps are not exponential: %v", worst*math.Sqrt(n))
	}
}

func TestPoissonArrivalsFollowTheRate(t *testing.T) {
	list, _ := all(parse(t, "0..2000 for 20s, 0 for 5s, 1000 for 20s"), Poisson, 4, 7, time.Hour)
	var counts [45]float64
	for _, at := range list {
		counts[at/time.Second]++
	}
	for s, got := range counts {
		want := 1000.0
		switch {
		case s < 20:
			want = 100*float64(s) + 50
		case s < 25:
			want = 0
		}
		if math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("second %d: %v arrivals, want %v", s, got, want)
		}
	}
}

func TestSeedAndClientDetermineArrivals(t *testing.T) {
	p := parse(t, "1000")
	one, _ := all(p, Poisson, 3, 5, time.Second)
	again, _ := all(p, Poisson, 3, 5, time.Second)
	other, _ := all(p, Poisson, 3, 6, time.Second)
	if !slices.Equal(one, again) || slices.Equal(one, other) {
		t.Error("one seed gives not one drive, or another seed the same")
	}
	first, _ := NewArrivals(p, Poisson, 3, 0, 5).Next()
	second, _ := NewArrivals(p, Poisson, 3, 1, 5).Next()
	if first == second {
		t.Error("two clients have the same arrivals")
	}
}

// TestSkipEqualsRepeatedNext checks that skipping arrivals equals taking them one by one.
func TestSkipEqualsRepeatedNext(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for round := range 400 {
		p := randomPlan(r)
		a, clients := Arrival(r.IntN(2)), 1+r.IntN(5)
		client := r.IntN(clients)
		length, _ := p.Length()
		fast, slow := NewArrivals(p, a, clients, client, 9), NewArrivals(p, a, clients, client, 9)
		at := time.Duration(0)
		for range 5 {
			at += time.Duration(r.Int64N(int64(length/8 + 2e6)))
			most := uint64(math.MaxUint64)
			if r.IntN(4) == 0 {
				most = uint64(r.IntN(100))
			}
			n, next, ok := fast.Skip(at, most)
			var want uint64
			slowNext, slowOK := slow.Next()
			for slowOK && slowNext < at && want < most {
				want++
				slowNext, slowOK = slow.Next()
			}
			if n != want || ok != slowOK || ok && next != slowNext {
				t.Fatalf("round %d, %v of %s until %v: %d and then %v, %v; one by one %d and then %v, %v", round, a, p, at, n, next, ok, want, slowNext, slowOK)
			}
			if !ok {
				break
			}
			if next > at {
				at = next
			}
		}
	}
}

func TestPausesAverageToTheRequestedMean(t *testing.T) {
	for client := range 4 {
		p := NewPauses(time.Second, Uniform, 4, client, 1)
		if p.First() != time.Duration(client)*250*time.Millisecond || p.Next() != time.Second || p.Next() != time.Second {
			t.Errorf("client %d: %v, %v", client, p.First(), p.Next())
		}
	}
	p := NewPauses(time.Second, Poisson, 4, 2, 1)
	var sum, squares float64
	const n = 100_000
	for range n {
		s := p.Next().Seconds()
		sum, squares = sum+s, squares+s*s
	}
	mean := sum / n
	if variance := squares/n - mean*mean; math.Abs(mean-1) > 5/math.Sqrt(n) || math.Abs(variance-1) > 0.1 {
		t.Errorf("mean %v, variance %v", mean, variance)
	}
	one, again, other := NewPauses(time.Second, Poisson, 4, 2, 1), NewPauses(time.Second, Poisson, 4, 2, 1), NewPauses(time.Second, Poisson, 4, 2, 2)
	if one.First() != again.First() || one.Next() != again.Next() || one.First() == other.First() {
		t.Error("one seed gives two series of pauses, or two seeds give one")
	}
}
