package workers

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sort"
	"sync"
	"time"

	"stroppy/internal/history"
)

// The clock of a worker on another machine is compared with the coordinator's during the whole run. The coordinator
// notes its clock and asks. The worker answers with its clock at the question and at the answer. The coordinator notes
// its clock again. The offset is the coordinator's clock minus the worker's. An answer arrives after its question. So
// the offset was at least the coordinator's first time minus the worker's first, and at most the second minus the
// second. This bound is true for any network (Cristian, Probabilistic Clock Synchronization, Distributed Computing 3,
// 1989; the four timestamps of NTP, RFC 5905 section 8). Between two readings the offset changes by drift at most.

// readingEvery is the interval of clock comparisons.
const readingEvery = 50 * time.Millisecond

// drift is the maximal relative drift of two clocks, in millionths. Each is off by at most 500, which is the
// kernel's limit for NTP corrections (MAXFREQ in sys/timex.h; adjtimex(2)).
const drift = 1000

func drifted(ns int64) int64 { return (max(ns, -ns)*drift + 999_999) / 1_000_000 }

// Clock returns the name of the clock that all processes of this machine share, and its value at t in
// nanoseconds. It reports false if the system does not name it.
type Clock func(t time.Time) (name string, at int64, known bool)

// ownClock is the clock of a process for comparisons.
type ownClock struct {
	name string // empty: no other process shares it
	base time.Time
	at   int64 // of base
}

func (c Clock) own() ownClock {
	now := time.Now()
	if name, at, known := c(now); known {
		return ownClock{name, now, at}
	}
	return ownClock{base: now}
}

func (c *ownClock) read(t time.Time) int64 { return c.at + int64(t.Sub(c.base)) }

// reading is the result of one comparison: the offset was between low and high when the worker's clock
// showed at.
type reading struct{ at, low, high int64 }

// comparison holds what is known of one clock relative to the coordinator's.
type comparison struct {
	mu   sync.Mutex
	list []reading
	some chan struct{} // closed when there are enough to begin

	once    sync.Once
	settled *offsets
}

// settle returns the offsets that convert recordings to the coordinator's clock. All recordings of one clock
// get the same.
func (c *comparison) settle() *offsets {
	c.once.Do(func() { c.settled = c.offsets() })
	return c.settled
}

// enoughExchanges is the number of comparisons after which the load phase may begin.
const enoughExchanges = 8

func newComparison() *comparison { return &comparison{some: make(chan struct{})} }

func (c *comparison) add(e reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, e)
	if len(c.list) == enoughExchanges {
		close(c.some)
	}
}

// ask compares the clocks over a connection until it ends. now is the coordinator's clock.
func (c *comparison) ask(conn net.Conn, now func() int64, done <-chan struct{}) error {
	var question [8]byte
	var answer [16]byte
	for {
		if err := conn.SetDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		first := now()
		_, err := conn.Write(question[:])
		if err == nil {
			_, err = io.ReadFull(conn, answer[:])
		}
		last := now()
		if err != nil {
			return err
		}
		had, gave := int64(binary.LittleEndian.Uint64(answer[:])), int64(binary.LittleEndian.Uint64(answer[8:]))
		if gave < had {
			return errors.New("its clock goes backwards")
		}
		c.add(reading{had, first - had, last - gave + drifted(gave-had)})
		select {
		case <-done:
			return nil
		case <-time.After(readingEvery):
		}
	}
}

// answer answers comparisons with the worker's clock until the connection ends.
func (c *ownClock) answer(conn net.Conn) error {
	var question [8]byte
	var answer [16]byte
	for {
		if _, err := io.ReadFull(conn, question[:]); err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(answer[:], uint64(c.read(time.Now())))
		binary.LittleEndian.PutUint64(answer[8:], uint64(c.read(time.Now())))
		if _, err := conn.Write(answer[:]); err != nil {
			return err
		}
	}
}

// offsets is the offset of a clock over time. Between two readings it is linear, with an error of at most
// worst, given the maximal drift.
type offsets struct {
	at, offset []int64
	error      []int64 // at each
	worst      int64
}

// offsets tightens each reading by the others and takes the middle of its bounds. Both bounds, and thus the
// middle, change by at most drift, so the order of times on one clock is preserved.
func (c *comparison) offsets() *offsets {
	c.mu.Lock()
	list := slices.Clone(c.list)
	c.mu.Unlock()
	slices.SortStableFunc(list, func(a, b reading) int { return int(max(-1, min(1, a.at-b.at))) })
	for i := 1; i < len(list); i++ {
		list[i].narrow(list[i-1])
	}
	for i := len(list) - 2; i >= 0; i-- {
		list[i].narrow(list[i+1])
	}
	o := new(offsets)
	for i, e := range list {
		o.at, o.offset, o.error = append(o.at, e.at), append(o.offset, e.low+(e.high-e.low)/2), append(o.error, (e.high-e.low+1)/2)
		if e.low > e.high { // the clocks went apart by more than they can
			o.worst = history.Unbounded
			continue
		}
		if o.worst == history.Unbounded {
			continue
		}
		between := o.error[i]
		if i > 0 {
			between = max(between, o.error[i-1]) + drifted(e.at-list[i-1].at)/2 + 1
		}
		o.worst = max(o.worst, between)
	}
	if len(list) == 0 {
		o.worst = history.Unbounded
	}
	return o
}

// narrow tightens the bounds by another reading.
func (e *reading) narrow(by reading) {
	apart := drifted(e.at - by.at)
	e.low, e.high = max(e.low, by.low-apart), min(e.high, by.high+apart)
}

// of returns the offset when the clock showed at. Outside of the readings, worst includes the additional
// error.
func (o *offsets) of(at int64) int64 {
	i := sort.Search(len(o.at), func(i int) bool { return o.at[i] > at })
	switch n := len(o.at); {
	case n == 0:
		return 0
	case i == 0:
		o.beyond(o.error[0], o.at[0]-at)
		return o.offset[0]
	case i == n:
		o.beyond(o.error[n-1], at-o.at[n-1])
		return o.offset[n-1]
	}
	from, to := o.at[i-1], o.at[i]
	return o.offset[i-1] + (o.offset[i]-o.offset[i-1])*(at-from)/(to-from)
}

func (o *offsets) beyond(error, ns int64) {
	if o.worst != history.Unbounded {
		o.worst = max(o.worst, error+drifted(ns))
	}
}
