package graph

import (
	"slices"

	"stroppy/internal/check"
)

// The bounds of the search for the shortest cycle. Which level is broken is decided before
// it, exactly and without it.
const (
	mostVisited = 1 << 24 // nodes, for one phenomenon in one order
	longestPath = 64      // edges; a longer cycle is found by Any
)

// Found is the shortest cycle of a phenomenon.
type Found struct {
	Cycle []Step
	Count int  // of that length, by different transactions, as far as the search went
	Exact bool // that no shorter one is there was seen
}

// Search looks for cycles in a core. Clients are the transactions' clients, of the same
// nodes.
type Search struct {
	*Compact
	Clients []uint32

	seen    []uint32 // by node and state: the number of the search that was there last
	number  uint32
	from    []Step // by node and state, how the search came there
	fromOf  []uint32
	visited int
}

// NewSearch prepares a search.
func NewSearch(g *Compact, clients []uint32) *Search {
	n := 8 * g.Nodes()
	return &Search{Compact: g, Clients: clients, seen: make([]uint32, n), from: make([]Step, n), fromOf: make([]uint32, n)}
}

// Shortest finds the shortest cycle of a phenomenon in which one edge of the order is used,
// where it is not plain. One that skip says is known is passed over.
func (s *Search) Shortest(p Phenomenon, o Order, mask Mask, skip func([]Step) bool) Found {
	s.visited = 0
	a := automatonOf(p, o == Plain)
	best := Found{}
	distinct := map[uint64]bool{}
	for depth := 1; depth <= longestPath && best.Cycle == nil && s.visited < mostVisited; depth *= 2 {
		for n := range uint32(len(s.begin)) {
			most := depth
			if best.Cycle != nil {
				most = min(most, s.edges(best.Cycle, o))
			}
			path := s.path(n, a, o, mask, most)
			if path == nil || skip(path) {
				continue
			}
			if best.Cycle == nil || len(path) < len(best.Cycle) {
				best.Cycle = path
				clear(distinct)
			}
			if len(path) == len(best.Cycle) {
				distinct[setOf(path)] = true
			}
			if s.visited >= mostVisited || s.w.Cancelled() {
				break
			}
		}
	}
	best.Count, best.Exact = len(distinct), s.visited < mostVisited
	return best
}

// edges counts those of a cycle that are dependencies.
func (s *Search) edges(cycle []Step, o Order) int {
	if o == Plain {
		return len(cycle)
	}
	return len(cycle) - 1
}

// setOf mixes the transactions of a cycle.
func setOf(cycle []Step) (h uint64) {
	for _, c := range cycle {
		h += check.Mix(uint64(c.From) + 1)
	}
	return h
}

// closes says that a path from a node may end at another: it is back, or the order
// leads back.
func (s *Search) closes(first, last uint32, o Order) (uint8, bool) {
	switch o {
	case Plain:
		return 0, first == last
	case Sessions:
		return Process, first != last && s.Clients[first] == s.Clients[last] && s.end[last] <= s.begin[first]
	}
	return Rt, first != last && s.before(last, first)
}

// path finds a shortest path from a node that the automaton accepts and that closes, by
// breadth, of at most so many edges; nil is none found.
func (s *Search) path(first uint32, a *automaton, o Order, mask Mask, most int) []Step {
	s.number++
	now, next := []uint32{first * 8}, []uint32(nil)
	s.seen[first*8] = s.number
	for depth := 1; depth <= most && len(now) > 0; depth++ {
		next = next[:0]
		for i := 0; i < len(now); i++ {
			at := now[i]
			n, state := at/8, at%8
			s.visited++
			for _, arc := range s.arc[s.row[n]:s.row[n+1]] {
				kind := uint8(arc & (1<<kindBits - 1))
				if !mask.has(uint32(kind)) || a.next[state][kind] < 0 {
					continue
				}
				to, then := arc>>kindBits, uint8(a.next[state][kind])
				key := to*8 + uint32(then)
				closing := a.accept>>then&1 != 0 && int(to) < len(s.begin)
				if closing {
					if by, ok := s.closes(first, to, o); ok {
						if cycle := s.cycle(at, Step{n, to, kind}, first, by); cycle != nil {
							return cycle
						}
					}
				}
				if s.seen[key] == s.number {
					continue
				}
				s.seen[key] = s.number
				s.from[key], s.fromOf[key] = Step{n, to, kind}, at
				if int(to) >= len(s.begin) { // no transaction, and no step
					now = append(now, key)
				} else {
					next = append(next, key)
				}
			}
		}
		now, next = next, now
	}
	return nil
}

// cycle returns the way to a node of the search and the last step as a cycle; nil where it
// passes a transaction twice.
func (s *Search) cycle(at uint32, last Step, first uint32, by uint8) []Step {
	steps := []Step{last}
	for at != first*8 {
		steps = append(steps, s.from[at])
		at = s.fromOf[at]
	}
	slices.Reverse(steps)
	if steps = passThrough(steps, len(s.begin)); by != 0 {
		steps = append(steps, Step{steps[len(steps)-1].To, first, by})
	}
	nodes := map[uint32]bool{}
	for _, c := range steps {
		if nodes[c.From] {
			return nil
		}
		nodes[c.From] = true
	}
	return steps
}

// passThrough takes the nodes that are no transactions out of a path between two that are.
func passThrough(steps []Step, transactions int) []Step {
	var out []Step
	for i := 0; i < len(steps); i++ {
		c := steps[i]
		for int(c.To) >= transactions && i+1 < len(steps) {
			i++
			c.To = steps[i].To
		}
		out = append(out, c)
	}
	return out
}
