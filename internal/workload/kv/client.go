package kv

import (
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// client runs the transactions of one client on a session of its own. Its buffers are
// used again by the next.
type client struct {
	*chooser
	session

	key, value []byte // of the record that is read or written

	scans   *history.Transaction // the one that scans
	left    int64                // records that it still asks for
	scratch []byte               // for parsing their keys

	broken  []byte    // the values that the try has found broken, behind each other
	keeping bool      // none of the try was left out
	kept    int       // of all tries
	_       [128]byte // as the chooser has it
}

// session is a session of either data model.
type session interface {
	// transact carries out a transaction and commits it. The outcome is set where it is
	// not committed.
	transact(ctx context.Context, tx *history.Transaction) error
	Reset(ctx context.Context) error
	Close() error
}

// Attempt implements load.Client.
func (c *client) Attempt(ctx context.Context, tx *history.Transaction) error {
	forget(tx)
	c.setKey(tx.Ops[0].Object)
	c.broken, c.keeping = c.broken[:0], true
	err := c.transact(ctx, tx)
	if err == nil {
		tx.Broken = append(tx.Broken, c.broken...)
		if tx.Outcome == history.Unknown {
			tx.Outcome = history.Committed
		}
		return nil
	}
	if db.ConstraintOf(err) == db.UniqueKey {
		err = load.ErrAlreadyApplied // nobody else inserts this key
	}
	if err == load.ErrAlreadyApplied || db.ClassOf(err) != db.Unknown {
		forget(tx)
	}
	return err
}

func (c *client) setKey(n uint64) { c.formula.putKey(c.key, c.formula.place(n)) }

func (c *client) newValue(tx *history.Transaction) []byte {
	op := &tx.Ops[0]
	c.value = c.formula.appendValue(c.value[:0], op.Object, tx.ID, op.Writer, int(op.Amount))
	return c.value
}

// mayWrite reports whether a transaction writes after it has read its record. If it returns false without an error,
// the transaction is rejected.
func mayWrite(tx *history.Transaction) (bool, error) {
	op := &tx.Ops[0]
	switch {
	case tx.Kind == insert && op.State != history.Absent || own(op, tx.ID):
		// A client's own value, or anything at a key that nobody else inserts, is of a
		// try that was reported as not applied.
		return false, load.ErrAlreadyApplied
	case tx.Kind == modify && op.State == history.Absent:
		tx.Outcome, tx.Reason = history.Rejected, noSuchRecord
		return false, nil
	}
	return true, nil
}

// ResolveUnknown implements load.Client. A write is blind, so nothing closes it for ever:
// if its value is there it was applied, and if another is there it may have been
// overwritten, or may still come. It stays unknown then, and the checks let it take
// effect at any later time.
func (c *client) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if workload.ResolvedWithoutLookUp(tx) {
		return nil
	}
	look := history.Transaction{Kind: get, Ops: []history.Op{{Object: tx.Ops[0].Object}}}
	c.setKey(look.Ops[0].Object)
	if err := c.transact(ctx, &look); err != nil {
		return err
	}
	if own(&look.Ops[0], tx.ID) {
		tx.Outcome = history.Committed
	}
	return nil
}

// forget removes what an earlier try has set.
func forget(tx *history.Transaction) {
	if tx.Kind == scan {
		tx.Ops = tx.Ops[:1]
	}
	tx.Broken = tx.Broken[:0]
	workload.Forget(tx)
}

// A client keeps the bytes of the first few values that it finds broken, unless they are
// long: what is wrong with a database shows in a few, and a history has room for those.
const (
	mostKept      = 8
	mostKeptBytes = 64 << 10 // of each
)

// observe records whether there is a record, who wrote its value and whether the value is whole.
func (c *client) observe(op *history.Op, found bool, value []byte) {
	op.Observed, op.State, op.Value, op.Writer = true, history.Absent, 0, 0
	if !found {
		return
	}
	op.Value = int64(len(value))
	if op.Writer, op.State = c.formula.parse(value, op.Object); op.State == history.Broken {
		if c.keeping = c.keeping && c.kept < mostKept && len(value) <= mostKeptBytes; c.keeping {
			c.broken = append(c.broken, value...)
			c.kept++
		}
	}
}

func own(op *history.Op, id history.ID) bool { return op.State == history.Whole && op.Writer == id }

// beginScan records that nothing was found yet. The first operation shows whether there is a record at the start of
// the scan.
func (c *client) beginScan(tx *history.Transaction) {
	c.scans, c.left = tx, int64(tx.Limit)
	c.observe(&tx.Ops[0], false, nil)
}

// scanned records a record of the scan.
func (c *client) scanned(key, value []byte) {
	c.left--
	tx := c.scans
	n, ok := c.formula.number(key, c.scratch)
	switch {
	case !ok:
		tx.Ops = append(tx.Ops, history.Op{Observed: true, State: history.Foreign, Value: int64(len(value))})
	case len(tx.Ops) == 1 && tx.Ops[0].State == history.Absent && n == tx.Ops[0].Object:
		c.observe(&tx.Ops[0], true, value)
	default:
		tx.Ops = append(tx.Ops, history.Op{Object: n})
		c.observe(&tx.Ops[len(tx.Ops)-1], true, value)
	}
}

// mostBlocking is the largest number of clients that each wait for answers on a thread of their own. On two
// processors, beside a server with a process for each, 2 to 64 connections read 1.1 to 1.7 times as much this way.
const mostBlocking = 64

// Blocks implements db.Blocker.
func (c *client) Blocks() bool { return db.Blocks(c.session) }

// sessions returns what opens the sessions of one client after the other: each by
// itself, or with in-flight several on one connection.
func sessions[S any](c *Config, database db.Database, open func(context.Context, db.SessionOptions) (S, error)) (func(context.Context) (S, error), error) {
	o := c.SessionOptions()
	if c.InFlight <= 1 || database.Limits().Connectionless {
		o.Blocking = c.Connections <= mostBlocking
		return func(ctx context.Context) (S, error) { return open(ctx, o) }, nil
	}
	shared, ok := database.(db.Multiplexer[S])
	if !ok {
		return nil, fmt.Errorf("in-flight is %d, and the library of this database has one transaction under way on a connection: leave it out, and take more clients", c.InFlight)
	}
	var left []S // of the connection that was opened last
	return func(ctx context.Context) (s S, err error) {
		if len(left) == 0 {
			if left, err = shared.Streams(ctx, c.InFlight, o); err != nil {
				return s, err
			}
		}
		s, left = left[0], left[1:]
		return s, nil
	}, nil
}
