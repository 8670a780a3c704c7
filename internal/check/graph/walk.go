package graph

import (
	"cmp"
	"slices"
)

// walk comes to the nodes of a graph over the edges of a mask and, where it counts, over real
// time. It takes time linear in nodes and edges, because of what began after a transaction had
// ended it asks only for what it has not come to: the last of each line.
type walk struct {
	*Graph
	mask Mask
	seen []bool
	left [][]int // as the lines, if real time counts: how many of byBegin it may not have come to, from the first on
}

// place is a node and its next edge.
type place struct{ node, edge uint32 }

func (g *Graph) walk(mask Mask, real bool) *walk {
	w := &walk{Graph: g, mask: mask, seen: make([]bool, g.Nodes())}
	if real {
		for _, lines := range g.timelines() {
			left := make([]int, len(lines))
			for i := range lines {
				left[i] = len(lines[i].byBegin)
			}
			w.left = append(w.left, left)
		}
	}
	return w
}

// next comes from a node to another one; false is no more.
func (w *walk) next(p *place) (Step, bool) {
	n := p.node
	for p.edge < w.row[n+1] {
		a := w.arc[p.edge]
		p.edge++
		if to := a >> kindBits; w.mask.has(a&kindMask) && !w.seen[to] {
			w.seen[to] = true
			return Step{n, to, uint8(a & kindMask)}, true
		}
	}
	if int(n) >= w.transactions {
		return Step{}, false
	}
	for i := range w.left {
		t := &w.times[i]
		order, left := w.lines[i][t.group(n)].byBegin, &w.left[i][t.group(n)]
		for *left > 0 && w.seen[order[*left-1]] {
			*left--
		}
		if *left > 0 && t.Begin[order[*left-1]] > t.End[n] {
			to := order[*left-1]
			w.seen[to] = true
			return Step{n, to, Rt}, true
		}
	}
	return Step{}, false
}

// deep comes to all that can be reached from a node, and calls leave with each node behind all
// that were reached from it.
func (w *walk) deep(root uint32, leave func(n uint32)) {
	w.seen[root] = true
	stack := []place{{root, w.row[root]}}
	for len(stack) > 0 && !w.w.Ended() {
		top := &stack[len(stack)-1]
		if s, ok := w.next(top); ok {
			stack = append(stack, place{s.To, w.row[s.To]})
			continue
		}
		leave(top.node)
		stack = stack[:len(stack)-1]
	}
}

// Components returns the strongly connected components with more than one node, the smallest
// first, each in order: those that hold every cycle of edges of the mask and of real time,
// where it counts (Kosaraju, after Sharir, 1981).
func (g *Graph) Components(mask Mask, real bool) (found [][]uint32) {
	left := make([]uint32, 0, g.Nodes())
	forth := g.walk(mask, real)
	for n := range uint32(g.Nodes()) {
		if !forth.seen[n] {
			forth.deep(n, func(n uint32) { left = append(left, n) })
		}
	}
	back := g.reversed().walk(mask, real)
	var component []uint32
	for _, n := range slices.Backward(left) {
		if back.seen[n] {
			continue
		}
		component = component[:0]
		back.deep(n, func(n uint32) { component = append(component, n) })
		if len(component) > 1 {
			slices.Sort(component)
			found = append(found, slices.Clone(component))
		}
	}
	if g.w.Err != nil {
		return nil
	}
	slices.SortFunc(found, func(a, b []uint32) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a[0], b[0])) })
	return found
}

// Short returns a short cycle over edges of the mask and, where it counts, real time as often
// as need be: a shortest one where the smallest components are small. Nil is none. It returns
// how many components there are, too.
func (g *Graph) Short(mask Mask, real bool) (best []Step, groups int) {
	components, left := g.Components(mask, real), mostVisited
	parts := g.parts()
	for _, component := range components[:min(len(components), MostPicked)] {
		part := parts.of(component)
		for n := range uint32(len(component)) {
			if len(best) == 2 || best != nil && left <= 0 || g.w.Ended() {
				return best, len(components)
			}
			left -= len(component)
			if steps := part.around(n, mask, real); best == nil || steps != nil && len(steps) < len(best) {
				best = Outward(steps, component)
			}
		}
	}
	return best, len(components)
}

// around returns a shortest cycle through a node over edges of the mask and real time, by
// breadth; nil is none.
func (g *Graph) around(node uint32, mask Mask, real bool) []Step {
	w := g.walk(mask, real)
	came := make([]Step, g.Nodes())
	queue := []place{{node, g.row[node]}}
	for at := 0; at < len(queue) && !w.w.Ended(); at++ {
		for s, ok := w.next(&queue[at]); ok; s, ok = w.next(&queue[at]) {
			came[s.To] = s
			queue = append(queue, place{s.To, g.row[s.To]})
		}
		if w.seen[node] {
			steps := []Step{came[node]}
			for s := steps[0]; s.From != node; steps = append(steps, s) {
				s = came[s.From]
			}
			slices.Reverse(steps)
			return steps
		}
	}
	return nil
}
