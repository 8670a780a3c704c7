package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"stroppy/internal/history"
)

// parter is a source that can read the transactions of some clients separately, such as *history.Reader.
type parter interface {
	Part(h history.Header, cut bool, of func(client uint32) bool) *history.Part
}

// Parts splits a recording into one source for each clock of its clients and one for clients whose processes
// were lost.
//
// The KeyClock header of each part states the uncertainty of its times. The checks compare times of different
// clocks as intervals, and times of one clock exactly.
func Parts(source interface {
	Source
	parter
}) (list []*history.Part) {
	h := source.Header()
	errors := map[int]int64{} // by clock
	for _, c := range h.Clocks {
		if old, ok := errors[c.Clock]; !ok || c.Error == history.Unbounded || old != history.Unbounded && c.Error > old {
			errors[c.Clock] = c.Error
		}
	}
	if !slices.ContainsFunc(h.Clocks, func(c history.ClockError) bool { return c.Error != 0 || c.Cut }) {
		return nil
	}
	clock, ok := ClockOf(h)
	if !ok {
		clock.ID = fmt.Sprintf("run-%d", h.Run)
	}
	for number := range len(h.Clocks) + 1 {
		most, known := errors[number]
		own := clock
		if most == history.Unbounded {
			own.ID = fmt.Sprintf("%s/clock-%d", clock.ID, number)
		} else {
			own.From, own.To = clock.From-most, clock.To+most
		}
		header := h
		header.Clocks, header.Keys = nil, map[string]string{}
		maps.Copy(header.Keys, h.Keys)
		header.Keys[KeyClock] = own.String()
		for _, cut := range []bool{false, true} {
			of := func(c *history.ClockError) bool { return c.Clock == number && c.Cut == cut }
			if known && slices.ContainsFunc(h.Clocks, func(c history.ClockError) bool { return of(&c) }) {
				list = append(list, source.Part(header, cut, func(client uint32) bool { return of(h.ClockOf(uint64(client))) }))
			}
		}
	}
	return list
}

// Middle returns the center of the interval in which the run's times begin on the clock. The true beginning
// is at most Error away.
func (c Clock) Middle() int64 { return c.From + (c.To-c.From)/2 }

// Error returns the maximal distance in nanoseconds between Middle and the true beginning of the run's times.
func (c Clock) Error() int64 { return (c.To - c.From + 1) / 2 }

// Uncertainty returns the maximal error between the times of two histories on one clock. It returns 0 if no
// two histories share a clock.
func (e *Evidence) Uncertainty() time.Duration {
	first, second := map[string]int64{}, map[string]int64{}
	widest, on := int64(0), map[string]int{}
	for _, c := range e.Clocks {
		on[c.ID]++
		switch error := c.Error(); {
		case error > first[c.ID]:
			first[c.ID], second[c.ID] = error, first[c.ID]
		case error > second[c.ID]:
			second[c.ID] = error
		}
	}
	for id, n := range on {
		if n > 1 {
			widest = max(widest, first[id]+second[id])
		}
	}
	return time.Duration(widest)
}

// Doubt counts the cases in which real time may contradict an order, but the clocks are not known exactly
// enough to decide.
type Doubt struct {
	Count int   // transactions
	By    int64 // the clock error in ns below which all of these cases would be decided
}

// Note counts one case that a clock error of by nanoseconds leaves undecided.
func (d *Doubt) Note(by int64) { d.Count, d.By = d.Count+1, max(d.By, by) }

// Apart reports whether clients of one run have clocks that were not compared with each other.
func (e *Evidence) Apart() bool {
	for i, run := range e.Txns.Runs {
		for j := range i {
			if e.Txns.Runs[j] == run && e.Clocks[i].ID != e.Clocks[j].ID {
				return true
			}
		}
	}
	return false
}

// Latest holds the latest time of several groups, and the latest time of all other groups. The zero value
// holds no time.
type Latest struct {
	first, second int64
	of, other     uint32
	known         uint8 // the number of valid entries, at most two
}

// Add adds a time of a group.
func (l *Latest) Add(at int64, group uint32) {
	switch {
	case l.known == 0:
		l.first, l.of, l.known = at, group, 1
	case group == l.of:
		l.first = max(l.first, at)
	case at > l.first:
		l.second, l.other, l.first, l.of, l.known = l.first, l.of, at, group, 2
	case l.known == 1 || at > l.second:
		l.second, l.other, l.known = at, group, 2
	}
}

// Join adds the times of m.
func (l *Latest) Join(m *Latest) {
	if m.known > 0 {
		l.Add(m.first, m.of)
	}
	if m.known > 1 {
		l.Add(m.second, m.other)
	}
}

// Beside returns the latest time of all groups except one. It reports false if there is none.
func (l *Latest) Beside(group uint32) (at int64, ok bool) {
	if l.known > 0 && l.of != group {
		return l.first, true
	}
	return l.second, l.known > 1
}
