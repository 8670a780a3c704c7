package load

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"stroppy/internal/pace"
)

// TestThreadsFollowUsage checks the number of threads after intervals of given usage.
func TestThreadsFollowUsage(t *testing.T) {
	times := func(n int, busy float64) []float64 { return slices.Repeat([]float64{busy}, n) }
	for _, test := range []struct {
		name string
		most int
		busy []float64
		want int
	}{
		{"at the beginning", 8, nil, 1},
		{"at rest for long", 8, times(100, 0.1), 1},
		{"less than full", 8, times(100, full-0.01), 1},
		{"full for a moment", 8, []float64{0.1, 1, 0.1, 1, 0.1}, 1},
		{"too few", 8, times(lasting, full), 2},
		{"too few, and then enough", 8, append(times(lasting, full), times(100, 1.5)...), 2},
		{"too few, still", 8, append(append(times(lasting, 0.9), times(lasting, 1.8)...), times(lasting, 3.9)...), 8},
		{"not taken back", 8, append(times(lasting, 0.9), times(100, 0.1)...), 2},
		{"up to the most alone", 3, append(times(lasting, 0.9), times(lasting, 1.8)...), 3},
		{"busy, and there are no more", 2, times(100, 2), 2},
	} {
		n := threads{now: 1, most: test.most}
		for _, busy := range test.busy {
			n.next(busy)
		}
		if n.now != test.want {
			t.Errorf("%s: %d threads of %d, not %d", test.name, n.now, test.most, test.want)
		}
	}
}

// TestChooseThreadsKeepsTheNumber checks that the number follows the usage in the window and stays
// afterwards, and that all threads are restored. The test runs alone because the number belongs to the
// process.
func TestChooseThreadsKeepsTheNumber(t *testing.T) {
	const most = 4
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(most))
	const busyAll, halves, idle = 4.0, 1.0, 0.1 // processors
	for _, test := range []struct {
		name     string
		window   int       // intervals
		busy     []float64 // by interval; the last one repeats
		want     int
		unusable bool // the platform does not report the usage
	}{
		{"idle", 20, []float64{idle}, 1, false},
		{"computing", 20, []float64{busyAll}, most, false},
		{"idle, then computing", 20, append(slices.Repeat([]float64{idle}, 10), busyAll), most, false},
		{"more than one thread can serve", 20, []float64{halves}, 2, false},
		{"busy at the very end", 20, append(slices.Repeat([]float64{idle}, 18), 1), 2, false},
		{"no window", 0, []float64{idle}, most, false},
		{"no usage", 20, []float64{idle}, most, true},
	} {
		now := usageAt{at: time.Unix(0, 0), seconds: 1}
		interval := -1
		sample := func() usageAt {
			if interval >= 0 {
				now.at = now.at.Add(adaptEvery)
				now.seconds += test.busy[min(interval, len(test.busy)-1)] * adaptEvery.Seconds()
			}
			if interval++; test.unusable {
				now.seconds = 0
			}
			return now
		}
		ticks := make(chan time.Time)
		restore := chooseThreads(time.Duration(test.window)*adaptEvery, ticks, sample)
		for range test.window {
			ticks <- time.Time{}
		}
		select {
		case ticks <- time.Time{}:
			t.Errorf("%s: the number is still being chosen after the window", test.name)
		default:
		}
		if got := restore(); got != test.want {
			t.Errorf("%s: %d threads, not %d", test.name, got, test.want)
		}
		if got := runtime.GOMAXPROCS(0); got != most {
			t.Errorf("%s: %d threads came back, not %d", test.name, got, most)
		}
	}
}

// TestChooseThreadsEndsEarly checks that a load phase that ends within the window reports the current number.
func TestChooseThreadsEndsEarly(t *testing.T) {
	most := runtime.GOMAXPROCS(0)
	restore := chooseThreads(time.Hour, nil, func() usageAt { return usageAt{time.Now(), 1} })
	if got := restore(); got != 1 || runtime.GOMAXPROCS(0) != most {
		t.Errorf("%d threads, not 1; then %d, not %d", got, runtime.GOMAXPROCS(0), most)
	}
}

// blocker is a stand-in client that states whether it waits in system calls.
type blocker struct {
	quick
	blocks bool
}

func (b *blocker) Blocks() bool { return b.blocks }

func TestThreadsAreMeasuredAfterWarmup(t *testing.T) {
	for _, test := range []struct {
		plan    string
		warmup  time.Duration
		want    time.Duration
		clients []Client
	}{
		{"0", 0, defaultWindow, []Client{&quick{}, &blocker{}}},
		{"0", time.Minute, 0, []Client{&quick{}, &blocker{blocks: true}}},
		{"0", shortestWindow / 2, defaultWindow, nil},
		{"1000", 10 * time.Second, 10 * time.Second, nil},
		{"1000 for 10s, 90000 for 10s", 10 * time.Second, 0, nil},
	} {
		plan, err := pace.Parse(test.plan)
		if err != nil {
			t.Fatal(err)
		}
		if got := threadsWindow(&Options{Plan: plan, Warmup: test.warmup, Clients: test.clients}); got != test.want {
			t.Errorf("rate %s, warm-up %v: a window of %v, not %v", test.plan, test.warmup, got, test.want)
		}
	}
}
