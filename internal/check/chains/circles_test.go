package chains

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// TestManyCirclesKeepWhatIsShown compares the kept circles with all circles, when there are more than fit.
func TestManyCirclesKeepWhatIsShown(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	var kept circles
	var sizes [graph.Tests][]int
	audits, members := map[history.ID]bool{}, 0
	for n := range uint64(20_000) {
		test := graph.Test(rng.IntN(int(graph.Tests)))
		size := 2 + rng.IntN(100)
		sizes[test] = append(sizes[test], size)
		var list []*transaction
		for i := range size {
			list = append(list, &transaction{id: history.NewID(1, n, uint64(i+1))})
		}
		if rng.IntN(200) == 0 {
			list[0].flags |= background
			audits[list[0].id] = true
		}
		members += size
		kept.add(list, test)
		if kept.count > mostCyclic {
			t.Fatalf("%d members are kept", kept.count)
		}
	}
	if members < 3*mostCyclic {
		t.Fatalf("%d members need no room", members)
	}
	var left [graph.Tests][]int
	for _, c := range kept.list {
		left[c.test] = append(left[c.test], len(c.ids))
		delete(audits, c.ids[0])
	}
	if len(audits) > 0 {
		t.Errorf("%d circles with an audit were dropped", len(audits))
	}
	for test := range graph.Tests {
		slices.Sort(sizes[test])
		slices.Sort(left[test])
		if got, want := left[test][:graph.MostPicked+1], sizes[test][:graph.MostPicked+1]; !slices.Equal(got, want) {
			t.Errorf("test %d: the sizes %v are kept in place of %v", test, got, want)
		}
	}
	if got := len(kept.ids()); got != kept.count {
		t.Errorf("%d ids of %d", got, kept.count)
	}
}
