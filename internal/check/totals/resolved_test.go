package totals

import (
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// giveUp adds a transaction of a new client that may have been applied but was not.
func (w *world) giveUp(client uint64) {
	w.Txns = append(w.Txns, history.Transaction{
		ID: history.NewID(1, client, 1), Kind: kindTransfer, Outcome: history.Unknown, Attempts: 1, Due: 5, Sent: 5, Try: 5, End: 900,
		Ops: []history.Op{{Object: 0, Write: true, Amount: -1}, {Object: 1, Write: true, Amount: 1}},
	})
}

// TestResolvedByTheLedger checks that a proof and an examination count the unknown transactions in the ledger
// equally, and that nothing is counted without an end state.
func TestResolvedByTheLedger(t *testing.T) {
	some := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 23))
		w := parallel(rng, 3+rng.IntN(20), 1+rng.IntN(6), 20+rng.IntN(80), false)
		for c := range rng.Uint64N(3) {
			w.giveUp(20 + c)
		}
		want := check.Resolved{By: "ledger"}
		for i := range w.Txns {
			if tx := &w.Txns[i]; tx.Outcome == history.Unknown {
				want.Unknown++
				for _, row := range w.LedgerRows {
					if row.Transaction == tx.ID && row.Mark != history.Tombstone {
						want.Applied++
						break
					}
				}
			}
		}
		if want.Unknown == 0 {
			want = check.Resolved{}
		}
		var proved, examined, blind check.Resolved
		in := w.input(isolation.StrictSerializable)
		in.Audited = nil
		in.Resolved = &proved
		quick, _, err := prove(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		in.Resolved = &examined
		if _, err := examine(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		in.End, in.Resolved = nil, &blind
		if _, err := examine(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if examined != want || quick != nil && proved != want || blind != (check.Resolved{}) {
			t.Fatalf("seed %d: proved %+v, examined %+v, without an end state %+v; want %+v", seed, proved, examined, blind, want)
		}
		if quick != nil && want.Applied > 0 && want.Applied < want.Unknown {
			some++
		}
	}
	if some < 20 {
		t.Errorf("only %d proofs had transactions in doubt of both sorts", some)
	}
}
