package totals

import (
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// TestRefusedTransferOverwritesNothing checks that a rejected transfer has no writes, also on accounts with
// forked versions.
func TestRefusedTransferOverwritesNothing(t *testing.T) {
	for _, outcome := range []history.Outcome{history.Rejected, history.Aborted, history.Unknown} {
		w := newWorld(8)
		zero, one := w.ObjectRows[0], w.ObjectRows[1]
		refused := w.begin(kindTransfer)
		refused.Outcome = outcome
		for _, a := range []history.Object{zero, one} {
			refused.Ops = append(refused.Ops, history.Op{Object: a.N, Write: true, Amount: -2 * opening, Observed: true, Value: a.Value})
		}
		id := refused.ID
		// One transaction reads the version that the rejected one would have written, and overwrites the
		// version that it read.
		joint := w.begin(kindJoint)
		w.see(joint, 0)
		w.leg(joint, 1, -5)
		w.leg(joint, 4, 5)
		// Two transfers overwrite the same version of account 0.
		w.transfer(0, 2, 5)
		after := w.ObjectRows[0]
		w.ObjectRows[0] = zero
		w.transfer(0, 3, 7)
		w.ObjectRows[0].Version = after.Version
		r := checktest.ByName(checked(w.input(isolation.ReadCommitted)))[check.Serializable]
		if slices.Contains(r.Witness, id) {
			t.Errorf("%v: it wrote nothing and is a witness: %s", outcome, r.Detail)
		}
		if !hasKind(r.Result, fact.LostUpdate{}) {
			t.Errorf("%v: the lost update is not reported: %s", outcome, r.Detail)
		}
	}
}

// TestRejectedReadsMustSatisfyTheClaim checks that the reads of a rejected transaction must satisfy the isolation
// level, like the reads of a committed one.
func TestRejectedReadsMustSatisfyTheClaim(t *testing.T) {
	w := newWorld(8)
	before := w.ObjectRows[1]
	w.transfer(0, 1, 10)
	tx := w.begin(kindJoint)
	tx.Outcome, tx.Reason = history.Rejected, noFunds
	w.see(tx, 0) // it saw the transfer on only one account
	tx.Ops = append(tx.Ops, history.Op{Object: 1, Observed: true, Version: before.Version, Value: before.Value, Writer: before.Writer})
	refused := tx.ID
	r := checktest.ByName(checked(w.input(isolation.Serializable)))[check.Serializable]
	if r.Status != check.Invalid || !r.Required || !slices.Contains(r.Witness, refused) {
		t.Errorf("serializable is %v, required %v, witnesses %v: %s", r.Status, r.Required, r.Witness, r.Detail)
	}
}
