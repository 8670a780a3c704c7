package logs

import (
	"context"
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// TestResolvedByTheLog checks that unknown appends are counted by their entries in the log, and not counted
// without it.
func TestResolvedByTheLog(t *testing.T) {
	for seed := range uint64(20) {
		d := appended(rand.New(rand.NewPCG(seed, 7)), 3, 4, 2, 60)
		want := check.Resolved{By: "log"}
		for _, tx := range d.txns {
			if tx.Outcome != history.Unknown {
				continue
			}
			want.Unknown++
			for _, row := range d.legs {
				if row.Transaction == tx.ID {
					want.Applied++
					break
				}
			}
		}
		for _, endless := range []bool{false, true} {
			if d.endless = endless; endless {
				want = check.Resolved{}
			}
			var got check.Resolved
			in := d.input()
			in.Resolved = &got
			if _, err := Check(context.Background(), in); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("seed %d, without an end %v: %+v, want %+v", seed, endless, got, want)
			}
		}
	}
}
