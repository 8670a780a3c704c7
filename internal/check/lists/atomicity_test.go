package lists

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check/checktest"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// repeatable is PL-2.99 for histories without deletes: the transactions run one after another in this order,
// except that a range may miss lists that the transaction did not make itself.
func repeatable(order []*Transaction) bool {
	s := store{}
	for _, t := range order {
		for i := range t.Ops {
			op := &t.Ops[i]
			if op.Kind != Range || !op.Known {
				if !s.agrees(op) {
					return false
				}
				continue
			}
			for _, r := range op.Rows {
				if !slices.Equal(s[r.Key], r.List) {
					return false
				}
			}
			if slices.ContainsFunc(t.Ops[:i], func(x Op) bool {
				return x.Kind == Append && x.Key >= op.Key && x.Key <= op.High && !slices.ContainsFunc(op.Rows, func(r Row) bool { return r.Key == x.Key })
			}) {
				return false
			}
		}
	}
	return true
}

// atomic reports whether no transaction saw another one and missed a write of it in a later read. If all is set, no
// read may miss a write. Only reads of single lists count.
func atomic(list []Transaction, all bool) bool {
	for i := range list {
		t := &list[i]
		for j, seen := range t.Ops {
			if t.Outcome != history.Committed || seen.Kind != Read || len(seen.List) == 0 {
				continue
			}
			for k := range list {
				w := &list[k]
				last := Op{Kind: Append, Key: seen.Key, Element: seen.List[len(seen.List)-1]}
				if k == i || !slices.ContainsFunc(w.Ops, func(x Op) bool { return x.Kind == Append && x.Key == last.Key && x.Element == last.Element }) {
					continue
				}
				for n, read := range t.Ops {
					if read.Kind == Read && (n > j || all) && slices.ContainsFunc(w.Ops, func(x Op) bool {
						return x.Kind == Append && x.Key == read.Key && !slices.Contains(read.List, x.Element)
					}) {
						return false
					}
				}
			}
		}
	}
	return true
}

// TestAtomicityLevelsAgainstDefinitions compares the levels between read committed and snapshot isolation
// with their definitions.
func TestAtomicityLevelsAgainstDefinitions(t *testing.T) {
	rounds := checktest.Rounds(1500, 30_000)
	broken := 0
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 17))
		list := weakHistory(rng, seed%2 == 1, false)
		if seed%2 == 0 {
			list = slices.DeleteFunc(list, func(x Transaction) bool { return x.Outcome == history.Unknown })
		}
		c, _ := decided(t, list)
		if want := (oracle{list}).some(graph.Plain, repeatable); (c.keeps(isolation.RepeatableRead) == graph.Holds) != want {
			t.Fatalf("seed %d: repeatable read is said to be %v, and the definition says %v: %+v", seed, c.keeps(isolation.RepeatableRead), want, list)
		}
		if seed%2 == 1 || c.keeps(isolation.ReadCommitted) != graph.Holds {
			continue
		}
		if got, want := c.found[vanished].count == 0, atomic(list, false); got != want {
			t.Fatalf("seed %d: monotonic atomic view is said to hold: %v, and the definition says %v: %+v", seed, got, want, list)
		}
		want := atomic(list, true)
		if got := c.found[vanished].count+c.found[fractured].count == 0; got != want {
			t.Fatalf("seed %d: read atomic is said to hold: %v, and the definition says %v: %+v", seed, got, want, list)
		}
		if !want {
			broken++
		}
	}
	if broken < int(rounds/100) {
		t.Errorf("only %d of %d histories broke read atomic", broken, rounds)
	}
}
