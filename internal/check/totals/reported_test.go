package totals

import (
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// TestEveryWitnessIsHandedOver checks that every transaction named by an invalid check was passed to
// OnViolation for that check.
func TestEveryWitnessIsHandedOver(t *testing.T) {
	for _, tc := range violations {
		w := newWorld(8)
		tc.make(w)
		type key struct {
			check string
			id    history.ID
		}
		reported := map[key]bool{}
		in := w.input(isolation.StrictSerializable)
		in.Audited = []uint64{1}
		in.OnViolation = func(v check.Violation) {
			if v.Fact == nil {
				t.Errorf("%s: of %v of %s nothing is said", tc.name, v.Transaction, v.Check)
			}
			reported[key{v.Check, v.Transaction}] = true
		}
		for _, r := range checked(in) {
			name := r.Name
			if name == check.Strict && len(r.Anomalies) == 0 {
				name = check.Serializable // which it repeats
			}
			for _, id := range r.Witness {
				if r.Status == check.Invalid && !reported[key{name, id}] {
					t.Errorf("%s: %s names %v and has not handed it over: %s", tc.name, r.Name, id, r.Detail)
				}
			}
		}
	}
}

// TestNoViolationIsLeftOut checks that results name a few violations but OnViolation receives all.
func TestNoViolationIsLeftOut(t *testing.T) {
	const many = 5000
	w := newWorld(2*many + 2)
	for i := range uint64(many) {
		w.transfer(2*i, 2*i+1, 1)
	}
	w.inquiry(0, 1)
	for i := range w.ObjectRows {
		w.ObjectRows[i].Value -= 20000 // each is negative and disagrees with the ledger
	}
	for i := range uint64(many) { // each overwrites the version that another one made
		tx := w.begin(kindTransfer)
		tx.Ops = append(tx.Ops,
			history.Op{Object: 2 * i, Write: true, Amount: -2, Observed: true, Value: opening},
			history.Op{Object: 2*i + 1, Write: true, Amount: 2, Observed: true, Value: opening})
		for leg, op := range tx.Ops {
			w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: tx.ID, Number: uint32(leg), Object: op.Object, Amount: op.Amount, Version: 1})
		}
	}
	for range many { // reads of values that were never written
		tx := w.begin(kindInquiry)
		tx.Ops = append(tx.Ops, history.Op{Object: 2 * many, Observed: true, Version: 7, Value: 3, Writer: history.NewID(1, 5, 5)})
	}
	for range many { // acknowledged but missing
		tx := w.begin(kindTransfer)
		tx.Ops = append(tx.Ops, history.Op{Object: 1, Write: true, Amount: 3}, history.Op{Object: 2, Write: true, Amount: -3})
	}
	lines := map[[2]string]int{}
	in := w.input(isolation.Serializable)
	in.OnViolation = func(v check.Violation) { lines[[2]string{v.Check, v.Anomaly}]++ }
	checked(in)
	for _, want := range []struct {
		check, anomaly string
		least          int
	}{
		{check.NonNegative, "", 2 * many}, {check.Durable, "", many}, {check.Serializable, lostUpdateName, 4 * many}, {check.Serializable, nobodysRead, 2 * many}, {check.Ledger, "", 6 * many},
	} {
		if got := lines[[2]string{want.check, want.anomaly}]; got < want.least {
			t.Errorf("%s %s: %d were handed over, of at least %d", want.check, want.anomaly, got, want.least)
		}
	}
}

// TestGroupsWithoutACycle checks that the members of components without a reported cycle are passed on.
func TestGroupsWithoutACycle(t *testing.T) {
	const pairs = 100
	w := newWorld(4 * pairs)
	for i := range uint64(pairs) {
		skewPair(w, 4*i)
	}
	seen := map[history.ID]bool{}
	in := w.input(isolation.Serializable)
	in.OnViolation = func(v check.Violation) { seen[v.Transaction] = true }
	checked(in)
	for _, tx := range w.Txns {
		if !seen[tx.ID] {
			t.Fatalf("%v is in a cycle and was not handed over; %d were", tx.ID, len(seen))
		}
	}
}
