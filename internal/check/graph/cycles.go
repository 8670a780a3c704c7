package graph

import "stroppy/internal/isolation"

// MostPicked limits the number of components for which a cycle is picked, at each level.
const MostPicked = 64

// Cycles decides exactly which level the cycles of each component break. It picks a shortest cycle that the
// weakest of these levels forbids, for a few of the smallest components at each level. The other components
// are passed to group.
func (g *Graph) Cycles(o Order, group func(level isolation.Level, component []uint32)) (found [][]Step) {
	core, nodes := g.Core(o.mask(), o == Real)
	if core == nil {
		return nil
	}
	parts, picked := core.parts(), [Tests]int{}
	for _, component := range core.Components(o.mask(), o == Real) {
		if g.w.Ended() {
			break
		}
		part := parts.of(component)
		for i, n := range component {
			component[i] = nodes[n]
		}
		t := part.weakest(o)
		if picked[t]++; picked[t] > MostPicked {
			group(t.Level(o), component)
		} else if steps := part.shortest(t, o); steps != nil {
			found = append(found, Outward(steps, component))
		}
	}
	return found
}

// Weakest returns the first test that fails for the cycles between the given nodes in an order.
func (g *Graph) Weakest(nodes []uint32, o Order) Test { return g.parts().of(nodes).weakest(o) }

// weakest returns the first test that fails in an order. The graph must have a cycle.
func (g *Graph) weakest(o Order) Test {
	for _, t := range []Test{TestReadUncommitted, TestReadCommitted, TestSnapshot} {
		if g.state(t, o, o == Real) == Fails {
			return t
		}
	}
	return TestSerializable
}

// shortest returns a shortest cycle that makes the test fail and passes all weaker tests.
func (g *Graph) shortest(t Test, o Order) (best []Step) {
	s := NewSearch(g, o, nil)
	for p := range Phenomena {
		if p.Test() != t || len(best) == 2 {
			continue
		}
		f := s.Shortest(p, func([]Step) bool { return false })
		if f.Cycle != nil && (best == nil || len(f.Cycle) < len(best)) {
			best = f.Cycle
		}
	}
	if best == nil {
		best = g.Any(t, o)
	}
	return best
}

// Outward translates the nodes of a path in a subgraph to the nodes of the whole graph, in place.
func Outward(steps []Step, nodes []uint32) []Step {
	for i := range steps {
		steps[i].From, steps[i].To = nodes[steps[i].From], nodes[steps[i].To]
	}
	return steps
}
