package chains

import "stroppy/internal/history"

// transaction is a transaction of the order: it was applied, or rejected because of its reads. It takes 128
// bytes, which are two adjacent cache lines. The second line holds the operations if there are at most two.
// The size matters because a history with many clients has many waiting transactions.
type transaction struct {
	id       history.ID
	try, end int64 // ns
	batch    *batch
	more     []operation // all operations if there are more than two, in the batch's memory
	lacking  int32       // number of read versions that do not exist yet
	state    state
	flags    flags
	few      uint8 // number of used elements of pair
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
	unknown                      // known from the ledger only: there is no upper bound for its time
	demanded                     // for an unknown one: its version was read
	postponed                    // it is in a heap
	announced                    // its beginning was passed on
	background                   // an audit
	anonymous                    // for an unknown one: not recorded, but its version was read
)

func (t *transaction) has(f flags) bool { return t.flags&f != 0 }

// operation is a read, or a write with the read before it.
type operation struct {
	value   int64
	writer  history.ID
	amount  int64
	version uint32
	packed  uint32 // the object's number and the flags below
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
