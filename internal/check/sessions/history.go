// Package sessions decides which isolation levels a history of registers satisfies: what
// the transactions of some sessions read and wrote, each value written once per key, and
// nothing else known, neither times nor the order of the versions.
//
// The levels are those of Biswas and Enea (On the Complexity of Checking Transactional
// Consistency, OOPSLA 2019): a history satisfies one when its transactions have an order
// (the commit order) that agrees with the order of each session (so) and with who read
// from whom (wr), and in which, where t3 reads a key from t1 and another t2 writes that
// key too, t2 comes before t1 if
//
//	read committed   t3 had read something from t2 earlier
//	read atomic      t2 comes directly before t3 by so or wr
//	causal           t2 comes before t3 by so and wr, in any number of steps
//
// So each level is an order that must have no cycle: what is inferred is inferred from so
// and wr alone, which do not change. That the three take no more than O(n^3/2), O(n^3/2)
// and O(n·k) steps for n operations of k sessions is Møldrup and Pavlogiannis's (AWDIT: An
// Optimal Weak Database Isolation Tester, PLDI 2025).
package sessions

import (
	"fmt"
	"math"
	"time"

	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// History is what was recorded. Keys that nobody wrote hold 0.
type History struct {
	Sessions     []Session
	Transactions []Transaction // of the first session in its order, then of the second …
	Ops          []Op          // of the first transaction in its order, then of the second …
	Aborted      []Op          // writes of transactions that were aborted

	// Times are the places of the transactions in the order of all beginnings and ends; nil: only
	// the order of each session is known.
	Times *Times

	Words Words
}

// Times are places in an order, by transaction. They have no unit.
type Times struct {
	Begin, End []int64 // the end of a transaction whose outcome nobody learned is Never
	Real       bool    // the order is that of real time; else only that of the sessions of each process

	// Lasted returns how long after the end of a transaction another one began, both by their
	// indexes, and whether the history has that. It may be nil.
	Lasted func(ended, began int) (time.Duration, bool)
}

// Never is the end of a transaction whose outcome nobody learned.
const Never = graph.Never

// Words write what a history has for people. What is nil is written as a number.
type Words struct {
	Key, Value  func(int64) string
	Transaction func(name int64) string
}

// Session is a sequence of transactions, one after another.
type Session struct {
	Name int64 // as the history calls it
	End  int   // the index behind its last transaction; its first is at the End of the session before it

	// A transaction whose outcome its process did not learn is a session of its own if the
	// process went on. After is the index, from 1, of the transaction that it comes after; 0 is none.
	Process uint32 // the same for all sessions of a process
	After   int
}

// Transaction was committed.
type Transaction struct {
	Name int64
	End  int // the index behind its last operation
}

// Op is a read or a write of a value.
type Op struct {
	Key, Value int64
	Line       uint32 // where the history has it, from 1
	Write      bool
}

// InputError is what is wrong with a history itself, in a sentence. Nothing can be said
// about its isolation then.
type InputError struct {
	Line uint32 // from 1; 0: none in particular
	What string
}

func (e *InputError) Error() string { return e.What }

// MostSessions is how many sessions a history may have: what an ID has room for.
const MostSessions = 1<<history.ClientBits - 1

// Most is how many operations a history may have.
const Most = math.MaxInt32

// ID is what results call transaction n, counted from 0, of the session with this index.
func ID(session, n int) history.ID { return history.NewID(1, uint64(session), uint64(n)+1) }

// Find returns the session and the transaction of an ID. The initial transaction, which
// wrote 0 to all keys, is the ID 0, and has none.
func (h *History) Find(id history.ID) (Session, Transaction) {
	s := int(id.Client())
	first := 0
	if s > 0 {
		first = h.Sessions[s-1].End
	}
	return h.Sessions[s], h.Transactions[first+int(id.Sequence())-1]
}

// Name is how sentences call the transaction of an ID.
func (h *History) Name(id history.ID) string {
	if id == 0 {
		return "the initial state"
	}
	s, t := h.Find(id)
	if h.Words.Transaction != nil {
		return h.Words.Transaction(t.Name)
	}
	return fmt.Sprintf("transaction %d of session %d", t.Name, s.Name)
}

// object is how sentences call the key of an operation.
func (h *History) object(op *Op) string {
	if h.Words.Key != nil {
		return h.Words.Key(op.Key)
	}
	return fmt.Sprintf("key %d", op.Key)
}

// value is how sentences write a value.
func (h *History) value(v int64) string {
	if h.Words.Value != nil {
		return h.Words.Value(v)
	}
	return fmt.Sprint(v)
}
