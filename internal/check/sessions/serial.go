package sessions

import (
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// serial decides snapshot isolation and serializability, with the order of sessions or
// without. A history satisfies serializability when its versions have an order in which
// the dependencies (wr, ww and rw, and so) have no cycle, and snapshot isolation when they
// have none in which no two anti-dependencies (rw) follow each other (Adya, 1999; Cerone
// and Gotsman, Analysing Snapshot Isolation, 2016). What is known of the order of the
// versions must have no such cycle; if it has none, an order is made up for the rest, and
// where that has none the level holds. Where it has one, and something was made up, the
// level is unknown: to try all orders is a search that grows exponentially.
type serial struct {
	*versions
	sessions bool
	known    *edges // who comes before whose version, inferred from reads

	dependencies *graph.Graph // those last made
}

// serial decides the two levels. The reads are sound.
func (r *resolved) serial(withSessions bool) (snapshot, serializable check.Result) {
	s := &serial{versions: r.versions(), sessions: withSessions}
	if s.lost {
		a := s.lostUpdate()
		return invalid([]check.Anomaly{a}), invalid([]check.Anomaly{a})
	}
	s.infer()
	for i, to := range s.known.to {
		if to == initial {
			a := s.missed(i)
			return invalid([]check.Anomaly{a}), invalid([]check.Anomaly{a})
		}
	}
	_, anomaly := s.order(true, false) // so that no chain is a ring
	if anomaly == nil {
		s.joinPairs()
		_, anomaly = s.order(true, false)
	}
	if anomaly != nil {
		return invalid([]check.Anomaly{*anomaly}), invalid([]check.Anomaly{*anomaly})
	}
	if serializable = s.complete(false); serializable.Status == check.Valid {
		return valid(isolation.SnapshotIsolation), serializable
	}
	return s.complete(true), serializable
}

// infer infers who comes before whose version: of sessions all that is causal, and else
// what was read of one transaction.
func (s *serial) infer() {
	if s.sessions {
		if order, ok := s.resolved.order(nil); ok {
			s.known = s.causal(order)
			return
		}
	}
	s.known = s.atomic(s.sessions)
}

// depend makes the dependencies from what is known of the versions.
func (s *serial) depend() {
	s.dependencies = graph.New(int(s.transactions())+1, 0, nil, &s.watch, func(b *graph.Builder) {
		for t := uint32(1); t <= s.transactions() && !s.watch.Ended(); t++ {
			if s.sessions && t+1 < s.first[s.session[t]+1] {
				b.Add(t, t+1, graph.Ww)
			}
			s.addReads(b, t)
			for _, read := range s.read[s.readRow[t]:s.readRow[t+1]] {
				if next := s.next[read]; next != 0 {
					b.Add(t, s.maker[next], graph.Rw)
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
	})
}

// order places the transactions so that no dependency leads backwards, or for snapshot
// isolation none behind what is no anti-dependency. Where there is no such order there is
// an anomaly. Late says which of those that can come next does: who could last, or first.
func (s *serial) order(snapshot, late bool) (place []uint32, anomaly *check.Anomaly) {
	s.depend()
	g, each := s.dependencies, uint32(1)
	if snapshot {
		g, each = g.Spaced(), 2
	}
	list := g.Ordered(graph.All, late)
	if list == nil {
		a := s.cyclic(snapshot)
		return nil, &a
	}
	place = make([]uint32, s.transactions()+1)
	for at, n := range list {
		if n%each == 0 {
			place[n/each] = uint32(at)
		}
	}
	return place, nil
}

// complete decides a level. It makes up what is not known of the order of the versions by
// an order of the transactions, and tries two.
func (s *serial) complete(snapshot bool) check.Result {
	known := s.next
	defer func() { s.next = known }()
	for _, late := range []bool{false, true} {
		s.next = known
		place, anomaly := s.order(snapshot, late)
		if anomaly != nil {
			return invalid([]check.Anomaly{*anomaly})
		}
		s.next = append([]uint32(nil), known...)
		forced := s.join(place, s.known, s.sessions)
		_, anomaly = s.order(snapshot, late)
		switch {
		case anomaly == nil && snapshot:
			return valid(isolation.SnapshotIsolation)
		case anomaly == nil:
			return valid(isolation.Serializable)
		case forced:
			return invalid([]check.Anomaly{*anomaly})
		}
	}
	return check.Result{Detail: "Not decided: the reads leave open in which order some values were written."}
}

// lostUpdate is the anomaly of two transactions that read and overwrote one version.
func (s *serial) lostUpdate() check.Anomaly {
	op := s.readAt(s.second[0])
	one, other := s.reader(s.second[0]), s.reader(s.second[1])
	a := check.Anomaly{Name: "lost update (P4)", Forbidden: isolation.SnapshotIsolation, Count: 1, Witness: []history.ID{s.id(one), s.id(other)}}
	a.Detail = fmt.Sprintf("Lost update: %s and %s both read %d from %s and wrote it", s.name(one), s.name(other), op.Value, op.object()) + check.Times(1)
	a.Cycle = []check.Edge{s.overwriteEdge(one, other, s.second[0]), s.overwriteEdge(other, one, s.second[1])}
	return a
}

// overwriteEdge is the edge from who read a version to who wrote its key after it.
func (s *serial) overwriteEdge(from, to, read uint32) check.Edge {
	op := s.readAt(read)
	value, _ := s.wroteLast(to, s.readKey[read])
	return check.Edge{
		From: s.id(from), To: s.id(to), Kind: check.ReadWrite, Object: op.object(), FromVersion: fmt.Sprint(op.Value), ToVersion: fmt.Sprint(value),
		Text: fmt.Sprintf("%s before %s: it read %d from %s, and the other wrote %d over it", s.name(from), s.name(to), op.Value, op.object(), value),
	}
}

// missed is the anomaly of a read of what nobody wrote, by who comes after a writer.
func (s *serial) missed(edge int) check.Anomaly {
	steps := []step{{s.known.from[edge], initial, inferStep, s.known.read[edge]}, {from: initial, to: s.known.from[edge]}}
	a := s.ofCycle(steps, 1)
	a.Name, a.Forbidden = "read skew (G-single)", isolation.SnapshotIsolation
	a.Detail = "Read skew: " + s.missText(steps[0]) + check.Times(1)
	return a
}

// cyclic is the anomaly of dependencies that have a cycle, which is a short one.
func (s *serial) cyclic(snapshot bool) check.Anomaly {
	groups := 0
	counts := func(level isolation.Level) bool { return !snapshot || isolation.SnapshotIsolation.Includes(level) }
	cycles := s.dependencies.Cycles(graph.Plain, func(level isolation.Level, _ []uint32) {
		if counts(level) {
			groups++
		}
	})
	a := check.Anomaly{}
	var best []graph.Step
	for _, steps := range cycles {
		p, o, item := graph.PhenomenonOf(steps)
		forbidden := p.Forbidden(o, item)[0]
		if !counts(forbidden) {
			continue
		}
		groups++
		if best == nil || len(steps) < len(best) {
			best, a.Name, a.Forbidden = steps, p.Name(o, item), forbidden
		}
	}
	a.Count = groups
	for _, step := range best {
		e := s.edge(step)
		a.Cycle, a.Witness = append(a.Cycle, e), append(a.Witness, e.From)
	}
	if len(best) > 0 {
		a.Detail = fmt.Sprintf("%s: %s comes before itself over %s", check.Capital(a.Name), s.name(best[0].From), check.Plural(len(best), "dependency")) + check.Times(groups)
	}
	return a
}

// edge is a dependency with why it is one.
func (s *serial) edge(one graph.Step) check.Edge {
	e := check.Edge{From: s.id(one.From), To: s.id(one.To), Kind: check.ProcessOrder}
	e.Text = fmt.Sprintf("%s before %s: ", s.name(one.From), s.name(one.To))
	switch one.Kind {
	case graph.Wr:
		for i := s.readRow[one.To]; i < s.readRow[one.To+1]; i++ {
			if s.readFrom[i] == one.From {
				op := s.readAt(i)
				e.Kind, e.Object, e.FromVersion, e.ToVersion = check.WriteRead, op.object(), fmt.Sprint(op.Value), fmt.Sprint(op.Value)
				e.Text += fmt.Sprintf("whose %d it read from %s", op.Value, op.object())
				return e
			}
		}
	case graph.Rw:
		for i := s.readRow[one.From]; i < s.readRow[one.From+1]; i++ {
			if next := s.next[s.read[i]]; next != 0 && s.maker[next] == one.To {
				return s.overwriteEdge(one.From, one.To, i)
			}
		}
	}
	return s.writeEdge(e, one)
}

// writeEdge completes an edge between writers of one key, or of one session.
func (s *serial) writeEdge(e check.Edge, one graph.Step) check.Edge {
	for i := s.writeRow[one.From]; i < s.writeRow[one.From+1]; i++ {
		if next := s.next[s.keys+int(i)]; next != 0 && s.maker[next] == one.To {
			old, _ := s.wroteLast(one.From, s.writeKey[i])
			made, _ := s.wroteLast(one.To, s.writeKey[i])
			e.Kind, e.Object, e.FromVersion, e.ToVersion = check.WriteWrite, s.objectOf(one.From, s.writeKey[i]), fmt.Sprint(old), fmt.Sprint(made)
			e.Text += fmt.Sprintf("whose %d at %s it overwrote by %d", old, e.Object, made)
			return e
		}
	}
	if s.sessions && s.session[one.From] == s.session[one.To] && one.From < one.To {
		e.Text += "by the order of their session"
		return e
	}
	for i, from := range s.known.from {
		if from == one.From && s.known.to[i] == one.To {
			inferred := step{one.From, one.To, inferStep, s.known.read[i]}
			e.Kind, e.Object = check.WriteWrite, s.readAt(s.known.read[i]).object()
			e.Text += s.missText(inferred)
			return e
		}
	}
	return e
}

// objectOf is how sentences call a key that t wrote.
func (s *serial) objectOf(t, key uint32) string {
	from, to := s.opsOf(t)
	for i := from; i < to; i++ {
		if s.ids[i] == key {
			return s.Ops[i].object()
		}
	}
	return ""
}
