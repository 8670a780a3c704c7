package sessions

import (
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
)

// times returns the times of an order: none, the order of each session, or real time.
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

// timed returns the order for the graph's cycle search. The order of sessions becomes real time with one
// clock for each process.
func timed(o graph.Order) graph.Order {
	if o == graph.Plain {
		return graph.Plain
	}
	return graph.Real
}

// hints returns the approximate position at which each transaction took effect. Without times, these are the
// line numbers, because files are often written in the order of ends. Hints prove nothing.
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

// after returns the transaction in another session that t directly follows, if t is the first of its session;
// initial means none.
func (r *resolved) after(t uint32) uint32 {
	if s := r.session[t]; t == r.first[s] {
		return uint32(r.Sessions[s].After)
	}
	return initial
}

// timeFact returns the fact that an order places one transaction before another.
func (r *resolved) timeFact(o graph.Order, from, to uint32) fact.Fact {
	f := fact.SessionTime{First: r.member(from), Second: r.member(to), Order: timeOrder(o)}
	if o == graph.Real && r.Times.Lasted != nil {
		if lasted, known := r.Times.Lasted(int(from)-1, int(to)-1); known {
			f.Apart = lasted
		}
	}
	return f
}
