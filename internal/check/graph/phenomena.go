package graph

import "stroppy/internal/isolation"

// Order says which order of transactions beside their dependencies a cycle may use.
type Order uint8

const (
	Plain    Order = iota
	Sessions       // that of each client
	Real           // and that of real time
	Orders
)

// mask returns the edges that count in an order.
func (o Order) mask() Mask {
	if o == Plain {
		return All
	}
	return All | Clients
}

// Phenomenon is a kind of cycle.
type Phenomenon uint8

// The phenomena of Adya (Weak Consistency, MIT 1999, chapters 3 and 4), and G-nonadjacent,
// which snapshot isolation forbids too (Cerone and Gotsman, Analysing Snapshot Isolation,
// PODC 2016), the gravest first.
const (
	G0           Phenomenon = iota // writes over writes alone
	G1c                            // writes and reads of them
	GSingle                        // exactly one anti-dependency
	GNonadjacent                   // several anti-dependencies, no two in a row
	G2Item                         // two anti-dependencies in a row, none by a predicate
	G2                             // two anti-dependencies in a row, and one by a predicate
	Phenomena
)

// Test returns the weakest test that a phenomenon makes fail.
func (p Phenomenon) Test() Test {
	return [Phenomena]Test{TestReadUncommitted, TestReadCommitted, TestSnapshot, TestSnapshot, TestSerializable, TestSerializable}[p]
}

// Name names a phenomenon in an order, after the field and after Adya, with the suffixes of
// Elle (Kingsbury and Alvaro, VLDB 2020). Item says that no anti-dependency of the cycle is by
// a predicate.
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

// Forbidden returns the weakest levels that forbid the phenomenon. Item says that
// no anti-dependency of the cycle is by a predicate.
func (p Phenomenon) Forbidden(o Order, item bool) []isolation.Level {
	switch {
	case p == G2Item && o == Plain:
		return []isolation.Level{isolation.RepeatableRead}
	case p.Test() == TestSnapshot && o == Plain && item:
		return []isolation.Level{isolation.SnapshotIsolation, isolation.RepeatableRead}
	}
	return []isolation.Level{p.Test().Level(o)}
}

// PhenomenonOf says what a cycle is.
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

// The states of an automaton that reads the edges of a path. A path that is closed by its
// own last edge begins with an edge that fixes the rotation of the cycle.
type automaton struct {
	next   [8][kinds]int8 // the state after an edge of a kind; -1 is no such path
	accept uint8          // the states in which the path may be closed, a bit each
}

// on sets the next state of some kinds.
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

// automatonOf returns the automaton of a phenomenon. A closed one is that of a path which
// comes back to its first node. Else an edge of time leads from its end to its beginning.
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
	case G0: // 1: any
		a.on(0, 1, 1<<Ww)
		a.on(1, 1, 1<<Ww)
		a.accept = 1 << 1
	case G1c: // 1: a read was passed
		if open {
			a.on(0, 0, 1<<Ww)
		}
		a.on(0, 1, reads)
		a.on(1, 1, others)
		a.accept = 1 << 1
	case GSingle: // 1: the anti-dependency was passed
		if open {
			a.on(0, 0, others)
		}
		a.on(0, 1, antis)
		a.on(1, 1, others)
		a.accept = 1 << 1
	case GNonadjacent: // 1: after the first; 2: after one; 3: after the second or a later one; 4: after two and another
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

// adjacent makes the automaton of two anti-dependencies in a row.
func (a *automaton) adjacent(p Phenomenon, open bool) {
	switch p {
	case G2Item: // 1: after an anti-dependency; 2: two in a row were passed
		if open {
			a.on(0, 0, others)
			a.on(1, 0, others)
		}
		a.on(0, 1, 1<<Rw)
		a.on(1, 2, 1<<Rw)
		a.on(2, 2, others|1<<Rw)
		a.accept = 1 << 2
	case G2: // of items 1 and 2 as before; with a predicate among them 3 and 4; 5: a predicate, and none before
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
