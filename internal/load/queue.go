package load

import (
	"math"
	"sync"
	"time"

	"stroppy/internal/pace"
)

// never is the clock of an event that does not happen.
const never = math.MaxInt64

// source yields the arrivals of one client of an open loop, one by one.
type source struct {
	arrivals *pace.Arrivals
	begin    int64  // clock of the load phase's begin
	end      int64  // clock from which nothing arrives
	left     uint64 // how many may still come, next included
	next     int64  // clock when the next one is due; never where none comes
}

func newSource(o *Options, number int, begin, end int64) source {
	s := source{
		arrivals: pace.NewArrivals(o.Plan, o.Arrival, o.all(), number, o.Seed),
		begin:    begin, end: end, left: o.share(number),
	}
	s.set(s.arrivals.Next())
	return s
}

// set sets the time of the next arrival.
func (s *source) set(due time.Duration, ok bool) {
	if s.next = s.begin + int64(due); !ok || s.left == 0 || s.next >= s.end {
		s.next = never
	}
}

// skip skips all arrivals that are due by now, and returns their number.
func (s *source) skip(now int64) uint64 {
	if s.next > now {
		return 0
	}
	more, due, ok := s.arrivals.Skip(time.Duration(min(now, s.end-1)+1-s.begin), s.left-1)
	s.left -= 1 + more
	s.set(due, ok)
	return 1 + more
}

// queue holds the due transactions of one client of an open loop that are not sent yet. It belongs to the
// client's goroutine.
type queue struct {
	source
	room int
	due  []int64 // a ring, of clocks; grows with what waits, to room
	head int
	size int
}

// admit adds the transactions due by now, and returns the number that found no room.
func (q *queue) admit(now int64) (shed uint64) {
	for q.next <= now {
		if q.size == q.room {
			return q.skip(now)
		}
		if q.size == len(q.due) {
			q.grow()
		}
		q.due[(q.head+q.size)%len(q.due)] = q.next
		q.size++
		q.left--
		q.set(q.arrivals.Next())
	}
	return 0
}

func (q *queue) grow() {
	larger := make([]int64, min(max(2*len(q.due), 16), q.room))
	n := copy(larger, q.due[q.head:])
	copy(larger[n:], q.due[:q.head])
	q.due, q.head = larger, 0
}

// first returns the clock at which the next transaction to send is due, or never.
func (q *queue) first() int64 {
	if q.size > 0 {
		return q.due[q.head]
	}
	return q.next
}

// take removes the first waiting transaction.
func (q *queue) take() {
	q.head = (q.head + 1) % len(q.due)
	q.size--
}

// skipLate removes the waiting transactions that were due before a clock. It returns their number, and the number of
// those that were due in the warm-up.
func (q *queue) skipLate(before, warm int64) (n, early uint64) {
	for ; q.size > 0 && q.due[q.head] < before; n++ {
		if q.due[q.head] < warm {
			early++
		}
		q.take()
	}
	return n, early
}

// sheds counts the transactions of all clients that found no room, by the second in which that was detected.
// The lock is taken only if there are any.
type sheds struct {
	mu       sync.Mutex
	bySecond []uint64
}

func (s *sheds) add(now int64, n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	second := int(now / int64(time.Second))
	s.bySecond = append(s.bySecond, make([]uint64, max(0, second+1-len(s.bySecond)))...)
	s.bySecond[second] += n
}

// unsent counts the waiting transactions that were due before stopped, by the second in which they were due.
// It returns the number due from warm on and the number due earlier, and records the waiting time of the
// former. All of them must have been admitted.
func (q *queue) unsent(warm, stopped int64, r *Result) (n, early uint64) {
	for i := range q.size {
		due := q.due[(q.head+i)%len(q.due)]
		if due >= stopped {
			continue
		}
		r.Unsent[due/int64(time.Second)]++
		if due < warm {
			early++
			continue
		}
		n++
		r.Never.Add(time.Duration(stopped-due), 1)
	}
	return n, early
}
