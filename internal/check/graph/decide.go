package graph

import (
	"slices"

	"stroppy/internal/isolation"
)

// State is the answer of a test.
type State uint8

const (
	Holds State = iota
	Open        // the answer depends on reads that have two explanations
	Fails
)

// Test identifies a subgraph whose cycles an isolation level forbids.
type Test uint8

// These tests are ordered from the weakest level to the strongest.
const (
	TestReadUncommitted Test = iota // write-write edges
	TestReadCommitted               // also write-read edges
	TestRepeatableRead              // also anti-dependencies on items
	TestSnapshot                    // all edges, but no two anti-dependencies in a row
	TestSerializable                // all edges
	Tests
)

// mask returns the kinds of edges that the test uses in an order.
func (t Test) mask(o Order) Mask {
	return [Tests]Mask{Writes, Reads, Items, All, All}[t] | o.mask()&Clients
}

// of returns the graph that must have no cycle for the test to pass, and the number of its nodes for each
// node of g.
func (g *Graph) of(t Test) (*Graph, uint32) {
	if t == TestSnapshot {
		return g.Spaced(), 2
	}
	return g, 1
}

// Level returns the isolation level that the test decides in an order, and Unknown if there is none.
func (t Test) Level(o Order) isolation.Level {
	return [Orders][Tests]isolation.Level{
		{isolation.ReadUncommitted, isolation.ReadCommitted, isolation.RepeatableRead, isolation.SnapshotIsolation, isolation.Serializable},
		{isolation.StrongSessionReadUncommitted, isolation.StrongSessionReadCommitted, isolation.Unknown, isolation.StrongSessionSnapshotIsolation, isolation.StrongSessionSerializable},
		{isolation.StrongReadUncommitted, isolation.StrongReadCommitted, isolation.Unknown, isolation.StrongSnapshotIsolation, isolation.StrictSerializable},
	}[o][t]
}

// Decision holds the result of every test in every order.
type Decision struct {
	States [Orders][Tests]State
	Cores  [Orders]*Graph   // the subgraph with all cycles; nil: no cycle
	Nodes  [Orders][]uint32 // the nodes of g that correspond to the nodes of the core
}

// Decide decides exactly which tests have a cycle, for each order. The graph must contain the edges of the
// clients. If real is false, the order of real time is omitted.
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

// decide runs the tests of an order, the strongest first. A test that fails in a weaker order fails in this
// one. If a test has no cycle, the tests with a subset of its edges have none.
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

// state reports whether the graph has a cycle that makes the test fail.
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

// Any returns a cycle that makes a test fail. The cycle is short, but not always the shortest. Any is used when the
// search for the shortest cycle reaches its limits. It is also used for real time of several clocks, because a cycle
// may then need several edges of real time.
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

// oneTime removes all edges of real time but one from a cycle with several of the same clock.
//
// For two edges a → b and c → d, either a ended before d began, or c ended before b began. Otherwise, d began
// before a ended, a before b began, b before c ended, and c before d began, which is impossible.
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

// unfold returns a part of a closed path that passes no transaction twice. If the path has no two
// anti-dependencies in a row, the result has none either.
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
