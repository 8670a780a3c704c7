package totals

import (
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// TestGapInASequence checks that nothing follows from a closed recording that lacks a transaction of a client
// before later ones.
func TestGapInASequence(t *testing.T) {
	made := func() *world {
		w := newWorld(4)
		w.next = 1
		w.transfer(0, 1, 5)
		w.inquiry(0, 1)
		w.inquiry(2, 3)
		w.transfer(1, 2, 5)
		return w
	}
	for lost, says := range map[int]string{0: "1-0-1", 1: "1-0-2", 2: "1-0-3", 3: ""} {
		w := made()
		w.Txns = slices.Delete(w.Txns, lost, lost+1)
		results := checked(w.input(isolation.StrictSerializable))
		if says == "" { // the last one: its transfer in the ledger shows it
			if r := checktest.ByName(results)[check.NoGhost]; r.Status != check.Invalid {
				t.Errorf("without the last transfer no-ghost is %v: %s", r.Status, r.Detail)
			}
			continue
		}
		for _, r := range results {
			if r.Status != check.Unknown || r.Name != check.Audits && !strings.Contains(r.Detail, "lacks transaction "+says+",") {
				t.Errorf("without %s %s is %v: %s", says, r.Name, r.Status, r.Detail)
			}
		}
		w.Incomplete = true // gives another sentence
		if v := checktest.Verdict(checked(w.input(isolation.StrictSerializable))); v != check.Unknown {
			t.Errorf("without %s of a recording that was cut off the verdict is %v", says, v)
		}
	}
	w := made()
	slices.Reverse(w.Txns) // no recording has this order, but all are present
	if v := checktest.Verdict(checked(w.input(isolation.StrictSerializable))); v != check.Valid {
		t.Errorf("with all transactions, the last first, the verdict is %v", v)
	}
}

// TestLastMakerOfAForkedVersion checks that an account may name either of two makers of its version.
func TestLastMakerOfAForkedVersion(t *testing.T) {
	for _, named := range []int{0, 1} {
		w := newWorld(8)
		lostUpdate(w)
		w.ObjectRows[0].Writer = w.Txns[named].ID
		r := checktest.ByName(checked(w.input(isolation.StrictSerializable)))[check.Ledger]
		if r.Status != check.Invalid || hasKind(r.Result, fact.NoSuchLeg{}) {
			t.Errorf("named is %d: ledger is %v: %s", named, r.Status, r.Detail)
		}
	}
	w := newWorld(8)
	lostUpdate(w)
	w.ObjectRows[0].Writer = history.NewID(1, 0, 9)
	if r := checktest.ByName(checked(w.input(isolation.StrictSerializable)))[check.Ledger]; !hasKind(r.Result, fact.NoSuchLeg{}) {
		t.Errorf("an account that names an unknown transaction: ledger says %s", r.Detail)
	}
}

// TestLegOfAnImpossibleVersion uses a ledger leg with the version that the account names, far beyond all
// versions that were made.
func TestLegOfAnImpossibleVersion(t *testing.T) {
	w := newWorld(4)
	w.transfer(0, 1, 5)
	w.LedgerRows[0].Version, w.ObjectRows[0].Version = 1000, 1000
	r := checktest.ByName(checked(w.input(isolation.StrictSerializable)))[check.Ledger]
	if r.Status != check.Invalid || hasKind(r.Result, fact.NoSuchLeg{}) || !hasKind(r.Result, fact.ImpossibleVersion{}) {
		t.Errorf("ledger is %v: %s", r.Status, r.Detail)
	}
}

// TestTotalIsOfWhatWasCommitted checks that the balances of tpcb are compared with the acknowledged
// transactions, not with the history table.
func TestTotalIsOfWhatWasCommitted(t *testing.T) {
	for _, m := range tpcbMutants {
		for seed := range uint64(20) {
			c := newCounter(seed)
			c.versions = seed%2 == 1
			c.drive(60, false)
			m.bend(c)
			results, sum, grew := tpcbChecked(t, c.input()), int64(0), [3]int64{}
			for _, tx := range c.Txns {
				row := func(l history.Row) bool { return l.Transaction == tx.ID }
				if tx.Outcome == history.Committed || tx.Outcome == history.Unknown && slices.ContainsFunc(c.LedgerRows, row) {
					sum += tx.Ops[0].Amount
				}
			}
			for _, l := range c.LedgerRows {
				known := func(tx history.Transaction) bool {
					return tx.ID == l.Transaction && (tx.Outcome == history.Committed || tx.Outcome == history.Unknown)
				}
				if l.Number == 0 && !slices.ContainsFunc(c.Txns, known) {
					sum += l.Amount // committed according to the database, without a reply to a client
				}
			}
			for _, a := range c.ObjectRows {
				switch {
				case a.N < testBranches:
					grew[0] += a.Value
				case a.N < testBranches+testTellers:
					grew[1] += a.Value
				default:
					grew[2] += a.Value
				}
			}
			want := check.Invalid
			if grew == [3]int64{sum, sum, sum} {
				want = check.Valid
			}
			r := results[check.Total]
			sums := one(func(f fact.Growth) bool { return f.Driven && f.Added == sum && f.Groups[0].Grew == grew[2] })
			if r.Status != want || want == check.Invalid && !slices.ContainsFunc(r.Findings, sums) {
				t.Errorf("%s, seed %d: total is %v, and %d were committed and %v came: %s", m.name, seed, r.Status, sum, grew, r.Detail)
			}
		}
	}
	c := newCounter(1)
	c.drive(20, false)
	in := c.input()
	in.History = nil
	r := tpcbChecked(t, in)[check.Total]
	if growth, ok := r.Why.(fact.Growth); ok && growth.Driven {
		t.Errorf("without a recording of what was committed: %s", r.Detail)
	}
}

// TestAppliedLateIsNotAppliedTwice covers a transfer that was reported as not applied, but was applied later
// than the ledger says. It is read as the maker of another version. The balances show that it was applied
// once.
func TestAppliedLateIsNotAppliedTwice(t *testing.T) {
	w := newWorld(4)
	w.transfer(0, 1, 5)
	w.begin(kindTransfer)
	late := &w.Txns[1]
	late.Outcome = history.Aborted
	w.leg(late, 0, -7)
	w.leg(late, 2, 7)
	w.LedgerRows[2].Version = 1 // as if it had come before the first one
	late.Ops[0] = history.Op{Object: 0, Write: true, Amount: -7}
	late.Ops[1] = history.Op{Object: 2, Write: true, Amount: 7}
	w.transfer(0, 3, 9)
	r := checktest.ByName(checked(w.input(isolation.StrictSerializable)))
	for name, want := range map[string]check.Status{
		check.Total: check.Valid, check.ExactlyOnce: check.Valid, check.Ledger: check.Invalid, check.NoGhost: check.Invalid, check.Serializable: check.Invalid,
	} {
		if r[name].Status != want {
			t.Errorf("%s is %v: %s", name, r[name].Status, r[name].Detail)
		}
	}
	both := one(func(f fact.SameVersion) bool {
		return f == fact.SameVersion{First: fact.Member{ID: firstID}, Second: fact.Member{ID: secondID}, Object: "#0", Version: 1, Ledger: true, Closes: true}
	})
	if !slices.ContainsFunc(r[check.Ledger].Findings, both) {
		t.Errorf("ledger says %s", r[check.Ledger].Detail)
	}
	read := one(func(f fact.OddRead) bool {
		return f.Version == 2 && f.Object == "#0" && f.Writer.ID == secondID && f.Fate == fact.AppliedAs && f.Aborted && f.As == 1
	})
	if s := r[check.Serializable]; !slices.ContainsFunc(s.Findings, read) || hasKind(s.Result, fact.LostUpdate{}) {
		t.Errorf("serializable says %s", s.Detail)
	}
}

// TestMoreLegsThanSentAreNotTwice checks that a foreign leg under a transfer's ID is not a repeated leg.
func TestMoreLegsThanSentAreNotTwice(t *testing.T) {
	w := newWorld(6)
	w.transfer(0, 1, 5)
	w.transfer(2, 3, 7)
	w.LedgerRows[3].Transaction = w.Txns[0].ID
	r := checktest.ByName(checked(w.input(isolation.StrictSerializable)))
	if r[check.ExactlyOnce].Status != check.Valid {
		t.Errorf("exactly-once is %v: %s", r[check.ExactlyOnce].Status, r[check.ExactlyOnce].Detail)
	}
	altered := []fact.Fact{fact.Altered{By: firstID}, fact.Altered{By: secondID}}
	if d := r[check.Durable]; d.Status != check.Invalid || !slices.Equal(d.Findings[0].Instances, altered) {
		t.Errorf("durable is %v: %s", d.Status, d.Detail)
	}
}
