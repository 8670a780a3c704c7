package sessions

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/isolation"
)

// serialHistory returns a history that ran in one order across all sessions. It satisfies every level.
func serialHistory(r *rand.Rand, count int) small {
	s := small{sessions: make([][][]Op, 1+r.IntN(3))}
	keys := 1 + r.IntN(3)
	now := make([]int64, keys)
	next := int64(0)
	for range count {
		at := r.IntN(len(s.sessions))
		var tx []Op
		for key := range keys {
			if r.IntN(3) == 0 {
				continue
			}
			tx = append(tx, Op{Key: int64(key), Value: now[key]})
			if r.IntN(2) == 0 {
				next++
				now[key] = next
				tx = append(tx, Op{Key: int64(key), Value: next, Write: true})
			}
		}
		if len(tx) > 0 {
			s.sessions[at] = append(s.sessions[at], tx)
		}
	}
	return s
}

func (s small) clone() small {
	c := small{aborted: slices.Clone(s.aborted)}
	for _, session := range s.sessions {
		var list [][]Op
		for _, tx := range session {
			list = append(list, slices.Clone(tx))
		}
		c.sessions = append(c.sessions, list)
	}
	return c
}

// mutations returns all histories that differ from s in one change. A read returns another written value, the
// initial value, or a value that was never written. Two transactions of a session are swapped, one moves to
// another session, or one is removed.
func (s small) mutations() (list []small, what []string) {
	values := map[int64][]int64{}
	for _, session := range s.sessions {
		for _, op := range slices.Concat(session...) {
			if op.Write {
				values[op.Key] = append(values[op.Key], op.Value)
			}
		}
	}
	add := func(change func(c *small), format string, args ...any) {
		c := s.clone()
		change(&c)
		if len(slices.Concat(c.sessions...)) == 0 { // an empty history is not a history
			return
		}
		list, what = append(list, c), append(what, fmt.Sprintf(format, args...))
	}
	for i, session := range s.sessions {
		for j, tx := range session {
			for k, op := range tx {
				if op.Write {
					continue
				}
				for _, value := range append([]int64{0, 1 << 20}, values[op.Key]...) {
					if value != op.Value {
						add(func(c *small) { c.sessions[i][j][k].Value = value }, "read %d of transaction %d of session %d is of %d", k, j, i, value)
					}
				}
			}
			if j > 0 {
				add(func(c *small) {
					c.sessions[i][j-1], c.sessions[i][j] = c.sessions[i][j], c.sessions[i][j-1]
				}, "transaction %d of session %d comes one earlier", j, i)
			}
			add(func(c *small) {
				c.sessions[i] = slices.Delete(c.sessions[i], j, j+1)
				for _, op := range tx {
					if op.Write {
						c.aborted = append(c.aborted, op)
					}
				}
			}, "transaction %d of session %d was aborted", j, i)
			for other := range s.sessions {
				if other != i {
					add(func(c *small) {
						c.sessions[i] = slices.Delete(c.sessions[i], j, j+1)
						c.sessions[other] = append(c.sessions[other], tx)
					}, "transaction %d of session %d is the last of session %d", j, i, other)
				}
			}
		}
	}
	return list, what
}

// TestEverySingleChangeIsJudged checks every single change of a valid history against the definitions of the
// weak levels. By an exhaustive search, no change that breaks serializability may be called serializable.
func TestEverySingleChangeIsJudged(t *testing.T) {
	rounds := uint64(120)
	if testing.Short() {
		rounds = 15
	}
	broken, changed := 0, 0
	for seed := range rounds {
		s := serialHistory(rand.New(rand.NewPCG(seed, 3)), 5)
		for name, r := range decided(t, s.history(), isolation.Unknown) {
			if r.Status != check.Valid {
				t.Fatalf("seed %d: %s is %v: %s\n%s", seed, name, r.Status, said(r), s)
			}
		}
		list, what := s.mutations()
		for i, c := range list {
			results, o := decided(t, c.history(), isolation.Unknown), newOracle(c)
			changed++
			for _, l := range []isolation.Level{isolation.ReadCommitted, isolation.ReadAtomic, isolation.Causal} {
				want := map[bool]check.Status{true: check.Valid, false: check.Invalid}[o.holds(l)]
				if got := results[l.String()]; got.Status != want {
					t.Fatalf("seed %d, %s: %v is %v (%s), and the definition says %v:\n%s", seed, what[i], l, got.Status, said(got), want, c)
				}
			}
			got := results[isolation.Serializable.String()]
			// Without sessions, each transaction has its own session.
			var alone small
			alone.aborted = c.aborted
			for _, session := range c.sessions {
				for _, tx := range session {
					alone.sessions = append(alone.sessions, [][]Op{tx})
				}
			}
			want := newOracle(alone).holds(isolation.StrongSessionSerializable)
			if got.Status != map[bool]check.Status{true: check.Valid, false: check.Invalid}[want] {
				t.Fatalf("seed %d, %s: serializable is %v (%s), and some order is a serial one: %v\n%s", seed, what[i], got.Status, said(got), want, c)
			}
			if !want {
				broken++
			}
		}
	}
	if broken < changed/4 || broken == changed {
		t.Errorf("%d of %d changed histories were broken", broken, changed)
	}
}
