package load

import (
	"runtime"
	"time"
)

// How the number of threads follows what they do.
const (
	adaptEvery = 100 * time.Millisecond
	full       = 0.8 // of the threads' time; from there on there are too few
	idle       = 0.6 // of half as many threads' time; below there are too many
	calm       = 3   // intervals in a row that must be idle
	patience   = 50  // intervals after a rise in which nothing is taken back
)

// threads is how many threads may run Go code at once (GOMAXPROCS): as few as the
// clients need, for each one more costs. An answer that arrives wakes the threads that
// have nothing to do. They look for work that another one has taken meanwhile, on
// processors that the database may need. With 8 clients beside PostgreSQL on two
// processors, one thread instead of two took 15 to 20 % off a transaction's CPU here,
// and there were 5 to 9 % more of them.
type threads struct {
	now, most int
	idle      int // intervals in a row
	wait      int // intervals in which nothing is taken back
}

// next is how many there are to be after an interval in which so many processors
// were busy with this process.
func (t *threads) next(busy float64) int {
	t.wait = max(t.wait-1, 0)
	half := t.now / 2
	switch {
	case busy >= full*float64(t.now):
		if t.now < t.most {
			t.wait = patience
		}
		t.now, t.idle = min(2*t.now, t.most), 0
	case half >= 1 && busy < idle*float64(half) && t.wait == 0:
		if t.idle++; t.idle == calm {
			t.now, t.idle = half, 0
		}
	default:
		t.idle = 0
	}
	return t.now
}

// adapt lets the number of threads follow what they do until the function that it
// returns is called. That one gives the process back as many as it had, which are
// the most, and returns how many there were in the mean. spent tells the processor
// seconds of the process so far; where it says 0 nobody knows, and the number stays.
func adapt(spent func() float64) (restore func() float64) {
	most := runtime.GOMAXPROCS(0)
	end, mean := make(chan struct{}), make(chan float64)
	go func() {
		ticker := time.NewTicker(adaptEvery)
		defer ticker.Stop()
		t := threads{now: most, most: most}
		begin := time.Now()
		last, cpu, total := begin, 0.0, 0.0
		for ended := false; !ended; {
			select {
			case <-end:
				ended = true
			case <-ticker.C:
			}
			now := time.Now()
			took := now.Sub(last).Seconds()
			total += took * float64(t.now)
			used := spent()
			if before := t.now; cpu > 0 && !ended && t.next((used-cpu)/took) != before {
				runtime.GOMAXPROCS(t.now)
			}
			last, cpu = now, used
		}
		runtime.GOMAXPROCS(most)
		mean <- total / last.Sub(begin).Seconds()
	}()
	return func() float64 {
		close(end)
		return <-mean
	}
}

// processorSeconds is what this process has used, user and system time.
func processorSeconds() float64 {
	seconds, _ := usage()
	return seconds
}
