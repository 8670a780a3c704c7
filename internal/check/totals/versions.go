package totals

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// slot is what the checks keep of one account that was touched.
type slot struct {
	n        uint64
	sum      int64  // of its ledger legs, cents
	legs     uint32 // ledger legs
	writes   uint32 // legs of committed transactions in the history
	highest  uint64 // version that anybody saw it written to
	base     uint32 // position of its version 0, modulo 2^32 where it has none
	lowest   uint64 // without an end state: 1 more than the first version that anybody saw; 0 if nobody did
	low      uint32 // the first version that has a position
	length   uint32 // its highest position is base+length
	vanished uint32 // the first version whose maker is acknowledged and gone; 0 if none is
	forked   bool   // two transactions made the same version of it
	outside  bool   // a leg of it has a version beyond every bound
	closes   bool   // in the end it holds what the ledger makes, at the version that it makes
	there    bool   // in the end state
	broken   bool   // its versions do not follow each other: its replayed balances are not known
}

// first is the first position.
func (s *slot) first() uint32 { return s.base + s.low }

// slots maps touched accounts to slots: an array over all accounts of the load while
// that is at most 512 MB, or 4 MB for a part of a history, and a map of the others that
// are touched.
type slots struct {
	dense  []uint32 // slot + 1
	sparse map[uint64]uint32
	list   []slot
}

const (
	denseAccounts = 1 << 27
	denseInPart   = 1 << 20 // of a part of a history, of which many are checked one after another
)

// find returns the slot of account n, nil if it was never touched.
func (s *slots) find(n uint64) *slot {
	i := uint32(0)
	if n < uint64(len(s.dense)) {
		i = s.dense[n]
	} else {
		i = s.sparse[n]
	}
	if i == 0 {
		return nil
	}
	return &s.list[i-1]
}

// touch returns the slot of account n, making it if need be; n is within bounds.
func (s *slots) touch(n uint64) *slot {
	if found := s.find(n); found != nil {
		return found
	}
	s.list = append(s.list, slot{n: n})
	i := uint32(len(s.list))
	if n < uint64(len(s.dense)) {
		s.dense[n] = i
	} else {
		if s.sparse == nil {
			s.sparse = map[uint64]uint32{}
		}
		s.sparse[n] = i
	}
	return &s.list[i-1]
}

// chain is every version of every account in one array of positions. An
// account's versions follow each other; position base is version 0, which the
// load made. So the next position is the next version, and the position after an
// account's last one is another account's version 0, which nobody wrote.
type chain struct {
	writer  []uint32 // the transaction that made this version
	balance []int64  // cents at this version by replay; unknownBalance if not known
	forks   []fork   // versions made by two transactions, of which the effect of one is gone
	doubled []fork   // the same where none is gone: the ledger has a wrong version or a wrong leg
	forkAt  map[uint32][]fork
	outside []uint32 // transactions whose leg has a version beyond every bound

	overdrawn few[uint32] // versions but the last at which a balance was below zero
}

const unknownBalance = math.MinInt64

// fork is a version of an account that two transactions both made.
type fork struct {
	pos           uint32
	first, second uint32
}

// mostTrusted bounds the positions of a few transactions of a long history: 400 MB.
const mostTrusted = 1 << 25

// layOut gives every touched account its positions. The length of an account is
// bounded by the writes to it that are known, so that a damaged version number
// cannot ask for memory.
func (b *balances) layOut() error {
	next := uint64(0)
	for i := range b.slots.list {
		s := &b.slots.list[i]
		if s.lowest > 1 && s.lowest-1 <= s.highest { // a part of a recording begins in the midst of a chain
			s.low = uint32(s.lowest - 1)
		}
		bound := uint64(s.low) + uint64(s.legs) + uint64(s.writes) + 16
		if b.trusted {
			bound = s.highest
		}
		s.length = uint32(min(s.highest, bound))
		s.base = uint32(next) - s.low
		next += uint64(s.length-s.low) + 1
	}
	if b.trusted && next > mostTrusted {
		return fmt.Errorf("the versions of %d accounts are too far apart", len(b.slots.list))
	}
	if next >= uint64(check.None) {
		return fmt.Errorf("the %s has %d %ss, which is more than one check takes", b.Words.Book, next, b.Words.Part)
	}
	b.chain.writer = make([]uint32, next+1)
	for i := range b.chain.writer {
		b.chain.writer[i] = check.None
	}
	b.chain.balance, b.chain.forkAt = make([]int64, next+1), map[uint32][]fork{}
	return nil
}

// place puts transaction t as the maker of a version.
func (b *balances) place(s *slot, version uint64, amount int64, t uint32) {
	if version <= uint64(s.low) || version > uint64(s.length) {
		b.chain.outside = append(b.chain.outside, t)
		s.broken, s.outside = true, true
		return
	}
	p := s.base + uint32(version)
	if w := b.chain.writer[p]; w != check.None {
		if w != t {
			f := fork{pos: p, first: w, second: t}
			b.chain.forks, b.chain.forkAt[p] = append(b.chain.forks, f), append(b.chain.forkAt[p], f)
		}
		s.broken = true
		return
	}
	b.chain.writer[p] = t
	b.chain.balance[p] = amount
}

// placeLedger puts every ledger leg at its version.
func (b *balances) placeLedger() error {
	return b.eachLeg(func(leg history.Row) {
		if leg.Mark == history.Tombstone || !b.has(leg.Object) {
			return
		}
		t, _ := b.Txns.Find(leg.Transaction)
		b.place(b.slots.touch(leg.Object), leg.Version, leg.Amount, t)
	})
}

// placeUnledgered puts the acknowledged transfers that the ledger does not have
// where their clients saw them, then replays the balances.
func (b *balances) placeUnledgered() error {
	b.placeKnown()
	missing := func(t check.Transaction) bool { return t.Outcome == history.Committed && t.Want > 0 && t.Seen == 0 }
	if slices.ContainsFunc(b.Txns.List, missing) {
		if err := b.Each(func(t uint32, tx *history.Transaction) {
			if n := &b.Txns.List[t]; n.Outcome != history.Committed || n.Seen > 0 {
				return
			}
			for i := range tx.Ops {
				if op := &tx.Ops[i]; op.Write && op.Observed && b.has(op.Object) {
					b.placeOwn(b.slots.touch(op.Object), op, t)
				}
			}
		}); err != nil {
			return err
		}
	}
	b.replay()
	return nil
}

// placeKnown places the transactions whose legs in the ledger are known without it.
func (b *balances) placeKnown() {
	for id, rows := range b.legs {
		t, ok := b.Txns.Find(id)
		if !ok {
			continue
		}
		for i := range rows {
			b.Txns.List[t].Seen++
			b.Txns.List[t].Found += check.Hash(rows[i].Number, rows[i].Object, rows[i].Amount)
			b.place(b.slots.touch(rows[i].Object), rows[i].Version, rows[i].Amount, t)
		}
	}
}

// placeOwn places a transfer by what its client saw. Where the ledger says that
// another made the same version, this one has vanished and its place was taken.
func (b *balances) placeOwn(s *slot, op *history.Op, t uint32) {
	version := op.Version + 1
	if b.Input.End != nil {
		s.broken = true
		if v := uint32(min(version, uint64(s.length)+1)); s.vanished == 0 || v < s.vanished {
			s.vanished = v
		}
		if version <= uint64(s.length) && b.chain.writer[s.base+uint32(version)] != check.None {
			return
		}
	}
	b.place(s, version, op.Amount, t)
}

// overwroteRead says that a transaction which wrote what it had read made the next version. The
// ledger has what it made; without it this holds from snapshot isolation on. A weaker level lets
// others write between the two.
func (b *balances) overwroteRead() bool {
	claim := b.Input.Expect
	return b.Input.End != nil || b.byLedger() || claim == isolation.Unknown || claim.Includes(isolation.SnapshotIsolation)
}

// byLedger reports whether the versions were proved by the ledger to be those that were made.
func (b *balances) byLedger() bool { return b.trusted && !b.open }

// replay turns the amounts into balances, as far as the versions follow each
// other without a gap or a fork.
func (b *balances) replay() {
	for i := range b.slots.list {
		s := &b.slots.list[i]
		balance := b.in.Opening(s.n)
		known := s.low == 0 && b.overwroteRead()
		if b.chain.balance[s.first()] = balance; !known {
			b.chain.balance[s.first()] = unknownBalance
		}
		for p := s.first() + 1; p <= s.base+s.length && !b.Watch.Ended(); p++ {
			// From a version on whose maker has vanished, others may have made the
			// same numbers again, out of another balance.
			gone := s.vanished != 0 && p-s.base >= s.vanished
			if b.chain.writer[p] == check.None || len(b.chain.forkAt[p]) > 0 || gone {
				known = false
				s.broken = true
			}
			if !known {
				b.chain.balance[p] = unknownBalance
				continue
			}
			balance += b.chain.balance[p]
			b.chain.balance[p] = balance
			if balance < 0 && p < s.base+s.length {
				by := b.IDOf(b.chain.writer[p])
				what := fact.Negative{Object: b.objectToShow(s.n), By: by, Balance: balance, Version: uint64(p - s.base)}
				b.Show(check.NonNegative, "", by, what.Object, what)
				b.chain.overdrawn.add(p)
			}
		}
	}
}

// sortForks keeps apart the forks by which no update is lost: those of accounts that in the
// end hold what the ledger makes, at the version that it makes, and those of a transaction
// that the ledger does not have as it was sent.
func (b *balances) sortForks() {
	lost := b.chain.forks[:0]
	for _, f := range b.chain.forks {
		s, _ := b.slotAt(f.pos)
		if s.forked = true; s.closes || b.otherThanSent(f.first) || b.otherThanSent(f.second) {
			b.chain.doubled = append(b.chain.doubled, f)
		} else {
			lost = append(lost, f)
		}
	}
	b.chain.forks = lost
}

// slotAt returns the account that a position belongs to, and the version there.
func (b *balances) slotAt(p uint32) (*slot, uint32) {
	behind := sort.Search(len(b.slots.list), func(i int) bool { return b.slots.list[i].first() > p })
	s := &b.slots.list[behind-1]
	return s, p - s.base
}
