// Package lists decides which isolation levels a history satisfies whose transactions append to lists and
// read them. A read of a list shows the order of all appends to it. So the dependencies between transactions
// follow from the reads, without guessing (Kingsbury and Alvaro, Elle: Inferring Isolation Anomalies from
// Experimental Observations, VLDB 2020).
//
// The meaning of a read depends on how the database keeps the list; see Storage. For Values, an appender must
// read each list before its first Append to it.
//
// All dependencies are known except in three cases. In these, the result may be unknown:
//
//   - A list was made, deleted and read as absent.
//   - Several appends to a list were not read. This affects snapshot isolation only, and only if
//     graph.Settle reaches its limits.
//   - Two values overwrote the same one. This affects levels that allow such writes but require
//     that transactions are seen completely.
package lists

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// These constants name the checks of this package only.
const (
	Lists   = "lists"   // every read is a prefix of the same list, and all its elements were appended
	Session = "session" // the order of transactions agrees with the order of each client
)

// OpKind is the kind of an operation.
type OpKind uint8

// These are the kinds of operations.
const (
	_      OpKind = iota
	Append        // appends Element to list Key, which is created if necessary
	Read          // List is the content of list Key (empty if absent), with Missing at unread positions
	Range         // Rows are the existing lists from Key to High, in any order; all others did not exist
	Delete        // deletes list Key; later appends to it are not allowed
)

// Op is an operation of a transaction.
type Op struct {
	Kind    OpKind
	Known   bool // for Read and Range: the result is known
	Key     uint64
	High    uint64 // for Range
	Element uint64 // for Append; unique for the list in the whole history
	List    []uint64
	Rows    []Row
}

// Row is a list with its content.
type Row struct {
	Key  uint64
	List []uint64
}

// Transaction is one transaction as its client saw it. A client begins the next one after the reply. A
// transaction of unknown outcome may take effect at any time after its beginning.
type Transaction struct {
	ID         history.ID
	Client     uint64
	Outcome    history.Outcome // Rejected counts as aborted
	Begin, End int64           // ns on one clock
	Retried    bool            // it was tried more than once; the appends of earlier tries were rolled back
	Clock      uint32          // index in Input.Errors; times of one clock are exact
	Ops        []Op            // in the order of execution
}

// Input is a history. The yielded values are not kept and may be overwritten by the next ones.
type Input struct {
	Expect       isolation.Level
	Transactions iter.Seq2[*Transaction, error] // the transactions of each client must be in order
	Size         int                            // approximate number of transactions; 0: not known
	End          iter.Seq2[Row, error]          // every list of the end state; nil: not downloaded
	Damage       func() fact.Fact               // returns, after the Transactions, why they are unusable, or nil
	Complete     bool                           // the recording was closed: nothing that was sent is missing
	RealTime     bool                           // all times are on one clock
	Errors       []int64                        // error of each clock's times, ns; nil: there is one clock
	NoEnd        fact.Fact                      // why there is no end state if End is nil; nil: fact.NoEnd

	// Lasted returns the time between the end of a transaction and the beginning of another, and whether it
	// is known. If Lasted is set, the times of the transactions are only positions in an order. If it is nil,
	// the result is the difference of their times.
	Lasted func(ended, began history.ID) (time.Duration, bool)

	Storage func(key uint64) Storage         // how a list is kept; nil: all are Objects
	List    func(key uint64) string          // display name of a list; nil: its number
	Element func(key, element uint64) string // display name of an element; nil: its number
	Who     func(id history.ID) string       // display name of a transaction; nil: its ID

	// Appended returns the element of an append, whose number is its position among the appends of the
	// transaction, from 0. It saves 12 bytes for each append. If it is nil, only the operation has the
	// element.
	Appended func(id history.ID, number uint32) uint64

	OnViolation func(check.Violation) // as in check.Input
}

// Report is the result of Check.
type Report struct {
	Results []check.Result
	Holds   []isolation.Level // the strongest levels that the history satisfies; empty if something is undecided
	Broken  []isolation.Level // the weakest levels that it breaks
	Open    []isolation.Level // the undecided levels

	// Levels has a result for every level except causal, each after the levels that it includes. A violation
	// of several levels is reported for the first. No result is Required.
	Levels []LevelResult

	Transactions int // number that took effect
	Dependencies int // number, including the orders of clients
	Lists        int
	Clients      int
}

// LevelResult is the result for one level.
type LevelResult struct {
	Level isolation.Level
	check.Result
}

// Check decides a history. An error comes from the context or from a limit of the check. If the input cannot
// be read or trusted, all results are undecided with that reason. The transactions of a long history may be
// read twice.
func Check(ctx context.Context, in Input) (*Report, error) {
	c := newChecker(ctx, in)
	c.lean = in.Size > mostExplained
	again, err := c.check()
	if again && err == nil {
		c = newChecker(ctx, in)
		_, err = c.check()
	}
	switch {
	case err != nil:
		return nil, err
	case c.watch.Cancelled():
		return nil, c.watch.Err
	case c.damage != nil:
		return c.untrusted(), nil
	}
	return c.report(), nil
}

const (
	// manyTransactions is the number of transactions from which garbage is collected between two steps.
	manyTransactions = 1 << 20

	// mostExplained is the number of transactions up to which all operations are kept until the history is
	// decided. They take a third of the memory and are needed only to explain findings. For a longer history,
	// they are dropped if nothing was found before the graph is decided, and read again if the graph has a
	// cycle.
	mostExplained = 6 << 20
)

// check runs the check. It returns true if a violation was found whose explaining operations were dropped.
func (c *checker) check() (again bool, err error) {
	if err := c.read(); err != nil || c.damage != nil {
		return false, err
	}
	if err := c.readEnd(); err != nil {
		return false, err
	}
	c.collect()
	c.order()
	c.collect()
	if err := c.depend(); err != nil {
		return false, err
	}
	c.examineLost()
	c.examine()
	c.compareEnd()
	c.unreadUpdates()
	c.forkedUpdates()
	if c.lean = c.lean && !c.hasFound(); c.lean {
		c.forgetOperations()
	}
	c.collect()
	c.decision = c.graph.Decide(c.RealTime)
	if c.lean && c.watch.Err == nil && c.decision.Cores[graph.Real] != nil {
		return true, nil
	}
	return false, c.decide()
}

// collect frees the dropped data of a long history before the next step allocates as much again.
func (c *checker) collect() {
	if c.Size > manyTransactions {
		runtime.GC()
	}
}

// hasFound reports whether a violation was found before the graph is decided.
func (c *checker) hasFound() bool {
	return len(c.cycles) > 0 || c.forked || slices.ContainsFunc(c.found[:], func(o oddity) bool { return o.count > 0 })
}

// forgetOperations drops the data that is needed only to explain findings.
func (c *checker) forgetOperations() {
	c.opList, c.arg, c.element, c.firstElement = nil, column{}, nil, nil
	c.versions, c.lists, c.final, c.trees, c.partial = versions{hubs: c.hubs}, nil, nil, nil, nil
	c.sequence, c.client, c.row, c.keys, c.ranges = nil, nil, nil, keyTable{}, nil
}
