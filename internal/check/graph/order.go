package graph

import "math"

// Unordered returns the nodes without a place in an order that agrees with the edges of the mask. If real is set, the
// order also agrees with real time. These are the nodes on cycles and the nodes behind a cycle. The result is empty
// exactly if an order exists.
//
// The algorithm removes nodes without predecessors until none is left (Kahn, 1962). For real time it keeps
// the earliest end of the remaining nodes: a node that began later must wait. So real time needs no edges,
// and the algorithm is linear after the beginnings and ends are sorted.
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

// Ordered returns an order that agrees with the edges of the mask, or nil if none exists. Among the nodes
// that can come next, it takes the one that became available first or, if late is set, last.
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

// Core returns the subgraph of the nodes on cycles and between cycles, and the nodes of g that correspond to
// its nodes. The result is nil if there is no cycle.
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

// done marks a node that has its place in the order.
const done = math.MaxUint32

type kahn struct {
	*Graph
	mask    Mask
	waiting []uint32  // number of predecessors that each node waits for
	ready   []uint32  // nodes that can come next
	placed  int       // number of placed nodes
	clocks  [][]clock // one for each line; nil: real time is ignored
}

// clock is the progress of time on a line.
type clock struct {
	line
	begun int // number of nodes in byBegin that time has released
	ended int // number of leading nodes in byEnd that are placed
}

// kahn starts the algorithm.
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
			k.waiting[n] += uint32(len(k.clocks)) // until time releases the node
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

// last removes and returns the last node that can come next.
func (k *kahn) last() uint32 {
	n := k.ready[len(k.ready)-1]
	k.ready = k.ready[:len(k.ready)-1]
	return n
}

// place gives a node its place in the order.
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

// advance releases the nodes that began before or at the earliest end of the nodes without a place.
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
