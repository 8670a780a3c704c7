package graph

import "stroppy/internal/isolation"

// Order states which orders, in addition to the dependencies, a cycle may use.
type Order uint8

const (
	Plain    Order = iota
	Sessions       // the order of each client
	Real           // and the order of real time
	Orders
)

// mask returns the kinds of edges that the order adds.
func (o Order) mask() Mask {
	if o == Plain {
		return All
	}
	return All | Clients
}

// Phenomenon is a kind of cycle.
type Phenomenon uint8

// These are the phenomena of Adya (Weak Consistency, MIT 1999, chapters 3 and 4), the gravest first.
// G-nonadjacent is from Cerone and Gotsman (Analysing Snapshot Isolation, PODC 2016); snapshot isolation
// forbids it too.
const (
	G0           Phenomenon = iota // only write-write edges
	G1c                            // write-write and write-read edges
	GSingle                        // exactly one anti-dependency
	GNonadjacent                   // several anti-dependencies, no two in a row
	G2Item                         // two anti-dependencies in a row, none on a predicate
	G2                             // two anti-dependencies in a row, at least one on a predicate
	Phenomena
)

// Test returns the weakest test that fails because of the phenomenon.
func (p Phenomenon) Test() Test {
	return [Phenomena]Test{TestReadUncommitted, TestReadCommitted, TestSnapshot, TestSnapshot, TestSerializable, TestSerializable}[p]
}

// Name returns the name of a phenomenon in an order: the common term and Adya's, with the suffixes of Elle
// (Kingsbury and Alvaro, VLDB 2020). Item reports whether the cycle has no anti-dependency on a predicate.
func (p Phenomenon) Name(o Order, item bool) string {
	names := [Phenomena][2]string{
		{"dirty write", "G0"}, {"circular information flow", "G1c"}, {"read skew", "G-single"}, {"long fork", "G-nonadjacent"},
		{"write skew", "G2-item"}, {"phantom", "G2"},
	}
	name, short := names[p][0], names[p][1]
	if !item && p < G2 {
		name = "phantom " + name
	}
	switch o {
	case Sessions:
		return name + " in a session (" + short + "-process)"
	case Real:
		if p == GSingle {
			name = "stale read"
		} else {
			name += " in real time"
		}
		return name + " (" + short + "-realtime)"
	}
	return name + " (" + short + ")"
}

// Forbidden returns the weakest levels that forbid the phenomenon. Item reports whether the cycle has no
// anti-dependency on a predicate.
func (p Phenomenon) Forbidden(o Order, item bool) []isolation.Level {
	switch {
	case p == G2Item && o == Plain:
		return []isolation.Level{isolation.RepeatableRead}
	case p.Test() == TestSnapshot && o == Plain && item:
		return []isolation.Level{isolation.SnapshotIsolation, isolation.RepeatableRead}
	}
	return []isolation.Level{p.Test().Level(o)}
}

// PhenomenonOf classifies a cycle.
func PhenomenonOf(cycle []Step) (p Phenomenon, o Order, item bool) {
	anti, reads, adjacent, predicates := 0, 0, false, 0
	for i, s := range cycle {
		next := cycle[(i+1)%len(cycle)]
		switch s.Kind {
		case PredicateRw, GuessRw, Rw:
			anti++
			adjacent = adjacent || len(cycle) > 1 && next.Anti()
			if s.Kind != Rw {
				predicates++
			}
		case Wr, GuessWr:
			reads++
		case Process:
			o = max(o, Sessions)
		case Rt:
			o = Real
		}
	}
	switch {
	case anti == 0 && reads == 0:
		p = G0
	case anti == 0:
		p = G1c
	case anti == 1:
		p = GSingle
	case !adjacent:
		p = GNonadjacent
	case predicates == 0:
		p = G2Item
	default:
		p = G2
	}
	return p, o, predicates == 0
}

// automaton reads the edges of a path. A path that its own last edge closes begins with an edge that fixes
// the rotation of the cycle.
type automaton struct {
	next   [8][kinds]int8 // the state after an edge of a kind; -1: not allowed
	accept uint8          // a bit set of the states in which the path may be closed
}

// on sets the next state for some kinds of edges.
func (a *automaton) on(state, next int8, mask Mask) {
	for k := range kinds {
		if mask.has(uint32(k)) {
			a.next[state][k] = next
		}
	}
}

const (
	antis      = Mask(1<<Rw | 1<<PredicateRw | 1<<GuessRw)
	predicates = Mask(1<<PredicateRw | 1<<GuessRw)
	others     = Reads &^ (1 << Pass)
	reads      = Mask(1<<Wr | 1<<GuessWr)
)

// automatonOf returns the automaton of a phenomenon. If closed is set, the path returns to its first node.
// Otherwise an edge of real time leads from the end of the path to its beginning.
func automatonOf(p Phenomenon, closed bool) *automaton {
	a := &automaton{}
	for s := range a.next {
		for k := range a.next[s] {
			a.next[s][k] = -1
		}
		a.next[s][Pass] = int8(s)
	}
	open := !closed
	switch p {
	case G0: // 1: any state
		a.on(0, 1, 1<<Ww)
		a.on(1, 1, 1<<Ww)
		a.accept = 1 << 1
	case G1c: // 1: after a write-read edge
		if open {
			a.on(0, 0, 1<<Ww)
		}
		a.on(0, 1, reads)
		a.on(1, 1, others)
		a.accept = 1 << 1
	case GSingle: // 1: after the anti-dependency
		if open {
			a.on(0, 0, others)
		}
		a.on(0, 1, antis)
		a.on(1, 1, others)
		a.accept = 1 << 1
	case GNonadjacent:
		// 1: after the first; 2: after one edge; 3: after the second or a later one; 4: after two and another edge.
		if open {
			a.on(0, 0, others)
		}
		a.on(0, 1, antis)
		a.on(1, 2, others)
		a.on(2, 2, others)
		a.on(2, 3, antis)
		a.on(3, 4, others)
		a.on(4, 4, others)
		a.on(4, 3, antis)
		a.accept = 1 << 4
		if open {
			a.accept |= 1 << 3
		}
	default:
		a.adjacent(p, open)
	}
	return a
}

// adjacent builds the automaton for two anti-dependencies in a row.
func (a *automaton) adjacent(p Phenomenon, open bool) {
	switch p {
	case G2Item: // 1: after an anti-dependency; 2: after two in a row
		if open {
			a.on(0, 0, others)
			a.on(1, 0, others)
		}
		a.on(0, 1, 1<<Rw)
		a.on(1, 2, 1<<Rw)
		a.on(2, 2, others|1<<Rw)
		a.accept = 1 << 2
	case G2:
		// 1, 2: as above, without predicates; 3, 4: the same with a predicate;
		// 5: a predicate without an anti-dependency before it.
		if open {
			a.on(0, 0, others)
			a.on(1, 0, others)
			a.on(3, 5, others)
			a.on(5, 5, others)
			a.on(5, 3, antis)
		}
		a.on(0, 1, 1<<Rw)
		a.on(0, 3, predicates)
		a.on(1, 2, 1<<Rw)
		a.on(1, 4, predicates)
		a.on(2, 2, others|1<<Rw)
		a.on(2, 4, predicates)
		a.on(3, 4, antis)
		a.on(4, 4, others|antis)
		a.accept = 1 << 4
	}
}
