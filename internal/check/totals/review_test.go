package totals

import (
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// skewPair adds a write skew of two joint transfers over accounts of their own, starting at the given one.
func skewPair(w *world, first uint64) {
	w.begin(kindJoint)
	w.begin(kindJoint)
	t1, t2 := &w.Txns[len(w.Txns)-2], &w.Txns[len(w.Txns)-1]
	t1.End = t2.End
	w.see(t1, first+1)
	w.see(t2, first)
	w.leg(t1, first, -5)
	w.leg(t1, first+2, 5)
	w.leg(t2, first+1, -5)
	w.leg(t2, first+3, 5)
}

// TestSmallCyclesHideNoLargerOne checks that many tolerated cycles do not hide a larger forbidden one.
func TestSmallCyclesHideNoLargerOne(t *testing.T) {
	w := newWorld(4*100 + 8)
	for i := range uint64(100) {
		skewPair(w, 4*i)
	}
	const a, b, c = 400, 401, 402
	reader := w.inquiry(a)
	w.transfer(a, b, 1)
	w.transfer(b, c, 1)
	w.see(&w.Txns[reader], c) // it saw the second transfer without its dependency
	in := w.input(isolation.SnapshotIsolation)
	if results := checked(in); checktest.Verdict(results) != check.Invalid {
		t.Errorf("verdict %v, want invalid for a read skew: %s", checktest.Verdict(results), checktest.ByName(results)[check.Serializable].Detail)
	}
}

// TestForbiddenCycleInsideALargeComponent checks that a large tolerated component does not hide a forbidden
// cycle of two transactions in it.
func TestForbiddenCycleInsideALargeComponent(t *testing.T) {
	const length = 1000
	w := newWorld(2*length + 8)
	// Each transaction reads what the previous one wrote, and the last misses the first.
	for i := range uint64(length) {
		tx := w.begin(kindJoint)
		if i > 0 {
			w.see(tx, i-1)
		}
		if i == length-1 {
			tx.Ops = append(tx.Ops, history.Op{Object: length, Observed: true, Value: opening})
		}
		w.leg(tx, i, -1)
		w.leg(tx, length+i, 1)
	}
	// Two further transactions, which follow the first and precede the last, read each other.
	const a, b = 2*length + 1, 2*length + 2
	w.begin(kindJoint)
	w.begin(kindJoint)
	t1, t2 := &w.Txns[length], &w.Txns[length+1]
	w.leg(t1, a, -1)
	w.leg(t1, a+2, 1)
	w.see(t2, a)
	w.leg(t2, b, -1)
	w.leg(t2, b+2, 1)
	w.see(t1, b)
	w.see(t1, 0)
	last := &w.Txns[length-1]
	last.Ops = append(last.Ops, t2.Ops[0]) // it also read what t1 wrote
	r := checktest.ByName(checked(w.input(isolation.ReadCommitted)))[check.Serializable]
	if r.Status != check.Invalid || !r.Required {
		t.Errorf("serializable is %v, required %v: %s", r.Status, r.Required, r.Detail)
	}
	if len(r.Detail) > 2000 || len(r.Witness) > 100 {
		t.Errorf("the description has %d letters and %d witnesses", len(r.Detail), len(r.Witness))
	}
}

// TestVeryStaleRead checks that a very old read is a violation.
func TestVeryStaleRead(t *testing.T) {
	for _, writes := range []bool{false, true} {
		w := newWorld(40)
		stale := w.ObjectRows[0]
		for i := range uint64(300_000) {
			w.transfer(i%40, (i+7)%40, 1)
		}
		tx := w.begin(kindInquiry)
		name := check.Strict
		if writes {
			tx.Kind, name = kindJoint, check.Serializable
			w.leg(tx, 1, -1)
			w.leg(tx, 2, 1)
		}
		tx.Ops = append(tx.Ops, history.Op{Object: 0, Observed: true, Version: stale.Version, Value: stale.Value, Writer: stale.Writer})
		results := checked(w.input(isolation.StrictSerializable))
		if r := checktest.ByName(results)[name]; r.Status != check.Invalid {
			t.Errorf("a read that is 300,000 transactions old: %s is %v: %s", name, r.Status, r.Detail)
		}
	}
}

// TestAuditsOfThePast checks that an audit of a past state may read a state of the given age, but not an
// older one.
func TestAuditsOfThePast(t *testing.T) {
	for age, want := range map[string]check.Status{"": check.Invalid, "3us": check.Invalid, "30us": check.Valid} {
		w := newWorld(2)
		w.transfer(0, 1, 5)
		old := slices.Clone(w.ObjectRows)
		for range 10 { // each takes 1 µs
			w.transfer(0, 1, 1)
		}
		audit := w.begin(kindAudit)
		for n, a := range old {
			audit.Ops = append(audit.Ops, history.Op{Object: uint64(n), Observed: true, Version: a.Version, Value: a.Value, Writer: a.Writer})
		}
		w.Keys = map[string]string{check.KeyAuditAge: age}
		in := w.input(isolation.StrictSerializable)
		in.Audited = []uint64{1}
		results := checktest.ByName(checked(in))
		if r := results[check.Strict]; r.Status != want {
			t.Errorf("audits of the age %q: strict is %v: %s", age, r.Status, r.Detail)
		}
		if r := results[check.Audits]; r.Status != check.Valid {
			t.Errorf("audits of the age %q: audits is %v: %s", age, r.Status, r.Detail)
		}
	}
}

// TestOverdraftThatWasRefilled checks that a temporary negative balance is a violation.
func TestOverdraftThatWasRefilled(t *testing.T) {
	w := newWorld(4)
	w.transfer(0, 1, opening+100)
	w.transfer(1, 0, 500)
	if r := checktest.ByName(checked(w.input(isolation.StrictSerializable)))[check.NonNegative]; r.Status != check.Invalid {
		t.Errorf("non-negative is %v: %s", r.Status, r.Detail)
	}
}

// TestUnknownTransferOfOtherLegs checks that a transaction of unknown outcome was applied exactly as sent or
// not at all.
func TestUnknownTransferOfOtherLegs(t *testing.T) {
	w := newWorld(4)
	i := w.transfer(0, 1, 10)
	w.Txns[i].Outcome = history.Unknown
	for j := range w.Txns[i].Ops {
		op := &w.Txns[i].Ops[j]
		*op = history.Op{Object: op.Object, Write: true, Amount: 2 * op.Amount}
	}
	if results := checked(w.input(isolation.StrictSerializable)); checktest.Verdict(results) != check.Invalid {
		t.Errorf("verdict %v, want invalid", checktest.Verdict(results))
	}
}

func audit(w *world, accounts ...uint64) *history.Transaction {
	tx := w.begin(kindAudit)
	for _, n := range accounts {
		w.see(tx, n)
	}
	return tx
}

// TestAuditsThatMissOrRepeat covers audits that saw an account twice or missed one.
func TestAuditsThatMissOrRepeat(t *testing.T) {
	for name, bend := range map[string]func(w *world){
		"twice":           func(w *world) { audit(w, 0, 1, 2, 3, 3) },
		"missing, sample": func(w *world) { audit(w, 0, 1).Ops[1] = history.Op{Object: 1} },
		"missing, empty": func(w *world) {
			w.transfer(3, 0, opening)
			audit(w, 0, 1, 2, 3).Ops[3] = history.Op{Object: 3}
		},
	} {
		w := newWorld(4)
		w.transfer(0, 1, 10)
		bend(w)
		in := w.input(isolation.StrictSerializable)
		in.Audited = []uint64{1}
		if r := checktest.ByName(checked(in))[check.Audits]; r.Status != check.Invalid {
			t.Errorf("%s: audits is %v: %s", name, r.Status, r.Detail)
		}
	}
}

// TestLoadedAccountThatIsNotThere checks that a rejection because of a missing account of the load is a
// violation.
func TestLoadedAccountThatIsNotThere(t *testing.T) {
	w := newWorld(4)
	w.transfer(0, 1, 10)
	tx := w.begin(kindTransfer)
	tx.Outcome, tx.Reason = history.Rejected, noAccount
	tx.Ops = []history.Op{{Object: 2, Write: true, Amount: -1}, {Object: 3, Write: true, Amount: 1}}
	if results := checked(w.input(isolation.ReadCommitted)); checktest.Verdict(results) != check.Invalid {
		t.Errorf("verdict %v, want invalid", checktest.Verdict(results))
	}
}

// TestRefusalOnWrongReads checks that a rejection based on wrong reads is a violation.
func TestRefusalOnWrongReads(t *testing.T) {
	reject := func(w *world) *history.Transaction {
		tx := w.begin(kindTransfer)
		tx.Outcome, tx.Reason = history.Rejected, noFunds
		w.see(tx, 0)
		w.see(tx, 1)
		for i, amount := range []int64{-opening, opening} {
			tx.Ops[i].Write, tx.Ops[i].Amount = true, amount
		}
		return tx
	}
	for name, tc := range map[string]struct {
		check string
		bend  func(w *world)
	}{
		"garbage": {check.Serializable, func(w *world) {
			w.transfer(0, 1, 10)
			reject(w).Ops[0].Value -= 5
		}},
		"skew": {check.Serializable, func(w *world) {
			tx := w.ObjectRows[0]
			w.transfer(0, 1, 10)
			op := &reject(w).Ops[0]
			op.Value, op.Version, op.Writer = tx.Value, tx.Version, tx.Writer
		}},
		"stale": {check.Strict, func(w *world) {
			old := []history.Object{w.ObjectRows[0], w.ObjectRows[1]}
			w.transfer(0, 1, 10)
			tx := reject(w)
			for i, a := range old {
				tx.Ops[i].Value, tx.Ops[i].Version, tx.Ops[i].Writer = a.Value, a.Version, a.Writer
			}
		}},
	} {
		w := newWorld(4)
		tc.bend(w)
		if r := checktest.ByName(checked(w.input(isolation.StrictSerializable)))[tc.check]; r.Status != check.Invalid {
			t.Errorf("%s: %s is %v: %s", name, tc.check, r.Status, r.Detail)
		}
	}
}

// TestGapInTheVersions uses an account with the right number of legs, of which one has a version that is too
// high.
func TestGapInTheVersions(t *testing.T) {
	w := newWorld(8)
	for i := range uint64(4) {
		w.transfer(0, i+1, 1)
	}
	// Version 4 replaces version 2 of account 0, while the account's last version is 3.
	w.LedgerRows[2].Version = 5
	w.ObjectRows[0].Writer = w.Txns[3].ID
	r := checktest.ByName(checked(w.input(isolation.ReadUncommitted)))[check.Ledger]
	if r.Status != check.Invalid {
		t.Errorf("ledger is %v: %s", r.Status, r.Detail)
	}
}

// TestDirtyWriteBesideCircularReads checks that the weakest broken level decides.
func TestDirtyWriteBesideCircularReads(t *testing.T) {
	w := newWorld(8)
	w.begin(kindJoint)
	w.begin(kindJoint)
	t1, t2 := &w.Txns[0], &w.Txns[1]
	w.leg(t1, 0, -5)
	w.leg(t2, 0, -5)
	w.leg(t2, 1, 5)
	w.leg(t1, 1, 5)
	w.see(t1, 3)
	w.leg(t2, 2, -5)
	w.leg(t2, 4, 5)
	w.see(t1, 4) // t1 read what t2 wrote, and t2 overwrote what t1 wrote
	results := checked(w.input(isolation.ReadUncommitted))
	if checktest.Verdict(results) != check.Invalid {
		t.Errorf("verdict %v at read-uncommitted with a dirty write: %s", checktest.Verdict(results), checktest.ByName(results)[check.Serializable].Detail)
	}
}

// TestUnknownClaim checks that a cycle is not tolerated if the claim is unknown.
func TestUnknownClaim(t *testing.T) {
	w := newWorld(8)
	writeSkew(w)
	if v := checktest.Verdict(checked(w.input(isolation.Unknown))); v == check.Valid {
		t.Errorf("verdict %v", v)
	}
}

// TestAuditBesideADirtyRead covers an audit between the commits of a reader and of the uncommitted transfer
// that it read. READ UNCOMMITTED allows the audit; READ COMMITTED and stronger levels do not.
func TestAuditBesideADirtyRead(t *testing.T) {
	for _, tc := range []struct {
		expect isolation.Level
		bend   func(whole *history.Transaction, w *world)
		want   check.Status
	}{
		{isolation.ReadUncommitted, nil, check.Valid},
		{isolation.ReadCommitted, nil, check.Invalid},
		{isolation.Unknown, nil, check.Invalid},
		// An audit that saw only one leg of a transfer is torn at every level.
		{isolation.ReadUncommitted, func(tx *history.Transaction, w *world) {
			tx.Ops[2] = history.Op{Object: 2, Observed: true, Value: opening}
		}, check.Invalid},
	} {
		w := newWorld(4)
		w.begin(kindTransfer)
		w.begin(kindJoint)
		w.begin(kindAudit)
		writer, reader, audit := &w.Txns[0], &w.Txns[1], &w.Txns[2]
		w.see(audit, 0) // before the writer commits
		w.see(audit, 1)
		w.leg(writer, 0, -10)
		w.leg(writer, 1, 10)
		w.see(reader, 0) // dirty
		w.leg(reader, 2, -5)
		w.leg(reader, 3, 5)
		w.see(audit, 2) // after the reader committed
		w.see(audit, 3)
		if tc.bend != nil {
			tc.bend(audit, w)
		}
		in := w.input(tc.expect)
		in.Audited = []uint64{1}
		results := checked(in)
		r := checktest.ByName(results)[check.Audits]
		if r.Status != tc.want {
			t.Errorf("at %v audits is %v: %s", tc.expect, r.Status, r.Detail)
		}
		if tc.want == check.Valid && checktest.Verdict(results) != check.Valid {
			t.Errorf("at %v the verdict is %v: %s", tc.expect, checktest.Verdict(results), checktest.ByName(results)[check.Serializable].Detail)
		}
	}
}

// TestRequiredFollowsTheClaim checks that the required checks do not depend on whether an unclaimed level
// holds.
func TestRequiredFollowsTheClaim(t *testing.T) {
	for _, claim := range append(isolation.Levels(), isolation.Unknown) {
		want := claim.Includes(isolation.Serializable) || claim == isolation.Unknown
		for _, broken := range []bool{false, true} {
			w := newWorld(8)
			w.transfer(0, 1, 1)
			if broken {
				writeSkew(w)
			}
			r := checktest.ByName(checked(w.input(claim)))[check.Serializable]
			forbidden := broken && claim.Includes(isolation.RepeatableRead) // a write skew breaks it too
			if (r.Status == check.Invalid) != broken || (r.Status == check.Valid) == broken || r.Required != (want || forbidden) {
				t.Errorf("at %v serializable is %v, required %v: %s", claim, r.Status, r.Required, r.Detail)
			}
			c := newCounter(1)
			c.drive(40, false)
			if broken {
				c.lastOf(history.Committed).Ops[0].Value -= 1000
			}
			in := c.input()
			in.Expect = claim
			r = tpcbChecked(t, in)[check.Serializable]
			if (r.Status == check.Invalid) != broken || (r.Status == check.Valid) == broken || r.Required != want {
				t.Errorf("tpcb at %v: serializable is %v, required %v: %s", claim, r.Status, r.Required, r.Detail)
			}
		}
	}
}
