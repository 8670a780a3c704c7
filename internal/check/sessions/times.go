package sessions

import (
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
)

// times returns what orders the transactions beside what they read and wrote: nothing, the order
// of each session, or real time.
func (r *resolved) times(o graph.Order) []graph.Times {
	if o == graph.Plain {
		return nil
	}
	n := r.transactions() + 1
	t := graph.Times{Begin: make([]int64, n), End: make([]int64, n)}
	t.Begin[initial], t.End[initial] = -graph.Never, graph.Never
	if r.Times == nil {
		for i := range t.Begin[1:] {
			t.Begin[i+1], t.End[i+1] = int64(i), int64(i)
		}
		t.Group = r.session
		return []graph.Times{t}
	}
	copy(t.Begin[1:], r.Times.Begin)
	copy(t.End[1:], r.Times.End)
	if o == graph.Sessions {
		t.Group = make([]uint32, n)
		for i, s := range r.session[1:] {
			t.Group[i+1] = r.Sessions[s].Process
		}
	}
	return []graph.Times{t}
}

// timed is how the graph is asked for the cycles of an order: that of sessions is real time in
// which each process has a clock of its own.
func timed(o graph.Order) graph.Order {
	if o == graph.Plain {
		return graph.Plain
	}
	return graph.Real
}

// hints are places near which transactions took effect. Without times they are the lines of the
// file, which is often written as the transactions ended. They prove nothing.
func (r *resolved) hints() []int64 {
	list := make([]int64, r.transactions()+1)
	list[initial] = -graph.Never
	for t := uint32(1); t <= r.transactions(); t++ {
		switch from, to := r.opsOf(t); {
		case r.Times == nil && from < to:
			list[t] = int64(r.Ops[from].Line)
		case r.Times == nil:
		case r.Times.End[t-1] == graph.Never:
			list[t] = r.Times.Begin[t-1]
		default:
			list[t] = r.Times.End[t-1]
		}
	}
	return list
}

// after returns the transaction that the first one of a session comes after, if it is in
// another session; initial is none.
func (r *resolved) after(t uint32) uint32 {
	if s := r.session[t]; t == r.first[s] {
		return uint32(r.Sessions[s].After)
	}
	return initial
}

// timeFact returns why an order has one transaction before another.
func (r *resolved) timeFact(o graph.Order, from, to uint32) fact.Fact {
	f := fact.SessionTime{First: r.member(from), Second: r.member(to), Order: timeOrder(o)}
	if o == graph.Real && r.Times.Lasted != nil {
		if lasted, known := r.Times.Lasted(int(from)-1, int(to)-1); known {
			f.Apart = lasted
		}
	}
	return f
}
