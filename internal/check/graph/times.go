package graph

import (
	"cmp"
	"slices"
	"sync"
)

// sortTimes sorts the nodes by their beginnings and by their ends. What has no end is not
// among the ends.
func (g *Compact) sortTimes() {
	if g.byBegin != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { g.byBegin = byTime(g.begin, false) })
	both.Go(func() { g.byEnd = byTime(g.end, true) })
	both.Wait()
}

const (
	digit     = 11 // bits
	fewToSort = 1 << 12
)

// byTime returns the places of times in their order: a radix sort, linear in their number,
// with as many rounds as the range of the times needs. Never is left out where it is asked for.
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
	// 0 is before all times, and one more than their range is after them.
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
