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
	for own := range ev.Input.History {
		nodes = b.barriers(nodes, &e, func(source uint16) (check.Clock, bool) { return check.Clock{}, int(source) == own })
	}
	for _, id := range b.shared() {
		nodes = b.barriers(nodes, &e, func(source uint16) (check.Clock, bool) { return b.Clocks[source], b.Clocks[source].ID == id })
	}
	g := New(nodes, e, &ev.Watch)
	if g.Acyclic() {
		return nil
	}
	return b.cycles(g, group)
}

// realTime adds to evidence what follows from times.
type realTime struct{ *check.Evidence }

// cycles picks cycles of a graph with barriers, as graph.cycles does.
func (b *realTime) cycles(g *Graph, group func(level isolation.Level, component []uint32)) [][]Step {
	var found [][]Step
	for n, component := range g.Components() {
		if b.Watch.Ended() {
			break
		}
		if n >= mostComponents {
			group(isolation.StrictSerializable, component)
			continue
		}
		sub := g.restrict(component)
		steps := b.inversion(sub, component)
		if steps == nil {
			if steps = sub.shortest(Rw, Rt); steps == nil {
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
	for s := range g.edges {
		from, to := component[s.From], component[s.To]
		if s.Kind == Rt {
			continue
		}
		if late := b.Between(to, from); late > worst && b.Txns.List[to].Answered() {
			worst = late
			steps = []Step{{from, to, s.Kind}, {to, from, Rt}}
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

// barriers adds the chain of barriers of some histories, and returns the new number of
// nodes. of says which they are, and what their times are moved by. A transaction whose
// outcome never reached its client has no end.
func (b *realTime) barriers(nodes int, e *Edges, of func(source uint16) (check.Clock, bool)) int {
	var starts, ends []event
	for i := range b.Txns.List {
		t := &b.Txns.List[i]
		if b.Watch.Ended() {
			return nodes
		}
		if t.Source == check.FromLedger || !t.Counts() {
			continue
		}
		if clock, ok := of(t.Source); ok {
			starts = append(starts, event{uint32(i), t.Try + clock.From})
			if t.Answered() {
				ends = append(ends, event{uint32(i), t.End + clock.To})
			}
		}
	}
	b.sort(starts)
	b.sort(ends)
	barrier := check.None
	for _, start := range starts {
		if b.Watch.Ended() {
			break
		}
		// Ended at the very instant at which the other began: at the same time.
		if len(ends) > 0 && ends[0].at < start.at {
			next := uint32(nodes)
			nodes++
			e.Add(barrier, next, Rt)
			for ; len(ends) > 0 && ends[0].at < start.at; ends = ends[1:] {
				e.Add(ends[0].t, next, Rt)
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
