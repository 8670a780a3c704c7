package sessions

import (
	"slices"

	"stroppy/internal/check/graph"
)

// stepKind is why one transaction comes before another.
type stepKind uint8

const (
	first       stepKind = iota // the initial transaction is before all
	sessionStep                 // so
	readStep                    // wr
	inferStep                   // an inferred edge
)

// step is one edge of a cycle.
type step struct {
	from, to uint32
	kind     stepKind
	read     uint32 // of readStep and inferStep
}

// cycle finds a short cycle of so, wr and the inferred edges, of which there is one, and
// how many groups of transactions have one, where they do not reach each other.
func (r *resolved) cycle(inferred *edges) (steps []step, groups int) {
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
	short, groups := graph.New(int(r.transactions())+1, 0, []graph.Times{r.times()}, &r.watch, func(b *graph.Builder) {
		for t := uint32(1); t <= r.transactions() && !r.watch.Ended(); t++ {
			r.addReads(b, t)
		}
		for i, from := range inferred.from {
			b.Add(from, inferred.to[i], graph.Rw)
		}
	}).Short(graph.All, true)
	for _, s := range short {
		one := step{from: s.From, to: s.To, kind: sessionStep}
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

// times are the order of each session, as if it were on a clock of its own.
func (r *resolved) times() graph.Times {
	at := make([]int64, r.transactions()+1)
	for t := range at {
		at[t] = int64(t)
	}
	return graph.Times{Begin: at, End: at, Group: r.session}
}

// addReads adds the edges from those of whom a transaction has read.
func (r *resolved) addReads(b *graph.Builder, t uint32) {
	for _, w := range r.readFrom[r.readRow[t]:r.readRow[t+1]] {
		if w != initial {
			b.Add(w, t, graph.Wr)
		}
	}
}
