package stats

import (
	"cmp"
	"iter"
	"time"
)

// Gap is a time without commits between two commits, relative to the run's start. The zero Gap stands for
// fewer than two commits.
//
// A Gap of at least the resolution is exact to the nanosecond. A shorter one only shows that no gap reaches
// the resolution. The resolution is a millisecond for runs up to 17 minutes, and doubles each time the run is
// twice as long.
type Gap struct{ From, To time.Duration }

// Length returns the length of the gap.
func (g Gap) Length() time.Duration { return g.To - g.From }

const (
	firstWidth = int64(time.Millisecond)
	maxCells   = 1 << 20
)

// commits keeps the first and the last commit of each time cell. A gap of at least a cell's width lies between two
// cells. So it is found exactly, in any order of the commits (the linear-time maximum gap, Gonzalez 1975).
type commits struct {
	cells   []cell
	doubled uint // how often the width was
}

// width returns the width of a cell in nanoseconds.
func (c *commits) width() int64 { return firstWidth << c.doubled }

// cell holds the times of two commits, where 1 is the run's start and 0 means none.
type cell struct{ first, last int64 }

// add adds one commit at t ≥ 0.
func (c *commits) add(t int64) {
	for t/c.width() >= maxCells {
		c.widen()
	}
	n := int(t / c.width())
	c.cells = grown(c.cells, n)
	cell := &c.cells[n]
	if cell.first == 0 || t < cell.first {
		cell.first = t + 1
	}
	cell.last = max(cell.last, t+1)
}

// widen merges pairs of adjacent cells.
func (c *commits) widen() {
	for i, half := range c.cells {
		if i%2 == 0 {
			c.cells[i/2] = half
			continue
		}
		joined := &c.cells[i/2]
		joined.first, joined.last = cmp.Or(joined.first, half.first), cmp.Or(half.last, joined.last)
	}
	n := (len(c.cells) + 1) / 2
	clear(c.cells[n:])
	c.cells = c.cells[:n]
	c.doubled++
}

// longestOf returns the longest time between two commits within one of the phases, which must be in order.
func (c *commits) longestOf(phases []Phase) (longest time.Duration) {
	first := true // the gap before the first commit
	for from, to := range c.between(0) {
		for len(phases) > 0 && phases[0].To < to {
			phases = phases[1:]
		}
		if !first && len(phases) > 0 && from >= phases[0].From {
			longest = max(longest, to-from)
		}
		first = false
	}
	return longest
}

// after returns t, or the end of the gap longer than noise that contains t.
func (c *commits) after(t, noise time.Duration) time.Duration {
	for from, to := range c.between(0) {
		if from <= t && t < to && to-from > noise {
			return to
		}
		if from > t {
			break
		}
	}
	return t
}

// between yields the gaps in order: from the run's start to the first commit, between commits, and from the
// last commit to end if that is later.
func (c *commits) between(end time.Duration) iter.Seq2[time.Duration, time.Duration] {
	return func(yield func(from, to time.Duration) bool) {
		last := time.Duration(0)
		for _, cell := range c.cells {
			if cell.first == 0 {
				continue
			}
			if !yield(last, time.Duration(cell.first-1)) {
				return
			}
			last = time.Duration(cell.last - 1)
		}
		if end > last {
			yield(last, end)
		}
	}
}
