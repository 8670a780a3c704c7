package sessions

import (
	"slices"

	"stroppy/internal/check/graph"
)

// step is one edge of a cycle. A graph.Rw edge is inferred from a read; a graph.Ww edge leads from the initial
// transaction, which precedes all others.
type step struct {
	graph.Step
	read uint32 // of an inferred edge
}

// inferred returns the inferred edge with a number.
func (e *edges) inferred(i int) step {
	return step{graph.Step{From: e.from[i], To: e.to[i], Kind: graph.Rw}, e.read[i]}
}

// ring returns the cycle of an inferred edge to the initial transaction.
func (e *edges) ring(i int) []step {
	return []step{e.inferred(i), {Step: graph.Step{From: initial, To: e.from[i], Kind: graph.Ww}}}
}

// cycle finds a short cycle of wr, the inferred edges and the order. It also returns the number of strongly
// connected groups with a cycle. A cycle must exist.
func (r *resolved) cycle(o graph.Order, inferred *edges) (steps []step, groups int) {
	if at := slices.Index(inferred.to, initial); at >= 0 {
		for _, to := range inferred.to {
			if to == initial {
				groups++
			}
		}
		return inferred.ring(at), groups
	}
	if inferred.row == nil {
		inferred.sort(r.transactions())
	}
	short, groups := r.graph(o, inferred).Short(graph.All, o != graph.Plain)
	for _, s := range short {
		one := step{Step: s}
		switch {
		case s.Kind == graph.Rw:
			all := inferred.into(s.To)
			at := slices.IndexFunc(all, func(e uint32) bool { return inferred.from[e] == s.From })
			one = inferred.inferred(int(all[at]))
		case s.Kind == graph.Wr:
		case o == graph.Real:
			one.Kind = graph.Rt
		default:
			one.Kind = graph.Process
		}
		steps = append(steps, one)
	}
	if at := slices.IndexFunc(steps, func(s step) bool { return s.Kind == graph.Rw }); at > 0 {
		steps = slices.Concat(steps[at:], steps[:at])
	}
	return steps, groups
}

// graph returns the graph of wr, the inferred edges and an order.
func (r *resolved) graph(o graph.Order, inferred *edges) *graph.Graph {
	return graph.New(int(r.transactions())+1, 0, r.times(o), &r.watch, func(b *graph.Builder) {
		for t := uint32(1); t <= r.transactions() && !r.watch.Ended(); t++ {
			r.addReads(b, t)
		}
		for i, from := range inferred.from {
			b.Add(from, inferred.to[i], graph.Rw)
		}
	})
}

// agrees reports whether wr, the inferred edges and an order have no cycle.
func (r *resolved) agrees(o graph.Order, inferred *edges) bool {
	return !slices.Contains(inferred.to, initial) && r.graph(o, inferred).Unordered(graph.All, o != graph.Plain) == nil
}

// addReads adds an edge from each transaction that t read from.
func (r *resolved) addReads(b *graph.Builder, t uint32) {
	for _, w := range r.readFrom[r.readRow[t]:r.readRow[t+1]] {
		if w != initial {
			b.Add(w, t, graph.Wr)
		}
	}
}
