package check

import (
	"context"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"stroppy/internal/history"
)

// None is the number of no transaction.
const None = ^uint32(0)

// Transaction is the checks' record of one transaction, in 48 bytes.
type Transaction struct {
	ID       history.ID
	Try, End int64  // ns since its run's start
	Sent     uint64 // sum of the hashes of its legs; equal sets of legs have equal sums
	Found    uint64 // the same sum of the legs that the ledger holds under its ID
	Want     uint16 // number of legs
	Seen     uint16 // number of legs under its ID in the ledger
	Source   uint16 // number of the history; fromLedger if only the ledger holds the transaction
	Kind     history.Kind
	Outcome  history.Outcome
	Flags    Flag
}

type Flag uint8

const (
	Tombstone Flag = 1 << iota // the ledger holds a tombstone under its ID
	Repeated                   // the ledger holds one of its legs twice
)

const FromLedger = ^uint16(0)

// Applied reports whether the writes took effect: the transaction was acknowledged, or the ledger holds it.
func (t *Transaction) Applied() bool { return t.Outcome == history.Committed || t.Seen > 0 }

// AsSent reports whether the ledger holds exactly the legs that the client sent.
func (t *Transaction) AsSent() bool {
	return t.Source != FromLedger && t.Seen > 0 && t.Seen == t.Want && t.Found == t.Sent
}

// Counts reports whether the transaction has a place in the order: its writes took effect, or it was rejected
// because of the values that it read.
func (t *Transaction) Counts() bool { return t.Applied() || t.Outcome == history.Rejected }

// Answered reports whether the client learned at t.End that the database had decided the transaction.
func (t *Transaction) Answered() bool {
	return t.Outcome == history.Committed || t.Outcome == history.Rejected && !t.Applied()
}

// Transactions is the table of all transactions with an index by ID. The sequence numbers of a client are
// consecutive, so the index is one array for each client. A client with gaps uses a map.
type Transactions struct {
	List []Transaction
	Runs []uint64 // the runs that the histories cover

	// Committed is the number of committed transactions in the recordings, without background transactions.
	Committed uint64
	inDoubt   uint64 // transactions that may have been applied, as far as their clients know

	clients map[uint64]*clientIndex
	sparse  map[history.ID]uint32
	key     uint64       // the client of the last look-up
	client  *clientIndex // the index of that client, nil at first
}

// mostTransactions limits the number of transactions in a table.
const mostTransactions = 1 << 31

func errMany() error {
	return fmt.Errorf("the history has more than the limit of %d transactions: check a shorter run", uint32(mostTransactions))
}

type clientIndex struct {
	first uint64
	at    []uint32
}

// Add appends a recorded transaction. An ID that occurs twice in a history is an error.
func (t *Transactions) Add(tx *history.Transaction, source int) error {
	if len(t.List) >= mostTransactions {
		return errMany()
	}
	t.List = append(t.List, recorded(tx, source))
	return t.index(uint32(len(t.List) - 1))
}

// recorded returns the table's record of a transaction.
func recorded(tx *history.Transaction, source int) Transaction {
	n := Transaction{
		ID: tx.ID, Try: tx.Try, End: tx.End, Kind: tx.Kind, Outcome: tx.Outcome, Source: uint16(source),
	}
	if tx.Outcome == history.Aborted {
		n.Try = tx.Sent // if it was applied, the try that succeeded is not known
	}
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Write {
			n.Sent += Hash(uint32(n.Want), op.Object, op.Amount)
			n.Want++
		}
	}
	return n
}

// blocks is a Source that knows the number of transactions in each block before it reads them.
type blocks interface {
	Blocks
	Blocks() iter.Seq2[history.Block, error]
}

// AddAll adds all transactions of a source. It uses several workers if the source has blocks.
//
// grow is called first, with the expected number of transactions. Then each is called by any worker, with the
// worker's number, a transaction and the transaction's number. An error from each ends the reading.
func (t *Transactions) AddAll(w *Watch, source Source, number, workers int, grow func(n int), each func(worker int, i uint32, tx *history.Transaction) error) error {
	from := len(t.List)
	b, ok := source.(blocks)
	var starts map[int64]int
	if ok {
		var n int
		if starts, n, ok = numberBlocks(b, from); n > mostTransactions {
			return errMany()
		} else if ok {
			t.List = Lengthen(t.List, n)
			grow(n)
		}
	}
	if !ok {
		return t.addOneByOne(w, source, number, grow, each)
	}
	err := b.EachBlock(workers, func(worker int, c *history.Cursor) error {
		start := starts[c.Block.Offset]
		for c.Next() {
			i := start + c.Record
			t.List[i] = recorded(&c.Transaction, number)
			if err := each(worker, uint32(i), &c.Transaction); err != nil {
				return refusal{err}
			}
		}
		return context.Cause(w.Ctx)
	})
	refused, ok := err.(refusal)
	switch {
	case w.Cancelled():
		return w.Err
	case ok:
		return refused.error
	case err != nil:
		return fmt.Errorf("the history could not be read: %w", err)
	}
	for i := from; i < len(t.List); i++ {
		if err := t.index(uint32(i)); err != nil {
			return err
		}
	}
	return nil
}

// Lengthen returns list with length n. It allocates a new list in untouched memory, so that several workers
// can fault in the pages at the same time.
func Lengthen[T any](list []T, n int) []T {
	if len(list) == 0 && n > cap(list) {
		return make([]T, n)
	}
	return slices.Grow(list, n-len(list))[:n]
}

// refusal is an error of one transaction, as opposed to an error of the file.
type refusal struct{ error }

// numberBlocks returns the number of the first transaction of each block, and the number that follows the
// last one. It reports false if block headers are damaged or promise more transactions than fit. The later
// reading detects the same damage.
func numberBlocks(b blocks, from int) (starts map[int64]int, n int, ok bool) {
	starts = map[int64]int{}
	n = from
	for block, err := range b.Blocks() {
		if err != nil || block.Records > block.Length {
			return nil, from, false
		}
		starts[block.Offset] = n
		n += int(block.Records)
	}
	return starts, n, true
}

// CountTransactions returns the number of transactions in sources, from the heads of their blocks. It returns 0 if a
// source has no blocks or they are damaged.
func CountTransactions(sources []Source) (n int) {
	for _, source := range sources {
		b, ok := source.(blocks)
		if !ok {
			return 0
		}
		if _, n, ok = numberBlocks(b, n); !ok {
			return 0
		}
	}
	return n
}

func (t *Transactions) addOneByOne(w *Watch, source Source, number int, grow func(n int), each func(worker int, i uint32, tx *history.Transaction) error) (problem error) {
	for rec := range Each(w, "the history", source.Transactions(), &problem) {
		if err := t.Add(rec.Transaction, number); err != nil {
			return err
		}
		grow(len(t.List))
		if err := each(0, uint32(len(t.List)-1), rec.Transaction); err != nil {
			return err
		}
	}
	return problem
}

// Resolved returns the outcomes of the transactions whose clients learned none. Call it after reading the end
// state.
func (t *Transactions) Resolved(book string) Resolved {
	r := Resolved{Unknown: t.inDoubt, By: book}
	if r.Unknown == 0 {
		return r
	}
	for i := range t.List {
		if n := &t.List[i]; n.Outcome == history.Unknown && n.Want > 0 && n.Source != FromLedger && n.Seen > 0 {
			r.Applied++
		}
	}
	return r
}

// AddFromLedger adds an entry for a transfer that no given history contains.
func (t *Transactions) AddFromLedger(id history.ID) uint32 {
	t.indexSparse(id, uint32(len(t.List)))
	t.List = append(t.List, Transaction{ID: id, Source: FromLedger})
	return uint32(len(t.List) - 1)
}

// index records the transaction's position in the list. An ID that occurs twice is an error.
func (t *Transactions) index(i uint32) error {
	n := &t.List[i]
	if n.Outcome == history.Committed && !n.Kind.Background() {
		t.Committed++
	}
	if n.Outcome == history.Unknown && n.Want > 0 {
		t.inDoubt++
	}
	id := n.ID
	if _, ok := t.Find(id); ok {
		return fmt.Errorf("the history has transaction %v twice: it is damaged, or the same history was given twice", id)
	}
	key, sequence := uint64(id)>>history.SequenceBits, id.Sequence()
	c := t.of(key)
	if c == nil {
		if t.clients == nil {
			t.clients = map[uint64]*clientIndex{}
		}
		c = &clientIndex{first: sequence}
		t.clients[key] = c
	}
	if sequence == c.first+uint64(len(c.at)) {
		c.at = append(c.at, i)
		return nil
	}
	t.indexSparse(id, i)
	return nil
}

func (t *Transactions) indexSparse(id history.ID, i uint32) {
	if t.sparse == nil {
		t.sparse = map[history.ID]uint32{}
	}
	t.sparse[id] = i
}

// of returns the index of a client. Consecutive calls usually ask for the same client.
func (t *Transactions) of(key uint64) *clientIndex {
	if t.client == nil || t.key != key {
		t.client, t.key = t.clients[key], key
	}
	return t.client
}

// Find returns the number of the transaction with this ID.
func (t *Transactions) Find(id history.ID) (uint32, bool) {
	if c := t.of(uint64(id) >> history.SequenceBits); c != nil {
		if k := id.Sequence() - c.first; k < uint64(len(c.at)) {
			return c.at[k], true
		}
	}
	if t.sparse == nil {
		return 0, false
	}
	i, ok := t.sparse[id]
	return i, ok
}

// Gap returns a missing transaction whose client sent later transactions that are present. Sequence numbers
// of a client are consecutive from 1.
//
// Gap looks only at clients for which whole reports that nothing was left out. Call it before entries are
// added from a ledger.
func (t *Transactions) Gap(whole func(client history.ID) bool) (missing history.ID, found bool) {
	apart := map[uint64][]uint64{} // by client: sequence numbers that do not follow the one before
	for id := range t.sparse {
		key := uint64(id) >> history.SequenceBits
		apart[key] = append(apart[key], id.Sequence())
	}
	for key, c := range t.clients {
		base, rest := history.ID(key<<history.SequenceBits), apart[key]
		if !whole(base) {
			continue
		}
		slices.Sort(rest)
		first := min(1, c.first)
		next, left := first, uint64(len(c.at)+len(rest))
		for {
			if next == c.first {
				next += uint64(len(c.at))
			} else if len(rest) > 0 && rest[0] == next {
				next, rest = next+1, rest[1:]
			} else {
				break
			}
		}
		if gap := base + history.ID(next); next-first < left && (!found || gap < missing) {
			missing, found = gap, true
		}
	}
	return missing, found
}

// Covers reports whether the given histories include this run.
func (t *Transactions) Covers(run uint64) bool { return slices.Contains(t.Runs, run) }

// Hash returns the hash of a leg. Number is the leg's position in its transaction, from 0. Equal sets of
// legs, and only those, have equal sums of hashes.
func Hash(number uint32, account uint64, amount int64) uint64 {
	return Mix(Mix(account+(uint64(number)+1)*0x9e3779b97f4a7c15) ^ uint64(amount))
}

// Mix is the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Sum is an exact sum of cents in 128 bits. No number of 64-bit balances overflows it.
type Sum struct{ hi, lo uint64 }

func (t *Sum) Add(cents int64) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, uint64(cents), 0)
	t.hi, _ = bits.Add64(t.hi, uint64(cents>>63), carry)
}

// Join adds another sum.
func (t *Sum) Join(other Sum) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, other.lo, 0)
	t.hi, _ = bits.Add64(t.hi, other.hi, carry)
}

func (t *Sum) Equals(cents int64) bool {
	return t.lo == uint64(cents) && t.hi == uint64(cents>>63)
}

func (t *Sum) Low() int64 { return int64(t.lo) }

// Fits reports whether the sum is a 64-bit number of cents.
func (t *Sum) Fits() bool { return t.hi == uint64(int64(t.lo)>>63) }
