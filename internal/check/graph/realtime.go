package graph

import (
	"cmp"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/isolation"
)

// Contradictions adds real time to the graph and looks for cycles. Each
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
func Contradictions(ev *check.Evidence, dependencies Edges, group func(level isolation.Level, component []uint32)) [][]Step {
	e := Edges{
		From: slices.Clone(dependencies.From), To: slices.Clone(dependencies.To), Kind: slices.Clone(dependencies.Kind),
	}
	b := &realTime{ev}
	nodes := len(ev.Txns.List)
	for source := range ev.Input.History {
		starts, ends := b.events(func(other uint16) bool { return other == uint16(source) })
		nodes = b.barriers(starts, ends, nodes, &e)
	}
	for _, clock := range b.shared() {
		starts, ends := b.events(func(source uint16) bool { return b.Clocks[source].ID == clock })
		for i := range starts {
			starts[i].at += b.Clocks[b.Txns.List[starts[i].t].Source].From
		}
		for i := range ends {
			ends[i].at += b.Clocks[b.Txns.List[ends[i].t].Source].To
		}
		nodes = b.barriers(starts, ends, nodes, &e)
	}
	g := New(nodes, e, &ev.Watch)
	if g.Acyclic() {
		return nil
	}
	return b.cycles(g, group)
}

// realTime adds to evidence what is told by times.
type realTime struct{ *check.Evidence }

// cycles picks cycles of a graph with barriers, as graph.cycles does.
func (b *realTime) cycles(g *Graph, group func(level isolation.Level, component []uint32)) [][]Step {
	components := g.Components()
	slices.SortFunc(components, func(a, c []uint32) int { return len(a) - len(c) })
	var found [][]Step
	for n, component := range components {
		if b.Watch.Ended() {
			break
		}
		if n >= mostComponents {
			group(isolation.StrictSerializable, component)
			continue
		}
		slices.Sort(component)
		sub := g.restrict(component)
		steps := b.inversion(sub, component)
		if steps == nil {
			if steps = sub.shortestInTime(); steps == nil {
				steps = sub.round(Rw)
			}
			steps = collapse(outward(steps, component), uint32(len(b.Txns.List)))
		}
		found = append(found, steps)
	}
	return found
}

// inversion returns the dependency of a component that contradicts real time by
// the most: a transaction must come before another that had ended before it
// began. Nil is none; then more transactions are needed for the cycle.
func (b *realTime) inversion(g *Graph, component []uint32) []Step {
	var steps []Step
	worst := int64(0)
	for n, from := range component {
		for i := g.row[n]; i < g.row[n+1]; i++ {
			to := component[g.to[i]]
			if g.kind[i] == Rt {
				continue
			}
			if late := b.Between(to, from); late > worst && b.Txns.List[to].Answered() {
				worst = late
				steps = []Step{{from, to, g.kind[i]}, {to, from, Rt}}
			}
		}
	}
	return steps
}

// shared returns the clocks that more than one history is on.
func (b *realTime) shared() []string {
	on := map[string]int{}
	var list []string
	for _, c := range b.Clocks {
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
func (b *realTime) events(of func(source uint16) bool) (starts, ends []event) {
	for i := range b.Txns.List {
		t := &b.Txns.List[i]
		if b.Watch.Ended() {
			break
		}
		if t.Source == check.FromLedger || !t.Counts() || !of(t.Source) {
			continue
		}
		starts = append(starts, event{uint32(i), t.Try})
		if t.Answered() {
			ends = append(ends, event{uint32(i), t.End})
		}
	}
	return starts, ends
}

// barriers adds a chain of barriers and returns the new number of nodes.
func (b *realTime) barriers(starts, ends []event, nodes int, e *Edges) int {
	b.sort(starts)
	b.sort(ends)
	barrier, done := check.None, 0
	for _, start := range starts {
		if b.Watch.Ended() {
			break
		}
		// Ended at the very instant at which the other began: at the same time.
		if done < len(ends) && ends[done].at < start.at {
			next := uint32(nodes)
			nodes++
			e.Add(barrier, next, Rt)
			for done < len(ends) && ends[done].at < start.at {
				e.Add(ends[done].t, next, Rt)
				done++
			}
			barrier = next
		}
		e.Add(barrier, start.t, Rt)
	}
	return nodes
}

// sort orders events by time. Once the watch has ended, all are equal, which ends
// the sorting.
func (b *realTime) sort(list []event) {
	slices.SortFunc(list, func(x, y event) int {
		if b.Watch.Ended() {
			return 0
		}
		return cmp.Compare(x.at, y.at)
	})
}

// shortestInTime finds a short cycle through real time, beginning with an edge
// that is a dependency: an anti-dependency if there is one.
func (g *Graph) shortestInTime() []Step {
	for _, kind := range []uint8{Rw, Wr, Ww} {
		tries, left := mostStarts, mostVisits
		if best := g.shortestFrom(kind, Rt, &tries, &left); best != nil {
			return best
		}
	}
	return nil
}

// collapse takes the barriers, which are the nodes from first on, out of a cycle
// that begins at a transaction.
func collapse(steps []Step, first uint32) []Step {
	var out []Step
	for i := 0; i < len(steps); i++ {
		s := steps[i]
		for s.To >= first && i+1 < len(steps) {
			i++
			s.To = steps[i].To
		}
		out = append(out, s)
	}
	return out
}
