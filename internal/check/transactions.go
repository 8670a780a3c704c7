package check

import (
	"fmt"
	"math/bits"

	"stroppy/internal/history"
)

// none is no transaction.
const none = ^uint32(0)

// txn is what the checks keep of one transaction: 48 bytes.
type txn struct {
	id       history.ID
	try, end int64  // ns since its run's start
	legs     uint64 // sum of the hashes of its legs: equal for equal sets of legs
	ledger   uint64 // the same of what the ledger has under its id
	want     uint16 // legs that it has
	seen     uint16 // legs under its id in the ledger
	source   uint16 // which history; fromLedger if it is known from the ledger alone
	kind     history.Kind
	outcome  history.Outcome
	flags    flag
}

type flag uint8

const (
	voided   flag = 1 << iota // the ledger has a tombstone under its id
	repeated                  // the ledger has one of its legs twice
)

const fromLedger = ^uint16(0)

// applied says that its writes happened: it was acknowledged, or the ledger has
// it whatever its client was told.
func (t *txn) applied() bool { return t.outcome == history.Committed || t.seen > 0 }

// counts says that it takes a place in the order: its writes happened, or it was
// refused, and what it had read is what the refusal rests on.
func (t *txn) counts() bool { return t.applied() || t.outcome == history.Rejected }

// answered says that its client learned at t.end that the database had decided it.
func (t *txn) answered() bool {
	return t.outcome == history.Committed || t.outcome == history.Rejected && !t.applied()
}

// transactions is the table of all transactions and the index from their ids.
// A client's sequence numbers follow each other, so the index is an array a
// client; one with gaps falls back to a map.
type transactions struct {
	list    []txn
	runs    []uint64 // the runs that the histories cover
	clients map[uint64]*clientIndex
	sparse  map[history.ID]uint32
}

type clientIndex struct {
	first uint64
	at    []uint32
}

// add appends a recorded transaction. The same id twice in a history is damage.
func (t *transactions) add(tx *history.Transaction, source int) error {
	if len(t.list) >= 1<<31 {
		return fmt.Errorf("the history has more than %d transactions, which is more than one check takes", uint32(1<<31))
	}
	if _, ok := t.find(tx.ID); ok {
		return fmt.Errorf("the history has transaction %v twice: it is damaged, or the same history was given twice", tx.ID)
	}
	n := txn{
		id: tx.ID, try: tx.Try, end: tx.End, kind: tx.Kind, outcome: tx.Outcome, source: uint16(source),
	}
	if tx.Outcome == history.Aborted {
		n.try = tx.Sent // if it was applied after all, nobody knows by which try
	}
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Write {
			n.want++
			n.legs += legHash(op.Account, op.Amount)
		}
	}
	t.index(tx.ID, uint32(len(t.list)))
	t.list = append(t.list, n)
	return nil
}

// addFromLedger makes an entry for a transfer that no given history has.
func (t *transactions) addFromLedger(id history.ID) uint32 {
	i := uint32(len(t.list))
	if t.sparse == nil {
		t.sparse = map[history.ID]uint32{}
	}
	t.sparse[id] = i
	t.list = append(t.list, txn{id: id, source: fromLedger})
	return i
}

func (t *transactions) index(id history.ID, i uint32) {
	key, sequence := uint64(id)>>history.SequenceBits, id.Sequence()
	c := t.clients[key]
	if c == nil {
		if t.clients == nil {
			t.clients = map[uint64]*clientIndex{}
		}
		c = &clientIndex{first: sequence}
		t.clients[key] = c
	}
	if sequence == c.first+uint64(len(c.at)) {
		c.at = append(c.at, i)
		return
	}
	if t.sparse == nil {
		t.sparse = map[history.ID]uint32{}
	}
	t.sparse[id] = i
}

// find returns the transaction of an id.
func (t *transactions) find(id history.ID) (uint32, bool) {
	if c := t.clients[uint64(id)>>history.SequenceBits]; c != nil {
		if k := id.Sequence() - c.first; k < uint64(len(c.at)) {
			return c.at[k], true
		}
	}
	i, ok := t.sparse[id]
	return i, ok
}

// covers says that the histories given include this run.
func (t *transactions) covers(run uint64) bool {
	for _, r := range t.runs {
		if r == run {
			return true
		}
	}
	return false
}

// legHash mixes a leg so that a sum of hashes tells sets of legs apart: the
// finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) over both numbers.
func legHash(account uint64, amount int64) uint64 {
	return mix(mix(account+0x9e3779b97f4a7c15) ^ uint64(amount))
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// total is an exact sum of cents in 128 bits, which no number of 64-bit
// balances overflows.
type total struct{ hi, lo uint64 }

func (t *total) add(cents int64) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, uint64(cents), 0)
	t.hi, _ = bits.Add64(t.hi, uint64(cents>>63), carry)
}

func (t *total) equals(cents int64) bool {
	return t.lo == uint64(cents) && t.hi == uint64(cents>>63)
}

func (t *total) low() int64 { return int64(t.lo) }

// fits says that the sum is a 64-bit number of cents.
func (t *total) fits() bool { return t.hi == uint64(int64(t.lo)>>63) }
