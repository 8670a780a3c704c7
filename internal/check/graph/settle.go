package graph

import (
	"cmp"
	"slices"
)

// Run is a sequence of versions of one object that is known to have nothing in between.
type Run struct {
	First, Last uint32   // the transactions that made its first and its last version
	Readers     []uint32 // the transactions that read the last version
}

// Pair is two runs of one object.
type Pair struct{ Group, One, Other int }

// Settled is the answer of Settle.
type Settled struct {
	State State

	// Core are pairs of which no choice of orders leaves the graph without a cycle, if the
	// state is Fails. It is empty if the graph itself has a cycle. Leaf is one of them: First is
	// a cycle with its One before its Other, Second one with Other before One. They may also
	// have edges of Assumed, which are what an order of other pairs of the core means.
	Core          []Pair
	Leaf          Pair
	Assumed       []Step
	First, Second []Step
}

// The bounds of Settle.
const (
	// MostSettled is how many sets of transactions the search looks at for one component. A
	// component of 20 transactions has at most so many, and one of 12 has if each of its
	// transactions has a beginning and an end, as for snapshot isolation.
	MostSettled = 1 << 20

	fewNodes        = 24      // of a component that is searched to the end: at most 2^20 sets or mostLooks
	mostNodes       = 256     // of a component whose sets are searched at all
	mostLooks       = 1 << 27 // at whether a node can be placed
	mostLooksOfMany = 1 << 22 // the same if the component has more nodes
	mostBranches    = 1 << 12 // orders of pairs that are tried then
	mostForks       = 1 << 22 // words of the copies that this keeps

	mostEager    = 1 << 8  // pairs that are all given to the first search
	mostShared   = 16      // runs of one object in one component whose pairs are all searched
	mostSearched = 1 << 14 // nodes of the pairs that are searched at once: sets of 32 MB
	mostSteps    = 1 << 19 // edges of the pairs that are searched at once
	mostSet      = 1 << 22 // words of the sets that are handed on at once
	mostRounds   = 200     // of making an order up and mending it
	mostWork     = 1 << 29 // steps, each of about a nanosecond
)

// Settle decides whether the runs of each group can be put into an order such that the graph
// has no cycle: for snapshot isolation, none without two anti-dependencies in a row. If run A
// comes before run B, then who made the last version of A comes before who made the first of B
// (Ww), and so does every reader of it (Rw). To decide it is NP-complete (Papadimitriou, The
// Serializability of Concurrent Database Updates, 1979).
//
// It first makes an order up. If that has cycles, the pairs of runs in them are decided by a
// complete search, each component of them alone, and the rest is made up again. If the search
// finds no choice for some pairs, there is none for all runs. The state is Open if a search
// came to its bounds. Hints are times near which the transactions took effect; nil is none.
func (g *Graph) Settle(groups [][]Run, snapshot bool, o Order, hints []int64) Settled {
	return newSettling(g, groups, snapshot, o, hints).settle()
}

func (s *settling) settle() Settled {
	for round := 0; round < mostRounds && !s.spent(); round++ {
		runs, cyclic := s.attempt(s.hints)
		switch {
		case cyclic == nil:
			return Settled{State: Holds}
		case runs == nil && round == 0:
			return Settled{State: Fails}
		case round == 0 && s.hints != nil:
			if other, again := s.attempt(nil); again == nil {
				return Settled{State: Holds}
			} else if s.wrong(cyclic) > s.wrong(again) {
				s.hints, runs, cyclic = nil, other, again
			}
		}
		if !s.take(runs, cyclic) {
			break
		}
		if core, state := s.search(); state == Fails {
			return s.explain(core)
		} else if state == Open {
			break
		}
	}
	return Settled{State: Open}
}

// spent reports whether the work has come to its bound, or the watch has ended.
func (s *settling) spent() bool { return s.work > mostWork || s.base.w.Ended() }

// settling is the state of Settle.
type settling struct {
	graph  *Graph // as it was given
	base   *Graph // the graph that must have no cycle
	each   uint32 // how many nodes it has for each of graph's
	order  Order
	mask   Mask
	timed  bool
	groups [][]Run
	hints  []int64
	locks  *locks
	eager  int // up to so many pairs are all searched at once
	few    int // nodes that are searched to the end
	work   int

	pairs []Pair // those that are searched
	known map[Pair]bool
	chose []Step // what the search chose for them
	place []uint32
	list  []uint32 // the nodes by place
}

func newSettling(g *Graph, groups [][]Run, snapshot bool, o Order, hints []int64) *settling {
	s := &settling{
		graph: g, base: g, each: 1, order: o, mask: o.mask(), timed: o == Real, groups: groups, hints: hints,
		eager: mostEager, few: fewNodes, known: map[Pair]bool{},
	}
	if snapshot {
		s.base, s.each = g.Spaced(), 2
	}
	return s
}

// choice is what it means that one run comes before another.
func choice(before, after *Run) []Step {
	steps := []Step{{before.Last, after.First, Ww}}
	for _, r := range before.Readers {
		if r != after.First {
			steps = append(steps, Step{r, after.First, Rw})
		}
	}
	return steps
}

// spaced turns steps between transactions into those between the nodes of base.
func (s *settling) spaced(steps []Step) []Step {
	if s.each == 1 {
		return steps
	}
	list := make([]Step, 0, 2*len(steps))
	for _, e := range steps {
		if e.Anti() {
			list = append(list, Step{2 * e.From, 2*e.To + 1, e.Kind})
			continue
		}
		list = append(list, Step{2 * e.From, 2 * e.To, e.Kind}, Step{2*e.From + 1, 2 * e.To, e.Kind})
	}
	return list
}

// with returns a graph with more edges.
func (g *Graph) with(more []Step) *Graph {
	if len(more) == 0 {
		return g
	}
	return New(g.transactions, g.Nodes()-g.transactions, g.times, g.w, func(b *Builder) {
		for s := range g.Each {
			b.Add(s.From, s.To, s.Kind)
		}
		for _, s := range more {
			b.Add(s.From, s.To, s.Kind)
		}
	})
}

// attempt puts the runs of each group into the order in which an order of the transactions has
// them. It returns the order of each group, and the graph if it has a cycle then.
func (s *settling) attempt(hints []int64) (runs [][]int, cyclic *Graph) {
	chosen := s.base.with(s.spaced(s.chose))
	list := s.queue(chosen, hints).order()
	s.work += 64 * (s.base.Nodes() + s.base.Edges())
	if list == nil {
		return nil, chosen
	}
	s.list = list
	s.place = make([]uint32, s.base.Nodes())
	for at, n := range list {
		s.place[n] = uint32(at)
	}
	runs = [][]int{}
	var more []Step
	for _, group := range s.groups {
		order := make([]int, len(group))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(s.place[group[a].First*s.each], s.place[group[b].First*s.each])
		})
		for i := 1; i < len(order); i++ {
			more = append(more, choice(&group[order[i-1]], &group[order[i]])...)
		}
		runs = append(runs, order)
	}
	if len(more) == 0 {
		return runs, nil
	}
	made := s.base.with(s.spaced(more))
	if made.Unordered(s.mask, s.timed) == nil {
		return runs, nil
	}
	return runs, made
}

// wrong counts the nodes of an attempt that have no place.
func (s *settling) wrong(cyclic *Graph) int { return len(cyclic.Unordered(s.mask, s.timed)) }

// take adds the pairs of runs in the cycles of an attempt to those that are searched, and
// reports whether there are any that were not among them.
func (s *settling) take(runs [][]int, cyclic *Graph) (more bool) {
	if s.count() <= s.eager {
		for i, group := range s.groups {
			for a := range group {
				for b := range a {
					more = s.add(Pair{i, b, a}) || more
				}
			}
		}
		return more
	}
	if runs == nil {
		return false
	}
	for _, component := range cyclic.Components(s.mask, s.timed) {
		in := map[uint32]bool{}
		for _, n := range component {
			in[n/s.each] = true
		}
		for i, group := range s.groups {
			more = s.takeGroup(i, group, runs[i], in) || more
		}
		s.work += len(s.groups)
	}
	return more
}

// count returns how many pairs there are, up to some more than are searched at once.
func (s *settling) count() (n int) {
	for _, group := range s.groups {
		if n += len(group) * (len(group) - 1) / 2; n > s.eager {
			break
		}
	}
	return n
}

// takeGroup adds the pairs of a group in a component.
func (s *settling) takeGroup(group int, runs []Run, order []int, in map[uint32]bool) (more bool) {
	var shared []int
	for i, at := range order {
		r := &runs[at]
		if in[r.First] || in[r.Last] {
			shared = append(shared, at)
		}
		ends := in[r.Last] || slices.ContainsFunc(r.Readers, func(t uint32) bool { return in[t] })
		if ends && i+1 < len(order) && in[runs[order[i+1]].First] {
			more = s.add(Pair{group, at, order[i+1]}) || more
		}
	}
	for i, a := range shared {
		for j, b := range shared[:i] {
			if len(shared) <= mostShared || j == i-1 {
				more = s.add(Pair{group, a, b}) || more
			}
		}
	}
	return more
}

func (s *settling) add(p Pair) bool {
	if p.One > p.Other {
		p.One, p.Other = p.Other, p.One
	}
	if s.known[p] {
		return false
	}
	s.known[p] = true
	s.pairs = append(s.pairs, p)
	return true
}

func (s *settling) runs(p Pair) (one, other *Run) {
	return &s.groups[p.Group][p.One], &s.groups[p.Group][p.Other]
}

// explain finds a cycle for either order of the last pair of a core.
func (s *settling) explain(core []Pair) Settled {
	found := Settled{State: Fails, Core: core}
	s.work /= 2 // so that there is something left for this
	fails := func(more []Step) bool {
		s.work += 64 * (s.base.Nodes() + s.base.Edges())
		return s.base.with(s.spaced(slices.Concat(found.Assumed, more))).Unordered(s.mask, s.timed) != nil
	}
	for _, p := range core {
		if s.spent() {
			break
		}
		one, other := s.runs(p)
		first, second := choice(one, other), choice(other, one)
		switch firstFails := fails(first); {
		case !firstFails:
			found.Assumed = append(found.Assumed, first...)
		case !fails(second):
			found.Assumed = append(found.Assumed, second...)
		default:
			found.Leaf = p
			found.First = s.cycle(slices.Concat(found.Assumed, first))
			found.Second = s.cycle(slices.Concat(found.Assumed, second))
			return found
		}
	}
	return found
}

// cycle returns a short cycle of the graph with more edges.
func (s *settling) cycle(more []Step) []Step {
	t := TestSerializable
	if s.each == 2 {
		t = TestSnapshot
	}
	g := s.graph.with(more)
	core, nodes := g.Core(s.mask, s.timed)
	if core == nil {
		return nil
	}
	steps := core.Any(t, s.order)
	return Outward(steps, nodes)
}
