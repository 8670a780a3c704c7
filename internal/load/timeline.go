package load

import (
	"slices"
	"sync"
	"time"

	"stroppy/internal/stats"
)

// keptSeconds is the number of recent seconds that are kept for observers: one hour.
const keptSeconds = 3600

// Timeline holds what was done in each whole second of a running load phase, as seen from outside. The zero
// Timeline is empty.
type Timeline struct {
	seconds []stats.Second // of the last hour, ascending
	last    Counters       // at the end of the latest one
	held    stats.Reading  // latencies then
}

// Add adds the second that has just passed, from the totals at its end. It calls latencies only if a
// transaction committed. If the machine stood still, everything done meanwhile counts in this second.
func (t *Timeline) Add(second int, now Counters, latencies func() *stats.Reading) {
	s := stats.Second{
		Second:    second,
		Committed: now.Committed - t.last.Committed, Rejected: now.Rejected - t.last.Rejected,
		Aborted: now.Aborted - t.last.Aborted, Unknown: now.Unknown - t.last.Unknown,
		Waiting: now.Backlog,
	}
	if s.Committed > 0 {
		held := latencies()
		since := held.Since(&t.held)
		s.P50, s.P90, s.P99, s.P999, s.Max = since.Quantile(0.50), since.Quantile(0.90), since.Quantile(0.99), since.Quantile(0.999), since.Quantile(1)
		t.held = *held
	}
	if t.seconds = append(t.seconds, s); len(t.seconds) > keptSeconds {
		t.seconds = t.seconds[1:]
	}
	t.last = now
}

// Since returns the seconds from the given one on, in order.
func (t *Timeline) Since(from int) []stats.Second {
	first, _ := slices.BinarySearchFunc(t.seconds, from, func(s stats.Second, from int) int { return s.Second - from })
	return slices.Clone(t.seconds[first:])
}

// Last returns the latest second. It reports false before the first second has passed.
func (t *Timeline) Last() (s stats.Second, passed bool) {
	if n := len(t.seconds); n > 0 {
		return t.seconds[n-1], true
	}
	return s, false
}

// EachSecond calls take after each whole second since start, with the second's number from 0. end stops it
// and waits for a running call. If the machine stood still, only the last of the missed seconds is reported.
func EachSecond(start time.Time, take func(second int)) (end func()) {
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(time.Second - time.Since(start)%time.Second):
				take(int(time.Since(start)/time.Second) - 1)
			}
		}
	})
	return func() {
		close(ended)
		group.Wait()
	}
}
