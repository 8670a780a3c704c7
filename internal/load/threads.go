package load

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"stroppy/internal/db"
)

// How the number of threads follows their usage while it is chosen.
const (
	adaptEvery = 100 * time.Millisecond
	full       = 0.8 // of the threads' time; from there on there are too few
	lasting    = 2   // intervals in a row that must be full: to connect and to prepare is over sooner
)

// The window in which the number of threads is chosen: the warm-up, or these two
// seconds where the warm-up is too short to sample.
const (
	shortestWindow = time.Second
	defaultWindow  = 2 * time.Second
)

// threadsWindow is how long the number of threads is chosen; 0 keeps all threads. The
// beginning of a rate that changes does not show what its later stages need, and clients that
// wait in system calls need all (see db.Blocker).
func threadsWindow(o *Options) time.Duration {
	if _, constant := o.Plan.Fixed(); !constant && !o.Plan.Closed() || slices.ContainsFunc(o.Clients, func(c Client) bool { return db.Blocks(c) }) {
		return 0
	}
	if o.Warmup < shortestWindow {
		return defaultWindow
	}
	return o.Warmup
}

// threads chooses how many threads may run Go code at once (GOMAXPROCS): one, and twice as
// many whenever the clients need more, because each one costs: an answer that arrives wakes
// the idle threads, which look for work on processors that the database may need. With 8
// clients and PostgreSQL on two processors, one thread instead of two took 15 to 20 % off a
// transaction's CPU here, and throughput rose by 5 to 9 %.
type threads struct {
	now, most int
	full      int // intervals in a row
}

// next is how many threads there are after an interval in which so many processors
// were busy with this process.
func (t *threads) next(busy float64) int {
	if busy < full*float64(t.now) {
		t.full = 0
	} else if t.full++; t.full == lasting {
		t.now, t.full = min(2*t.now, t.most), 0
	}
	return t.now
}

// usageAt is the processor seconds that this process had used at a time. 0 means that
// the platform does not report it.
type usageAt struct {
	at      time.Time
	seconds float64
}

func sampleUsage() usageAt {
	seconds, _ := Usage()
	return usageAt{time.Now(), seconds}
}

// chooseThreads chooses the number of threads during the window, and then leaves it. All
// threads stay where the platform reports no usage. The function that it returns gives the
// process all its threads back and returns the number that was in force last. Each tick
// ends an interval.
func chooseThreads(window time.Duration, ticks <-chan time.Time, sample func() usageAt) (restore func() int) {
	t := threads{now: 1, most: runtime.GOMAXPROCS(0)}
	last := sample()
	if window == 0 || last.seconds == 0 {
		t.now = t.most
	}
	runtime.GOMAXPROCS(t.now)
	end := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for fixed := last.at.Add(window); last.at.Before(fixed); {
			select {
			case <-end:
				return
			case <-ticks:
			}
			now, before := sample(), t.now
			if t.next((now.seconds-last.seconds)/now.at.Sub(last.at).Seconds()) != before {
				runtime.GOMAXPROCS(t.now)
			}
			last = now
		}
	})
	return func() int {
		close(end)
		group.Wait()
		runtime.GOMAXPROCS(t.most)
		return t.now
	}
}
