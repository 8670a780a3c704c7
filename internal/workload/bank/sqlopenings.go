package bank

import (
	"cmp"
	"context"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// openingTexts are the statements of accounts that clients open and close.
type openingTexts struct {
	byCode *db.Statement // all accounts of a bank code
	insert *db.Statement
	remove *db.Statement
}

// indexByCode makes the predicate a range of an index, which a database can keep from
// changing. The ledger of a bank with openings refers to accounts that are closed, so
// that it has no foreign key.
const indexByCode = "CREATE INDEX stroppy_account_bic ON " + tableAccount + " (bic)"

func newOpeningTexts(d *db.Dialect) openingTexts {
	return openingTexts{
		byCode: d.Statement(allRows+" WHERE bic = {text}", rowColumns...),
		insert: d.Statement("INSERT INTO " + tableAccount + " (bic, ban, balance, version, last_transfer, previous_transfer)" +
			" VALUES ({text}, {integer}, {decimal}, 1, {integer}, 0)"),
		remove: d.Statement("DELETE FROM " + tableAccount + byKey),
	}
}

// addByCode adds the statement that reads all accounts of the code of operation i.
func (c *sqlClient) addByCode(ctx context.Context, i int) (result int, err error) {
	c.args = append(c.args, db.Value{Text: c.keys[i].bic[:]})
	return c.do(ctx, c.texts.openings.byCode)
}

// addMembers notes what such a statement has found.
func (c *sqlClient) addMembers(tx *history.Transaction, result int) {
	r := c.Result(result)
	for i := 0; r != nil && i < r.Rows(); i++ {
		row := r.Row(i)
		if key, ok := keyOf(row[0].Text, row[1].Int); ok {
			c.member(tx, key, stateOf(row[2:]))
		}
	}
}

// readByPredicate is a read-only transaction of one statement.
func (c *sqlClient) readByPredicate(ctx context.Context, tx *history.Transaction) error {
	result, err := c.addByCode(ctx, 0)
	if err == nil {
		err = c.Commit(ctx)
	}
	if err != nil {
		return err
	}
	c.addMembers(tx, result)
	workload.Decide(tx, anchorFound(tx))
	return nil
}

// anchorFound is the reason that the account of the load in a bank code was not found there.
func anchorFound(tx *history.Transaction) history.Reason {
	if !tx.Ops[0].Observed {
		return noSuchAccount
	}
	return 0
}

// openOrClose reads what the decision rests on, and writes as the style has it. What is
// inserted or deleted is no other client's, so that every style does it alike.
func (c *sqlClient) openOrClose(ctx context.Context, tx *history.Transaction) error {
	members := -1
	for i := range planned(tx) {
		op := &tx.Ops[i]
		isNew := tx.Kind == opening && op.Object >= firstOpened
		var err error
		switch {
		case isNew:
			members, err = c.addByCode(ctx, i)
		case c.style != Atomic || op.Object >= firstOpened:
			read := c.texts.read
			if c.style == Locked {
				read = c.texts.readLocking
			}
			c.addKey(i)
			c.results[i], err = c.do(ctx, read)
		}
		if err != nil {
			return err
		}
	}
	if err := c.Flush(ctx); err != nil {
		return err
	}
	reason := c.observePlanned(tx)
	if members >= 0 {
		c.addMembers(tx, members)
		reason = cmp.Or(reason, c.overLimit(tx))
	} else if reason == 0 {
		takeAll(tx)
	}
	if reason = cmp.Or(reason, c.formula.refusal(tx, c.style == Atomic)); reason != 0 {
		return c.end(ctx, tx, reason)
	}
	if err := c.write(ctx, tx, c.addOpened); err != nil {
		return err
	}
	c.observeUpdates(tx)
	return nil
}

// observePlanned notes what the statements on single accounts have read.
func (c *sqlClient) observePlanned(tx *history.Transaction) (reason history.Reason) {
	for i := range planned(tx) {
		op := &tx.Ops[i]
		switch {
		case op.Object >= firstOpened && tx.Kind == opening:
			absent(op)
		case c.style == Atomic && op.Object < firstOpened: // as it is written
		default:
			r := c.Result(c.results[i])
			if r == nil || r.Rows() == 0 {
				reason = noSuchAccount
				continue
			}
			row := r.Row(0)
			workload.Observe(op, row[0].Int, row[1].Int, row[2].Int)
		}
	}
	return reason
}

// addOpened adds the statements of a leg of an opening or a closing.
func (c *sqlClient) addOpened(ctx context.Context, tx *history.Transaction, i int, leg int64) (err error) {
	op, id := &tx.Ops[i], int64(tx.ID)
	switch {
	case op.Object < firstOpened && c.style == Atomic:
		return c.addRelative(ctx, tx, i, leg)
	case op.Object < firstOpened:
		return c.addAbsolute(ctx, tx, i, leg)
	case tx.Kind == opening:
		c.addKey(i)
		c.addIntegers(op.Amount, id)
		_, err = c.do(ctx, c.texts.openings.insert)
	default:
		c.addKey(i)
		_, err = c.do(ctx, c.texts.openings.remove)
	}
	if err != nil {
		return err
	}
	c.addIntegers(id, leg)
	c.addKey(i)
	c.addIntegers(op.Amount, int64(op.Version)+1)
	_, err = c.do(ctx, c.texts.ledgerAbsolute)
	return err
}
