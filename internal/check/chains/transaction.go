package chains

import "stroppy/internal/history"

// transaction is one that counts: it was applied, or refused for what it had read. It takes
// 128 bytes, two adjacent lines of a processor's cache, of which the second has the
// operations where there are no more than two: a history with many clients has many of them
// waiting.
type transaction struct {
	id       history.ID
	try, end int64 // ns
	batch    *batch
	more     []operation // all of them, where there are more than two, in the memory of the batch
	lacking  int32       // reads of versions that are not there yet
	state    state
	flags    flags
	few      uint8 // how many of pair there are
	pair     [2]operation
}

func (t *transaction) operations() []operation {
	if t.few > 0 {
		return t.pair[:t.few]
	}
	return t.more
}

type flags uint8

const (
	reader     flags = 1 << iota // it writes nothing
	unknown                      // applied by the ledger alone: nobody knows when at the latest
	demanded                     // of an unknown one: somebody read what it made
	postponed                    // it is in a heap
	announced                    // its beginning was handed over
	background                   // it is an audit
	anonymous                    // of an unknown one: it is not recorded, and others read what it made
)

func (t *transaction) has(f flags) bool { return t.flags&f != 0 }

// operation is a read, or a write and what was read before it.
type operation struct {
	value   int64
	writer  history.ID
	amount  int64
	version uint32
	packed  uint32 // the object's number, and what the constants say
}

const (
	write      = 1 << 31
	seen       = 1 << 30 // value and writer were read
	objectBits = seen - 1
)

func (o *operation) object() uint32 { return o.packed & objectBits }
func (o *operation) write() bool    { return o.packed&write != 0 }
func (o *operation) seen() bool     { return o.packed&seen != 0 }

func newOperation(op *history.Op, writes bool) operation {
	o := operation{value: op.Value, writer: op.Writer, amount: op.Amount, version: uint32(op.Version), packed: uint32(op.Object)}
	if writes {
		o.packed |= write
	}
	if op.Observed {
		o.packed |= seen
	}
	return o
}
