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

// slot is the checks' record of one account that was touched.
type slot struct {
	n        uint64
	sum      int64  // sum of its ledger legs, cents
	legs     uint32 // number of ledger legs
	writes   uint32 // legs of committed transactions in the history
	highest  uint64 // the highest version that a client saw written
	base     uint32 // position of its version 0, modulo 2^32 if that has none
	lowest   uint64 // without an end state: the first version seen, plus 1; 0: none
	low      uint32 // the first version with a position
	length   uint32 // its highest position is base+length
	vanished uint32 // the first version whose maker was acknowledged but is lost; 0: none
	forked   bool   // two transactions made the same version of it
	outside  bool   // a leg has a version beyond every bound
	closes   bool   // the final balance and version agree with the ledger
	there    bool   // it exists in the end state
	broken   bool   // its versions are not consecutive, so replayed balances are not known
}

// first returns the first position.
func (s *slot) first() uint32 { return s.base + s.low }

// slots maps touched accounts to slots. It uses an array over all accounts of the load up to 512 MB (4 MB for a part of
// a history). It uses a map for other accounts.
type slots struct {
	dense  []uint32 // slot + 1
	sparse map[uint64]uint32
	list   []slot
}

const (
	denseAccounts = 1 << 27
	denseInPart   = 1 << 20 // for parts of a history, which are checked frequently
)

// find returns the slot of account n, or nil if it was never touched.
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

// touch returns the slot of account n and creates it if necessary; n must be within bounds.
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

// chain holds every version of every account in one array of positions. The versions of an account are
// consecutive, starting at position base with version 0, which the load made. So the next position is the
// next version. The position after an account's last one is version 0 of another account, which no
// transaction wrote.
type chain struct {
	writer  []uint32 // the transaction that made this version
	balance []int64  // cents after this version, by replay; unknownBalance: not known
	forks   []fork   // versions made by two transactions, of which one effect is lost
	doubled []fork   // likewise, without a lost effect: the ledger has a wrong version or leg
	forkAt  map[uint32][]fork
	outside []uint32 // transactions with a leg whose version is beyond every bound

	overdrawn few[uint32] // versions, except the last, with a negative balance
}

const unknownBalance = math.MinInt64

// fork is a version of an account that two transactions made.
type fork struct {
	pos           uint32
	first, second uint32
}

// mostTrusted limits the positions for selected transactions of a long history: 400 MB.
const mostTrusted = 1 << 25

// layOut assigns positions to every touched account. The known number of writes limits the length of an
// account, so that a damaged version number cannot exhaust the memory.
func (b *balances) layOut() error {
	next := uint64(0)
	for i := range b.slots.list {
		s := &b.slots.list[i]
		if s.lowest > 1 && s.lowest-1 <= s.highest { // a part of a recording begins in the middle of a chain
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
		return fmt.Errorf("the versions of %d accounts are too far apart for one check: check fewer runs", len(b.slots.list))
	}
	if next >= uint64(check.None) {
		return fmt.Errorf("the %s has %d %ss, which is above the limit: check a shorter run", b.Words.Book, next, b.Words.Part)
	}
	b.chain.writer = make([]uint32, next+1)
	for i := range b.chain.writer {
		b.chain.writer[i] = check.None
	}
	b.chain.balance, b.chain.forkAt = make([]int64, next+1), map[uint32][]fork{}
	return nil
}

// place records transaction t as the maker of a version.
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

// placeLedger places every ledger leg at its version.
func (b *balances) placeLedger() error {
	return b.eachLeg(func(leg history.Row) {
		if leg.Mark == history.Tombstone || !b.has(leg.Object) {
			return
		}
		t, _ := b.Txns.Find(leg.Transaction)
		b.place(b.slots.touch(leg.Object), leg.Version, leg.Amount, t)
	})
}

// placeUnledgered places the acknowledged transfers that are missing in the ledger where their clients saw
// them. Then it replays the balances.
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

// placeKnown places the transactions whose ledger legs are known without the ledger.
func (b *balances) placeKnown() {
	for id, rows := range b.legs {
		t, ok := b.Txns.Find(id)
		if !ok {
			continue
		}
		for i := range rows {
			b.Txns.List[t].Seen++
			b.Txns.List[t].Found += check.Hash(rows[i].Number, rows[i].Object, rows[i].Amount)
			if b.focus.covers(rows[i].Object) {
				b.place(b.slots.touch(rows[i].Object), rows[i].Version, rows[i].Amount, t)
			}
		}
	}
}

// placeOwn places a transfer as its client saw it. If the ledger names another maker of the version, this
// transfer is lost and its version was made again.
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

// overwroteRead reports whether a transaction made the version after the one that it read. The ledger shows
// the actual version. Without a ledger, this holds from snapshot isolation on; a weaker level allows writes
// in between.
func (b *balances) overwroteRead() bool {
	return b.Input.End != nil || b.byLedger() || overwritesRead(b.Input.Expect)
}

// overwritesRead reports whether a claim includes snapshot isolation. An unknown claim does.
func overwritesRead(claim isolation.Level) bool {
	return claim == isolation.Unknown || claim.Includes(isolation.SnapshotIsolation)
}

// byLedger reports whether the ledger proved the versions.
func (b *balances) byLedger() bool { return b.trusted && !b.open }

// replay computes balances from the amounts, as far as the versions are consecutive and not forked.
func (b *balances) replay() {
	for i := range b.slots.list {
		s := &b.slots.list[i]
		balance := b.in.Opening(s.n)
		known := s.low == 0 && b.overwroteRead()
		if b.chain.balance[s.first()] = balance; !known {
			b.chain.balance[s.first()] = unknownBalance
		}
		for p := s.first() + 1; p <= s.base+s.length && !b.Watch.Ended(); p++ {
			// After a version whose maker is lost, others may have made the same numbers again from another
			// balance.
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

// sortForks separates the forks without a lost update. Their accounts agree with the ledger at the end, or the ledger
// has the transaction in another form than sent.
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

// slotAt returns the account and the version of a position.
func (b *balances) slotAt(p uint32) (*slot, uint32) {
	behind := sort.Search(len(b.slots.list), func(i int) bool { return b.slots.list[i].first() > p })
	s := &b.slots.list[behind-1]
	return s, p - s.base
}
