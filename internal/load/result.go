package load

import (
	"errors"
	"sync/atomic"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/stats"
)

// Result is the result of a load phase. Background clients count only in Errors.
type Result struct {
	// Elapsed is the length of the measured part. It runs from the end of the warm-up until no new
	// transaction was started, or until the database's last answer to an earlier one. Transactions that this
	// program gave up do not extend it.
	Elapsed      time.Duration
	Measurements *stats.Measurements
	Never        stats.Waits // what was due after the warm-up and never sent: Backlog and Shed

	Conflicts    uint64       // tries that ended as db.Aborted, warm-up included
	Retries      uint64       // tries made because of a conflict, warm-up included; those after a lost server do not count
	Reconnects   uint64       // sessions opened in place of a lost one
	Unresolved   uint64       // transactions whose outcome stayed unknown
	Backlog      uint64       // of an open loop: transactions that were due after the warm-up, but not started when the load phase ended
	Shed         uint64       // of an open loop: transactions that were due after the warm-up while MaxBacklog others waited, and so were never sent
	Skipped      uint64       // of Shed: those that were late by more than Options.LatencyLimit
	WarmupUnsent uint64       // of an open loop: those that were due in the warm-up and never sent
	Unsent       []uint64     // transactions waiting at the end, by the second since Options.Start in which they were due; the last second is the end of the load phase
	Errors       []ErrorCount // most frequent first

	CPUSeconds  float64 // user and system time of this process during the load phase; 0 where the platform does not report it
	MaxRSSBytes int64   // the largest resident memory of this process in its whole life; 0 where the platform does not report it
	Threads     int     // how many threads could run Go code at once, as chosen in the warm-up or the first seconds; 0 without Options.Alone

	Interrupted bool // the context was cancelled before the load phase's end
}

// ErrorCount counts one kind of error from tries, look-ups and new connections.
type ErrorCount struct {
	Class   db.Class
	Code    string // the vendor's own
	Op      string // what was being done
	Count   uint64
	Example string // the text of one of them
}

// Counters is the state of a running load phase, without background clients.
type Counters struct {
	Done         uint64 // transactions recorded: committed, rejected, aborted and unknown
	Committed    uint64
	Rejected     uint64
	Aborted      uint64
	Unknown      uint64
	Conflicts    uint64 // tries that ended as db.Aborted
	Retries      uint64
	Reconnects   uint64 // sessions opened in place of a lost one
	Reconnecting int    // clients that have lost the database and had no answer since
	Backlog      uint64 // of an open loop: transactions that are due and not sent
	Shed         uint64 // of an open loop: those that were due while there was no room for more, and are never sent
}

// counters belongs to one worker: only that worker stores, and others load.
type counters struct {
	outcomes   [4]atomic.Uint64 // by history.Outcome
	conflicts  atomic.Uint64
	retries    atomic.Uint64
	reconnects atomic.Uint64
	sent       atomic.Uint64 // of an open loop
	shed       atomic.Uint64
	downSince  atomic.Int64 // clock when the database was lost; 0 while it answers
	classes    [classes]atomic.Uint64
	kinds      [][4]atomic.Uint64 // by Driver.slots and history.Outcome
}

// classes is the number of error classes.
const classes = int(db.Fatal) + 1

// add increments a counter that only the calling goroutine stores. It is cheaper than an atomic addition.
func add(c *atomic.Uint64) { c.Store(c.Load() + 1) }

// errorKind is the key by which errors are counted.
type errorKind struct {
	class    db.Class
	code, op string
}

// classify returns the kind of an error, and whether the transaction must not be looked up.
func classify(err error) (kind errorKind, final bool) {
	e, ok := errors.AsType[*db.Error](err)
	if !ok {
		return errorKind{class: db.Unknown}, false
	}
	return errorKind{e.Class, e.Code, e.Op}, e.Final
}

type errorCounts map[errorKind]*ErrorCount

func (m errorCounts) add(kind errorKind, err error) {
	c := m[kind]
	if c == nil {
		c = &ErrorCount{Class: kind.class, Code: kind.code, Op: kind.op, Example: err.Error()}
		m[kind] = c
	}
	c.Count++
}

func mergeErrors(all []*worker) []ErrorCount {
	var lists [][]ErrorCount
	for _, w := range all {
		var list []ErrorCount
		for _, c := range w.errors {
			list = append(list, *c)
		}
		lists = append(lists, list)
	}
	return joinErrors(lists...)
}
