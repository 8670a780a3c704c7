package totals

import (
	"stroppy/internal/check"
	"stroppy/internal/history"
)

// seenAgain is a transfer that was seen as the maker of a version that no transfer made by
// the ledger, and that the ledger has as the maker of an earlier one. Where the account in
// the end names it, reader is none.
//
// By versions alone that is a transfer that was applied twice, or one that was applied once
// and later than the ledger says. The books decide: an account that in the end holds what
// the ledger makes has got each amount once.
type seenAgain struct {
	oddRead
	made uint32 // the version that it made by the ledger
}

// judgeAgain says of each transfer that was seen again whether it was applied twice. One
// that was not has been read as the maker of a version that it did not make.
func (b *balances) judgeAgain() error {
	if b.Input.End == nil {
		return nil
	}
	for _, a := range b.end.odd {
		t, known := b.Txns.Find(a.Writer)
		if s := b.slots.find(a.N); known && s != nil {
			if made := b.versionOf(s, t); made != 0 && uint64(made) < a.Version {
				odd := oddRead{reader: check.None, account: a.N, version: a.Version, balance: a.Value, last: a.Writer}
				b.reads.again = append(b.reads.again, seenAgain{odd, made})
			}
		}
	}
	for _, c := range b.reads.again {
		s := b.slots.find(c.account)
		t, _ := b.Txns.Find(c.last)
		outcome := b.Txns.List[t].Outcome
		switch {
		case s.closes && c.reader == check.None: // the check ledger says what the account names
		case s.closes && (outcome == history.Aborted || outcome == history.Rejected):
			b.odd(&b.reads.dirty, check.Serializable, dirtyRead, c.oddRead)
		case s.closes:
			b.odd(&b.reads.unknown, check.Serializable, nobodysRead, c.oddRead)
		case len(b.chain.forkAt[s.base+c.made]) > 0: // it may be the other one alone that made it
			b.reads.unsure = append(b.reads.unsure, c)
		default:
			b.reads.twice = append(b.reads.twice, c)
			if c.reader != check.None {
				b.reportOdd(check.ExactlyOnce, "", c.oddRead)
			}
		}
	}
	return nil
}

// repeatedLegs keeps of the transfers of which the ledger has more legs than were sent those
// of which it has one twice.
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
