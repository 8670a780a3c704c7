package chains

import (
	"cmp"
	"math/bits"
	"slices"
)

// digit is the number of bits that one pass of sorted uses. Its counters fit into a processor's nearest
// cache.
const digit = 11

// sorted sorts events by moment with a radix sort. It returns the sorted events, and memory for the next
// call.
func sorted(list, spare []event) (inOrder, other []event) {
	if len(list) < 1<<7 {
		slices.SortFunc(list, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		return list, spare
	}
	first, last := list[0].at, list[0].at
	for _, e := range list {
		first, last = min(first, e.at), max(last, e.at)
	}
	spare = slices.Grow(spare[:0], len(list))[:len(list)]
	for shift := 0; shift < bits.Len64(uint64(last-first)); shift += digit {
		var places [1 << digit]uint32
		for i := range list {
			places[uint64(list[i].at-first)>>shift%(1<<digit)]++
		}
		sum := uint32(0)
		for i, n := range places {
			places[i] = sum
			sum += n
		}
		for _, e := range list {
			place := &places[uint64(e.at-first)>>shift%(1<<digit)]
			spare[*place] = e
			*place++
		}
		list, spare = spare, list
	}
	return list, spare
}
