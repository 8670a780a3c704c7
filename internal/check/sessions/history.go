// Package sessions decides which isolation levels a history of registers satisfies. The history contains only
// what the transactions of several sessions read and wrote, with each value written at most once per key.
// Times and the order of the versions are not needed.
//
// The levels are defined by Biswas and Enea (On the Complexity of Checking Transactional Consistency, OOPSLA 2019). A
// history satisfies a level if its transactions have a commit order. The commit order must agree with the order of each
// session (so) and with the reads (wr). In addition, if t3 reads a key from t1 and another transaction t2 writes that
// key, t2 must precede t1 if
//
//	read committed   t3 had read something from t2 earlier
//	read atomic      t2 directly precedes t3 by so or wr
//	causal           t2 precedes t3 by so and wr, in any number of steps
//
// So a level holds if the resulting edges have no cycle; they are inferred from so and wr alone, which do not
// change. For n operations of k sessions, the three levels take at most O(n^3/2), O(n^3/2) and O(n·k) steps
// (Møldrup and Pavlogiannis, AWDIT: An Optimal Weak Database Isolation Tester, PLDI 2025).
package sessions

import (
	"fmt"
	"math"
	"time"

	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// History is a recorded history. Keys that no transaction wrote hold 0.
type History struct {
	Sessions     []Session
	Transactions []Transaction // the transactions of the first session in order, then the second …
	Ops          []Op          // the operations of the first transaction in order, then the second …
	Aborted      []Op          // writes of aborted transactions

	// Times holds the positions of the transactions in the order of all beginnings and ends. If it is nil,
	// only the order of each session is known.
	Times *Times

	Words Words
}

// Times holds positions in an order, by transaction. They have no unit.
type Times struct {
	Begin, End []int64 // the end of a transaction without a known outcome is Never
	Real       bool    // the order is real time; otherwise the order of each process's sessions

	// Lasted returns the time between the end of one transaction and the beginning of another, given their
	// indices. It reports false if the history does not contain that time. It may be nil.
	Lasted func(ended, began int) (time.Duration, bool)
}

// Never is the end of a transaction without a known outcome.
const Never = graph.Never

// Words formats the values of a history. A nil function formats a value as a number.
type Words struct {
	Key, Value  func(int64) string
	Transaction func(name int64) string
}

// Session is a sequence of transactions that ran one after another.
type Session struct {
	Name int64 // the name in the history
	End  int   // the index after its last transaction; its first is at the End of the previous session

	// A transaction without a known outcome becomes a session of its own if its process continued. Process is
	// equal for all sessions of a process. After is the index, from 1, of the transaction that the session
	// follows; 0: none.
	Process uint32
	After   int
}

// Transaction is a committed transaction.
type Transaction struct {
	Name int64
	End  int // the index after its last operation
}

// Op is a read or a write of a value.
type Op struct {
	Key, Value int64
	Line       uint32 // line in the file, from 1
	Write      bool
}

// InputError describes an error of a history itself in one sentence. Such a history shows nothing about
// isolation.
type InputError struct {
	Line int // in the file, from 1; 0: no particular line
	What string
}

func (e *InputError) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

// MostSessions is the maximal number of sessions in a history. An ID has no room for more.
const MostSessions = 1<<history.ClientBits - 1

// Most is the maximal number of operations in a history.
const Most = math.MaxInt32

// ID returns the ID in results of transaction n, counted from 0, of a session.
func ID(session, n int) history.ID { return history.NewID(1, uint64(session), uint64(n)+1) }

// Find returns the session and the transaction of an ID. ID 0 is the initial transaction, which wrote 0 to
// all keys and must not be passed.
func (h *History) Find(id history.ID) (Session, Transaction) {
	s := int(id.Client())
	first := 0
	if s > 0 {
		first = h.Sessions[s-1].End
	}
	return h.Sessions[s], h.Transactions[first+int(id.Sequence())-1]
}

// Name returns the name of a transaction in sentences.
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

// object returns the name of an operation's key in sentences.
func (h *History) object(op *Op) string {
	if h.Words.Key != nil {
		return h.Words.Key(op.Key)
	}
	return fmt.Sprintf("key %d", op.Key)
}

// value returns the text of a value in sentences.
func (h *History) value(v int64) string {
	if h.Words.Value != nil {
		return h.Words.Value(v)
	}
	return fmt.Sprint(v)
}
