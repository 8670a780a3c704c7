package load

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"stroppy/internal/db"
)

// These constants determine how the number of threads follows the load while it is chosen.
const (
	adaptEvery = 100 * time.Millisecond
	full       = 0.8 // of the threads' time; from there on there are too few
	lasting    = 2   // intervals in a row that must be full: to connect and to prepare is over sooner
)

// The number of threads is chosen during the warm-up, or during these two seconds if the warm-up is too short
// for samples.
const (
	shortestWindow = time.Second
	defaultWindow  = 2 * time.Second
)

// threadsWindow returns the time during which the number of threads is chosen; 0 keeps all threads. With a
// rate that changes, the beginning does not show the needs of later stages. Clients that wait in system calls
// need all threads (see db.Blocker).
func threadsWindow(o *Options) time.Duration {
	if _, constant := o.Plan.Fixed(); !constant && !o.Plan.Closed() || slices.ContainsFunc(o.Clients, func(c Client) bool { return db.Blocks(c) }) {
		return 0
	}
	if o.Warmup < shortestWindow {
		return defaultWindow
	}
	return o.Warmup
}

// threads chooses the number of threads that run Go code (GOMAXPROCS). It starts with one and doubles when the clients
// need more. Each thread has a cost: an arriving answer wakes idle threads, which look for work on processors that the
// database may need. With 8 clients and PostgreSQL on two processors, one thread instead of two reduced the CPU time
// per transaction by 15 to 20 %. It increased throughput by 5 to 9 %.
type threads struct {
	now, most int
	full      int // intervals in a row
}

// next returns the number of threads after an interval in which this process used busy processors.
func (t *threads) next(busy float64) int {
	if busy < full*float64(t.now) {
		t.full = 0
	} else if t.full++; t.full == lasting {
		t.now, t.full = min(2*t.now, t.most), 0
	}
	return t.now
}

// usageAt is the processor time in seconds that this process had used at a time. 0 means that the platform
// does not report it.
type usageAt struct {
	at      time.Time
	seconds float64
}

func sampleUsage() usageAt {
	seconds, _ := Usage()
	return usageAt{time.Now(), seconds}
}

// chooseThreads chooses the number of threads during the window and keeps it afterwards. If the platform
// reports no usage, all threads are kept. The returned function restores all threads and returns the number
// that was in use. Each tick ends an interval.
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
