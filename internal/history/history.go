// Package history stores every transaction of a run, and the end state of the database, in files. It imports
// only the standard library.
//
// Amounts and values are whole numbers of the header's unit. Times are nanoseconds since the run's start on
// one monotonic clock.
package history

import (
	"fmt"
	"strconv"
	"strings"
)

// ID identifies one transaction permanently: the run against this database, the client in that run, and the
// client's sequence number. It is below 2^63, so that signed integers of databases can hold it. Zero is no
// transaction; it is the last writer of an object that was never changed.
type ID uint64

// These are the widths of an ID's parts: 16,383 runs of 131,071 clients with 4,294,967,295 transactions each.
// The run number starts at 1.
const (
	RunBits      = 14
	ClientBits   = 17
	SequenceBits = 32
)

// NewID returns the ID with these parts. Each part must fit its width.
func NewID(run, client, sequence uint64) ID {
	return ID(run<<(ClientBits+SequenceBits) | client<<SequenceBits | sequence)
}

// Run, Client and Sequence return the parts of an ID.
func (id ID) Run() uint64      { return uint64(id) >> (ClientBits + SequenceBits) }
func (id ID) Client() uint64   { return uint64(id) >> SequenceBits & (1<<ClientBits - 1) }
func (id ID) Sequence() uint64 { return uint64(id) & (1<<SequenceBits - 1) }

// String returns the ID as run-client-sequence, such as 1-7-312.
func (id ID) String() string { return fmt.Sprintf("%d-%d-%d", id.Run(), id.Client(), id.Sequence()) }

// MarshalText returns the same text as String.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText parses the result of MarshalText. It accepts every 64-bit number, because a database may hold
// one that is not an ID.
func (id *ID) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), "-")
	if len(parts) != 3 {
		return fmt.Errorf("%q is not a transaction ID: want run-client-sequence, such as 1-7-312", text)
	}
	var numbers [3]uint64
	for i, bits := range []int{64 - ClientBits - SequenceBits, ClientBits, SequenceBits} {
		n, err := strconv.ParseUint(parts[i], 10, bits)
		if err != nil {
			return fmt.Errorf("%q is not a transaction ID: %w", text, err)
		}
		numbers[i] = n
	}
	*id = NewID(numbers[0], numbers[1], numbers[2])
	return nil
}

// Kind is the kind of a transaction: a number of the workload, from 1, times Numbered, plus flags for generic
// code. The header has the names. Zero is no kind.
type Kind uint8

// These are the parts of a Kind.
const (
	ReadOnly   Kind = 1 << iota // it changes nothing, whatever its outcome
	Background                  // it runs beside the measured clients, and only the checks count it
	Numbered                    // factor of the number; numbers up to 3 take no extra byte in the file
)

// ReadOnly reports whether a transaction of this kind changes nothing.
func (k Kind) ReadOnly() bool { return k&ReadOnly != 0 }

// Background reports whether a transaction of this kind is not measured.
func (k Kind) Background() bool { return k&Background != 0 }

// Named returns the declaration of the kind.
func (k Kind) Named(name string) Declared {
	return Declared{uint8(k), name, k.ReadOnly(), k.Background()}
}

// Outcome is the result of a transaction. The zero value is Unknown.
type Outcome uint8

const (
	Unknown   Outcome = iota // may have been applied
	Committed                // the database acknowledged it, or a look-up found it
	Rejected                 // refused by a rule of the workload: certainly not applied
	Aborted                  // certainly not applied
)

var outcomeNames = [...]string{"unknown", "committed", "rejected", "aborted"}

// MarshalText returns the name of the outcome.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("undefined %d", o)
}

// Reason is the workload's rule that rejected a transaction: a number whose name is in the header. Zero is no
// reason.
type Reason uint8

// Named returns the declaration of the reason.
func (r Reason) Named(name string) Declared { return Declared{Number: uint8(r), Name: name} }

// Transaction is one transaction as its client saw it.
//
// Due ≤ Sent ≤ Try ≤ End. Latency is End-Due and service time is End-Sent. The database decided the
// transaction within [Try, End]; for an unknown outcome there is no upper bound.
type Transaction struct {
	ID       ID
	Kind     Kind
	Outcome  Outcome
	Reason   Reason // of a rejection
	LookedUp bool   // the outcome was unknown until a look-up by ID
	Warmup   bool   // the checks count it, but it is not measured
	Attempts uint32 // tries sent to the database, at least 1
	Limit    uint32 // for a read of objects in order: the maximal number requested; otherwise 0
	Due      int64  // intended start time
	Sent     int64  // beginning of the first try
	Try      int64  // beginning of the deciding try
	End      int64  // when the client knew the outcome
	Ops      []Op   // in order of execution

	// Elements holds the elements of the lists that the transaction read, if objects are lists. Each observed
	// Op consumes Value elements.
	Elements []uint64

	// Broken holds the bytes of broken values, as far as the client kept them. Each Op with a broken value
	// consumes Value bytes, until too few are left.
	Broken []byte
}

// EachBroken calls do with each broken value whose bytes were kept.
func (tx *Transaction) EachBroken(do func(op *Op, value []byte)) {
	rest := tx.Broken
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if len(rest) == 0 || op.Observed && op.State == Broken && op.Value > int64(len(rest)) {
			return
		}
		if op.Observed && op.State == Broken && op.Value > 0 {
			do(op, rest[:op.Value])
			rest = rest[op.Value:]
		}
	}
}

// Op is a transaction's operation on one object, such as an account or a record, with the state that it
// found. A transaction has at most one Op for each object, unless objects are lists, or rows of tables that a user
// tracks.
type Op struct {
	Object   uint64 // number of the object by the workload's formula
	Write    bool   // it changed the object
	Observed bool   // State, Version, Value and Writer were read; false: the reply was lost
	State    State  // state found; 0: the workload has no states
	Amount   int64  // amount added by a write, in the workload's unit; 0 for a read
	Version  uint64 // number of earlier writes of the object
	Value    int64  // previous value, in the workload's unit
	Writer   ID     // previous writer; 0: the load
}

// State classifies a value that was found, if the workload can recognize values that were never written.
type State uint8

const (
	_       State = iota
	Absent        // there is no such object
	Whole         // every byte is as its writer wrote it
	Broken        // no writer wrote a value in this form
	Foreign       // the workload's formulas cannot produce the object
)

// Object is one object of the end state.
type Object struct {
	N       uint64
	Value   int64  // in the workload's unit
	Version uint64 // number of committed transactions that wrote it
	Writer  ID     // the last of them; 0: the load
	State   State  // state found; 0: the workload has no states
}

// Mark classifies a row of the ledger that no committed transaction left.
type Mark uint8

const (
	_         Mark = iota
	Tombstone      // a look-up did not find Transaction and closed its ID permanently
	Opening        // Amount is the balance of Object before the first run, beyond the other rows; Transaction is 0
	Unkept         // the run of Transaction, whose sequence number is 0, left no entries
)

// Row is one row of the ledger in the end state.
type Row struct {
	Transaction ID
	Number      uint32 // position within its transaction, from 0
	Mark        Mark   // kind of row; 0: an entry of the ledger
	State       State  // state found; 0: the workload has no states
	Object      uint64
	Amount      int64  // in the workload's unit
	Version     uint64 // the version of the object after this row
}
