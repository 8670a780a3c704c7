package load

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// TestThreads holds how many threads there are after intervals in which so many
// processors were busy.
func TestThreads(t *testing.T) {
	times := func(n int, busy float64) []float64 { return slices.Repeat([]float64{busy}, n) }
	for _, test := range []struct {
		name string
		most int
		busy []float64
		want int
	}{
		{"at the beginning", 8, nil, 8},
		{"not long enough at rest", 8, times(calm-1, 0.1), 8},
		{"at rest", 8, times(calm, 0.1), 4},
		{"at rest for long", 8, times(10*calm, 0.1), 1},
		{"never below one", 1, times(10*calm, 0), 1},
		{"an odd number", 3, times(calm, 0.1), 1},
		{"as much as half of them do", 2, times(100, 0.7), 2},
		{"a moment of work between", 8, []float64{0.1, 0.1, 5, 0.1, 0.1}, 8},
		{"busy, and there are no more", 2, times(10, 2), 2},
		{"too few", 8, append(times(10*calm, 0.1), 0.9), 2},
		{"too few, still", 8, append(times(10*calm, 0.1), 0.9, 1.8, 3.9), 8},
		{"up to the most alone", 3, append(times(10*calm, 0.1), 0.9, 1.8), 3},
		{"not taken back at once", 8, append(append(times(10*calm, 0.1), 0.9), times(patience-1, 0.1)...), 2},
		{"taken back later", 8, append(append(times(10*calm, 0.1), 0.9), times(patience+calm, 0.1)...), 1},
	} {
		n := threads{now: test.most, most: test.most}
		for _, busy := range test.busy {
			n.next(busy)
		}
		if n.now != test.want {
			t.Errorf("%s: %d threads of %d, not %d", test.name, n.now, test.most, test.want)
		}
	}
}

// TestAdapt: a process at rest has one thread, one that computes has all, and what it
// was given comes back. It runs alone because the number is the process's.
func TestAdapt(t *testing.T) {
	const most = 4
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(most))
	until := func(want int) {
		t.Helper()
		for begin := time.Now(); runtime.GOMAXPROCS(0) != want; time.Sleep(time.Millisecond) {
			if time.Since(begin) > time.Minute {
				t.Fatalf("there are still %d threads, not %d", runtime.GOMAXPROCS(0), want)
			}
		}
	}
	var busy atomic.Bool
	began, worked := time.Now(), 0.0
	restore := adapt(func() float64 { // as a process does that keeps one processor busy, or hardly any
		now := time.Now()
		if busy.Load() {
			worked += now.Sub(began).Seconds()
		}
		worked += 1e-6
		began = now
		return worked
	})
	until(1)
	busy.Store(true)
	until(2)
	mean := restore()
	if got := runtime.GOMAXPROCS(0); got != most {
		t.Errorf("%d threads came back, not %d", got, most)
	}
	if mean < 1 || mean > most {
		t.Errorf("the mean of the threads is %.2f", mean)
	}
}
