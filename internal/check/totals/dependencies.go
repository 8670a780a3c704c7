package totals

import (
	"cmp"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// readFacts holds reads that no order of the transactions explains: the value never existed or never should
// have.
type readFacts struct {
	dirty   []oddRead   // of a transfer that was not applied, or not yet
	again   []seenAgain // of a transfer that the ledger has at another version
	twice   []seenAgain // the elements of again whose transfer was applied twice
	unsure  []seenAgain // the elements of again for which the balances do not decide
	garbage []oddRead   // of a balance that no transfer made
	balance []oddRead   // likewise, of an account that disagrees with the ledger at the end
	unknown []oddRead   // of a version that no transaction made

	searched int // number of searches of an account for a read's writer
}

// These anomalies are such reads.
const (
	dirtyRead   = "dirty read (G1a)"
	garbageRead = "garbage read"
	nobodysRead = "read of a version that nobody made"
)

type oddRead struct {
	reader  uint32
	account uint64
	version uint64
	balance int64      // cents, as read
	want    int64      // cents by replay; for garbage
	last    history.ID // the last transfer according to the reader
}

// relate finds the dependencies between all transactions that were applied, or rejected because of their
// reads. Write-write dependencies follow from the chain of versions, the others from reads. On accounts with
// forked versions, only reads determine an order.
func (b *balances) relate() error {
	b.sortForks()
	if err := b.distrust(); err != nil {
		return err
	}
	for i := range b.slots.list {
		s := &b.slots.list[i]
		for p := s.first(); p < s.base+s.length && !s.forked && !b.Watch.Ended(); p++ {
			b.edges.Add(b.chain.writer[p], b.chain.writer[p+1], graph.Ww)
		}
	}
	var reads versionChains
	err := b.Each(func(t uint32, tx *history.Transaction) {
		if !b.Txns.List[t].Counts() {
			return
		}
		for i := range tx.Ops {
			if op := &tx.Ops[i]; op.Observed && b.has(op.Object) {
				b.relateRead(t, op, &reads)
			}
		}
	})
	reads.relate(&b.edges, &b.Watch)
	return cmp.Or(err, b.relatePredicates())
}

// versionChains holds the reads of accounts with forked versions, where version numbers define no order: if
// two transfers both read version 6 and made version 7, one may have been written after the other's version
// 8. The reads still show an order: a reader of a version follows its maker, and precedes every other
// transaction that overwrote this version.
type versionChains []chainRead

// chainRead is a read by t of the version of an account that maker made.
type chainRead struct {
	account  uint64
	version  uint64
	maker, t uint32
	write    bool // t overwrote the version
}

func (l versionChains) relate(e *graph.Edges, w *check.Watch) {
	slices.SortFunc(l, func(a, b chainRead) int {
		if w.Ended() {
			return 0
		}
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.version, b.version), cmp.Compare(a.maker, b.maker), cmp.Compare(a.t, b.t))
	})
	for len(l) > 0 && !w.Ended() {
		n := 1
		for n < len(l) && l[n].account == l[0].account && l[n].version == l[0].version && l[n].maker == l[0].maker {
			n++
		}
		for _, read := range l[:n] {
			e.Add(read.maker, read.t, graph.Wr)
			for _, other := range l[:n] {
				if other.write {
					e.Add(read.t, other.t, graph.Rw)
				}
			}
		}
		l = l[n:]
	}
}

// relateRead adds the dependencies of one read, and compares the read with the chain.
func (b *balances) relateRead(t uint32, op *history.Op, forks *versionChains) {
	s := b.slots.find(op.Object)
	if s == nil {
		s = &slot{n: op.Object}
		opening := b.in.Opening(op.Object)
		switch {
		case op.Version != 0 || op.Writer != 0:
			b.explain(t, s, op, check.None)
		case op.Value != opening:
			b.odd(&b.reads.garbage, check.Serializable, garbageRead, oddRead{reader: t, account: op.Object, balance: op.Value, want: opening})
		}
		return
	}
	if op.Version > uint64(s.length) {
		b.explain(t, s, op, check.None)
		return
	}
	p := s.base + uint32(op.Version)
	writer := b.chain.writer[p]
	known := op.Version == 0 && op.Writer == 0 || writer != check.None && b.Txns.List[writer].ID == op.Writer
	if !known && b.forked(p, op.Writer) {
		writer, _ = b.Txns.Find(op.Writer)
		known = true
	}
	if !known {
		b.explain(t, s, op, writer)
	} else if want := b.chain.balance[p]; want != op.Value && want != unknownBalance {
		odd := oddRead{reader: t, account: op.Object, version: op.Version, balance: op.Value, want: want, last: op.Writer}
		if s.broken {
			b.odd(&b.reads.balance, check.Ledger, "", odd)
		} else {
			b.odd(&b.reads.garbage, check.Serializable, garbageRead, odd)
		}
	}
	if s.forked {
		if known {
			*forks = append(*forks, chainRead{op.Object, op.Version, writer, t, op.Write && b.Txns.List[t].Applied()})
		}
		return
	}
	next := b.next(s, p)
	if op.Write && next == t {
		return // its position in the chain implies the dependencies of its read
	}
	if known {
		b.edges.Add(writer, t, graph.Wr)
	}
	b.edges.Add(t, next, graph.Rw)
}

// next returns the transaction that made the version after position p. The account must have no forks.
func (b *balances) next(s *slot, p uint32) uint32 {
	for q := p + 1; q <= s.base+s.length; q++ {
		if w := b.chain.writer[q]; w != check.None {
			return w
		}
	}
	return check.None
}

// forked reports whether id is the second of two transactions that made the version at p.
func (b *balances) forked(p uint32, id history.ID) bool {
	return slices.ContainsFunc(b.chain.forkAt[p], func(f fork) bool { return b.IDOf(f.second) == id || b.IDOf(f.first) == id })
}

// explain determines why a read does not fit the ledger. writer is the ledger's maker of the version, or None. Without
// a ledger, transactions that may have been applied unseen are not accused. Their outcome is unknown, their clients did
// not see their legs, or they are missing in a recording that was cut off.
func (b *balances) explain(t uint32, s *slot, op *history.Op, writer uint32) {
	odd := oddRead{reader: t, account: op.Object, version: op.Version, balance: op.Value, last: op.Writer}
	seen, ok := b.Txns.Find(op.Writer)
	ledger := b.Input.End != nil
	switch {
	case !ok:
		if ledger || op.Writer == 0 || b.Recorded(op.Writer) {
			b.odd(&b.reads.unknown, check.Serializable, nobodysRead, odd)
		}
	case !b.Txns.List[seen].Applied():
		if ledger || b.Txns.List[seen].Outcome != history.Unknown {
			b.odd(&b.reads.dirty, check.Serializable, dirtyRead, odd)
		}
	case b.reads.searched == mostSearches: // each search found a violation
		b.showOdd(check.Serializable, "odd read", odd)
	case ledger: // the ledger decides after everything was read
		b.reads.searched++
		b.reads.again = append(b.reads.again, seenAgain{odd, b.versionOf(s, seen), writer != check.None})
	default:
		switch made := b.versionOf(s, seen); {
		case made == 0 || uint64(made) < op.Version && (writer == check.None || !b.overwroteRead()):
		case uint64(made) < op.Version && s.broken:
			b.odd(&b.reads.balance, check.Ledger, "", odd)
		default:
			b.odd(&b.reads.dirty, check.Serializable, dirtyRead, odd)
		}
	}
}

// versionOf returns the version of an account that transaction t made, also as one of two makers, and 0 if
// there is none.
func (b *balances) versionOf(s *slot, t uint32) uint32 {
	for v := s.low + 1; v <= s.length && !b.Watch.Ended(); v++ {
		p := s.base + v
		if b.chain.writer[p] == t || s.forked && slices.ContainsFunc(b.chain.forkAt[p], func(f fork) bool { return f.second == t }) {
			return v
		}
	}
	return 0
}

// mostOdd limits the odd reads of one kind that are kept.
const mostOdd = 1000

// mostSearches limits the searches through all versions of an account. A completely wrong database must not
// take quadratic time.
const mostSearches = 10 * mostOdd

// odd keeps a limited number of instances and passes on all of them.
func (b *balances) odd(list *[]oddRead, check, anomaly string, odd oddRead) {
	b.showOdd(check, anomaly, odd)
	if len(*list) < mostOdd {
		*list = append(*list, odd)
	}
}
