package tpcb

import (
	"bytes"
	"context"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// fillerLength is the length of an id as text: the letter s and sixteen hexadecimal digits. The history's filler has
// 22 characters.
const fillerLength = 1 + workload.IDLength

func putFiller(dst *[fillerLength]byte, id history.ID) {
	dst[0] = 's'
	workload.PutID(dst[1:], id)
}

// parseFiller reads an id from a filler, which databases fill up with spaces.
func parseFiller(text []byte) (history.ID, bool) {
	text = trimmed(text)
	if len(text) != fillerLength || text[0] != 's' {
		return 0, false
	}
	return workload.ParseID(text[1:])
}

func trimmed(text []byte) []byte { return bytes.TrimRight(text, " ") }

// sqlClient runs one client's transactions on a session of its own.
type sqlClient struct {
	*chooser
	db.SQLSession
	texts *texts
	keeps bool                                                           // a history
	steps bool                                                           // statements travel one by one
	call  func(ctx context.Context, args []db.Value) (*db.Result, error) // of the stored procedure; nil in the other modes

	args    []db.Value // of the statement being added
	ids     [operations]db.Value
	filler  [fillerLength]byte
	results [operations]int // of what each operation made
}

// Attempt implements load.Client.
func (c *sqlClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	workload.Forget(tx)
	for i := range operations {
		_, id := c.size.place(tx.Ops[i].Object)
		c.ids[i] = db.Value{Int: int64(id)}
	}
	putFiller(&c.filler, tx.ID)
	reason, err := c.attempt(ctx, tx)
	if err == nil {
		workload.Decide(tx, reason)
		return nil
	}
	return workload.Ended(tx, err, workload.Rules{Missing: noSuchRow, Logged: c.texts.versions})
}

// attempt returns noSuchRow if one of the rows does not exist. Such a transaction changes nothing, with one
// exception: its statements and its commit had to travel together, and the history takes any row, as in pgbench's
// tables.
func (c *sqlClient) attempt(ctx context.Context, tx *history.Transaction) (history.Reason, error) {
	if c.call != nil {
		return c.callProcedure(ctx, tx)
	}
	if err := c.Begin(ctx, false); err != nil {
		return 0, err
	}
	if err := c.add(ctx, tx); err != nil {
		return 0, err
	}
	if c.steps {
		if err := c.Flush(ctx); err != nil {
			return 0, err
		}
		if c.misses() {
			return noSuchRow, c.Rollback(ctx)
		}
	}
	if err := c.Commit(ctx); err != nil {
		return 0, err
	}
	if c.misses() {
		return noSuchRow, nil
	}
	for i, result := range c.results {
		r := c.Result(result)
		if r == nil || r.Rows() != 1 || r.Row(0)[0].Null {
			continue // not read
		}
		op, after := &tx.Ops[i], r.Row(0)
		if c.texts.versions {
			workload.Observe(op, after[0].Int-op.Amount, after[1].Int-1, after[2].Int)
		} else {
			workload.Observe(op, after[0].Int-op.Amount, 0, 0)
		}
	}
	return 0, nil
}

// misses reports whether a statement of the transaction found no row, if its results show that.
func (c *sqlClient) misses() bool {
	for i, result := range c.results {
		t, r := &c.texts.of[kindOf(i)], c.Result(result)
		switch {
		case r == nil:
		case r.Columns > 0 && r.Rows() == 0:
			return true
		case r.Columns == 0 && t.update.Counted && r.Affected == 0:
			return true
		}
	}
	return false
}

// add adds the statements of pgbench's tpcb-like transaction; with versions they also
// count.
func (c *sqlClient) add(ctx context.Context, tx *history.Transaction) (err error) {
	for i := range c.ids {
		t := &c.texts.of[kindOf(i)]
		c.results[i], err = c.Do(ctx, t.update, c.updateArgs(tx, i))
		if err == nil && t.read != nil {
			c.args = append(c.args[:0], c.ids[i])
			c.results[i], err = c.Do(ctx, t.read, c.args)
		}
		if err != nil {
			return err
		}
	}
	if c.texts.versions || c.keeps {
		_, err = c.Do(ctx, c.texts.insert, c.insertArgs(tx))
	}
	return err
}

// The arguments of add are made in separate functions, because copies of them would enlarge the waiting stack of each
// of 10,000 clients.
//
//go:noinline
func (c *sqlClient) updateArgs(tx *history.Transaction, i int) []db.Value {
	c.args = append(c.args[:0], db.Value{Int: tx.Ops[opAccount].Amount})
	if c.texts.versions {
		c.args = append(c.args, db.Value{Int: int64(tx.ID)})
	}
	c.args = append(c.args, c.ids[i])
	return c.args
}

func (c *sqlClient) insertArgs(tx *history.Transaction) []db.Value {
	c.args = c.args[:0]
	if c.texts.versions {
		c.args = append(c.args, db.Value{Int: int64(tx.ID)})
	}
	c.args = append(c.args, c.ids[opTeller], c.ids[opBranch], c.ids[opAccount], db.Value{Int: tx.Ops[opAccount].Amount})
	if c.texts.versions {
		c.args = append(c.args, c.ids[opAccount], c.ids[opTeller], c.ids[opBranch])
	} else {
		c.args = append(c.args, db.Value{Text: c.filler[:]})
	}
	return c.args
}

func (c *sqlClient) callProcedure(ctx context.Context, tx *history.Transaction) (history.Reason, error) {
	amount := tx.Ops[opAccount].Amount
	c.args = append(c.args[:0], c.ids[opAccount], c.ids[opTeller], c.ids[opBranch], db.Value{Int: amount}, db.Value{Text: c.filler[:]})
	result, err := c.call(ctx, c.args)
	switch {
	case err != nil:
		return 0, err
	case result.Rows() != 1 || result.Row(0)[0].Null:
		return noSuchRow, nil
	}
	workload.Observe(&tx.Ops[opAccount], result.Row(0)[0].Int-amount, 0, 0)
	return 0, nil
}

// ResolveUnknown implements load.Client. In pgbench's own history no look-up is final (see the package), so the
// outcome stays unknown and the end state decides. If the id is a key, the look-up takes it with a tombstone, unless
// the transaction has it.
func (c *sqlClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if !c.texts.versions {
		tx.Outcome = history.Unknown
		return nil
	}
	return workload.ResolveByRow(ctx, c.SQLSession, tx, c.texts.tombstone, c.texts.find)
}
