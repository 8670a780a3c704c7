package totals

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// seenAgain is a read of a version whose named maker is in the ledger, but not as the maker of that version.
// reader is None if the final account names the transfer.
type seenAgain struct {
	oddRead
	made  uint32 // the version that it made according to the ledger; 0: none
	taken bool   // the ledger has another maker of the version that was read
}

// judgeAgain decides what each such read shows.
func (b *balances) judgeAgain() error {
	if b.Input.End == nil {
		return nil
	}
	for _, a := range b.end.odd {
		t, known := b.Txns.Find(a.Writer)
		if s := b.slots.find(a.N); known && s != nil {
			if made := b.versionOf(s, t); made != 0 && uint64(made) < a.Version {
				odd := oddRead{reader: check.None, account: a.N, version: a.Version, balance: a.Value, last: a.Writer}
				b.reads.again = append(b.reads.again, seenAgain{oddRead: odd, made: made})
			}
		}
	}
	if len(b.reads.again) == 0 {
		return nil
	}
	own, err := b.ownOperations()
	if err != nil {
		return err
	}
	over, err := b.surpluses(own)
	for _, c := range b.reads.again {
		b.judge(&c, own[place{c.last, c.account}], over[c.account])
	}
	return err
}

// surplus is the difference between an account's balance and the ledger. It also holds the sum for this case: each
// transfer seen again was applied once more for each version at which it was seen.
type surplus struct {
	cents, versions int64
	seen            map[seenAt]bool
	sum             int64                // of the amounts of the transfers seen again
	transfers       map[history.ID]int64 // the amount of each
}

// seenAt is a version at which a transfer was seen.
type seenAt struct {
	id      history.ID
	version uint64
}

// explained reports whether repeated applications explain the surplus. If one transfer was applied several times,
// possibly only the last application was seen.
func (s *surplus) explained() bool {
	if len(s.transfers) == 1 {
		for _, amount := range s.transfers {
			return s.versions > 0 && s.cents == s.versions*amount
		}
	}
	return s.cents == s.sum && s.versions == int64(len(s.seen))
}

// early reports whether the ledger has the transfer at an earlier version than seen, and no maker of the version at
// which it was seen.
func (c *seenAgain) early() bool { return c.made != 0 && uint64(c.made) < c.version && !c.taken }

// surpluses returns the surplus of each account at which transfers were seen again.
func (b *balances) surpluses(own map[place]*history.Op) (over map[uint64]*surplus, problem error) {
	over = map[uint64]*surplus{}
	for _, c := range b.reads.again {
		if !c.early() {
			continue
		}
		s := over[c.account]
		if s == nil {
			s = &surplus{seen: map[seenAt]bool{}, transfers: map[history.ID]int64{}}
			over[c.account] = s
		}
		if at, op := (seenAt{c.last, c.version}), own[place{c.last, c.account}]; !s.seen[at] && op != nil {
			s.seen[at] = true
			s.sum += op.Amount
			s.transfers[c.last] = op.Amount
		}
	}
	if len(over) == 0 {
		return over, nil
	}
	for a := range check.Each(&b.Watch, "the end state's accounts", b.Input.End.Objects(), &problem) {
		if s := over[a.N]; s != nil {
			books := b.slots.find(a.N) // it was seen, so it exists
			s.cents = a.Value - b.in.Opening(a.N) - books.sum
			s.versions = int64(a.Version) - int64(books.legs)
		}
	}
	return over, problem
}

// place is a transaction at an account.
type place struct {
	id      history.ID
	account uint64
}

// ownOperations returns the recorded operations of the transfers that were seen again.
func (b *balances) ownOperations() (map[place]*history.Op, error) {
	own := map[place]*history.Op{}
	transfers := map[history.ID]bool{}
	for _, c := range b.reads.again {
		own[place{c.last, c.account}] = nil
		transfers[c.last] = true
	}
	err := b.Each(func(_ uint32, tx *history.Transaction) {
		if !transfers[tx.ID] {
			return
		}
		for i := range tx.Ops {
			at := place{tx.ID, tx.Ops[i].Object}
			if _, wanted := own[at]; wanted {
				op := tx.Ops[i]
				own[at] = &op
			}
		}
	})
	return own, err
}

// judge decides what a read shows whose named maker did not make the version according to the ledger. own is
// the maker's recorded operation, or nil. If the maker's client saw that it made the version, the ledger is
// wrong.
//
// A transfer may have made an earlier version and be seen at a version without a maker. It was then applied twice, or
// once and later than in the ledger. Versions alone cannot tell these cases apart; the balances can.
func (b *balances) judge(c *seenAgain, own *history.Op, over *surplus) {
	s := b.slots.find(c.account)
	t, _ := b.Txns.Find(c.last)
	n := &b.Txns.List[t]
	writes := own != nil && own.Write
	switch {
	case n.Seen > 0 && writes && own.Observed && own.Version+1 == c.version,
		n.Seen > 0 && writes && !own.Observed && c.made == 0 && !n.AsSent(),
		c.made != 0 && uint64(c.made) < c.version && c.taken && s.broken,
		uint64(c.made) > c.version && !c.taken && s.closes:
		if c.reader != check.None { // otherwise the check ledger reports it
			b.odd(&b.reads.balance, check.Ledger, "", c.oddRead)
		}
	case c.early() && over.explained():
		b.reads.twice = append(b.reads.twice, *c)
		if c.reader != check.None {
			b.showOdd(check.ExactlyOnce, "", c.oddRead)
		}
	case c.early() && over.cents != 0:
		b.reads.unsure = append(b.reads.unsure, *c)
	case c.reader == check.None:
	case n.Outcome == history.Aborted || n.Outcome == history.Rejected || uint64(c.made) > c.version || n.Seen == 0:
		b.odd(&b.reads.dirty, check.Serializable, dirtyRead, c.oddRead)
	default:
		b.odd(&b.reads.unknown, check.Serializable, nobodysRead, c.oddRead)
	}
}

// repeatedLegs selects, among the transfers with more legs in the ledger than were sent, those with a
// repeated leg.
func (b *balances) repeatedLegs() error {
	if len(b.end.twice) == 0 {
		return nil
	}
	type leg struct {
		t      uint32
		object uint64
	}
	seen, repeated := map[leg]bool{}, map[uint32]bool{}
	err := b.eachLeg(func(row history.Row) {
		if t, known := b.Txns.Find(row.Transaction); known && row.Mark == 0 && b.Txns.List[t].Flags&check.Repeated != 0 {
			l := leg{t, row.Object}
			repeated[t] = repeated[t] || seen[l]
			seen[l] = true
		}
	})
	kept := b.end.twice[:0]
	for _, t := range b.end.twice {
		if repeated[t] {
			kept = append(kept, t)
		} else {
			b.Txns.List[t].Flags &^= check.Repeated
		}
	}
	b.end.twice = kept
	return err
}

// distrust finds the accounts for which the ledger has a wrong version or a wrong leg. For these, only reads determine
// an order, as for forked versions. The accounts are of three kinds. The first kind agrees with the ledger, but its
// versions are not consecutive. The second belongs to a transfer that the ledger has in another form than sent. For the
// third, a client saw that it made another version.
func (b *balances) distrust() error {
	doubtful := func(s *slot) bool { return s.broken && !s.forked }
	left := false
	for i := range b.slots.list {
		s := &b.slots.list[i]
		if !doubtful(s) || b.Input.End == nil || b.Watch.Ended() {
			continue
		}
		s.forked = s.closes && s.vanished == 0 || slices.ContainsFunc(b.chain.writer[s.base:s.base+s.length+1], b.otherThanSent)
		left = left || !s.forked
	}
	if !left {
		return nil
	}
	return b.Each(func(t uint32, tx *history.Transaction) {
		if n := &b.Txns.List[t]; n.Outcome != history.Committed || n.Seen == 0 {
			return
		}
		for i := range tx.Ops {
			op := &tx.Ops[i]
			if !op.Write || !op.Observed || op.Object >= b.in.Accounts {
				continue
			}
			s := b.slots.find(op.Object)
			if s == nil || !doubtful(s) {
				continue
			}
			if op.Version >= uint64(s.length) || b.chain.writer[s.base+uint32(op.Version)+1] != t {
				s.forked = true
			}
		}
	})
}

// otherThanSent reports whether the ledger has a recorded transaction in another form than it was sent.
func (b *balances) otherThanSent(t uint32) bool {
	if t == check.None {
		return false
	}
	n := &b.Txns.List[t]
	return n.Source != check.FromLedger && n.Seen > 0 && !n.AsSent()
}
