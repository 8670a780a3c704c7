package graph

import (
	"slices"

	"stroppy/internal/check"
)

// The bounds of the search for the shortest cycle. Which level is broken is decided before
// it, exactly and without it.
const (
	mostVisited = 1 << 20 // nodes, for one phenomenon in one order
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

	seen      visits
	now, next []uint32
	visited   int
}

// NewSearch prepares a search.
func NewSearch(g *Compact, clients []uint32) *Search {
	s := &Search{Compact: g, Clients: clients}
	s.seen.grow()
	return s
}

// visits are the nodes with their states that a search has come to, and from where: a hash
// table with open addressing, because most searches come to few.
type visits struct {
	key, from []uint32
	kind      []uint8  // of the edge
	of        []uint32 // the number of the search that a slot is of
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

// add notes a visit; false is one that was there already.
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
				if !s.seen.add(key, at, kind) {
					continue
				}
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
		slot := s.seen.slot(at)
		steps = append(steps, Step{s.seen.from[slot] / 8, at / 8, s.seen.kind[slot]})
		at = s.seen.from[slot]
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
