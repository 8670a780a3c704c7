package lists

import (
	"context"
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/isolation"
)

// TestWindows: any run of transactions of a valid history, without those before and after
// it, is never invalid.
func TestWindows(t *testing.T) {
	rounds := uint64(20_000)
	if testing.Short() {
		rounds = 1500
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 17))
		list := serialHistory(rng, seed%2 == 1, false, 0)
		if seed%10 == 0 {
			list = execute(rng, isolation.Serializable, 40)
		}
		from := rng.IntN(len(list))
		to := from + 1 + rng.IntN(len(list)-from)
		report, err := Check(context.Background(), Input{Transactions: each(list[from:to]), RealTime: true, Expect: isolation.StrictSerializable})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report.Results {
			if r.Status == check.Invalid {
				t.Fatalf("seed %d: transactions %d to %d of %+v: %s: %s", seed, from, to, list, r.Name, r.Detail)
			}
		}
	}
}
