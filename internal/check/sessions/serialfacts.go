package sessions

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// lostUpdate returns the finding for two transactions that read and overwrote one version.
func (s *serial) lostUpdate() check.Finding {
	op := s.readAt(s.second[0])
	one, other := s.reader(s.second[0]), s.reader(s.second[1])
	f := check.Finding{Anomaly: "lost update (P4)", Forbidden: isolation.SnapshotIsolation}
	lost := fact.SessionLostUpdate{
		First: s.member(one), Second: s.member(other), Object: s.on(op), Value: s.value(op.Value),
	}
	f.Add(lost, s.on(op), s.id(one), s.id(other))
	f.Cycle = []check.Edge{s.overwriteEdge(one, other, s.second[0]), s.overwriteEdge(other, one, s.second[1])}
	return f
}

// overwriteEdge returns the edge from the reader of a version to the next writer of its key.
func (s *serial) overwriteEdge(from, to, read uint32) check.Edge {
	op := s.readAt(read)
	last, _ := s.wroteLast(to, s.readKey[read])
	value, made := s.value(op.Value), s.value(last)
	return check.Edge{
		From: s.id(from), To: s.id(to), Kind: check.ReadWrite, Object: s.object(op), FromVersion: value, ToVersion: made,
		Why: fact.SessionOverwrote{Reader: s.member(from), Writer: s.member(to), Object: s.on(op), Value: value, Made: made},
	}
}

// unwritten returns the finding for a read of an initial value by a transaction that follows a writer of the
// key.
func (s *serial) unwritten(edge int) check.Finding {
	steps := s.known.ring(edge)
	f := s.ofCycle(steps, 1)
	o := graph.Plain
	if s.o != graph.Plain && !s.saw(s.reader(s.known.read[edge]), s.known.from[edge]) {
		o = graph.Sessions // it follows the writer by the order of sessions
	}
	f.Anomaly, f.Forbidden = graph.GSingle.Name(o, true), graph.TestSnapshot.Level(o)
	f.Instances = []fact.Fact{s.missed(steps[0])}
	return f
}

// saw reports whether t read a value from a transaction.
func (r *resolved) saw(t, from uint32) bool {
	return slices.Contains(r.readFrom[r.readRow[t]:r.readRow[t+1]], from)
}

// edge returns a dependency with its reason.
func (s *serial) edge(one graph.Step) check.Edge {
	e := s.resolved.edge(one)
	if one.Kind == graph.Rw {
		if read, ok := s.overwrites(one.From, one.To); ok {
			return s.overwriteEdge(one.From, one.To, read)
		}
	}
	if e.Why != nil {
		return e
	}
	return s.writeEdge(e, one)
}

// overwrites returns a read of one transaction whose version another transaction later replaced.
func (s *serial) overwrites(from, to uint32) (read uint32, ok bool) {
	for i := s.readRow[from]; i < s.readRow[from+1]; i++ {
		if next := s.next[s.read[i]]; next != 0 && s.maker[next] == to {
			return i, true
		}
		if s.wrote(to, s.readKey[i]) && s.readFrom[i] != to {
			read, ok = i, true
		}
	}
	return read, ok
}

// follows returns the key of which one transaction made the version after the other's.
func (s *serial) follows(one graph.Step) (key uint32, ok bool) {
	for i := s.writeRow[one.From]; i < s.writeRow[one.From+1]; i++ {
		if next := s.next[s.keys+int(i)]; next != 0 && s.maker[next] == one.To {
			return s.writeKey[i], true
		}
	}
	return 0, false
}

// shared returns a key that both transactions wrote.
func (s *serial) shared(one, other uint32) (key uint32, ok bool) {
	for _, key := range s.writeKey[s.writeRow[one]:s.writeRow[one+1]] {
		if s.wrote(other, key) {
			return key, true
		}
	}
	return 0, false
}

// writeEdge completes an edge between writers of one key.
func (s *serial) writeEdge(e check.Edge, one graph.Step) check.Edge {
	e.Kind, e.Why = check.WriteWrite, fact.SessionBefore{First: s.member(one.From), Second: s.member(one.To)}
	key, follows := s.follows(one)
	if !follows {
		for i, from := range s.known.from {
			if from == one.From && s.known.to[i] == one.To {
				e.Object = s.object(s.readAt(s.known.read[i]))
				e.Why = s.missed(s.known.inferred(i))
				return e
			}
		}
		key, follows = s.shared(one.From, one.To)
	}
	if !follows {
		return e
	}
	old, _ := s.wroteLast(one.From, key)
	made, _ := s.wroteLast(one.To, key)
	e.Object, e.FromVersion, e.ToVersion = s.objectOf(one.From, key), s.value(old), s.value(made)
	e.Why = fact.SessionReplaced{
		First: s.member(one.From), Second: s.member(one.To),
		Object: fact.Object(e.Object), Value: e.FromVersion, Made: e.ToVersion,
	}
	return e
}

// objectOf returns the name in sentences of a key that t wrote.
func (s *serial) objectOf(t, key uint32) string {
	from, to := s.opsOf(t)
	for i := from; i < to; i++ {
		if s.ids[i] == key {
			return s.object(&s.Ops[i])
		}
	}
	return ""
}
