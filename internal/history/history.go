// Package history is the record of every transaction of a run, and of the end
// state that the database was found in: the types, and the files they are kept
// in. It is a leaf: it imports nothing but the standard library.
//
// Amounts and values are whole numbers of the header's unit. Times are nanoseconds
// since the run's start on one monotonic clock.
package history

import (
	"fmt"
	"strconv"
	"strings"
)

// ID names one transaction for ever: the run against this database, the
// client in that run, and the client's own sequence number. It stays below 2^63,
// so that every database's signed integer holds it. Zero is no transaction: an
// object that was never touched carries it as its last one.
type ID uint64

// The widths of an ID's parts: 16 383 runs of 131 071 clients of 4 294 967 295
// transactions each. The run number starts at 1.
const (
	RunBits      = 14
	ClientBits   = 17
	SequenceBits = 32
)

// NewID builds an ID; each part must fit its width.
func NewID(run, client, sequence uint64) ID {
	return ID(run<<(ClientBits+SequenceBits) | client<<SequenceBits | sequence)
}

// Run, Client and Sequence return the parts of an ID.
func (id ID) Run() uint64      { return uint64(id) >> (ClientBits + SequenceBits) }
func (id ID) Client() uint64   { return uint64(id) >> SequenceBits & (1<<ClientBits - 1) }
func (id ID) Sequence() uint64 { return uint64(id) & (1<<SequenceBits - 1) }

// String returns the ID as reports show it, run-client-sequence, such as 1-7-312.
func (id ID) String() string { return fmt.Sprintf("%d-%d-%d", id.Run(), id.Client(), id.Sequence()) }

// MarshalText carries an ID through JSON as reports show it.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText writes. Every 64-bit number comes back as it was, although a database
// may hold one that is no ID.
func (id *ID) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), "-")
	if len(parts) != 3 {
		return fmt.Errorf("%q is not the id of a transaction, such as 1-7-312", text)
	}
	var numbers [3]uint64
	for i, bits := range []int{64 - ClientBits - SequenceBits, ClientBits, SequenceBits} {
		n, err := strconv.ParseUint(parts[i], 10, bits)
		if err != nil {
			return fmt.Errorf("%q is not the id of a transaction: %w", text, err)
		}
		numbers[i] = n
	}
	*id = NewID(numbers[0], numbers[1], numbers[2])
	return nil
}

// Kind says what a transaction is: a number of the workload's own, from 1, times
// Numbered, and what generic code must know of it. The header has the names. Zero is no
// kind.
type Kind uint8

// The parts of a Kind.
const (
	ReadOnly   Kind = 1 << iota // it changes nothing: whatever became of it, it is as if it had not been
	Background                  // it runs besides the measured clients, and counts for the checks alone
	Numbered                    // times the number; up to 3 take no byte more in the file
)

// ReadOnly says that a transaction of this kind changes nothing.
func (k Kind) ReadOnly() bool { return k&ReadOnly != 0 }

// Background says that it is not measured.
func (k Kind) Background() bool { return k&Background != 0 }

// Named declares the kind.
func (k Kind) Named(name string) Declared {
	return Declared{uint8(k), name, k.ReadOnly(), k.Background()}
}

// Outcome says how a transaction ended. The zero value is unknown.
type Outcome uint8

const (
	Unknown   Outcome = iota // may have been applied: nobody could say
	Committed                // the database acknowledged it, or a look-up found it
	Rejected                 // refused by a rule of the workload: surely not applied
	Aborted                  // surely not applied
)

var outcomeNames = [...]string{"unknown", "committed", "rejected", "aborted"}

// MarshalText carries an outcome through JSON by name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("undefined %d", o)
}

// Reason says which rule of the workload rejected a transaction: a number of the
// workload's own, which the header names. Zero is none.
type Reason uint8

// Named declares the reason.
func (r Reason) Named(name string) Declared { return Declared{Number: uint8(r), Name: name} }

// Transaction is one transaction as its client saw it.
//
// Due ≤ Sent ≤ Try ≤ End. Latency is End-Due, service time is End-Sent. The
// interval in which the database decided it is [Try, End]; of an unknown one
// there is no upper bound.
type Transaction struct {
	ID       ID
	Kind     Kind
	Outcome  Outcome
	Reason   Reason // of a rejected one
	LookedUp bool   // the outcome was unknown and a look-up by id settled it
	Warmup   bool   // it counts for the checks but is not measured
	Attempts uint32 // tries sent to the database, at least 1
	Limit    uint32 // of one that reads objects in their order: the most that it asked for; else 0
	Due      int64  // when the pacing wanted it sent
	Sent     int64  // when the first try began
	Try      int64  // when the deciding try began
	End      int64  // when the outcome was known to the client
	Ops      []Op   // in the order they were done

	// Elements are those of the lists that the transaction has read, where objects are
	// lists: each observed Op takes the next ones, as many as its Value says.
	Elements []uint64

	// Broken are the bytes of what was found Broken, as far as the client kept them: each such
	// Op takes the next ones, as many as its Value says, until too few are left.
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

// Op is what a transaction did to one object, such as an account or a record, and what
// it saw there before. A transaction has at most one Op an object, except where objects
// are lists.
type Op struct {
	Object   uint64 // its number by the workload's formula
	Write    bool   // it changed the object
	Observed bool   // State, Version, Value and Writer were read; false where the reply was lost
	State    State  // of what was found; 0 where the workload has no states
	Amount   int64  // what a write added, in the workload's unit; 0 of a read
	Version  uint64 // writes that the object had seen before
	Value    int64  // what it held before, in the workload's unit
	Writer   ID     // the last transaction that had written it; 0 for the load
}

// State says of a value what was found of it, where a workload's values can be
// distinguished from what nobody wrote.
type State uint8

const (
	_       State = iota
	Absent        // there was no such object
	Whole         // every byte was as its writer had written it
	Broken        // a value was there that no writer wrote like this
	Foreign       // an object was there that no formula makes
)

// Object is one object of the end state.
type Object struct {
	N       uint64
	Value   int64  // in the workload's unit
	Version uint64 // committed transactions that wrote it
	Writer  ID     // the last of them; 0 for the load
	State   State  // of what was found; 0 where the workload has no states
}

// Mark says what a row of the ledger is that no committed transaction left.
type Mark uint8

const (
	_         Mark = iota
	Tombstone      // the look-up of Transaction found nothing and closed the id for ever
	Opening        // Amount is what Object held before the first run, beyond what the other rows say; Transaction is 0
	Unkept         // the run of Transaction, whose sequence number is 0, left no entries
)

// Row is one row of the ledger in the end state.
type Row struct {
	Transaction ID
	Number      uint32 // of this row within its transaction, from 0
	Mark        Mark   // whether it is something else than an entry of the ledger
	State       State  // of what was found; 0 where the workload has no states
	Object      uint64
	Amount      int64  // in the workload's unit
	Version     uint64 // the version of the object that this row made
}
