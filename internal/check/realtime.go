package check

import (
	"cmp"
	"slices"

	"stroppy/internal/isolation"
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
// so that the edges are at most four a transaction and chain. Each history has a
// chain of its own times, which are exact. Histories on one clock have one more
// chain together, where an end counts at the latest and a beginning at the
// earliest that it can have been. Between clocks nothing is compared.
func (o *order) findRealTime() {
	b := o.b
	e := edges{
		from: slices.Clone(b.edges.from), to: slices.Clone(b.edges.to), kind: slices.Clone(b.edges.kind),
	}
	nodes := len(b.txns.list)
	for source := range b.in.History {
		starts, ends := b.events(func(other uint16) bool { return other == uint16(source) })
		nodes = b.barriers(starts, ends, nodes, &e)
	}
	for _, clock := range b.shared() {
		starts, ends := b.events(func(source uint16) bool { return b.clocks[source].ID == clock })
		for i := range starts {
			starts[i].at += b.clocks[b.txns.list[starts[i].t].source].From
		}
		for i := range ends {
			ends[i].at += b.clocks[b.txns.list[ends[i].t].source].To
		}
		nodes = b.barriers(starts, ends, nodes, &e)
	}
	g := newGraph(nodes, e, &b.watch)
	if g.acyclic() {
		return
	}
	components := g.components()
	slices.SortFunc(components, func(a, c []uint32) int { return len(a) - len(c) })
	for n, component := range components {
		if b.watch.ended() {
			break
		}
		if n >= mostComponents {
			b.tellGroup(Strict, isolation.StrictSerializable, component)
			continue
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
			if late := b.between(to, from); late > worst && b.txns.list[to].answered() {
				worst = late
				steps = []step{{from, to, g.kind[i]}, {to, from, rt}}
			}
		}
	}
	return steps
}

// between returns how long after the end of a transaction another began, in
// nanoseconds and at least that; 0 where nobody can tell or they overlap.
func (b *bank) between(ended, began uint32) int64 {
	t, u := &b.txns.list[ended], &b.txns.list[began]
	switch {
	case t.source == fromLedger || u.source == fromLedger:
		return 0
	case t.source == u.source:
		return max(0, u.try-t.end)
	case b.clocks[t.source].ID == b.clocks[u.source].ID:
		return max(0, u.try+b.clocks[u.source].From-t.end-b.clocks[t.source].To)
	}
	return 0
}

// shared returns the clocks that more than one history is on.
func (b *bank) shared() []string {
	on := map[string]int{}
	var list []string
	for _, c := range b.clocks {
		if on[c.ID]++; on[c.ID] == 2 {
			list = append(list, c.ID)
		}
	}
	return list
}

// event is a transaction's beginning or end.
type event struct {
	t  uint32
	at int64 // ns
}

// events returns when the transactions of some histories began and ended, in the
// times of their histories. A transaction whose outcome never reached its client
// has no end.
func (b *bank) events(of func(source uint16) bool) (starts, ends []event) {
	for i := range b.txns.list {
		t := &b.txns.list[i]
		if b.watch.ended() {
			break
		}
		if t.source == fromLedger || !t.counts() || !of(t.source) {
			continue
		}
		starts = append(starts, event{uint32(i), t.try})
		if t.answered() {
			ends = append(ends, event{uint32(i), t.end})
		}
	}
	return starts, ends
}

// barriers adds a chain of barriers and returns the new number of nodes.
func (b *bank) barriers(starts, ends []event, nodes int, e *edges) int {
	b.sort(starts)
	b.sort(ends)
	barrier, done := none, 0
	for _, start := range starts {
		if b.watch.ended() {
			break
		}
		// Ended at the very instant at which the other began: at the same time.
		if done < len(ends) && ends[done].at < start.at {
			next := uint32(nodes)
			nodes++
			e.add(barrier, next, rt)
			for done < len(ends) && ends[done].at < start.at {
				e.add(ends[done].t, next, rt)
				done++
			}
			barrier = next
		}
		e.add(barrier, start.t, rt)
	}
	return nodes
}

// sort orders events by time. Once the watch has ended, all are equal, which ends
// the sorting.
func (b *bank) sort(list []event) {
	slices.SortFunc(list, func(x, y event) int {
		if b.watch.ended() {
			return 0
		}
		return cmp.Compare(x.at, y.at)
	})
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
