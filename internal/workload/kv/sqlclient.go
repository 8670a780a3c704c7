package kv

import (
	"context"
	"errors"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
)

// sqlClient runs one client's transactions on a session of its own. A transaction of
// one statement asks for nothing before its end, so that it takes one round trip.
type sqlClient struct {
	*chooser
	model   *sqlModel
	session db.SQLSession

	args  []db.Value
	key   []byte
	value []byte
	scan  scanned
}

var _ load.Client = (*sqlClient)(nil)

func newSQLClient(h *chooser, m *sqlModel, s db.SQLSession) *sqlClient {
	return &sqlClient{
		chooser: h, model: m, session: s, args: make([]db.Value, 0, 2), key: h.formula.newKey(),
		scan: scanned{formula: h.formula, scratch: h.formula.newKey()},
	}
}

// Attempt implements load.Client.
func (c *sqlClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	forget(tx)
	err := c.attempt(ctx, tx)
	if err == nil {
		return nil
	}
	if db.ConstraintOf(err) == db.UniqueKey {
		// Nobody else inserts this key: it is of a try that was told to be not
		// applied.
		err = load.ErrAlreadyApplied
	}
	if errors.Is(err, load.ErrAlreadyApplied) || db.ClassOf(err) != db.Unknown {
		forget(tx)
	}
	return err
}

func (c *sqlClient) attempt(ctx context.Context, tx *history.Transaction) error {
	if err := c.session.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	op := &tx.Ops[0]
	c.formula.putKey(c.key, c.formula.place(op.Object))
	if tx.Kind == history.Modify {
		if writes, err := c.beforeUpdate(ctx, tx, op); err != nil || !writes {
			return err
		}
	}
	result, err := c.last(ctx, tx, op)
	if err != nil {
		return err
	}
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome = history.Committed
	switch r := c.session.Result(result); {
	case tx.Kind == history.Get:
		c.take(op, result)
	case tx.Kind == history.Insert:
		absent(op)
	case tx.Kind == history.Scan:
		c.scan.start(tx)
		for i := range r.Rows() {
			c.scan.add(r.Row(i)[0].Text, r.Row(i)[1].Text)
		}
	case r == nil || r.Affected == 0: // an update of nothing
		tx.Outcome, tx.Reason = history.Rejected, history.NoSuchAccount
		absent(op)
	}
	return nil
}

// last adds the last statement of a transaction, which of all but one kind is the only
// one.
func (c *sqlClient) last(ctx context.Context, tx *history.Transaction, op *history.Op) (result int, err error) {
	switch tx.Kind {
	case history.Get:
		return c.text(c.key).do(ctx, c.model.read)
	case history.Insert:
		return c.text(c.key).text(c.newValue(tx, op)).do(ctx, c.model.insert)
	case history.Scan:
		return c.text(c.key).integer(op.Amount).do(ctx, c.model.scan)
	}
	return c.text(c.newValue(tx, op)).text(c.key).do(ctx, c.model.update)
}

// beforeUpdate reads the record that is then written, without a lock: whether another
// may write in between is for the isolation to say. Where there is no record it ends
// the transaction.
func (c *sqlClient) beforeUpdate(ctx context.Context, tx *history.Transaction, op *history.Op) (writes bool, err error) {
	result, err := c.text(c.key).do(ctx, c.model.read)
	if err != nil {
		return false, err
	}
	if err := c.session.Flush(ctx); err != nil {
		return false, err
	}
	c.take(op, result)
	if op.State == history.Absent {
		tx.Outcome, tx.Reason = history.Rejected, history.NoSuchAccount
		return false, c.session.Commit(ctx)
	}
	if own(op, tx.ID) {
		return false, errors.Join(c.session.Rollback(ctx), load.ErrAlreadyApplied)
	}
	return true, nil
}

// text and integer add an argument of the next statement.
func (c *sqlClient) text(b []byte) *sqlClient {
	c.args = append(c.args, db.Value{Text: b})
	return c
}

func (c *sqlClient) integer(n int64) *sqlClient {
	c.args = append(c.args, db.Value{Int: n})
	return c
}

// do adds a statement with the arguments that were added, and takes them away.
func (c *sqlClient) do(ctx context.Context, s *db.Statement) (result int, err error) {
	result, err = c.session.Do(ctx, s, c.args)
	c.args = c.args[:0]
	return result, err
}

// take notes what the statement that reads one record has brought.
func (c *sqlClient) take(op *history.Op, result int) {
	if r := c.session.Result(result); r != nil && r.Rows() > 0 {
		c.formula.observe(op, r.Row(0)[0].Text)
		return
	}
	absent(op)
}

// newValue makes the value that a transaction writes in place of previous's.
func (c *sqlClient) newValue(tx *history.Transaction, op *history.Op) []byte {
	c.value = c.formula.appendValue(c.value[:0], op.Object, tx.ID, op.Writer, int(op.Amount))
	return c.value
}

// ResolveUnknown implements load.Client. As of a key-value store, a write that is not seen
// stays unknown.
func (c *sqlClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if tx.Kind.ReadOnly() { // it changes nothing, so it may as well not have been
		tx.Outcome = history.Aborted
		return nil
	}
	if err := c.session.Begin(ctx, true); err != nil {
		return err
	}
	op := tx.Ops[0]
	c.formula.putKey(c.key, c.formula.place(op.Object))
	result, err := c.text(c.key).do(ctx, c.model.read)
	if err != nil {
		return err
	}
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	if c.take(&op, result); own(&op, tx.ID) {
		tx.Outcome = history.Committed
	}
	return nil
}

// Reset implements load.Client.
func (c *sqlClient) Reset(ctx context.Context) error {
	c.args = c.args[:0]
	return c.session.Reset(ctx)
}

// Close implements load.Client.
func (c *sqlClient) Close() error { return c.session.Close() }
