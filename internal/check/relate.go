package check

import (
	"math"

	"stroppy/internal/history"
)

// readFacts are reads that no order of the transactions explains: what was read
// was never there, or never should have been.
type readFacts struct {
	dirty   []oddRead // of a transfer that was not applied, or not yet
	twice   []oddRead // the transfer that was read has made an earlier version too
	garbage []oddRead // a balance that no transfer made
	balance []oddRead // the same, of an account whose books do not close in the end
	unknown []oddRead // a version that nobody made
}

// oddRead is one such read.
type oddRead struct {
	reader  uint32
	account uint64
	version uint64
	balance int64      // cents, as read
	want    int64      // cents by replay; of garbage
	last    history.ID // the transfer that the reader saw as the last one
}

// The kinds of edges of the dependency graph, and of real time.
const (
	ww uint8 = iota // the second overwrote the version that the first made
	wr              // the second read a version that the first made
	rw              // the first read a version that the second overwrote
	rt              // the first ended before the second began
)

// edges are the dependencies found, as three parallel arrays.
type edges struct {
	from, to []uint32
	kind     []uint8
	chained  int // the first of them, which follow from the chain of versions without its forks
}

func (e *edges) add(from, to uint32, kind uint8) {
	if from == to || from == none || to == none {
		return
	}
	e.from = append(e.from, from)
	e.to = append(e.to, to)
	e.kind = append(e.kind, kind)
}

// relate finds the dependencies between all transactions that were applied:
// write-write from the chain of versions, the others from what was read.
func (b *bank) relate() error {
	for p := 0; p+1 < len(b.chain.writer); p++ {
		b.edges.add(b.chain.writer[p], b.chain.writer[p+1], ww)
	}
	b.edges.chained = len(b.edges.to)
	for _, f := range b.chain.forks {
		// Both read the version before and both made this one: each of them
		// missed the other, and one overwrote the other. This is the lost update.
		b.edges.add(f.first, f.second, rw)
		b.edges.add(f.second, f.first, ww)
		b.edges.add(b.chain.writer[f.pos-1], f.second, ww)
		b.edges.add(f.second, b.chain.writer[f.pos+1], ww)
	}
	return b.each(func(t uint32, tx *history.Transaction) {
		if !b.txns.list[t].applied() {
			return
		}
		for i := range tx.Ops {
			if op := &tx.Ops[i]; op.Observed && op.Account < b.in.Accounts {
				b.relateRead(t, op)
			}
		}
	})
}

// relateRead adds the dependencies of one read, and holds it against the chain.
func (b *bank) relateRead(t uint32, op *history.Op) {
	s := b.slots.find(op.Account)
	if s == nil {
		s = &slot{n: op.Account, base: math.MaxUint32}
		if op.Version != 0 || op.Last != 0 || op.Balance != b.in.Opening(op.Account) {
			b.explain(t, s, op, none)
		}
		return
	}
	if op.Version > uint64(s.length) {
		b.explain(t, s, op, none)
		return
	}
	p := s.base + uint32(op.Version)
	writer := b.chain.writer[p]
	known := op.Version == 0 && op.Last == 0 || writer != none && b.txns.list[writer].id == op.Last
	if !known && b.forked(p, op.Last) {
		writer, _ = b.txns.find(op.Last)
		known = true
	}
	if !known {
		b.explain(t, s, op, writer)
	} else if want := b.chain.balance[p]; want != op.Balance && want != unknownBalance {
		odd := oddRead{reader: t, account: op.Account, version: op.Version, balance: op.Balance, want: want, last: op.Last}
		if s.broken {
			b.reads.balance = appendSome(b.reads.balance, odd)
		} else {
			b.reads.garbage = appendSome(b.reads.garbage, odd)
		}
	}
	next := b.next(s, p, t)
	if op.Write && next == t {
		return // its place in the chain says all that its read says
	}
	if known {
		b.edges.add(writer, t, wr)
	}
	b.edges.add(t, next, rw)
}

// next returns the transaction that made the version after position p: t itself
// if it is one of two that did.
func (b *bank) next(s *slot, p, t uint32) uint32 {
	for q := p + 1; q <= s.base+s.length; q++ {
		w := b.chain.writer[q]
		if w == none {
			continue
		}
		if w != t && q == p+1 && b.forked(q, b.txns.list[t].id) {
			return t
		}
		return w
	}
	return none
}

// forked says that id is the other of two transactions that made the version at p.
func (b *bank) forked(p uint32, id history.ID) bool {
	for _, f := range b.chain.forkAt[p] {
		if b.idOf(f.second) == id || b.idOf(f.first) == id {
			return true
		}
	}
	return false
}

func (b *bank) idOf(t uint32) history.ID {
	if t == none {
		return 0
	}
	return b.txns.list[t].id
}

// explain says why a read does not fit the ledger. writer is the transaction
// that the ledger has for the version read, none if it has none. Without a
// ledger, what may have been applied unseen accuses nobody: a transfer of
// unknown outcome, one whose legs its client did not see, one that a recording
// that was cut off does not have.
func (b *bank) explain(t uint32, s *slot, op *history.Op, writer uint32) {
	odd := oddRead{reader: t, account: op.Account, version: op.Version, balance: op.Balance, last: op.Last}
	seen, ok := b.txns.find(op.Last)
	ledger := b.in.End != nil
	switch {
	case !ok:
		if ledger || op.Last == 0 || b.recorded(op.Last.Run()) {
			b.reads.unknown = appendSome(b.reads.unknown, odd)
		}
	case !b.txns.list[seen].applied():
		if ledger || b.txns.list[seen].outcome != history.Unknown {
			b.reads.dirty = appendSome(b.reads.dirty, odd)
		}
	default:
		made := b.versionOf(s, seen)
		switch {
		case made == 0 && !ledger:
		case made != 0 && uint64(made) < op.Version && writer == none:
			b.reads.twice = appendSome(b.reads.twice, odd)
		case made != 0 && uint64(made) < op.Version && s.broken:
			b.reads.balance = appendSome(b.reads.balance, odd)
		default:
			b.reads.dirty = appendSome(b.reads.dirty, odd)
		}
	}
}

// versionOf returns the version of an account that transaction t made; 0 if none.
func (b *bank) versionOf(s *slot, t uint32) uint32 {
	for v := uint32(1); s.base != math.MaxUint32 && v <= s.length; v++ {
		if b.chain.writer[s.base+v] == t {
			return v
		}
	}
	return 0
}

// mostOdd bounds the odd reads that are kept of one kind.
const mostOdd = 1000

// appendSome keeps a bounded number of instances: a violation is told by a few.
func appendSome(list []oddRead, odd oddRead) []oddRead {
	if len(list) < mostOdd {
		list = append(list, odd)
	}
	return list
}
