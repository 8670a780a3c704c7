package totals

import (
	"math"
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// TestClockErrorsAgainstDefinition compares strict with its definition when two workers have bounded clock
// errors. It must be valid exactly if some order explains all reads for every pair of errors. It may be
// invalid only if no order does for any pair. Within a worker, times are exact.
func TestClockErrorsAgainstDefinition(t *testing.T) {
	counts := map[string]int{}
	for seed := range checktest.Rounds(3000, 30000) {
		rng := rand.New(rand.NewPCG(seed, 31))
		w := weak(rng, 3+rng.IntN(3), 2+rng.IntN(5))
		for i := range w.Txns { // times of the size of the errors
			tx := &w.Txns[i]
			tx.Try, tx.End = tx.Try/100, tx.End/100+rng.Int64N(3)
			tx.Due, tx.Sent = tx.Try, tx.Try
		}
		errors := [2]int64{rng.Int64N(15), rng.Int64N(15)}
		runs := split(w, 2, rng, true)
		for i, r := range runs {
			clock, ok := check.ClockOf(history.Header{Keys: r.Keys})
			if !ok {
				t.Fatal("a run has no clock")
			}
			clock.From, clock.To = clock.From-errors[i], clock.To+errors[i]
			r.Keys[check.KeyClock] = clock.String()
		}
		in := w.inputOf(isolation.StrictSerializable, runs)
		got := checktest.ByName(checked(in))[check.Strict].Status
		all, none := true, true
		for by := -errors[0] - errors[1]; by <= errors[0]+errors[1]; by++ { // relative error
			ok := explained(w, func(ended, began *history.Transaction) bool {
				end, try := ended.End, began.Try
				if ended.ID.Run() == 2 {
					end += by
				}
				if began.ID.Run() == 2 {
					try += by
				}
				return end < try
			})
			all, none = all && ok, none && !ok
		}
		switch {
		case all != (got == check.Valid):
			t.Fatalf("seed %d, errors %v: strict is %v, and an order is there for every error: %v", seed, errors, got, all)
		case got == check.Invalid && !none:
			t.Fatalf("seed %d, errors %v: strict is invalid, and for some errors an order is there", seed, errors)
		}
		counts[got.String()]++
		if none && got == check.Unknown {
			counts["violated in different ways"]++
		}
	}
	for _, status := range []string{"valid", "invalid", "unknown"} {
		if counts[status] < 100 {
			t.Errorf("too few histories are %s: %v", status, counts)
		}
	}
	t.Logf("%v", counts)
}

// TestPathClockErrors compares the search for a path with all permutations, for every pair of errors of two
// clocks.
func TestPathClockErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	counts := map[string]int{}
	for range checktest.Rounds(4000, 20_000) {
		list, opening := randomEdges(rng)
		errors := [2]int64{rng.Int64N(8), rng.Int64N(8)}
		for i := range list {
			list[i].source = uint16(rng.IntN(2))
			list[i].error = errors[list[i].source]
		}
		sure := search{list: list, at: opening}
		perhaps := search{list: list, at: opening, perhaps: true}
		broken, valid := sure.run() == searchFailed, perhaps.run() == searchFound
		all, none := true, true
		for by := -errors[0] - errors[1]; by <= errors[0]+errors[1]; by++ {
			moved := append([]transition(nil), list...)
			for i := range moved {
				later := int64(1000) // so that no time is negative
				if moved[i].source == 1 {
					later += by
				}
				if moved[i].begin += later; moved[i].end != math.MaxInt64 {
					moved[i].end += later
				}
			}
			_, timely := allOrders(moved, opening)
			all, none = all && timely, none && !timely
		}
		if broken && !none || valid && !all {
			t.Fatalf("broken %v, valid %v, and an order is there for every error: %v, for none: %v\n%+v from %d, errors %v", broken, valid, all, none, list, opening, errors)
		}
		switch {
		case broken:
			counts["broken"]++
		case valid:
			counts["valid"]++
		default:
			counts["open"]++
		}
	}
	t.Logf("%v", counts)
	if counts["broken"] < 100 || counts["valid"] < 100 || counts["open"] < 50 {
		t.Errorf("too few of one kind: %v", counts)
	}
}
