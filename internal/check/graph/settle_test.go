package graph

import (
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
)

// runsOf draws groups of runs over the transactions of a graph. The edges within runs of several transactions
// are added to more.
func runsOf(rng *rand.Rand, transactions int) (groups [][]Run, more []Step) {
	for range 1 + rng.IntN(2) {
		order := rng.Perm(transactions)
		var group []Run
		for len(order) > 0 && len(group) < 4 {
			r := Run{First: uint32(order[0]), Last: uint32(order[0])}
			if order = order[1:]; len(order) > 0 && rng.IntN(4) == 0 {
				r.Last = uint32(order[0])
				more = append(more, Step{r.First, r.Last, Wr})
				order = order[1:]
			}
			for range rng.IntN(3) {
				if t := uint32(rng.IntN(transactions)); t != r.Last && t != r.First {
					r.Readers = append(r.Readers, t)
					more = append(more, Step{r.Last, t, Wr})
				}
			}
			group = append(group, r)
		}
		groups = append(groups, group)
	}
	return groups, more
}

// settles tries all orders of all groups.
func (s small) settles(groups [][]Run, snapshot, timed bool) bool {
	t := TestSerializable
	if snapshot {
		t = TestSnapshot
	}
	all := make([]uint32, s.transactions)
	for i := range all {
		all[i] = uint32(i)
	}
	var try func(edges []Step, at int) bool
	try = func(edges []Step, at int) bool {
		if at == len(groups) {
			return !small{transactions: s.transactions, edges: edges, times: s.times}.fails(t, timed, all)
		}
		group := groups[at]
		var place func(done []bool, last int, edges []Step) bool
		place = func(done []bool, last int, edges []Step) bool {
			whole := true
			for i := range group {
				if done[i] {
					continue
				}
				whole, done[i] = false, true
				more := edges
				if last >= 0 {
					more = append(append([]Step{}, edges...), choice(&group[last], &group[i])...)
				}
				if place(done, i, more) {
					return true
				}
				done[i] = false
			}
			return whole && try(edges, at+1)
		}
		return place(make([]bool, len(group)), -1, edges)
	}
	return try(s.edges, 0)
}

// TestSettleTriesAllOrders compares Settle with an exhaustive search. It covers three cases: all pairs in the
// first search, one pair after another, and hints.
func TestSettleTriesAllOrders(t *testing.T) {
	counts := map[State]int{}
	rounds := uint64(2000)
	if testing.Short() {
		rounds = 400
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 7))
		s := small{transactions: 2 + rng.IntN(5)}
		groups, more := runsOf(rng, s.transactions)
		for range rng.IntN(2) {
			s.edges = append(s.edges, Step{uint32(rng.IntN(s.transactions)), uint32(rng.IntN(s.transactions)), []uint8{Ww, Wr, Rw, Rw}[rng.IntN(4)]})
		}
		s.edges = append(s.edges, more...)
		hints := make([]int64, s.transactions)
		times := Times{Begin: make([]int64, s.transactions), End: make([]int64, s.transactions)}
		for i := range hints {
			times.Begin[i] = rng.Int64N(30)
			hints[i] = times.Begin[i] + 5 + rng.Int64N(15)
			times.End[i] = hints[i]
		}
		o := []Order{Plain, Real}[rng.IntN(2)]
		s.times = []Times{times}
		var edges []Step
		for _, e := range s.edges {
			if e.From != e.To {
				edges = append(edges, e)
			}
		}
		s.edges = edges
		g := New(s.transactions, 0, s.times, &check.Watch{Ctx: t.Context()}, func(b *Builder) {
			for _, e := range s.edges {
				b.Add(e.From, e.To, e.Kind)
			}
		})
		snapshot := rng.IntN(2) == 0
		if rng.IntN(2) == 0 {
			hints = nil
		}
		want := Fails
		if s.settles(groups, snapshot, o == Real) {
			want = Holds
		}
		counts[want]++
		for i, eager := range []int{0, mostEager, 0, mostEager} {
			got := newSettling(g, groups, snapshot, o, hints)
			if got.eager = eager; i >= 2 {
				got.few = 0
			}
			found := got.settle()
			if found.State != want {
				t.Fatalf("seed %d, eager %d: the state is %v and not %v: %+v, snapshot %v, %v", seed, eager, found.State, want, groups, snapshot, o)
			}
			if found.State == Fails && len(found.Core) > 0 && (len(found.First) == 0 || len(found.Second) == 0) {
				t.Fatalf("seed %d: a core has no cycles: %+v", seed, found)
			}
		}
	}
	if counts[Holds] < int(rounds)/5 || counts[Fails] < int(rounds)/5 {
		t.Errorf("the states are %v", counts)
	}
	t.Log(counts)
}
