package graph

import (
	"cmp"
	mathbits "math/bits"
	"slices"
	"sort"
)

// bits is a set of small numbers.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b bits) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) clear(i int)    { b[i/64] &^= 1 << (i % 64) }

func (b bits) count() (n int) {
	for _, word := range b {
		n += mathbits.OnesCount64(word)
	}
	return n
}

func (b bits) add(c bits) {
	for i, word := range c {
		b[i] |= word
	}
}

// within reports whether all of b are in c.
func (b bits) within(c bits) bool {
	for i, word := range b {
		if word&^c[i] != 0 {
			return false
		}
	}
	return true
}

// search chooses an order for each of the pairs, such that the graph has no cycle over their
// edges. If there is no choice it returns pairs of which there is none.
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

// nodes are the nodes of base that the pairs' edges are between.
func (s *settling) nodes(pairs []Pair) (nodes []uint32, number map[uint32]int) {
	number = map[uint32]int{}
	add := func(t uint32) {
		for n := t * s.each; n < (t+1)*s.each; n++ {
			if _, ok := number[n]; !ok {
				number[n] = len(nodes)
				nodes = append(nodes, n)
			}
		}
	}
	for _, p := range pairs {
		one, other := s.runs(p)
		for _, r := range []*Run{one, other} {
			add(r.First)
			add(r.Last)
			for _, t := range r.Readers {
				add(t)
			}
		}
	}
	return nodes, number
}

// closure returns for each node which others come before it.
func (s *settling) closure(nodes []uint32, number map[uint32]int) []bits {
	before := make([]bits, len(nodes))
	for i := range before {
		before[i] = newBits(len(nodes))
	}
	words := max(1, min(16, mostSet/s.base.Nodes()))
	for from := 0; from < len(nodes); from += 64 * words {
		s.reached(nodes, from, words, before)
	}
	for i, n := range nodes {
		before[i].clear(i)
		if s.each == 2 && n%2 == 1 { // who ends has begun
			before[i].set(number[n-1])
			before[i].add(before[number[n-1]])
		}
	}
	return before
}

// reached notes of each node which of so many words of the nodes reach it. It goes through the
// nodes of base in their order, and hands on what reached each.
func (s *settling) reached(nodes []uint32, from, words int, before []bits) {
	g := s.base
	set := make([]uint64, words*g.Nodes())
	of := func(n uint32) bits { return bits(set[int(n)*words : (int(n)+1)*words]) }
	for i := from; i < min(len(nodes), from+64*words); i++ {
		of(nodes[i]).set(i - from)
	}
	var ended [][]*past
	if s.timed {
		for i, lines := range g.timelines() {
			var list []*past
			for j := range lines {
				list = append(list, &past{line: &lines[j], ends: g.times[i].End, words: words, of: of})
			}
			ended = append(ended, list)
		}
	}
	for _, n := range s.list {
		if g.w.Ended() {
			return
		}
		if int(n) < g.transactions {
			for i := range ended {
				t := &g.times[i]
				of(n).add(ended[i][t.group(n)].until(t.Begin[n]))
			}
		}
		for _, a := range g.arc[g.row[n]:g.row[n+1]] {
			if s.mask.has(a & kindMask) {
				of(a >> kindBits).add(of(n))
			}
		}
	}
	for i, n := range nodes {
		copy(before[i][from/64:], of(n)[:min(words, len(before[i])-from/64)])
	}
}

// past has what reached all that had ended on a line before each of its ends.
type past struct {
	*line
	ends  []int64
	words int
	of    func(n uint32) bits
	known []uint64
	count int // how many ends are known
}

// until returns what reached all that ended before a time; they were all gone through.
func (p *past) until(begin int64) bits {
	n := sort.Search(len(p.byEnd), func(i int) bool { return p.ends[p.byEnd[i]] >= begin })
	if n == 0 {
		return nil
	}
	for ; p.count < n; p.count++ {
		first := len(p.known)
		p.known = append(p.known, p.of(p.byEnd[p.count])...)
		if p.count > 0 {
			bits(p.known[first:]).add(p.known[first-p.words : first])
		}
	}
	return p.known[(n-1)*p.words : n*p.words]
}

// part is the nodes of one component of what is chosen, and its pairs.
type part struct {
	nodes []int
	pairs []Pair
}

// parts divides the pairs: a cycle over their edges has nodes of one part alone.
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

// rule says that a node may follow guard only behind all that are needed.
type rule struct {
	guard int
	needs bits
}

// chooser places the nodes of a part one by one. Which of two runs comes first is decided when
// the first version of the second one is placed: all of the other run must be there then. So
// whether the rest can be placed depends on the set of those that are, and each set is looked at once.
type chooser struct {
	*settling
	nodes  []uint32
	local  map[uint32]int // the number of a node
	before []bits
	pairs  []Pair
	meant  map[Pair]*[2][][2]int // of edges

	rules  [][]rule
	begins []bool // that a node is a guard: to place it early may be wrong
	placed bits
	count  int
	at     []int // where each was placed
	failed map[string]bool
	looks  int // at whether a node can be placed
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

// choose looks for an order of the nodes that some pairs allow.
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
		branches := min(mostBranches, mostForks/(1+n*n/64)) // each keeps a copy of what is known
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

// fork copies what is known, and returns what forgets the copy.
func (c *chooser) fork() (back func()) {
	given := c.before
	c.work += len(given) * (8 + len(given)/64)
	c.before = make([]bits, len(given))
	for i := range given {
		c.before[i] = slices.Clone(given[i])
	}
	return func() { c.before = given }
}

// branch orders one pair after another, first as the nodes are placed by the order that was made
// up, and then the other way round.
func (c *chooser) branch(pairs []Pair, branches *int) State {
	if len(pairs) == 0 {
		for i := range c.before { // who is before another has fewer before it
			c.at[i] = c.before[i].count()
		}
		return Holds
	}
	if *branches--; *branches < 0 || c.spent() {
		return Open
	}
	one, other := c.runs(pairs[0])
	orders := *c.edges(pairs[0])
	if c.local[one.First*c.each] > c.local[other.First*c.each] {
		orders[0], orders[1] = orders[1], orders[0]
	}
	for _, edges := range orders {
		back := c.fork()
		c.follow(edges)
		left, ok := c.propagate(pairs[1:])
		state := Fails
		if ok && c.spent() {
			state = Open
		} else if ok {
			state = c.branch(left, branches)
		}
		back()
		if state != Fails {
			return state
		}
	}
	return Fails
}

// propagate orders the pairs of which one order contradicts what is known, until there is none.
// It returns those that are left, and whether no pair has two such orders.
func (c *chooser) propagate(pairs []Pair) (left []Pair, ok bool) {
	left, ok = slices.Clone(pairs), true
	for again := true; again && ok; {
		again = false
		left = slices.DeleteFunc(left, func(p Pair) bool {
			if c.spent() {
				return false
			}
			e := c.edges(p)
			c.work += 16 + 4*(len(e[0])+len(e[1]))
			switch firstOpen, secondOpen := c.possible(e[0]), c.possible(e[1]); {
			case firstOpen && secondOpen:
				return false
			case firstOpen:
				c.follow(e[0])
			case secondOpen:
				c.follow(e[1])
			default:
				ok = false
			}
			again = true
			return true
		})
	}
	return left, ok
}

// edges are what the two orders of a pair mean between the nodes of the part. What is outside comes
// before all of the part.
func (c *chooser) edges(p Pair) *[2][][2]int {
	if known := c.meant[p]; known != nil {
		return known
	}
	one, other := c.runs(p)
	known := &[2][][2]int{}
	for i, steps := range [][]Step{choice(one, other), choice(other, one)} {
		for _, e := range c.spaced(steps) {
			if from, ok := c.local[e.From]; ok {
				known[i] = append(known[i], [2]int{from, c.local[e.To]})
			}
		}
		c.work += 64 * len(steps)
	}
	c.meant[p] = known
	return known
}

// possible reports whether edges contradict nothing that is known.
func (c *chooser) possible(edges [][2]int) bool {
	return !slices.ContainsFunc(edges, func(e [2]int) bool { return c.before[e[0]].has(e[1]) })
}

// follow adds edges to what is known.
func (c *chooser) follow(edges [][2]int) {
	for _, e := range edges {
		from, to := e[0], e[1]
		if c.before[to].has(from) {
			continue
		}
		more := slices.Clone(c.before[from])
		more.set(from)
		c.work += len(c.before)
		for i := range c.before {
			if i == to || c.before[i].has(to) {
				c.before[i].add(more)
				c.work += len(more)
			}
		}
	}
}

// rule adds what it means that one run comes before another.
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

// given reports whether the search has come to its bounds.
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

// search places the rest, and reports whether that went.
func (c *chooser) search() bool {
	var settled []int
	for again := true; again && !c.given(); {
		again = false
		for i := range c.nodes {
			if !c.begins[i] && c.allowed(i) { // nothing waits for it to be absent
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

// key is the set of the nodes that are placed, as a key of a map.
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

// smaller takes pairs away from some of which there is no choice, as long as there is none.
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
