package totals

import (
	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// endFacts holds what the end state shows without a history.
type endFacts struct {
	accounts uint64
	identity uint64 // sum of the hashes of all account numbers, which identifies the set of accounts
	sum      check.Sum
	negative few[history.Object]
	wrong    few[wrongAccount] // accounts that disagree with the ledger
	twice    []uint32          // transfers with a repeated leg in the ledger
	strange  few[fact.ForeignLeg]
	closed   []history.ID // with a tombstone, from given runs, but not recorded
	// odd lists the accounts whose last transfer is not the ledger's for their version.
	odd []history.Object
	// beyond lists the accounts that agree with the ledger, although a version after their last one was made.
	beyond few[history.Object]

	reopened, gone few[uint64] // wrongly existing and wrongly missing accounts of clients
}

// wrongAccount is an account whose balance differs from its opening balance plus the ledger legs, or whose
// version is not the number of its legs.
type wrongAccount struct {
	account history.Object
	want    int64 // cents according to the ledger
	legs    uint32
}

// eachLeg yields the ledger of the end state, if there is one.
func (b *balances) eachLeg(take func(leg history.Row)) (problem error) {
	if b.Input.End == nil {
		return nil
	}
	for leg := range check.Each(&b.Watch, "the end state's "+b.Words.Book, b.Input.End.Rows(), &problem) {
		take(leg)
	}
	return problem
}

func (b *balances) readLedger() error {
	if b.Input.End == nil {
		return nil
	}
	err := b.eachLeg(func(leg history.Row) {
		t, ok := b.Txns.Find(leg.Transaction)
		if leg.Mark == history.Tombstone {
			switch {
			case ok:
				b.Txns.List[t].Flags |= check.Tombstone
			case b.focus == nil && b.Txns.Covers(leg.Transaction.Run()):
				b.end.closed = append(b.end.closed, leg.Transaction)
			}
			return
		}
		if !ok && !b.focus.covers(leg.Object) {
			return
		}
		if !ok {
			t = b.Txns.AddFromLedger(leg.Transaction)
		}
		n := &b.Txns.List[t]
		n.Seen++
		n.Found += check.Hash(leg.Number, leg.Object, leg.Amount)
		if n.Seen == 0 || n.Source != check.FromLedger && n.Seen > n.Want && n.Flags&check.Repeated == 0 {
			n.Flags |= check.Repeated
			b.end.twice = append(b.end.twice, t)
		}
		if b.exists(leg.Object) && !b.focus.covers(leg.Object) {
			return
		}
		if !b.exists(leg.Object) {
			what := fact.ForeignLeg{By: leg.Transaction, Object: b.objectToShow(leg.Object)}
			b.end.strange.add(what)
			b.Show(check.Ledger, "", leg.Transaction, what.Object, what)
			return
		}
		s := b.slots.touch(leg.Object)
		s.legs++
		s.sum += leg.Amount
		s.highest = max(s.highest, leg.Version)
	})
	if err != nil {
		return err
	}
	b.findEarly()
	return nil
}

// readAccounts compares every final balance with the formula and the ledger.
func (b *balances) readAccounts() (problem error) {
	if b.Input.End == nil {
		return nil
	}
	for a := range check.Each(&b.Watch, "the end state's accounts", b.Input.End.Objects(), &problem) {
		if a.N < b.in.Accounts {
			b.end.accounts++
			b.end.identity += check.Mix(a.N + 1)
		}
		b.end.sum.Add(a.Value)
		if a.Value < 0 {
			what := fact.Negative{Object: b.objectToShow(a.N), By: a.Writer, Balance: a.Value, Version: a.Version, Ended: true}
			b.Show(check.NonNegative, "", a.Writer, what.Object, what)
			b.end.negative.add(a)
		}
		if !b.focus.covers(a.N) {
			continue
		}
		want, legs := b.in.Opening(a.N), uint32(0)
		s := b.slots.find(a.N)
		if s != nil {
			s.there = true
			want, legs = want+s.sum, s.legs
			b.lastOf(s, a)
			if a.Value == want && a.Version == uint64(legs) && b.madeAfter(s, legs) {
				what := b.laterLeg(a)
				b.Show(check.Ledger, "", a.Writer, what.Object, what)
				b.end.beyond.add(a)
			}
		}
		closes := a.Value == want && a.Version == uint64(legs)
		if s != nil {
			s.closes, s.broken = closes, s.broken || !closes
		}
		if !closes {
			wrong := wrongAccount{account: a, want: want, legs: legs}
			if b.Input.OnViolation != nil {
				what := b.wrongBooks(wrong)
				b.Show(check.Ledger, "", a.Writer, what.Object, what)
			}
			b.end.wrong.add(wrong)
		}
	}
	b.openedBooks()
	return problem
}

// madeAfter reports whether the ledger has a leg with a later version.
func (b *balances) madeAfter(s *slot, version uint32) bool {
	for v := version + 1; v <= s.length; v++ {
		if w := b.chain.writer[s.base+v]; w != check.None && b.Txns.List[w].Seen > 0 {
			return true
		}
	}
	return false
}

// lastOf compares an account's last transfer with the ledger's.
func (b *balances) lastOf(s *slot, a history.Object) {
	if a.Version == 0 && a.Writer == 0 {
		return
	}
	switch p := s.base + uint32(a.Version); {
	case a.Version > uint64(s.length):
		if s.outside { // the check ledger reports the leg
			return
		}
	case b.IDOf(b.chain.writer[p]) == a.Writer, b.forked(p, a.Writer):
		return
	}
	b.end.odd = append(b.end.odd, a)
}
