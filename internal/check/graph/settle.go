package graph

import (
	"cmp"
	"slices"
)

// Run is a sequence of versions of one object without other versions in between.
type Run struct {
	First, Last uint32   // the transactions that made its first and its last version
	Readers     []uint32 // the transactions that read the last version
}

// Pair identifies two runs of one object.
type Pair struct{ Group, One, Other int }

// Settled is the result of Settle.
type Settled struct {
	State State

	// Core is a set of pairs for which every choice of orders leaves a cycle, if the state is Fails. It is
	// empty if the graph itself has a cycle. Leaf is one pair of Core: First is a cycle with One before
	// Other, Second is a cycle with Other before One. Both cycles may use edges of Assumed, which follow from
	// the orders of other pairs in Core.
	Core          []Pair
	Leaf          Pair
	Assumed       []Step
	First, Second []Step
}

// These constants limit the work of Settle.
const (
	// MostSettled is the number of sets of transactions that the search examines for one component. A
	// component of 20 transactions has at most this number. For snapshot isolation, where a transaction has a
	// beginning and an end, a component of 12 transactions stays below it.
	MostSettled = 1 << 20

	fewNodes        = 24      // nodes of a component that is searched completely: at most 2^20 sets or mostLooks
	mostNodes       = 256     // nodes of a component that is searched at all
	mostLooks       = 1 << 27 // examined placements
	mostLooksOfMany = 1 << 22 // examined placements if the component has more nodes
	mostBranches    = 1 << 12 // orders of pairs that are tried in that case
	mostForks       = 1 << 22 // words in the copies that this keeps

	mostEager    = 1 << 8  // pairs up to which the first search takes all
	mostShared   = 16      // runs of one object in one component up to which all pairs are searched
	mostSearched = 1 << 14 // nodes of the pairs searched together: sets of 32 MB
	mostSteps    = 1 << 19 // edges of the pairs searched together
	mostSet      = 1 << 22 // words of the sets that are passed on together
	mostRounds   = 200     // rounds of guessing an order and repairing it
	mostWork     = 1 << 29 // steps of about one nanosecond
)

// Settle decides whether the runs of each group can be ordered so that the graph has no cycle. For snapshot isolation,
// cycles with two consecutive anti-dependencies are allowed. If run A precedes run B, then the writer of A's last
// version precedes the writer of B's first version (Ww). Every reader of A's last version does too (Rw). The problem is
// NP-complete (Papadimitriou, The Serializability of Concurrent Database Updates, 1979).
//
// Settle first guesses an order. If that has cycles, a complete search decides the pairs of runs on these cycles, one
// component at a time. The order of the other runs is then guessed again. If the search finds no choice for some pairs,
// no choice exists for all runs. The state is Open if a search reached its limits. Hints are approximate times at which
// the transactions took effect; nil means none.
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

// spent reports whether the work has reached its limit or the watch has ended.
func (s *settling) spent() bool { return s.work > mostWork || s.base.w.Ended() }

// settling is the state of Settle.
type settling struct {
	graph  *Graph // the given graph
	base   *Graph // the graph that must have no cycle
	each   uint32 // number of nodes in base for each node of graph
	order  Order
	mask   Mask
	timed  bool
	groups [][]Run
	hints  []int64
	locks  *locks
	eager  int // up to this number of pairs, all are searched together
	few    int // up to this number of nodes, the search is complete
	work   int

	pairs []Pair // the pairs under search
	known map[Pair]bool
	chose []Step // the edges that the search chose for them
	place []uint32
	list  []uint32 // the nodes by position
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

// choice returns the edges that follow if one run precedes another.
func choice(before, after *Run) []Step {
	steps := []Step{{before.Last, after.First, Ww}}
	for _, r := range before.Readers {
		if r != after.First {
			steps = append(steps, Step{r, after.First, Rw})
		}
	}
	return steps
}

// spaced translates edges between transactions to edges between nodes of base.
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

// with returns the graph with additional edges.
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

// attempt orders the runs of each group like an order of the transactions. It returns the order of each
// group. If the graph then has a cycle, it also returns the graph.
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

// wrong returns the number of nodes without a place in an attempt.
func (s *settling) wrong(cyclic *Graph) int { return len(cyclic.Unordered(s.mask, s.timed)) }

// take adds the pairs of runs on the cycles of an attempt to the pairs under search. It reports whether any
// of them is new.
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

// count returns the number of pairs. It stops slightly above the number that can be searched together.
func (s *settling) count() (n int) {
	for _, group := range s.groups {
		if n += len(group) * (len(group) - 1) / 2; n > s.eager {
			break
		}
	}
	return n
}

// takeGroup adds the pairs of a group within a component.
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

// explain finds a cycle for each order of the last pair of a core.
func (s *settling) explain(core []Pair) Settled {
	found := Settled{State: Fails, Core: core}
	s.work /= 2 // keep a reserve for this search
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

// cycle returns a short cycle of the graph with additional edges.
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
