package graph

import (
	"math"

	"stroppy/internal/isolation"
)

// The bounds of the search for short instances. Whether there is a cycle at all,
// and of which level, is decided exactly before it, and where no short one is
// found a long one is reported.
const (
	mostComponents = 64 // of one level
	mostStarts     = 256
	mostVisits     = 1 << 20 // of nodes, in one search
)

// Cycles decides for every component which level its cycles break, exactly, and
// picks instances: of each level a few, in the smallest components. The components
// of which none is picked are handed to group.
func (g *Graph) Cycles(group func(level isolation.Level, component []uint32)) [][]Step {
	picked := map[isolation.Level]int{}
	var found [][]Step
	for _, component := range g.Components() {
		if g.w.Ended() {
			break
		}
		level, find := g.restrict(component).broken()
		if picked[level]++; picked[level] > mostComponents {
			group(level, component)
			continue
		}
		found = append(found, outward(find(), component))
	}
	return found
}

// broken returns the weakest level that forbids a cycle of g, which is strongly
// connected, and what finds such a cycle.
func (g *Graph) broken() (isolation.Level, func() []Step) {
	for kind, level := range []isolation.Level{Ww: isolation.ReadUncommitted, Wr: isolation.ReadCommitted} {
		narrow := g.only(uint8(kind))
		if parts := narrow.Components(); len(parts) > 0 {
			return level, func() []Step { return outward(narrow.restrict(parts[0]).instance(uint8(kind)), parts[0]) }
		}
	}
	spaced := g.spaced()
	if parts := spaced.Components(); len(parts) > 0 {
		return isolation.SnapshotIsolation, func() []Step {
			if steps := g.shortest(Rw, Wr); steps != nil { // with exactly one anti-dependency
				return steps
			}
			steps := outward(spaced.restrict(parts[0]).instance(Rw), parts[0])
			for i := range steps { // a spaced graph has two nodes for each of g's
				steps[i].From, steps[i].To = steps[i].From/2, steps[i].To/2
			}
			return steps
		}
	}
	return isolation.Serializable, func() []Step { return g.instance(Rw) }
}

// outward maps a path of a restricted graph back to the graph's nodes.
func outward(steps []Step, component []uint32) []Step {
	for i := range steps {
		steps[i].From, steps[i].To = component[steps[i].From], component[steps[i].To]
	}
	return steps
}

// instance finds a cycle over edges of at most the given kind in a graph that is
// strongly connected by them: a short one where the search stays small, else any.
func (g *Graph) instance(kind uint8) []Step {
	if steps := g.shortest(kind, kind); steps != nil {
		return steps
	}
	return g.round(kind)
}

// round finds a cycle without any bound. It begins with the edge that leads
// back the farthest in the order of the nodes, which is roughly that of time; g
// is strongly connected, and that edge is of at most the given kind.
func (g *Graph) round(kind uint8) []Step {
	var first Step
	farthest := int64(math.MinInt64)
	for s := range g.edges {
		if back := int64(s.From) - int64(s.To); s.Kind <= kind && back > farthest {
			first, farthest = s, back
		}
	}
	steps, _ := g.path(first.To, first.From, Rt, math.MaxInt)
	return append([]Step{first}, steps...)
}

// shortest finds a short cycle that begins with an edge of the highest kind that
// is at most first, and goes on over edges of at most rest; nil is none found.
func (g *Graph) shortest(first, rest uint8) (best []Step) {
	least := 0
	if rest < first {
		least = int(first) // no other edge of a cycle is of that kind
	}
	for kind := int(first); kind >= least && best == nil; kind-- {
		tries, left := mostStarts, mostVisits
		for s := range g.edges {
			if int(s.Kind) != kind {
				continue
			}
			if tries--; tries < 0 || left <= 0 || len(best) == 2 {
				break
			}
			back, visited := g.path(s.To, s.From, rest, left)
			left -= visited
			if back != nil && (best == nil || len(back)+1 < len(best)) {
				best = append([]Step{s}, back...)
			}
		}
	}
	return best
}

// Classify names a cycle by its edges, after Adya, and says which is the weakest
// level that forbids it.
func Classify(steps []Step) (name string, forbidden isolation.Level) {
	anti, reads, real, adjacent := 0, 0, 0, false
	for i, s := range steps {
		switch s.Kind {
		case Rw:
			anti++
			adjacent = adjacent || len(steps) > 1 && steps[(i+1)%len(steps)].Kind == Rw
		case Wr:
			reads++
		case Rt:
			real++
		}
	}
	switch {
	case real > 0 && anti > 0:
		return "stale read", isolation.StrictSerializable
	case real > 0:
		return "real-time inversion", isolation.StrictSerializable
	case anti == 0 && reads == 0:
		return "dirty write (G0)", isolation.ReadUncommitted
	case anti == 0:
		return "circular information flow (G1c)", isolation.ReadCommitted
	case anti == 1:
		return "read skew (G-single)", isolation.SnapshotIsolation
	case !adjacent:
		return "long fork (G-nonadjacent)", isolation.SnapshotIsolation
	}
	return "write skew (G2-item)", isolation.Serializable
}
