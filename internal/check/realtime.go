package check

import (
	"cmp"
	"slices"
)

// findRealTime adds real time to the graph and looks for cycles. Each
// transaction that ended before another began must come before it; instead of an
// edge for each such pair, a chain of barriers stands between them:
//
//	T1 ended ─► barrier ─► T2 began
//	T3 ended ─►    │
//	               ▼
//	T4 ended ─► barrier ─► T5 began
//
// so that the edges are at most four a transaction. Times are compared within
// one history only, because each has its own clock.
func (o *order) findRealTime() {
	b := o.b
	e := edges{
		from: slices.Clone(b.edges.from), to: slices.Clone(b.edges.to), kind: slices.Clone(b.edges.kind),
	}
	nodes := len(b.txns.list)
	for source := range b.in.History {
		nodes = b.barriers(uint16(source), nodes, &e)
	}
	g := newGraph(nodes, e)
	if g.acyclic() {
		return
	}
	components := g.components()
	slices.SortFunc(components, func(a, c []uint32) int { return len(a) - len(c) })
	for n, component := range components {
		if n >= mostComponents {
			break
		}
		slices.Sort(component)
		sub := g.restrict(component)
		steps := b.inversion(sub, component)
		if steps == nil {
			if steps = sub.shortestInTime(); steps == nil {
				steps = sub.round(rw)
			}
			steps = collapse(outward(steps, component), uint32(len(b.txns.list)))
		}
		o.cycles = append(o.cycles, steps)
	}
}

// inversion returns the dependency of a component that contradicts real time by
// the most: a transaction must come before another that had ended before it
// began. Nil is none; then more transactions are needed for the cycle.
func (b *bank) inversion(g *graph, component []uint32) []step {
	var steps []step
	worst := int64(0)
	for n, from := range component {
		for i := g.row[n]; i < g.row[n+1]; i++ {
			to := component[g.to[i]]
			if g.kind[i] == rt {
				continue
			}
			t, u := &b.txns.list[from], &b.txns.list[to]
			if late := t.try - u.end; late > worst && t.source == u.source && u.answered() {
				worst = late
				steps = []step{{from, to, g.kind[i]}, {to, from, rt}}
			}
		}
	}
	return steps
}

// barriers adds one history's chain of barriers and returns the new number of
// nodes. A transaction whose outcome never reached its client has no end.
func (b *bank) barriers(source uint16, nodes int, e *edges) int {
	var starts, ends []uint32
	for i := range b.txns.list {
		t := &b.txns.list[i]
		if t.source != source || !t.counts() {
			continue
		}
		starts = append(starts, uint32(i))
		if t.answered() {
			ends = append(ends, uint32(i))
		}
	}
	list := b.txns.list
	slices.SortFunc(starts, func(x, y uint32) int { return cmp.Compare(list[x].try, list[y].try) })
	slices.SortFunc(ends, func(x, y uint32) int { return cmp.Compare(list[x].end, list[y].end) })
	barrier, done := none, 0
	for _, t := range starts {
		// Ended at the very instant at which the other began: at the same time.
		if done < len(ends) && list[ends[done]].end < list[t].try {
			next := uint32(nodes)
			nodes++
			e.add(barrier, next, rt)
			for done < len(ends) && list[ends[done]].end < list[t].try {
				e.add(ends[done], next, rt)
				done++
			}
			barrier = next
		}
		e.add(barrier, t, rt)
	}
	return nodes
}

// shortestInTime finds a short cycle through real time, beginning with an edge
// that is a dependency: an anti-dependency if there is one.
func (g *graph) shortestInTime() []step {
	var best []step
	for _, kind := range []uint8{rw, wr, ww} {
		tries, left := 0, mostVisits
		for n := range g.nodes() {
			for i := g.row[n]; i < g.row[n+1] && tries < mostStarts && left > 0; i++ {
				if g.kind[i] != kind {
					continue
				}
				tries++
				back, visits := g.path(g.to[i], uint32(n), rt, left)
				left -= visits
				if back != nil && (best == nil || len(back)+1 < len(best)) {
					best = append([]step{{uint32(n), g.to[i], kind}}, back...)
				}
			}
		}
		if best != nil {
			return best
		}
	}
	return best
}

// collapse takes the barriers, which are the nodes from first on, out of a cycle
// that begins at a transaction.
func collapse(steps []step, first uint32) []step {
	var out []step
	for i := 0; i < len(steps); i++ {
		s := steps[i]
		for s.to >= first && i+1 < len(steps) {
			i++
			s.to = steps[i].to
		}
		out = append(out, s)
	}
	return out
}
