package tpcb

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
	history bool
	caller  db.Caller // of the stored procedure; nil in the other modes

	procedure *db.Procedure
	args      [11]db.Value // of the statement being added
	filler    [fillerLength]byte
	results   [operations]int // of what each operation made; -1: not told
}

func newSQLClient(h *chooser, s db.SQLSession, t *texts, keeps bool) *sqlClient {
	return &sqlClient{chooser: h, session: s, texts: t, history: keeps}
}

// calling makes the client run its transactions as calls of the procedure.
func (c *sqlClient) calling(p *db.Procedure, d *db.Dialect) *sqlClient {
	c.procedure, c.caller = p, d.NewCaller(c.session)
	return c
}

// Attempt implements load.Client.
func (c *sqlClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	workload.Forget(tx)
	err := c.attempt(ctx, tx)
	if err == nil {
		tx.Outcome = history.Committed
		return nil
	}
	if c.texts.versions && db.ConstraintOf(err) == db.UniqueKey {
		// Only the history's key can be there already: the transaction is applied, or
		// a look-up has closed its id.
		err = load.ErrAlreadyApplied
	}
	return err
}

func (c *sqlClient) attempt(ctx context.Context, tx *history.Transaction) error {
	if c.caller != nil {
		return c.callProcedure(ctx, tx)
	}
	if err := c.session.Begin(ctx, false); err != nil {
		return err
	}
	var err error
	if c.texts.versions {
		err = c.addVersioned(ctx, tx)
	} else {
		err = c.addPlain(ctx, tx)
	}
	if err != nil {
		return err
	}
	if err := c.session.Commit(ctx); err != nil {
		return err
	}
	for i, result := range c.results {
		if result < 0 {
			continue
		}
		r := c.session.Result(result)
		if r == nil || r.Rows() != 1 || r.Row(0)[0].Null {
			continue // no such row: the end state tells of it
		}
		op, after := &tx.Ops[i], r.Row(0)
		if c.texts.versions {
			workload.Observe(op, after[0].Int-op.Amount, after[1].Int-1, after[2].Int)
		} else {
			workload.Observe(op, after[0].Int-op.Amount, 0, 0)
		}
	}
	return nil
}

// id returns the id of the row of an operation in its table.
func (c *sqlClient) id(op *history.Op) int64 {
	_, id := c.size.place(op.Object)
	return int64(id)
}

// integers adds a statement with whole numbers for its first arguments.
func (c *sqlClient) integers(ctx context.Context, s *db.Statement, numbers ...int64) (int, error) {
	for i, n := range numbers {
		c.args[i] = db.Value{Int: n}
	}
	return c.session.Do(ctx, s, c.args[:len(numbers)])
}

// addPlain adds the statements of pgbench's tpcb-like transaction.
func (c *sqlClient) addPlain(ctx context.Context, tx *history.Transaction) error {
	aid, tid, bid := c.id(&tx.Ops[opAccount]), c.id(&tx.Ops[opTeller]), c.id(&tx.Ops[opBranch])
	delta := tx.Ops[opAccount].Amount
	c.results = [operations]int{-1, -1, -1}
	if _, err := c.integers(ctx, c.texts.updateAccount, delta, aid); err != nil {
		return err
	}
	var err error
	if c.results[opAccount], err = c.integers(ctx, c.texts.readAccount, aid); err != nil {
		return err
	}
	if _, err := c.integers(ctx, c.texts.updateTeller, delta, tid); err != nil {
		return err
	}
	if _, err := c.integers(ctx, c.texts.updateBranch, delta, bid); err != nil {
		return err
	}
	if !c.history {
		return nil
	}
	putFiller(&c.filler, tx.ID)
	c.args[0], c.args[1], c.args[2] = db.Value{Int: tid}, db.Value{Int: bid}, db.Value{Int: aid}
	c.args[3], c.args[4] = db.Value{Int: delta}, db.Value{Text: c.filler[:]}
	_, err = c.session.Do(ctx, c.texts.insert, c.args[:5])
	return err
}

// addVersioned adds the same for rows with versions.
func (c *sqlClient) addVersioned(ctx context.Context, tx *history.Transaction) error {
	t := c.texts
	for i, s := range [operations]struct{ update, read *db.Statement }{
		opAccount: {t.updateAccount, t.readAccount}, opTeller: {t.updateTeller, t.readTeller}, opBranch: {t.updateBranch, t.readBranch},
	} {
		op := &tx.Ops[i]
		id := c.id(op)
		result, err := c.integers(ctx, s.update, op.Amount, int64(tx.ID), id)
		if err == nil && s.read != nil {
			result, err = c.integers(ctx, s.read, id)
		}
		if err != nil {
			return err
		}
		c.results[i] = result
	}
	aid, tid, bid := c.id(&tx.Ops[opAccount]), c.id(&tx.Ops[opTeller]), c.id(&tx.Ops[opBranch])
	_, err := c.integers(ctx, t.insert, int64(tx.ID), tid, bid, aid, tx.Ops[opAccount].Amount, aid, tid, bid)
	return err
}

// ResolveUnknown implements load.Client. In pgbench's own history no look-up is right for
// ever, as the package says: the outcome stays unknown, and the end state tells.
// Where the id is a key, the look-up takes it with a tombstone, unless the
// transaction has it.
func (c *sqlClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if !c.texts.versions {
		tx.Outcome = history.Unknown
		return nil
	}
	return workload.ResolveByRow(ctx, c.session, tx, c.texts.tombstone, c.texts.find)
}

// Reset implements load.Client.
func (c *sqlClient) Reset(ctx context.Context) error { return c.session.Reset(ctx) }

// Close implements load.Client.
func (c *sqlClient) Close() error { return c.session.Close() }
