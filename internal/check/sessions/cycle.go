package sessions

import (
	"slices"

	"stroppy/internal/check/graph"
)

// stepKind is the reason why one transaction precedes another.
type stepKind uint8

const (
	first       stepKind = iota // the initial transaction precedes all others
	sessionStep                 // so
	timeStep                    // real time
	readStep                    // wr
	inferStep                   // an inferred edge
)

// step is one edge of a cycle.
type step struct {
	from, to uint32
	kind     stepKind
	read     uint32 // for readStep and inferStep
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
		from := inferred.from[at]
		return []step{{from, initial, inferStep, inferred.read[at]}, {from: initial, to: from}}, groups
	}
	if inferred.row == nil {
		inferred.sort(r.transactions())
	}
	short, groups := r.graph(o, inferred).Short(graph.All, o != graph.Plain)
	byTime := sessionStep
	if o == graph.Real {
		byTime = timeStep
	}
	for _, s := range short {
		one := step{from: s.From, to: s.To, kind: byTime}
		switch s.Kind {
		case graph.Wr:
			one.kind, one.read = readStep, r.readRow[s.To]+uint32(slices.Index(r.readFrom[r.readRow[s.To]:], s.From))
		case graph.Rw:
			all := inferred.into(s.To)
			at := slices.IndexFunc(all, func(e uint32) bool { return inferred.from[e] == s.From })
			one.kind, one.read = inferStep, inferred.read[all[at]]
		}
		steps = append(steps, one)
	}
	if at := slices.IndexFunc(steps, func(s step) bool { return s.kind == inferStep }); at > 0 {
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
