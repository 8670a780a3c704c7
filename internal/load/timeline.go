package load

import (
	"slices"
	"sync"
	"time"

	"stroppy/internal/stats"
)

// keptSeconds is how many of the last whole seconds are kept for those who look
// on: an hour of them.
const keptSeconds = 3600

// Timeline is what was done in each whole second of a running load phase, as it is seen
// from outside. The zero Timeline has none.
type Timeline struct {
	seconds []stats.Second // of the last hour, ascending
	last    Counters       // at the end of the latest one
	held    stats.Reading  // latencies then
}

// Add adds the whole second that has just passed, by what the clients had done in all at
// its end; latencies is called where anything was committed. If the machine stood still
// for longer, what was done in the meantime counts in that one.
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

// Since returns the seconds from the given one on, ascending.
func (t *Timeline) Since(from int) []stats.Second {
	first, _ := slices.BinarySearchFunc(t.seconds, from, func(s stats.Second, from int) int { return s.Second - from })
	return slices.Clone(t.seconds[first:])
}

// Last returns the latest second; false before one has passed.
func (t *Timeline) Last() (s stats.Second, passed bool) {
	if n := len(t.seconds); n > 0 {
		return t.seconds[n-1], true
	}
	return s, false
}

// EachSecond calls take whenever a whole second since start has passed, with that second's
// number from 0, until end is called, which waits for a call under way. If the machine stood
// still, the seconds that passed meanwhile are left out but the last.
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
