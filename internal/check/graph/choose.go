package graph

import (
	"cmp"
	"slices"
)

// search chooses an order for each pair so that the graph with the resulting edges has no cycle. If no choice
// exists, it returns a set of pairs that have none.
func (s *settling) search() (core []Pair, state State) {
	steps := 0
	for _, p := range s.pairs {
		one, other := s.runs(p)
		steps += 2 + len(one.Readers) + len(other.Readers)
	}
	if steps > mostSteps {
		return nil, Open
	}
	nodes, number := s.nodes(s.pairs)
	if len(nodes) > mostSearched {
		return nil, Open
	}
	if s.work += (len(nodes)/64 + 1) * 4 * (len(nodes) + s.base.Nodes() + s.base.Edges()); s.spent() {
		return nil, Open
	}
	before := s.closure(nodes, number)
	s.chose = s.chose[:0]
	for _, part := range s.parts(nodes, number, before) {
		c := s.chooser(part, nodes, before)
		switch state := c.choose(c.pairs); state {
		case Fails:
			return s.smaller(c), Fails
		case Open:
			return nil, Open
		}
		for _, p := range c.pairs {
			one, other := s.runs(p)
			if c.at[c.local[one.First*s.each]] > c.at[c.local[other.First*s.each]] {
				one, other = other, one
			}
			s.chose = append(s.chose, choice(one, other)...)
		}
	}
	return nil, Holds
}

// part holds the nodes of one component of the chosen edges, and the pairs of the component.
type part struct {
	nodes []int
	pairs []Pair
}

// parts divides the pairs into components. Each cycle over the pairs' edges lies within one component.
func (s *settling) parts(nodes []uint32, number map[uint32]int, before []bits) (list []part) {
	g := New(len(nodes), 0, nil, s.base.w, func(b *Builder) {
		for i := range nodes {
			for j := range nodes {
				if before[i].has(j) {
					b.Add(uint32(j), uint32(i), Ww)
				}
			}
		}
		for _, p := range s.pairs {
			one, other := s.runs(p)
			for _, e := range s.spaced(slices.Concat(choice(one, other), choice(other, one))) {
				b.Add(uint32(number[e.From]), uint32(number[e.To]), Ww)
			}
		}
	})
	in := make([]int, len(nodes))
	for _, component := range g.Components(1<<Ww, false) {
		p := part{}
		for _, i := range component {
			in[i] = len(list)
			p.nodes = append(p.nodes, int(i))
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil
	}
	for _, p := range s.pairs {
		one, _ := s.runs(p)
		at := &list[in[number[one.First*s.each]]]
		at.pairs = append(at.pairs, p)
	}
	return list
}

// rule states that a node may follow guard only after all needed nodes.
type rule struct {
	guard int
	needs bits
}

// chooser places the nodes of a part one by one. The order of two runs is decided when the first version of
// the second run is placed: all nodes of the first run must then be placed. So the remaining nodes depend
// only on the set of placed nodes, and each set is examined once.
type chooser struct {
	*settling
	nodes  []uint32
	local  map[uint32]int // index by node
	before []bits
	pairs  []Pair
	meant  map[Pair]*[2][][2]int // the edges of each order of a pair

	rules  [][]rule
	begins []bool // reports whether the node is a guard: placing a guard early may be wrong
	placed bits
	count  int
	at     []int // the position of each node
	failed map[string]bool
	looks  int // number of examined placements
}

func (s *settling) chooser(p part, nodes []uint32, before []bits) *chooser {
	slices.SortFunc(p.nodes, func(a, b int) int { return cmp.Compare(s.place[nodes[a]], s.place[nodes[b]]) })
	c := &chooser{settling: s, pairs: p.pairs, local: map[uint32]int{}, meant: map[Pair]*[2][][2]int{}}
	for i, n := range p.nodes {
		c.local[nodes[n]] = i
		c.nodes = append(c.nodes, nodes[n])
	}
	for _, n := range p.nodes {
		set := newBits(len(c.nodes))
		for j, m := range p.nodes {
			if before[n].has(m) {
				set.set(j)
			}
		}
		c.before = append(c.before, set)
	}
	return c
}

// choose looks for an order of the nodes that is consistent with one order of each pair.
func (c *chooser) choose(pairs []Pair) State {
	n := len(c.nodes)
	c.rules, c.begins, c.placed, c.count = make([][]rule, n), make([]bool, n), newBits(n), 0
	c.at, c.failed, c.looks = make([]int, n), map[string]bool{}, 0
	for _, p := range pairs {
		one, other := c.runs(p)
		c.rule(one, c.edges(p)[0])
		c.rule(other, c.edges(p)[1])
	}
	defer c.fork()()
	left, ok := c.propagate(pairs)
	if !ok {
		return Fails
	}
	if c.spent() {
		return Open
	}
	if n > c.few {
		branches := min(mostBranches, mostForks/(1+n*n/64)) // each branch keeps a copy of the known order
		if state := c.branch(left, &branches); state != Open || n > mostNodes {
			return state
		}
	}
	switch {
	case c.search():
		return Holds
	case c.given():
		return Open
	}
	return Fails
}

// rule adds the constraints of placing one run before another.
func (c *chooser) rule(one *Run, edges [][2]int) {
	guard := c.local[one.First*c.each]
	c.begins[guard] = true
	needs := map[int]bits{}
	for _, e := range edges {
		from, to := e[0], e[1]
		if needs[to] == nil {
			needs[to] = newBits(len(c.nodes))
		}
		needs[to].set(from)
	}
	for to, set := range needs {
		c.rules[to] = append(c.rules[to], rule{guard, set})
	}
}

// given reports whether the search has reached its limits.
func (c *chooser) given() bool {
	most := mostLooks
	if len(c.nodes) > c.few {
		most = mostLooksOfMany
	}
	return len(c.failed) >= MostSettled || c.looks > most || c.base.w.Err != nil
}

func (c *chooser) allowed(i int) bool {
	c.looks++
	if c.placed.has(i) || !c.before[i].within(c.placed) {
		return false
	}
	for _, r := range c.rules[i] {
		if c.placed.has(r.guard) && !r.needs.within(c.placed) {
			return false
		}
	}
	return true
}

func (c *chooser) put(i int) {
	c.placed.set(i)
	c.at[i] = c.count
	c.count++
}

// search places the remaining nodes, and reports whether it succeeded.
func (c *chooser) search() bool {
	var settled []int
	for again := true; again && !c.given(); {
		again = false
		for i := range c.nodes {
			if !c.begins[i] && c.allowed(i) { // no other node requires that it is absent
				c.put(i)
				settled = append(settled, i)
				again = true
			}
		}
	}
	if c.count == len(c.nodes) {
		return true
	}
	found := false
	if key := c.key(); !c.failed[key] && !c.given() && !c.base.w.Ended() {
		for i := range c.nodes {
			if !c.begins[i] || !c.allowed(i) {
				continue
			}
			c.put(i)
			if found = c.search(); found {
				return true
			}
			c.placed.clear(i)
			c.count--
		}
		if !c.given() {
			c.failed[key] = true
		}
	}
	for _, i := range settled {
		c.placed.clear(i)
		c.count--
	}
	return false
}

// key encodes the set of placed nodes as a map key.
func (c *chooser) key() string {
	key := make([]byte, 0, 8*len(c.placed))
	for _, word := range c.placed {
		for range 8 {
			key = append(key, byte(word))
			word >>= 8
		}
	}
	return string(key)
}

// smaller removes pairs from a set without a consistent choice, as long as the set has none.
func (s *settling) smaller(c *chooser) []Pair {
	pairs := slices.Clone(c.pairs)
	looked := c.looks
	for i := 0; i < len(pairs) && looked < mostLooksOfMany && !s.spent(); {
		fewer := slices.Delete(slices.Clone(pairs), i, i+1)
		state := c.choose(fewer)
		if looked += c.looks; state == Fails {
			pairs = fewer
			continue
		}
		i++
	}
	return pairs
}
