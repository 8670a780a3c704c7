package sessions

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// serial decides snapshot isolation and serializability in one order of transactions: none, the order of each
// session, or real time.
//
// A history is serializable if its versions have an order in which the dependencies (wr, ww and rw) and the
// order have no cycle. It satisfies snapshot isolation if every cycle has two consecutive anti-dependencies
// (Adya, 1999; Cerone and Gotsman, Analysing Snapshot Isolation, 2016). The known order of the versions must
// have no such cycle. For the rest, graph.Settle looks for an order, within its limits.
type serial struct {
	*versions
	o     graph.Order
	known *edges // edges between writers of a key, inferred from reads

	dependencies *graph.Graph // the latest dependency graph
}

// serial decides the two levels. The reads must be sound.
func (r *resolved) serial(o graph.Order) (snapshot, serializable check.Result) {
	s := &serial{versions: r.versions(), o: o}
	both := func(f check.Finding) (check.Result, check.Result) { return invalid(f), invalid(f) }
	if s.lost {
		return both(s.lostUpdate())
	}
	s.infer()
	for i, to := range s.known.to {
		if to == initial {
			return both(s.unwritten(i))
		}
	}
	s.depend()
	if s.dependencies.Spaced().Unordered(graph.All, o != graph.Plain) != nil { // so that no chain forms a ring
		return both(s.cyclic(true))
	}
	s.joinPairs()
	groups := s.runs()
	s.depend()
	if serializable = s.settle(groups, false); serializable.Status == check.Valid {
		return valid(s.level(true)), serializable
	}
	return s.settle(groups, true), serializable
}

// level returns the level that is being decided.
func (s *serial) level(snapshot bool) isolation.Level {
	if snapshot {
		return graph.TestSnapshot.Level(s.o)
	}
	return graph.TestSerializable.Level(s.o)
}

// infer infers edges between writers of a key. With sessions it uses causal edges, otherwise the reads of
// single transactions.
func (s *serial) infer() {
	if s.o != graph.Plain {
		if order, ok := s.resolved.order(nil); ok {
			s.known = s.causal(order)
			return
		}
	}
	s.known = s.atomic(false)
}

// depend builds the dependency graph from the known versions.
func (s *serial) depend() {
	hubs := map[uint32]uint32{} // by the last version of an initial chain
	for i, h := range s.hubs {
		hubs[h.last] = s.transactions() + 1 + uint32(i)
	}
	s.dependencies = graph.New(int(s.transactions())+1, len(s.hubs), s.times(s.o), &s.watch, func(b *graph.Builder) {
		for t := uint32(1); t <= s.transactions() && !s.watch.Ended(); t++ {
			s.addReads(b, t)
			for _, read := range s.read[s.readRow[t]:s.readRow[t+1]] {
				if next := s.next[read]; next != 0 {
					b.Add(t, s.maker[next], graph.Rw)
				} else if len(hubs) > 0 {
					if hub, ok := hubs[read]; ok {
						b.Add(t, hub, graph.Rw)
					}
				}
			}
		}
		for version, next := range s.next {
			if next != 0 && version >= s.keys {
				b.Add(s.maker[version], s.maker[next], graph.Ww)
			}
		}
		for i, from := range s.known.from {
			b.Add(from, s.known.to[i], graph.Ww)
		}
		for i, h := range s.hubs {
			hub := s.transactions() + 1 + uint32(i)
			if int(h.last) >= s.keys {
				b.Add(s.maker[h.last], hub, graph.Ww)
			}
			for _, t := range h.firsts {
				b.Add(hub, t, graph.Pass)
			}
		}
	})
}

// settle decides a level from the known dependencies and the runs of versions without a known order.
func (s *serial) settle(groups [][]graph.Run, snapshot bool) check.Result {
	found := s.dependencies.Settle(groups, snapshot, timed(s.o), s.hints())
	switch {
	case found.State == graph.Holds:
		return valid(s.level(snapshot))
	case found.State == graph.Open:
		return check.Result{Why: fact.SessionWritesOpen{}}
	case len(found.Core) == 0:
		return invalid(s.cyclic(snapshot))
	case len(found.First) == 0 && len(found.Second) == 0:
		return invalid(s.unexplained(found, groups, snapshot))
	}
	return invalid(s.unsettled(found, groups, snapshot))
}

// steps replaces real time by the order of sessions, if that is the order being decided.
func (s *serial) steps(steps []graph.Step) []graph.Step {
	if s.o == graph.Sessions {
		for i := range steps {
			if steps[i].Kind == graph.Rt {
				steps[i].Kind = graph.Process
			}
		}
	}
	return steps
}

// named returns the name of a cycle and the weakest level that forbids it. An inferred edge counts as an
// anti-dependency of its reader.
func (s *serial) named(steps []graph.Step) (name string, forbidden isolation.Level) {
	p, o, item := graph.PhenomenonOf(steps)
	if p < graph.GSingle && slices.ContainsFunc(steps, s.inferred) {
		p = graph.GSingle
	}
	return p.Name(o, item), p.Forbidden(o, item)[0]
}

// inferred reports whether a dependency follows from another transaction's read.
func (s *serial) inferred(step graph.Step) bool {
	if _, follows := s.follows(step); follows || step.Kind != graph.Ww {
		return false
	}
	for i, from := range s.known.from {
		if from == step.From && s.known.to[i] == step.To {
			return true
		}
	}
	return false
}

// cyclic returns the finding for dependencies with a cycle, with a short cycle.
func (s *serial) cyclic(snapshot bool) check.Finding {
	groups, level := 0, s.level(snapshot)
	test := graph.TestSerializable
	if snapshot {
		test = graph.TestSnapshot
	}
	cycles := s.dependencies.Cycles(timed(s.o), func(l isolation.Level, _ []uint32) {
		if test.Level(timed(s.o)).Includes(l) {
			groups++
		}
	})
	f := check.Finding{}
	var best []graph.Step
	for _, steps := range cycles {
		steps = s.steps(steps)
		name, forbidden := s.named(steps)
		if !level.Includes(forbidden) {
			continue
		}
		groups++
		if best == nil || len(steps) < len(best) {
			best, f.Anomaly, f.Forbidden = steps, name, forbidden
		}
	}
	f.Count = groups
	if len(best) > 0 {
		f.Instances = []fact.Fact{s.describe(&f, best)}
	}
	return f
}

// describe adds a cycle to a finding, and returns it as a fact.
func (s *serial) describe(f *check.Finding, steps []graph.Step) fact.Fact {
	for _, step := range steps {
		e := s.edge(step)
		f.Cycle, f.Transactions = append(f.Cycle, e), append(f.Transactions, e.From)
		if e.Object != "" {
			f.Objects = append(f.Objects, fact.Object(e.Object))
		}
	}
	f.Objects = distinct(f.Objects)
	cycle := fact.SessionCycle{By: s.member(steps[0].From), Length: len(steps)}
	if len(steps) == 2 {
		cycle.Why = []fact.Fact{f.Cycle[0].Why, f.Cycle[1].Why}
	}
	return cycle
}

// unsettled returns the finding for writes that cannot be ordered.
func (s *serial) unsettled(found graph.Settled, groups [][]graph.Run, snapshot bool) check.Finding {
	first, second := s.steps(found.First), s.steps(found.Second)
	one, other := groups[found.Leaf.Group][found.Leaf.One], groups[found.Leaf.Group][found.Leaf.Other]
	if swap := forces(first) && !forces(second) || len(first) == 0; swap {
		first, second, one, other = second, first, other, one
	}
	f := check.Finding{Count: 1}
	if f.Anomaly, f.Forbidden = s.named(first); !s.level(snapshot).Includes(f.Forbidden) {
		f.Forbidden = s.level(snapshot)
	}
	key, _ := s.shared(one.Last, other.First)
	earlier, _ := s.wroteLast(one.Last, key)
	later, _ := s.wroteLast(other.First, key)
	either := fact.SessionEitherOrder{
		Cycle: s.describe(&f, first), Object: fact.Object(s.objectOf(one.Last, key)),
		Earlier: s.value(earlier), Later: s.value(later), Forced: forces(second), More: len(found.Core) - 1,
	}
	for _, step := range second {
		either.Otherwise = append(either.Otherwise, s.edge(step).Why)
		f.Transactions = append(f.Transactions, s.id(step.From))
	}
	f.Instances, f.Transactions = []fact.Fact{either}, check.Distinct(f.Transactions)
	return f
}

// unexplained returns the finding for writes that cannot be ordered, if there are too many to show the
// reason.
func (s *serial) unexplained(found graph.Settled, groups [][]graph.Run, snapshot bool) check.Finding {
	f := check.Finding{Anomaly: "no order of the writes", Forbidden: s.level(snapshot)}
	for _, p := range found.Core[:min(len(found.Core), check.Shown)] {
		group := groups[p.Group]
		f.Transactions = append(f.Transactions, s.id(group[p.One].First), s.id(group[p.Other].First))
	}
	f.Transactions = check.Distinct(f.Transactions)
	f.Add(fact.SessionNoOrder{Pairs: len(found.Core)}, "")
	return f
}

// forces reports whether a cycle consists only of reads, writes and the order. Then it determines the order
// of the two writes in question.
func forces(steps []graph.Step) bool {
	return len(steps) > 0 && !slices.ContainsFunc(steps, graph.Step.Anti)
}
