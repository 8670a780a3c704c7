// Package lists decides from a history of transactions that append to lists and read them
// which isolation levels it keeps. A list that was read shows the order of all appends to it,
// so the dependencies between transactions follow from what was read, and nothing is guessed
// (Kingsbury and Alvaro, Elle: Inferring Isolation Anomalies from Experimental Observations,
// VLDB 2020).
//
// How the database keeps a list says what its reads show: see Storage. Of Values, who appends
// also reads the list, so that a history of them has a Read before the first Append of each.
//
// Every dependency is known but in three cases, in which the answer may be unknown: a list that
// was read as absent and was both made and deleted; several appends to one list that
// nobody has read, for snapshot isolation alone and if graph.Settle comes to its bounds; and two values that were written over the same
// one, for the levels that allow that and want transactions to be seen whole.
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

// The checks that are this package's own.
const (
	Lists   = "lists"   // every read of a list is a beginning of the same list, and all in it was appended
	Session = "session" // the order of transactions agrees with that of each client
)

// OpKind says what an operation is.
type OpKind uint8

// The kinds of operations.
const (
	_      OpKind = iota
	Append        // Element was put behind the last element of list Key, which was made if it was not there
	Read          // List is what list Key had, with Missing at places of Pieces; of one that was not there nothing
	Range         // Rows are the lists from Key to High that were there, in any order; all others were not
	Delete        // list Key was there and is no more; nothing is appended to it afterwards
)

// Op is an operation of a transaction.
type Op struct {
	Kind    OpKind
	Known   bool // of a Read and a Range: what it returned is known
	Key     uint64
	High    uint64 // of a Range
	Element uint64 // of an Append; appended to the list once in all the history
	List    []uint64
	Rows    []Row
}

// Row is a list as it was read.
type Row struct {
	Key  uint64
	List []uint64
}

// Transaction is one transaction as its client saw it. A client begins the next when it has
// the answer; one of unknown outcome may take effect at any time after its beginning.
type Transaction struct {
	ID         history.ID
	Client     uint64
	Outcome    history.Outcome // a rejected one is one that was aborted
	Begin, End int64           // ns of one clock
	Retried    bool            // it was tried more than once: what earlier tries appended was rolled back
	Clock      uint32          // which has measured them: a place in Errors of Input. Those of one are exact beside each other
	Ops        []Op            // in the order in which they were done
}

// Input is a history. What it yields is not kept, and may be overwritten by the next.
type Input struct {
	Expect       isolation.Level
	Transactions iter.Seq2[*Transaction, error] // those of a client in their order
	Size         int                            // about how many they are; 0: that is not known
	End          iter.Seq2[Row, error]          // every list that is there in the end; nil: it was not downloaded
	Damage       func() fact.Fact               // asked when all Transactions were read: why they cannot be trusted; nil: they can
	Complete     bool                           // the recording was closed: nothing that was sent is missing
	RealTime     bool                           // all times are of one clock
	Errors       []int64                        // how far the times of each clock may be from those of all, ns; nil: there is one
	NoEnd        fact.Fact                      // why there is no end state, if End is nil; nil: fact.NoEnd

	// Lasted returns how long after the end of a transaction another one began, and whether that
	// is known. If it is set, the times of the transactions are places in an order and no times.
	// Nil: it is the difference of their times.
	Lasted func(ended, began history.ID) (time.Duration, bool)

	Storage func(key uint64) Storage         // how a list is kept; nil: all are Objects
	List    func(key uint64) string          // a list as people know it; nil: by its number
	Element func(key, element uint64) string // an element of a list, likewise
	Who     func(id history.ID) string       // a transaction, likewise; nil: by its id

	// Appended returns the element of an append: its number among those of its transaction,
	// from 0. It saves 12 bytes for each append. Nil: it is known from the operation alone.
	Appended func(id history.ID, number uint32) uint64

	OnViolation func(check.Violation) // as that of check.Input
}

// Report is what was decided.
type Report struct {
	Results []check.Result
	Holds   []isolation.Level // the strongest levels that the history keeps; none where something is not decided
	Broken  []isolation.Level // the weakest that it breaks
	Open    []isolation.Level // those of which it is not known

	// Levels has a result of every level but causal, each after those that it includes. What
	// breaks several is said at the first. None is Required.
	Levels []LevelResult

	Transactions int // that took effect
	Dependencies int // and the orders of clients
	Lists        int
	Clients      int
}

// LevelResult is what was found of one level.
type LevelResult struct {
	Level isolation.Level
	check.Result
}

// Check decides a history. An error is one of the context, or of more than a check takes.
// If the input cannot be read or trusted, all results are undecided, and say why. The
// transactions of a long history may be read twice.
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
	// manyTransactions is how many a history has at least of which garbage is collected between two
	// steps.
	manyTransactions = 1 << 20

	// mostExplained is how many a history has at most of which the operations are kept until
	// it is decided. They take a third of the memory, and are needed only to explain what is found.
	// Of a longer history they are forgotten if nothing was found until then, and read again if
	// the graph has a cycle.
	mostExplained = 6 << 20
)

// check makes the check. If again is true, something was found, and the operations are forgotten
// that explain it.
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

// collect frees what was forgotten of a long history, before the next step takes as much again.
func (c *checker) collect() {
	if c.Size > manyTransactions {
		runtime.GC()
	}
}

// hasFound reports whether something was found before the graph is decided.
func (c *checker) hasFound() bool {
	return len(c.cycles) > 0 || c.forked || slices.ContainsFunc(c.found[:], func(o oddity) bool { return o.count > 0 })
}

// forgetOperations forgets what only explains findings.
func (c *checker) forgetOperations() {
	c.opList, c.arg, c.element, c.firstElement = nil, column{}, nil, nil
	c.versions, c.lists, c.final, c.trees, c.partial = versions{hubs: c.hubs}, nil, nil, nil, nil
	c.sequence, c.client, c.row, c.keys, c.ranges = nil, nil, nil, keyTable{}, nil
}
