package sessions

import (
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// serial decides snapshot isolation and serializability in one order of transactions: none, that
// of each session, or real time. A history satisfies serializability if its versions have an
// order in which the dependencies (wr, ww and rw, and the order) have no cycle, and snapshot
// isolation if they have none in which no two anti-dependencies (rw) follow each other (Adya,
// 1999; Cerone and Gotsman, Analysing Snapshot Isolation, 2016). What is known of the order of
// the versions must have no such cycle. For the rest graph.Settle looks for an order, within
// its bounds.
type serial struct {
	*versions
	o     graph.Order
	known *edges // who comes before whose version, inferred from reads

	dependencies *graph.Graph // those last made
}

// serial decides the two levels. The reads are sound.
func (r *resolved) serial(o graph.Order) (snapshot, serializable check.Result) {
	s := &serial{versions: r.versions(), o: o}
	both := func(a check.Anomaly) (check.Result, check.Result) {
		return invalid([]check.Anomaly{a}), invalid([]check.Anomaly{a})
	}
	if s.lost {
		return both(s.lostUpdate())
	}
	s.infer()
	for i, to := range s.known.to {
		if to == initial {
			return both(s.missed(i))
		}
	}
	s.depend()
	if s.dependencies.Spaced().Unordered(graph.All, o != graph.Plain) != nil { // so that no chain is a ring
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

// level is the level that is decided.
func (s *serial) level(snapshot bool) isolation.Level {
	if snapshot {
		return graph.TestSnapshot.Level(s.o)
	}
	return graph.TestSerializable.Level(s.o)
}

// infer infers who comes before whose version: of sessions all that is causal, and else
// what was read of one transaction.
func (s *serial) infer() {
	if s.o != graph.Plain {
		if order, ok := s.resolved.order(nil); ok {
			s.known = s.causal(order)
			return
		}
	}
	s.known = s.atomic(false)
}

// depend makes the dependencies from what is known of the versions.
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

// settle decides a level from the dependencies that are known and the runs of versions whose
// order is not.
func (s *serial) settle(groups [][]graph.Run, snapshot bool) check.Result {
	found := s.dependencies.Settle(groups, snapshot, timed(s.o), s.hints())
	switch {
	case found.State == graph.Holds:
		return valid(s.level(snapshot))
	case found.State == graph.Open:
		return check.Result{Detail: "Not decided: the reads leave open in which order some values were written, " +
			"and the search for an order came to its bound."}
	case len(found.Core) == 0:
		return invalid([]check.Anomaly{s.cyclic(snapshot)})
	case len(found.First) == 0 && len(found.Second) == 0:
		return invalid([]check.Anomaly{s.unexplained(found, groups, snapshot)})
	}
	return invalid([]check.Anomaly{s.unsettled(found, groups, snapshot)})
}

// steps turns real time of an order of sessions into that.
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

// named returns what a cycle is called, and the weakest level that forbids it. What was inferred
// stands for an anti-dependency of the reader that it was inferred from.
func (s *serial) named(steps []graph.Step) (name string, forbidden isolation.Level) {
	p, o, item := graph.PhenomenonOf(steps)
	if p < graph.GSingle && slices.ContainsFunc(steps, s.inferred) {
		p = graph.GSingle
	}
	return p.Name(o, item), p.Forbidden(o, item)[0]
}

// inferred reports whether a dependency follows from a read of another transaction.
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

// cyclic is the anomaly of dependencies that have a cycle, which is a short one.
func (s *serial) cyclic(snapshot bool) check.Anomaly {
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
	a := check.Anomaly{}
	var best []graph.Step
	for _, steps := range cycles {
		steps = s.steps(steps)
		name, forbidden := s.named(steps)
		if !level.Includes(forbidden) {
			continue
		}
		groups++
		if best == nil || len(steps) < len(best) {
			best, a.Name, a.Forbidden = steps, name, forbidden
		}
	}
	a.Count = groups
	s.describe(&a, best)
	a.Detail += check.Times(groups)
	return a
}

// describe puts a cycle into an anomaly.
func (s *serial) describe(a *check.Anomaly, steps []graph.Step) {
	for _, step := range steps {
		e := s.edge(step)
		a.Cycle, a.Witness = append(a.Cycle, e), append(a.Witness, e.From)
	}
	if len(steps) > 0 {
		a.Detail = fmt.Sprintf("%s: %s", check.Capital(a.Name), s.summary(a.Cycle))
	}
}

// summary is a cycle in words.
func (s *serial) summary(cycle []check.Edge) string {
	if len(cycle) == 2 {
		return cycle[0].Text + "; " + cycle[1].Text
	}
	return fmt.Sprintf("%s comes before itself over %s", s.Name(cycle[0].From), check.Plural(len(cycle), "dependency"))
}

// unsettled is the anomaly of writes of which no order works.
func (s *serial) unsettled(found graph.Settled, groups [][]graph.Run, snapshot bool) check.Anomaly {
	first, second := s.steps(found.First), s.steps(found.Second)
	one, other := groups[found.Leaf.Group][found.Leaf.One], groups[found.Leaf.Group][found.Leaf.Other]
	if swap := forces(first) && !forces(second) || len(first) == 0; swap {
		first, second, one, other = second, first, other, one
	}
	a := check.Anomaly{Count: 1}
	if a.Name, a.Forbidden = s.named(first); !s.level(snapshot).Includes(a.Forbidden) {
		a.Forbidden = s.level(snapshot)
	}
	s.describe(&a, first)
	key, _ := s.shared(one.Last, other.First)
	object := s.objectOf(one.Last, key)
	old, _ := s.wroteLast(one.Last, key)
	made, _ := s.wroteLast(other.First, key)
	switch {
	case len(second) == 0:
	case forces(second):
		a.Detail += fmt.Sprintf(". %s was written to %s before %s, because otherwise: %s",
			s.value(old), object, s.value(made), s.texts(second))
	default:
		a.Detail += fmt.Sprintf(". That is so if %s was written to %s before %s. Otherwise: %s",
			s.value(old), object, s.value(made), s.texts(second))
	}
	if more := len(found.Core) - 1; more > 0 {
		a.Detail += fmt.Sprintf(". The order of %s of writes changes nothing", check.Plural(more, "more pair"))
	}
	a.Detail += "."
	for _, step := range second {
		a.Witness = append(a.Witness, s.id(step.From))
	}
	a.Witness = check.Distinct(a.Witness)
	return a
}

// unexplained is the anomaly of writes of which no order works, if there are too many to show why.
func (s *serial) unexplained(found graph.Settled, groups [][]graph.Run, snapshot bool) check.Anomaly {
	a := check.Anomaly{Name: "no order of the writes", Forbidden: s.level(snapshot), Count: 1}
	for _, p := range found.Core[:min(len(found.Core), check.Shown)] {
		group := groups[p.Group]
		a.Witness = append(a.Witness, s.id(group[p.One].First), s.id(group[p.Other].First))
	}
	a.Witness = check.Distinct(a.Witness)
	a.Detail = fmt.Sprintf("No order of the writes: in every order of %s of writes, transactions come before themselves.",
		check.Plural(len(found.Core), "pair"))
	return a
}

// forces reports whether a cycle has nothing but what was read, written and ordered: then the
// order of two writes that it is about is known.
func forces(steps []graph.Step) bool {
	return len(steps) > 0 && !slices.ContainsFunc(steps, graph.Step.Anti)
}

// texts says the steps of a cycle in words.
func (s *serial) texts(steps []graph.Step) (text string) {
	for i, step := range steps {
		if i > 0 {
			text += "; "
		}
		text += s.edge(step).Text
	}
	return text
}
