package graph

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Never is the end of a transaction without a known end. -Never is the beginning of a transaction without a
// known beginning.
const Never int64 = math.MaxInt64

// Times holds when transactions began and ended, in nanoseconds. Different groups have different clocks and
// are not compared. If a graph has several Times, a transaction ended before another began if one of them
// shows it.
type Times struct {
	Begin, End []int64
	Group      []uint32 // nil: all transactions are in one group
}

func (t *Times) group(n uint32) int {
	if t.Group == nil {
		return 0
	}
	return int(t.Group[n])
}

// Begin returns the beginning of a transaction by the first Times of the graph, and End returns its end.
func (g *Graph) Begin(n uint32) int64 { return g.times[0].Begin[n] }
func (g *Graph) End(n uint32) int64   { return g.times[0].End[n] }

// of returns the times of the given transactions.
func (t *Times) of(nodes []uint32) Times {
	return Times{pick(t.Begin, nodes), pick(t.End, nodes), pick(t.Group, nodes)}
}

func pick[T any](list []T, nodes []uint32) []T {
	if list == nil {
		return nil
	}
	picked := make([]T, len(nodes))
	for i, n := range nodes {
		picked[i] = list[n]
	}
	return picked
}

func (t *Times) reversed() Times {
	r := Times{make([]int64, len(t.Begin)), make([]int64, len(t.End)), t.Group}
	for n := range t.Begin {
		r.Begin[n], r.End[n] = -t.End[n], -t.Begin[n]
	}
	return r
}

// spaced returns the times for Graph.Spaced.
func (t *Times) spaced() Times {
	nodes := make([]uint32, 2*len(t.Begin))
	for i := range nodes {
		nodes[i] = uint32(i / 2)
	}
	s := t.of(nodes)
	for n := 1; n < len(nodes); n += 2 {
		s.Begin[n] = -Never
	}
	return s
}

// between returns the time from the end of one transaction to the beginning of another, and 0 if the second
// did not begin later. Equal times count as simultaneous.
func (g *Graph) between(ended, began uint32) (longest int64) {
	if int(ended) >= g.transactions || int(began) >= g.transactions {
		return 0
	}
	for i := range g.times {
		t := &g.times[i]
		if t.End[ended] < t.Begin[began] && t.group(ended) == t.group(began) {
			longest = max(longest, t.Begin[began]-t.End[ended])
		}
	}
	return longest
}

// line holds the transactions of a group, sorted by beginning and sorted by end. Transactions without an end
// are absent from byEnd.
type line struct{ byBegin, byEnd []uint32 }

// timelines returns the lines. It creates them on the first call.
func (g *Graph) timelines() [][]line {
	if g.lines != nil {
		return g.lines
	}
	for i := range g.times {
		t := &g.times[i]
		var begins, ends [][]uint32
		var both sync.WaitGroup
		both.Go(func() { begins = t.grouped(byTime(t.Begin, false)) })
		both.Go(func() { ends = t.grouped(byTime(t.End, true)) })
		both.Wait()
		list := make([]line, max(len(begins), len(ends)))
		for group := range list {
			list[group] = line{begins[group], ends[group]}
		}
		g.lines = append(g.lines, list)
	}
	return g.lines
}

// grouped returns the given transactions by group. It keeps their order within a group.
func (t *Times) grouped(order []uint32) [][]uint32 {
	if t.Group == nil {
		return [][]uint32{order}
	}
	list := make([][]uint32, int(slices.Max(t.Group))+1)
	for _, n := range order {
		list[t.Group[n]] = append(list[t.Group[n]], n)
	}
	return list
}

const (
	digit     = 11 // bits
	fewToSort = 1 << 12
)

// byTime returns the indices of times in sorted order. It is a radix sort, linear in the number of times; the
// range of the times determines the number of rounds. If leaveNever is set, Never is omitted.
func byTime(times []int64, leaveNever bool) []uint32 {
	order := make([]uint32, 0, len(times))
	least, most := Never, -Never
	for i, t := range times {
		if leaveNever && t == Never {
			continue
		}
		order = append(order, uint32(i))
		if t != -Never && t != Never {
			least, most = min(least, t), max(most, t)
		}
	}
	if len(order) < fewToSort || most < least {
		slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(times[a], times[b]) })
		return order
	}
	// 0 precedes all times, and range + 1 follows them.
	key := func(i uint32) uint64 {
		switch t := times[i]; t {
		case -Never:
			return 0
		case Never:
			return uint64(most-least) + 2
		default:
			return uint64(t-least) + 1
		}
	}
	next := make([]uint32, len(order))
	for shift := 0; (uint64(most-least)+2)>>shift != 0; shift += digit {
		var at [1<<digit + 1]uint32
		for _, i := range order {
			at[key(i)>>shift&(1<<digit-1)+1]++
		}
		for d := range 1 << digit {
			at[d+1] += at[d]
		}
		for _, i := range order {
			d := key(i) >> shift & (1<<digit - 1)
			next[at[d]] = i
			at[d]++
		}
		order, next = next, order
	}
	return order
}
