package lists

import (
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// TestClockErrorsAgainstDefinition compares strict serializability with its definition when two clocks have
// bounded errors. It may hold only if it holds for every pair of errors, and be broken only if it is broken
// for every pair. Sessions have one clock each and are exact.
func TestClockErrorsAgainstDefinition(t *testing.T) {
	counts := map[graph.State]int{}
	missed := 0
	for seed := range checktest.Rounds(1500, 20_000) {
		rng := rand.New(rand.NewPCG(seed, 17))
		list := serialHistory(rng, false, false, rng.IntN(3))
		if seed%2 == 0 {
			list = weakHistory(rng, false, false)
		}
		errors := []int64{rng.Int64N(5), rng.Int64N(5)}
		for i := range list {
			list[i].Clock = uint32(list[i].Client % 2)
		}
		c := newChecker(t.Context(), Input{Transactions: each(list), Complete: true, RealTime: true, Errors: errors, Expect: isolation.StrictSerializable})
		if _, err := c.check(); err != nil {
			t.Fatal(err)
		}
		report := c.report()
		all, none := true, true
		for by := -errors[0] - errors[1]; by <= errors[0]+errors[1]; by++ { // relative error
			moved := append([]Transaction(nil), list...)
			for i := range moved {
				if moved[i].Clock == 1 {
					moved[i].Begin, moved[i].End = moved[i].Begin+by, moved[i].End+by
				}
			}
			ok := (oracle{moved}).some(graph.Real, serializable)
			all, none = all && ok, none && !ok
		}
		state := c.keeps(isolation.StrictSerializable)
		switch counts[state]++; {
		case state == graph.Holds && !all:
			t.Fatalf("seed %d, errors %v: it is said to hold, and does not for every error: %+v", seed, errors, list)
		case state == graph.Fails && !none:
			t.Fatalf("seed %d, errors %v: it is said to be broken, and is not for every error: %+v", seed, errors, list)
		case all && state == graph.Open && c.why == nil && c.doubted():
			missed++
		}
		for _, r := range report.Results {
			if r.Name == check.Strict && r.Status != check.NotApplicable && (r.Status == check.Valid) != (state == graph.Holds) {
				t.Fatalf("seed %d: strict is %v and the level %v: %s", seed, r.Status, state, detail(&r))
			}
		}
	}
	t.Logf("%v, and %d that hold for every error were open", counts, missed)
	if counts[graph.Holds] < 100 || counts[graph.Fails] < 100 || counts[graph.Open] < 20 || missed > 0 {
		t.Errorf("too few of one kind, or too many open: %v, %d", counts, missed)
	}
}
