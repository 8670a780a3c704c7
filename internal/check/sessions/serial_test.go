package sessions

import (
	"maps"
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/isolation"
)

// executor decides whether a store could have produced a history. It runs the transactions in every order of
// their beginnings and commits; each reads the state at its beginning.
type executor struct {
	*oracle
	serial   bool                // one transaction at a time; otherwise snapshots with first-committer-wins
	sessions bool                // each session in its order
	precedes func(a, b int) bool // other transactions that must have ended before; nil: none

	begun, done []bool
	snapshot    []map[int64]int64
	seen        []int // by transaction that has begun: number of commits before it
	committed   []int // in commit order
	state       map[int64]int64
}

func executable(s small, serial, sessions bool) bool {
	o := newOracle(s)
	if !o.sound {
		return false
	}
	e := &executor{oracle: o, serial: serial, sessions: sessions, state: map[int64]int64{}}
	e.begun, e.done = make([]bool, len(o.txs)), make([]bool, len(o.txs))
	e.snapshot, e.seen = make([]map[int64]int64, len(o.txs)), make([]int, len(o.txs))
	return e.try()
}

// try tries every possible next event.
func (e *executor) try() bool {
	if len(e.committed) == len(e.txs) {
		return true
	}
	for t := range e.txs {
		switch {
		case e.done[t]:
		case e.begun[t]:
			if e.commit(t) {
				return true
			}
		case e.mayBegin(t):
			e.begun[t], e.snapshot[t], e.seen[t] = true, maps.Clone(e.state), len(e.committed)
			if e.reads(t) && e.try() {
				return true
			}
			e.begun[t] = false
		}
	}
	return false
}

func (e *executor) mayBegin(t int) bool {
	for u := range e.txs {
		if e.serial && e.begun[u] && !e.done[u] || e.sessions && u < t && e.session[u] == e.session[t] && !e.done[u] {
			return false
		}
		if e.precedes != nil && !e.done[u] && e.precedes(u, t) {
			return false
		}
	}
	return true
}

// reads reports whether t read the values of its snapshot.
func (e *executor) reads(t int) bool {
	own := map[int64]int64{}
	for _, op := range e.txs[t] {
		if op.Write {
			own[op.Key] = op.Value
			continue
		}
		if value, ok := own[op.Key]; ok && value == op.Value {
			continue
		}
		if e.snapshot[t][op.Key] != op.Value {
			return false
		}
	}
	return true
}

func (e *executor) commit(t int) bool {
	for _, u := range e.committed[e.seen[t]:] {
		for key := range e.writes[t] {
			if e.writes[u][key] {
				return false
			}
		}
	}
	before := maps.Clone(e.state)
	for _, op := range e.txs[t] {
		if op.Write {
			e.state[op.Key] = op.Value
		}
	}
	e.done[t], e.committed = true, append(e.committed, t)
	if e.try() {
		return true
	}
	e.done[t], e.committed, e.state = false, e.committed[:len(e.committed)-1], before
	return false
}

// modifying returns a history in which each write follows a read of the same key, so that the order of all
// versions is known.
func modifying(r *rand.Rand, most int) small {
	s := random(r, most)
	for _, session := range s.sessions {
		for i, tx := range session {
			var all []Op
			read := map[int64]bool{}
			for _, op := range tx {
				if op.Write && !read[op.Key] {
					all = append(all, Op{Key: op.Key})
				}
				read[op.Key] = true
				all = append(all, op)
			}
			session[i] = all
		}
	}
	values := map[int64][]int64{}
	for _, session := range s.sessions {
		for _, tx := range session {
			for _, op := range tx {
				if op.Write {
					values[op.Key] = append(values[op.Key], op.Value)
				}
			}
		}
	}
	for _, session := range s.sessions {
		for _, tx := range session {
			for i := range tx {
				if op := &tx[i]; !op.Write && op.Value == 0 && len(values[op.Key]) > 0 && r.IntN(3) > 0 {
					op.Value = values[op.Key][r.IntN(len(values[op.Key]))]
				}
			}
		}
	}
	return s
}

// TestStrongLevelsAgainstExecutions checks that snapshot isolation and serializability hold exactly if a
// store could have produced the history. For few transactions, nothing may be undecided.
func TestStrongLevelsAgainstExecutions(t *testing.T) {
	counts := map[string]map[check.Status]int{}
	for seed := range uint64(6000) {
		r := rand.New(rand.NewPCG(seed, 4))
		whole := seed%2 == 0
		s := random(r, 4)
		if whole {
			s = modifying(r, 4)
		}
		results := decided(t, s.history(), isolation.Unknown)
		for _, l := range []struct {
			level            isolation.Level
			serial, sessions bool
		}{
			{isolation.SnapshotIsolation, false, false}, {isolation.Serializable, true, false},
			{isolation.StrongSessionSnapshotIsolation, false, true}, {isolation.StrongSessionSerializable, true, true},
		} {
			got, name := results[l.level.String()], l.level.String()
			if counts[name] == nil {
				counts[name] = map[check.Status]int{}
			}
			counts[name][got.Status]++
			if got.Status == check.Unknown {
				t.Fatalf("seed %d: %v is unknown: %s\n%s", seed, l.level, said(got), s)
			}
			if want := executable(s, l.serial, l.sessions); want != (got.Status == check.Valid) {
				t.Fatalf("seed %d: %v is %v (%s), and a store could have done it is %v:\n%s", seed, l.level, got.Status, said(got), want, s)
			}
			if one := decided(t, s.history(), l.level)[name]; one.Status != got.Status {
				t.Fatalf("seed %d: %v alone is %v, and among all %v:\n%s", seed, l.level, one.Status, got.Status, s)
			}
		}
	}
	t.Log(counts)
}
