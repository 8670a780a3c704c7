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

	// Of the dependencies last made.
	dependencies graph.Edges
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
	e := graph.Edges{}
	for t := uint32(1); t <= s.transactions(); t++ {
		if s.sessions && t+1 < s.first[s.session[t]+1] {
			e.Add(t, t+1, graph.Ww)
		}
		for i := s.readRow[t]; i < s.readRow[t+1]; i++ {
			if w := s.readFrom[i]; w != initial {
				e.Add(w, t, graph.Wr)
			}
			if next := s.next[s.read[i]]; next != 0 {
				e.Add(t, s.maker[next], graph.Rw)
			}
		}
	}
	for version, next := range s.next {
		if next != 0 && version >= s.keys {
			e.Add(s.maker[version], s.maker[next], graph.Ww)
		}
	}
	for i, from := range s.known.from {
		e.Add(from, s.known.to[i], graph.Ww)
	}
	s.dependencies = e
}

// order places the transactions so that no dependency leads backwards, or for snapshot
// isolation none behind what is no anti-dependency. Where there is no such order there is
// an anomaly. Late says which of those that can come next does: who could last, or first.
func (s *serial) order(snapshot, late bool) (place []uint32, anomaly *check.Anomaly) {
	s.depend()
	nodes, e, each := int(s.transactions())+1, s.dependencies, uint32(1)
	if snapshot {
		nodes, e, each = 2*nodes, spaced(s.dependencies), 2
	}
	list := topological(nodes, &e, late)
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

// spaced returns the graph whose cycles are those without two anti-dependencies in a row:
// node n becomes 2n, reached by another edge, and 2n+1, reached by an anti-dependency.
func spaced(e graph.Edges) (out graph.Edges) {
	for i, kind := range e.Kind {
		from, to := 2*e.From[i], 2*e.To[i]
		if kind == graph.Rw {
			out.Add(from, to+1, kind)
			continue
		}
		out.Add(from, to, kind)
		out.Add(from+1, to, kind)
	}
	return out
}

// topological orders nodes by their edges (Kahn, 1962); nil is none. Of those that can
// come next the one that could first does, or if late the one that could last.
func topological(nodes int, e *graph.Edges, late bool) []uint32 {
	row, incoming := make([]uint32, nodes+1), make([]uint32, nodes)
	for i, from := range e.From {
		row[from+1]++
		incoming[e.To[i]]++
	}
	for n := range nodes {
		row[n+1] += row[n]
	}
	to, next := make([]uint32, len(e.To)), append([]uint32(nil), row...)
	for i, from := range e.From {
		to[next[from]] = e.To[i]
		next[from]++
	}
	list, ready := make([]uint32, 0, nodes), make([]uint32, 0, nodes)
	for n, count := range incoming {
		if count == 0 {
			ready = append(ready, uint32(n))
		}
	}
	for at := 0; len(ready) > at; {
		n := ready[at]
		if late {
			n = ready[len(ready)-1]
			ready = ready[:len(ready)-1]
		} else {
			at++
		}
		list = append(list, n)
		for _, m := range to[row[n]:row[n+1]] {
			if incoming[m]--; incoming[m] == 0 {
				ready = append(ready, m)
			}
		}
	}
	if len(list) < nodes {
		return nil
	}
	return list
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
	cycles := graph.New(int(s.transactions())+1, s.dependencies, &s.watch).Cycles(func(level isolation.Level, _ []uint32) {
		if !snapshot || isolation.SnapshotIsolation.Includes(level) {
			groups++
		}
	})
	a := check.Anomaly{}
	var best []graph.Step
	for _, steps := range cycles {
		name, forbidden := graph.Classify(steps)
		if snapshot && !isolation.SnapshotIsolation.Includes(forbidden) {
			continue
		}
		groups++
		if best == nil || len(steps) < len(best) {
			best, a.Name, a.Forbidden = steps, name, forbidden
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
