package graph

import "math"

// Unordered returns the nodes that have no place in an order that agrees with the edges of
// the mask and, where it counts, with real time: those of all cycles, and those behind one.
// None is left exactly where there is an order.
//
// It takes away what nothing leads to until nothing is left (Kahn, 1962). Of real time it
// knows the earliest end of what is left: who began later has to wait. So time takes no
// edges, and the whole is linear once beginnings and ends are sorted.
func (g *Graph) Unordered(mask Mask, real bool) []uint32 {
	k := g.kahn(mask, real)
	for len(k.ready) > 0 && !k.w.Ended() {
		k.place(k.last())
	}
	if k.placed == g.Nodes() || g.w.Err != nil {
		return nil
	}
	left := make([]uint32, 0, g.Nodes()-k.placed)
	for n, count := range k.waiting {
		if count != done {
			left = append(left, uint32(n))
		}
	}
	return left
}

// Ordered returns an order that agrees with the edges of the mask; nil is none. Of the nodes
// that can come next the one that could first does, or if late the one that could last.
func (g *Graph) Ordered(mask Mask, late bool) []uint32 {
	k := g.kahn(mask, false)
	list := make([]uint32, 0, g.Nodes())
	for at := 0; at < len(k.ready) && !k.w.Ended(); {
		n := k.ready[at]
		if late {
			n = k.last()
		} else {
			at++
		}
		list = append(list, n)
		k.place(n)
	}
	if len(list) < g.Nodes() {
		return nil
	}
	return list
}

// Core returns the graph of the nodes on a cycle and between two cycles, and which nodes of g
// they are; nil is none.
func (g *Graph) Core(mask Mask, real bool) (*Graph, []uint32) {
	unordered := g.Unordered(mask, real)
	if unordered == nil {
		return nil, nil
	}
	half := g.parts().of(unordered)
	left := half.reversed().Unordered(mask, real)
	core := half.parts().of(left)
	for i, n := range left {
		left[i] = unordered[n]
	}
	return core, left
}

// done is how many predecessors a node waits for that has its place.
const done = math.MaxUint32

type kahn struct {
	*Graph
	mask    Mask
	waiting []uint32  // for how many each node waits
	ready   []uint32  // those that can come next
	placed  int       // how many have their places
	clocks  [][]clock // as the lines; nil: real time does not count
}

// clock is how far time has gone on a line.
type clock struct {
	line
	begun int // how many of byBegin it has let go
	ended int // how many of byEnd have their places, from the first on
}

// kahn begins.
func (g *Graph) kahn(mask Mask, real bool) *kahn {
	k := &kahn{Graph: g, mask: mask, waiting: make([]uint32, g.Nodes())}
	for _, a := range g.arc {
		if mask.has(a & kindMask) {
			k.waiting[a>>kindBits]++
		}
	}
	if real {
		for _, lines := range g.timelines() {
			clocks := make([]clock, len(lines))
			for i := range lines {
				clocks[i].line = lines[i]
			}
			k.clocks = append(k.clocks, clocks)
		}
		for n := range g.transactions {
			k.waiting[n] += uint32(len(k.clocks)) // until time lets it go
		}
	}
	for n, count := range k.waiting {
		if count == 0 {
			k.ready = append(k.ready, uint32(n))
		}
	}
	for i := range k.clocks {
		for j := range k.clocks[i] {
			k.advance(&k.times[i], &k.clocks[i][j])
		}
	}
	return k
}

// last takes the last of those that can come next.
func (k *kahn) last() uint32 {
	n := k.ready[len(k.ready)-1]
	k.ready = k.ready[:len(k.ready)-1]
	return n
}

// place gives a node its place.
func (k *kahn) place(n uint32) {
	k.placed++
	k.waiting[n] = done
	for _, a := range k.arc[k.row[n]:k.row[n+1]] {
		if k.mask.has(a & kindMask) {
			k.free(a >> kindBits)
		}
	}
	if int(n) >= k.transactions {
		return
	}
	for i := range k.clocks {
		t := &k.times[i]
		if c := &k.clocks[i][t.group(n)]; c.ended < len(c.byEnd) && c.byEnd[c.ended] == n {
			k.advance(t, c)
		}
	}
}

func (k *kahn) free(n uint32) {
	if k.waiting[n]--; k.waiting[n] == 0 {
		k.ready = append(k.ready, n)
	}
}

// advance lets go who began not after the earliest end of those that have no place.
func (k *kahn) advance(t *Times, c *clock) {
	for c.ended < len(c.byEnd) && k.waiting[c.byEnd[c.ended]] == done {
		c.ended++
	}
	earliest := Never
	if c.ended < len(c.byEnd) {
		earliest = t.End[c.byEnd[c.ended]]
	}
	for c.begun < len(c.byBegin) && t.Begin[c.byBegin[c.begun]] <= earliest {
		k.free(c.byBegin[c.begun])
		c.begun++
	}
}
