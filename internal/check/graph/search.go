package graph

import (
	"slices"

	"stroppy/internal/check"
)

// These constants limit the search for the shortest cycle. The broken level is decided before the search,
// exactly and without limits.
const (
	mostVisited = 1 << 22 // nodes for one phenomenon in one order
	longestPath = 64      // edges; Any finds longer cycles
)

// Found is the shortest cycle found for a phenomenon.
type Found struct {
	Cycle []Step
	Count int  // number of cycles of that length with different transactions, as far as the search went
	Exact bool // no shorter cycle exists
}

// Search looks for cycles in a graph. If the order is not plain, a cycle uses one edge of the order. Clients
// holds the client of each transaction and is needed for the order of sessions only.
type Search struct {
	*Graph
	order   Order
	clients []uint32
	cyclic  [Tests][]bool // by test and node: the node is on a cycle that makes the test fail; nil: not computed yet

	seen      visits
	now, next []uint32
	visited   int
}

// NewSearch prepares a search.
func NewSearch(g *Graph, o Order, clients []uint32) *Search {
	s := &Search{Graph: g, order: o, clients: clients}
	s.seen.grow()
	return s
}

// onCycles returns, for each node, whether it is on a cycle that makes the test fail.
func (s *Search) onCycles(t Test) []bool {
	if s.cyclic[t] == nil {
		s.cyclic[t] = make([]bool, s.Nodes())
		g, nodes := s.Graph.of(t)
		for _, component := range g.Components(t.mask(s.order).Without(Guesses), s.order == Real) {
			for _, n := range component {
				s.cyclic[t][n/nodes] = true
			}
		}
	}
	return s.cyclic[t]
}

// visits is a hash table with open addressing of the visited pairs of node and state, and their predecessors.
// A table is used because most searches visit few nodes.
type visits struct {
	key, from []uint32
	kind      []uint8  // the kind of the edge
	of        []uint32 // the number of the search that uses the slot
	number    uint32
	count     int
}

func (v *visits) clear() { v.number, v.count = v.number+1, 0 }

func (v *visits) slot(key uint32) int {
	at := int(key*0x9e3779b1>>7) & (len(v.key) - 1)
	for v.of[at] == v.number && v.key[at] != key {
		at = (at + 1) & (len(v.key) - 1)
	}
	return at
}

// add records a visit. It reports false if the pair was visited before.
func (v *visits) add(key, from uint32, kind uint8) bool {
	at := v.slot(key)
	if v.of[at] == v.number {
		return false
	}
	v.key[at], v.from[at], v.kind[at], v.of[at] = key, from, kind, v.number
	if v.count++; 2*v.count > len(v.key) {
		v.grow()
	}
	return true
}

func (v *visits) grow() {
	old := *v
	size := max(64, 4*len(old.key))
	*v = visits{key: make([]uint32, size), from: make([]uint32, size), kind: make([]uint8, size), of: make([]uint32, size), number: max(1, old.number), count: old.count}
	for i, key := range old.key {
		if old.of[i] == old.number {
			at := v.slot(key)
			v.key[at], v.from[at], v.kind[at], v.of[at] = key, old.from[i], old.kind[i], v.number
		}
	}
}

// Shortest finds the shortest cycle of a phenomenon. It ignores cycles for which skip returns true.
func (s *Search) Shortest(p Phenomenon, skip func([]Step) bool) Found {
	s.visited = 0
	a, on := automatonOf(p, s.order == Plain), s.onCycles(p.Test())
	best, longest := Found{}, int64(0)
	distinct := map[uint64]bool{}
	for _, depth := range [...]int{1, 2, 4, 8, longestPath} {
		if best.Cycle != nil {
			break
		}
		for n := uint32(0); int(n) < s.transactions && s.visited < mostVisited && !s.w.Ended(); n++ {
			if !on[n] {
				continue
			}
			most := depth
			if best.Cycle != nil {
				most = min(most, s.edges(best.Cycle))
			}
			path, over := s.path(n, a, on, most)
			if path == nil || skip(path) {
				continue
			}
			if best.Cycle != nil && len(path) < len(best.Cycle) {
				best.Cycle = nil
				clear(distinct)
			}
			if best.Cycle == nil || over > longest {
				best.Cycle, longest = path, over
			}
			distinct[setOf(path)] = true
		}
	}
	best.Count, best.Exact = len(distinct), s.visited < mostVisited
	return best
}

// edges returns the number of dependencies in a cycle.
func (s *Search) edges(cycle []Step) int {
	if s.order == Plain {
		return len(cycle)
	}
	return len(cycle) - 1
}

// setOf hashes the set of transactions of a cycle.
func setOf(cycle []Step) (h uint64) {
	for _, c := range cycle {
		h += check.Mix(uint64(c.From) + 1)
	}
	return h
}

// closes reports whether a path from first may end at last: either it returned to first, or the order leads
// from last to first. For real time, over is the time between them in ns.
func (s *Search) closes(first, last uint32) (by uint8, over int64, ok bool) {
	switch s.order {
	case Plain:
		return 0, 0, first == last
	case Sessions:
		t := &s.times[0]
		return Process, 0, first != last && s.clients[first] == s.clients[last] && t.End[last] <= t.Begin[first]
	}
	over = s.between(last, first)
	return Rt, over, over > 0
}

// path finds a shortest path from first that the automaton accepts and that closes. It is a breadth-first
// search over the nodes in on, with at most most edges; nil means that none was found. Among the possible
// last edges of a node, it takes the one that closes over the longest time.
func (s *Search) path(first uint32, a *automaton, on []bool, most int) (found []Step, longest int64) {
	s.seen.clear()
	now, next := append(s.now[:0], first*8), s.next[:0]
	defer func() { s.now, s.next = now, next }()
	s.seen.add(first*8, 0, 0)
	for depth := 1; depth <= most && len(now) > 0; depth++ {
		next = next[:0]
		for i := 0; i < len(now); i++ {
			at := now[i]
			n, state := at/8, at%8
			s.visited++
			for _, arc := range s.arc[s.row[n]:s.row[n+1]] {
				to, kind := arc>>kindBits, uint8(arc&kindMask)
				if !on[to] || Guesses.has(uint32(kind)) || a.next[state][kind] < 0 {
					continue
				}
				then := uint8(a.next[state][kind])
				key, transaction := to*8+uint32(then), int(to) < s.transactions
				if transaction && a.accept>>then&1 != 0 {
					if by, over, ok := s.closes(first, to); ok && (found == nil || over > longest) {
						if cycle := s.cycle(at, Step{n, to, kind}, first, by); cycle != nil {
							found, longest = cycle, over
						}
					}
				}
				switch {
				case to == first || !s.seen.add(key, at, kind):
				case transaction:
					next = append(next, key)
				default: // no edge
					now = append(now, key)
				}
			}
			if found != nil {
				return found, longest
			}
		}
		now, next = next, now
	}
	return nil, 0
}

// cycle returns the path to a node of the search, plus the last edge, as a cycle. It returns nil if the path
// visits a transaction twice.
func (s *Search) cycle(at uint32, last Step, first uint32, by uint8) []Step {
	steps := []Step{last}
	for at != first*8 {
		slot := s.seen.slot(at)
		steps = append(steps, Step{s.seen.from[slot] / 8, at / 8, s.seen.kind[slot]})
		at = s.seen.from[slot]
	}
	slices.Reverse(steps)
	if steps = passThrough(steps, s.transactions); by != 0 {
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

// passThrough removes the hubs between two transactions from a path.
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
