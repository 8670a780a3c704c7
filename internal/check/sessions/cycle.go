package sessions

import (
	"math"
	"slices"

	"stroppy/internal/check/graph"
)

// The bounds of the search for a short cycle. That there is one is known before, and the
// first search has no bound.
const (
	mostComponents = 64
	mostStarts     = 256
	mostVisits     = 1 << 21
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
	components := r.components(inferred)
	search := cycleSearch{resolved: r, inferred: inferred, component: make([]uint32, r.transactions()+1), came: make([]step, r.transactions()+1), covered: make([]uint32, len(r.Sessions))}
	for i, component := range components[:min(len(components), mostComponents)] {
		search.in(component, uint32(i)+1)
		if len(search.best) == 2 {
			break
		}
	}
	return search.best, len(components)
}

// components returns the strongly connected ones, the smallest first.
func (r *resolved) components(inferred *edges) [][]uint32 {
	return graph.New(int(r.transactions())+1, 0, nil, &r.watch, func(b *graph.Builder) {
		for t := uint32(1); t <= r.transactions() && !r.watch.Ended(); t++ {
			r.addCausal(b, t, true)
		}
		for i, from := range inferred.from {
			b.Add(from, inferred.to[i], graph.Rw)
		}
	}).Components(graph.All, false)
}

// addCausal adds the edges to the next transaction of the session, and from those that a
// transaction has read of.
func (r *resolved) addCausal(b *graph.Builder, t uint32, withSessions bool) {
	if withSessions && t+1 < r.first[r.session[t]+1] {
		b.Add(t, t+1, graph.Ww)
	}
	for _, w := range r.readFrom[r.readRow[t]:r.readRow[t+1]] {
		if w != initial {
			b.Add(w, t, graph.Wr)
		}
	}
}

// cycleSearch looks for the shortest cycle in components.
type cycleSearch struct {
	*resolved
	inferred  *edges
	component []uint32 // of each transaction, counted from 1; those that were searched
	best      []step
	starts    int
	visits    int

	// Of one search, backwards.
	came    []step   // of each transaction that was reached: the edge from it
	reached []uint32 // all of them, in the order in which they were
	covered []uint32 // of each session: the transaction before which all were reached; 0: none
}

// in searches a component.
func (s *cycleSearch) in(component []uint32, number uint32) {
	for _, t := range component {
		s.component[t] = number
	}
	for _, t := range component {
		for _, e := range s.inferred.into(t) {
			s.through(step{s.inferred.from[e], t, inferStep, s.inferred.read[e]}, number)
		}
		if len(s.best) == 2 || s.starts > mostStarts || s.visits > mostVisits {
			return
		}
	}
	if len(s.best) > 0 {
		return
	}
	for _, t := range component { // without inferred edges
		for i := s.readRow[t]; i < s.readRow[t+1]; i++ {
			s.through(step{s.readFrom[i], t, readStep, i}, number)
		}
		if len(s.best) == 2 || s.starts > mostStarts || s.visits > mostVisits {
			return
		}
	}
}

// through looks for the shortest cycle that begins with a step.
func (s *cycleSearch) through(first step, number uint32) {
	if s.component[first.from] != number || len(s.best) == 2 {
		return
	}
	most := mostVisits
	if len(s.best) == 0 {
		most = math.MaxInt
	} else if s.starts > mostStarts || s.visits > mostVisits {
		return
	}
	s.starts++
	if path := s.path(first.to, first.from, number, most); path != nil && (s.best == nil || len(path)+1 < len(s.best)) {
		s.best = append([]step{first}, path...)
	}
}

// path finds a shortest path within a component by breadth, backwards from where it ends.
// All the earlier transactions of a session are one step away.
func (s *cycleSearch) path(from, to, number uint32, most int) []step {
	s.reached = append(s.reached[:0], to)
	s.came[to] = step{from: to, to: to}
	defer func() {
		for _, t := range s.reached {
			s.came[t] = step{}
			s.covered[s.session[t]] = 0
		}
	}()
	for at := 0; at < len(s.reached) && at < most; at++ {
		t := s.reached[at]
		s.visits++
		if t == from {
			var steps []step
			for ; t != to; t = s.came[t].to {
				steps = append(steps, s.came[t])
			}
			return steps
		}
		for i := s.readRow[t]; i < s.readRow[t+1]; i++ {
			s.reach(step{s.readFrom[i], t, readStep, i}, number)
		}
		s.reachSession(t, number)
		for _, e := range s.inferred.into(t) {
			s.reach(step{s.inferred.from[e], t, inferStep, s.inferred.read[e]}, number)
		}
	}
	return nil
}

// reachSession reaches what comes before t in its session. The transactions of a session
// that are in one component follow each other.
func (s *cycleSearch) reachSession(t, number uint32) {
	own := s.session[t]
	if t <= s.covered[own] {
		return
	}
	for u := t - 1; u >= max(s.first[own], s.covered[own]) && s.component[u] == number; u-- {
		s.reach(step{from: u, to: t, kind: sessionStep}, number)
	}
	s.covered[own] = t
}

// reach notes that a path goes on backwards over a step.
func (s *cycleSearch) reach(one step, number uint32) {
	if one.from == initial || s.component[one.from] != number || s.came[one.from] != (step{}) {
		return
	}
	s.came[one.from] = one
	s.reached = append(s.reached, one.from)
}
