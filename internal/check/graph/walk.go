package graph

import (
	"cmp"
	"slices"
)

// walk visits the nodes of a graph over the edges of a mask and, if real time counts, over real time. It
// takes linear time: among the transactions that began after a given end it asks only for unvisited ones,
// which are the last ones of each line.
type walk struct {
	*Graph
	mask Mask
	seen []bool
	left [][]int // by line, if real time counts: number of leading nodes in byBegin that may be unvisited
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

// next moves from a node to an unvisited one. It reports false if there is none.
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

// deep visits all nodes that are reachable from root. It calls leave for each node after all nodes reached
// from it.
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

// Components returns the strongly connected components with more than one node, the smallest first and each
// sorted. They contain every cycle over edges of the mask and, if real is set, of real time (Kosaraju, after
// Sharir, 1981).
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

// Short returns a short cycle over edges of the mask and any number of edges of real time, if real is set.
// The cycle is a shortest one if the smallest components are small. Short returns nil if there is no cycle.
// It also returns the number of components.
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

// around returns a shortest cycle through a node over edges of the mask and of real time, by a breadth-first
// search. It returns nil if there is none.
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
