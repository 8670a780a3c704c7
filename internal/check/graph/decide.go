package graph

import (
	"slices"

	"stroppy/internal/isolation"
)

// State says whether a level forbids what was found.
type State uint8

const (
	Holds State = iota
	Open        // it depends on how reads that have two explanations are explained
	Fails
)

// Test is a graph whose cycles a level forbids.
type Test uint8

// The tests, the weakest level's first.
const (
	TestReadUncommitted Test = iota // writes over writes
	TestReadCommitted               // and reads of writes
	TestRepeatableRead              // and anti-dependencies of items
	TestSnapshot                    // all, without two anti-dependencies in a row
	TestSerializable                // all
	Tests
)

// mask returns the edges that a test is about in an order.
func (t Test) mask(o Order) Mask {
	return [Tests]Mask{Writes, Reads, Items, All, All}[t] | o.mask()&Clients
}

// of returns the graph of which a test wants that it has no cycle, and how many nodes it has
// for each of g's.
func (g *Graph) of(t Test) (*Graph, uint32) {
	if t == TestSnapshot {
		return g.Spaced(), 2
	}
	return g, 1
}

// Level returns the level that a test decides in an order; Unknown is none.
func (t Test) Level(o Order) isolation.Level {
	return [Orders][Tests]isolation.Level{
		{isolation.ReadUncommitted, isolation.ReadCommitted, isolation.RepeatableRead, isolation.SnapshotIsolation, isolation.Serializable},
		{isolation.StrongSessionReadUncommitted, isolation.StrongSessionReadCommitted, isolation.Unknown, isolation.StrongSessionSnapshotIsolation, isolation.StrongSessionSerializable},
		{isolation.StrongReadUncommitted, isolation.StrongReadCommitted, isolation.Unknown, isolation.StrongSnapshotIsolation, isolation.StrictSerializable},
	}[o][t]
}

// Decision is what a graph decides, in each order.
type Decision struct {
	States [Orders][Tests]State
	Cores  [Orders]*Graph   // what all cycles are in; nil where there is none
	Nodes  [Orders][]uint32 // which nodes of the graph the core's are
}

// Decide decides exactly, for each order, which tests have a cycle. The edges of clients have
// to be in the graph. Where a history has no times, real time is left out.
func (g *Graph) Decide(real bool) *Decision {
	d := &Decision{}
	outer, nodes := g, []uint32(nil)
	for o := Real; ; o-- {
		core, places := outer.Core(o.mask(), o == Real && real)
		if core == nil {
			break
		}
		if nodes != nil {
			for i, n := range places {
				places[i] = nodes[n]
			}
		}
		d.Cores[o], d.Nodes[o] = core, places
		if o == Plain {
			break
		}
		outer, nodes = core, places
	}
	for o := Plain; o < Orders && g.w.Err == nil; o++ {
		if d.Cores[o] != nil {
			d.decide(o, real && o == Real)
		}
	}
	return d
}

// decide decides the tests of an order, the strongest first. What fails in a weaker order
// fails in this one, and where a test has no cycle, those whose edges it has have none either.
func (d *Decision) decide(o Order, timed bool) {
	states := &d.States[o]
	for _, t := range []Test{TestSerializable, TestSnapshot, TestRepeatableRead, TestReadCommitted, TestReadUncommitted} {
		switch {
		case o > Plain && d.States[o-1][t] == Fails:
			states[t] = Fails
		case t <= TestReadCommitted && (states[TestSnapshot] == Holds || states[TestReadCommitted] == Holds && t < TestReadCommitted):
		default:
			states[t] = d.Cores[o].state(t, o, timed)
		}
	}
}

// state says whether a graph has a cycle that makes a test fail.
func (g *Graph) state(t Test, o Order, timed bool) State {
	mask := t.mask(o)
	g, _ = g.of(t)
	switch {
	case g.Unordered(mask, timed) == nil:
		return Holds
	case mask&Guesses != 0 && g.has(mask&Guesses) && g.Unordered(mask.Without(Guesses), timed) == nil:
		return Open
	}
	return Fails
}

// Any finds a cycle that makes a test fail, which is a short one and nothing more. It is for
// where the search for the shortest has come to its bounds, and for real time of several
// clocks, which a cycle may need more than once.
func (g *Graph) Any(t Test, o Order) []Step {
	g, nodes := g.of(t)
	steps, _ := g.Short(t.mask(o).Without(Guesses), o == Real)
	steps = g.oneTime(steps)
	if first := slices.IndexFunc(steps, func(s Step) bool { return int(s.From) < g.transactions }); first > 0 {
		steps = slices.Concat(steps[first:], steps[:first])
	}
	steps = passThrough(steps, g.transactions)
	if nodes > 1 {
		for i := range steps {
			steps[i].From, steps[i].To = steps[i].From/nodes, steps[i].To/nodes
		}
		steps = unfold(steps)
	}
	return steps
}

// oneTime leaves one edge of real time in a cycle that has several of one clock. Of two,
// a → b and c → d, a ended before d began or c before b: else d had begun before a ended, a
// before b began, b before c ended and c before d began.
func (g *Graph) oneTime(steps []Step) []Step {
	for j, second := range steps {
		for i, first := range steps[:j] {
			if first.Kind != Rt || second.Kind != Rt {
				continue
			}
			if g.between(first.From, second.To) > 0 {
				return g.oneTime(slices.Concat(steps[:i], []Step{{first.From, second.To, Rt}}, steps[j+1:]))
			}
			if g.between(second.From, first.To) > 0 {
				return g.oneTime(append(slices.Clone(steps[i+1:j]), Step{second.From, first.To, Rt}))
			}
		}
	}
	return steps
}

// unfold returns the part of a closed path without two anti-dependencies in a row that passes
// no transaction twice and has none either.
func unfold(steps []Step) []Step {
	for {
		i, j := repeated(steps)
		if j == 0 {
			return steps
		}
		inner, outer := steps[i:j], slices.Concat(steps[:i], steps[j:])
		if p, _, _ := PhenomenonOf(inner); p <= GNonadjacent && !(len(inner) == 1 && inner[0].Anti()) {
			steps = slices.Clone(inner)
		} else {
			steps = outer
		}
	}
}

// repeated finds the first transaction that a closed path leaves twice.
func repeated(steps []Step) (i, j int) {
	at := map[uint32]int{}
	for j, s := range steps {
		if i, again := at[s.From]; again {
			return i, j
		}
		at[s.From] = j
	}
	return 0, 0
}
