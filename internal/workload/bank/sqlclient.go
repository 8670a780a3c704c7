package bank

import (
	"context"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// sqlClient runs one client's transactions on a session of its own.
type sqlClient struct {
	*chooser
	session db.SQLSession
	texts   *texts
	style   string
	caller  db.Caller // of the stored procedure; nil in the other modes

	transfer *db.Procedure

	args    []db.Value // of the statement being added
	arena   []byte     // their texts
	results []int      // of each operation's statement
}

// Attempt implements load.Client.
func (c *sqlClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	workload.Forget(tx)
	err := c.attempt(ctx, tx)
	if db.ConstraintOf(err) == db.UniqueKey {
		// Only the ledger's key can be there already: the transfer is applied,
		// or a look-up has closed its id.
		err = load.ErrAlreadyApplied
	}
	return ended(tx, err)
}

// ended is what a client returns after a try, which a constraint of the schema may have
// refused.
func ended(tx *history.Transaction, err error) error {
	if err == nil {
		return nil
	}
	reason := rejection(err)
	if reason != 0 || err == load.ErrAlreadyApplied || db.ClassOf(err) != db.Unknown {
		workload.Forget(tx)
	}
	if reason != 0 {
		tx.Outcome, tx.Reason = history.Rejected, reason
		return nil
	}
	return err
}

func (c *sqlClient) attempt(ctx context.Context, tx *history.Transaction) error {
	switch {
	case tx.Kind == history.Inquiry:
		return c.inquire(ctx, tx)
	case c.caller != nil:
		return c.procedure(ctx, tx)
	case c.style == Atomic:
		return c.atomic(ctx, tx)
	case c.style == Locked:
		return c.readWrite(ctx, tx, c.texts.readLocking)
	default:
		return c.readWrite(ctx, tx, c.texts.read)
	}
}

// rejection returns the rule of the bank that a constraint of the schema stands
// for; 0 if err is something else.
func rejection(err error) history.Reason {
	switch db.ConstraintOf(err) {
	case db.CheckFailed:
		return history.InsufficientFunds
	case db.NotNull, db.ForeignKey:
		return history.NoSuchAccount
	}
	return 0
}

// atomic changes each balance by a relative update and lets the schema refuse
// what the bank does not allow. Unless it is a joint transfer it asks for no
// result before its end, so that it takes one round trip where statements can
// be pipelined.
func (c *sqlClient) atomic(ctx context.Context, tx *history.Transaction) error {
	if err := c.session.Begin(ctx, false); err != nil {
		return err
	}
	if tx.Kind == history.Joint {
		reason, err := c.readJoint(ctx, tx)
		if err != nil {
			return err
		}
		if reason != 0 {
			return c.reject(ctx, tx, reason)
		}
	}
	c.results = c.results[:0]
	leg := int64(0)
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if !op.Write {
			c.results = append(c.results, -1)
			continue
		}
		if err := c.addRelative(ctx, tx.ID, op, leg); err != nil {
			return err
		}
		leg++
	}
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome = history.Committed
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if op.Observed || !op.Write {
			continue
		}
		if r := c.session.Result(c.results[i]); r != nil && r.Rows() == 1 {
			after := r.Row(0)
			workload.Observe(op, after[0].Int-op.Amount, after[1].Int-1, after[2].Int)
		}
	}
	return nil
}

// addRelative adds the statements of one leg.
func (c *sqlClient) addRelative(ctx context.Context, id history.ID, op *history.Op, leg int64) error {
	c.start().integer(op.Amount).integer(int64(id))
	c.key(op.Object)
	result, err := c.session.Do(ctx, c.texts.update, c.args)
	if err != nil {
		return err
	}
	if c.texts.readBack != nil {
		c.start().key(op.Object)
		if result, err = c.session.Do(ctx, c.texts.readBack, c.args); err != nil {
			return err
		}
	}
	c.results = append(c.results, result)
	c.start().integer(int64(id)).integer(leg)
	c.key(op.Object).integer(op.Amount).key(op.Object)
	_, err = c.session.Do(ctx, c.texts.ledgerRelative, c.args)
	return err
}

// readJoint reads the payer and its sibling in one statement and applies the
// rule over both. What it reads is what the decision rests on, so it is what
// the transaction has observed, whatever the updates find afterwards.
func (c *sqlClient) readJoint(ctx context.Context, tx *history.Transaction) (history.Reason, error) {
	payer, other := jointOps(tx)
	if payer == nil || other == nil {
		return history.NoSuchAccount, nil
	}
	c.start().key(payer.Object).key(other.Object)
	result, err := c.session.Do(ctx, c.texts.readPair, c.args)
	if err != nil {
		return 0, err
	}
	if err := c.session.Flush(ctx); err != nil {
		return 0, err
	}
	c.observeRows(c.session.Result(result), tx.Ops)
	if !payer.Observed || !other.Observed {
		return history.NoSuchAccount, nil
	}
	return c.formula.refusal(tx, true), nil
}

// readWrite reads all accounts, decides, and writes absolute values. Whether
// the reads lock is all that tells locked from rmw.
func (c *sqlClient) readWrite(ctx context.Context, tx *history.Transaction, read *db.Statement) error {
	if err := c.session.Begin(ctx, false); err != nil {
		return err
	}
	c.results = c.results[:0]
	for i := range tx.Ops {
		c.start().key(tx.Ops[i].Object)
		result, err := c.session.Do(ctx, read, c.args)
		if err != nil {
			return err
		}
		c.results = append(c.results, result)
	}
	if err := c.session.Flush(ctx); err != nil {
		return err
	}
	for i := range tx.Ops {
		r := c.session.Result(c.results[i])
		if r == nil || r.Rows() == 0 {
			return c.reject(ctx, tx, history.NoSuchAccount)
		}
		before := r.Row(0)
		workload.Observe(&tx.Ops[i], before[0].Int, before[1].Int, before[2].Int)
	}
	if reason := c.formula.refusal(tx, false); reason != 0 {
		return c.reject(ctx, tx, reason)
	}
	leg := int64(0)
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if !op.Write {
			continue
		}
		if err := c.addAbsolute(ctx, tx.ID, op, leg); err != nil {
			return err
		}
		leg++
	}
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome = history.Committed
	return nil
}

// addAbsolute adds the statements of one leg whose account was read.
func (c *sqlClient) addAbsolute(ctx context.Context, id history.ID, op *history.Op, leg int64) error {
	version := int64(op.Version) + 1
	c.start().integer(op.Value + op.Amount).integer(version).integer(int64(op.Writer)).integer(int64(id))
	c.key(op.Object)
	if _, err := c.session.Do(ctx, c.texts.write, c.args); err != nil {
		return err
	}
	c.start().integer(int64(id)).integer(leg)
	c.key(op.Object).integer(op.Amount).integer(version)
	_, err := c.session.Do(ctx, c.texts.ledgerAbsolute, c.args)
	return err
}

// reject ends a transaction that the bank refuses after reading. It commits
// rather than rolls back: what a transaction has read is sure only once it has
// committed, and the refusal rests on it.
func (c *sqlClient) reject(ctx context.Context, tx *history.Transaction, reason history.Reason) error {
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	tx.Outcome, tx.Reason = history.Rejected, reason
	return nil
}

// inquire reads its accounts in one statement, so that even an isolation that
// gives each statement its own snapshot shows them as they were together.
func (c *sqlClient) inquire(ctx context.Context, tx *history.Transaction) error {
	if err := c.session.Begin(ctx, true); err != nil {
		return err
	}
	c.start()
	for i := range tx.Ops {
		c.key(tx.Ops[i].Object)
	}
	result, err := c.session.Do(ctx, c.texts.readPair, c.args)
	if err != nil {
		return err
	}
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	c.observeRows(c.session.Result(result), tx.Ops)
	tx.Outcome = history.Committed
	for i := range tx.Ops {
		if !tx.Ops[i].Observed {
			tx.Outcome, tx.Reason = history.Rejected, history.NoSuchAccount
		}
	}
	return nil
}

// observeRows gives rows with their keys, in whatever order, to the operations
// on their accounts.
func (c *sqlClient) observeRows(r *db.Result, ops []history.Op) {
	if r == nil {
		return
	}
	for i := range r.Rows() {
		row := r.Row(i)
		key, ok := keyOf(row[0].Text, row[1].Int)
		if !ok {
			continue
		}
		n := c.formula.number(key)
		for j := range ops {
			if ops[j].Object == n {
				workload.Observe(&ops[j], row[2].Int, row[3].Int, row[4].Int)
			}
		}
	}
}

// ResolveUnknown implements load.Client.
func (c *sqlClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if tx.Kind == history.Inquiry { // it changes nothing, so it counts as aborted
		tx.Outcome = history.Aborted
		return nil
	}
	return workload.ResolveByRow(ctx, c.session, tx, c.texts.tombstone, c.texts.legsOf)
}

// Reset implements load.Client.
func (c *sqlClient) Reset(ctx context.Context) error { return c.session.Reset(ctx) }

// Close implements load.Client.
func (c *sqlClient) Close() error { return c.session.Close() }

// start, integer and key build the arguments of one statement.
func (c *sqlClient) start() *sqlClient {
	c.args, c.arena = c.args[:0], c.arena[:0]
	return c
}

func (c *sqlClient) integer(n int64) *sqlClient {
	c.args = append(c.args, db.Value{Int: n})
	return c
}

func (c *sqlClient) key(account uint64) *sqlClient {
	key := c.formula.key(account)
	var bic [bicLength]byte
	putBIC(&bic, key)
	from := len(c.arena)
	c.arena = append(c.arena, bic[:]...)
	return c.text(from).integer(int64(ban(key)))
}

// text adds what the arena has from there on as one argument. Should the arena
// move later, the argument keeps what it had.
func (c *sqlClient) text(from int) *sqlClient {
	c.args = append(c.args, db.Value{Text: c.arena[from:len(c.arena):len(c.arena)]})
	return c
}
