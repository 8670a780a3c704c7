package graph

import "slices"

// fork saves a copy of the search state, and returns a function that restores it.
func (c *chooser) fork() (back func()) {
	given := c.before
	c.work += len(given) * (8 + len(given)/64)
	c.before = make([]bits, len(given))
	for i := range given {
		c.before[i] = slices.Clone(given[i])
	}
	return func() { c.before = given }
}

// branch tries both orders of one pair after another. It starts with the order in which the last attempt
// placed the nodes.
func (c *chooser) branch(pairs []Pair, branches *int) State {
	if len(pairs) == 0 {
		for i := range c.before { // an earlier node has fewer predecessors
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

// propagate fixes the order of each pair whose other order contradicts the known order, until no such pair is
// left. It returns the remaining pairs. It reports false if both orders of a pair are contradictory.
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

// edges returns the edges between nodes of the part that follow from each of the two orders of a pair. Nodes
// outside the part precede all nodes of the part.
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

// possible reports whether edges are consistent with the known order.
func (c *chooser) possible(edges [][2]int) bool {
	return !slices.ContainsFunc(edges, func(e [2]int) bool { return c.before[e[0]].has(e[1]) })
}

// follow adds edges to the known order.
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
