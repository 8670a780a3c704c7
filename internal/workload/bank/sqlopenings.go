package bank

import (
	"cmp"
	"context"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// openingTexts holds the statements for accounts that clients open and close.
type openingTexts struct {
	byCode *db.Statement // all accounts of a bank code
	low    *db.Statement // the accounts among them that hold less than a balance
	insert *db.Statement
	remove *db.Statement
}

// indexByCode makes the predicate a range of an index, which a database can lock. The ledger of a bank with openings
// refers to closed accounts, so it has no foreign key.
const indexByCode = "CREATE INDEX stroppy_account_bic ON " + tableAccount + " (bic)"

// indexByBalance does the same for the accounts of a bank code under a balance.
const indexByBalance = "CREATE INDEX stroppy_account_balance ON " + tableAccount + " (bic, balance)"

func newOpeningTexts(d *db.Dialect) openingTexts {
	return openingTexts{
		byCode: d.Statement(allRows+" WHERE bic = {text}", rowColumns...),
		low:    d.Statement(allRows+" WHERE bic = {text} AND balance < {decimal}", rowColumns...),
		insert: d.Statement("INSERT INTO " + tableAccount + " (bic, ban, balance, version, last_transfer, previous_transfer)" +
			" VALUES ({text}, {integer}, {decimal}, 1, {integer}, 0)"),
		remove: d.Statement("DELETE FROM " + tableAccount + byKey),
	}
}

// addPredicate adds the statement that reads all accounts of the code of operation i, or
// those under the balance.
func (c *sqlClient) addPredicate(ctx context.Context, tx *history.Transaction, i int) (result int, err error) {
	c.args = append(c.args, db.Value{Text: c.keys[i].bic[:]})
	if tx.Kind != withdrawal && tx.Kind != byBalance {
		return c.do(ctx, c.texts.openings.byCode)
	}
	c.addIntegers(lowBalance)
	return c.do(ctx, c.texts.openings.low)
}

// addMembers records the result of such a statement.
func (c *sqlClient) addMembers(tx *history.Transaction, result int) {
	r := c.Result(result)
	for i := 0; r != nil && i < r.Rows(); i++ {
		row := r.Row(i)
		if key, ok := keyOf(row[0].Text, row[1].Int); ok {
			c.member(tx, key, stateOf(row[2:]))
		}
	}
}

// readByPredicate runs a read-only transaction of one statement. It needs two if the predicate does not find the
// account that closings pay into.
func (c *sqlClient) readByPredicate(ctx context.Context, tx *history.Transaction) (err error) {
	if tx.Kind == byBalance {
		c.addKey(0)
		if c.results[0], err = c.do(ctx, c.texts.read); err != nil {
			return err
		}
	}
	result, err := c.addPredicate(ctx, tx, 0)
	if err == nil {
		err = c.Commit(ctx)
	}
	if err != nil {
		return err
	}
	if tx.Kind == byBalance {
		c.observePlanned(tx)
	}
	c.addMembers(tx, result)
	reason := history.Reason(0)
	if !tx.Ops[0].Observed { // the account of the load
		reason = noSuchAccount
	}
	workload.Decide(tx, reason)
	return nil
}

// changeOpened reads what the decision rests on, and writes as the style has it. The
// opened account is no other client's, so that every style does it alike.
func (c *sqlClient) changeOpened(ctx context.Context, tx *history.Transaction) error {
	members := -1
	for i := range planned(tx) {
		if err := c.addRead(ctx, tx, i); err != nil {
			return err
		}
		if op := &tx.Ops[i]; op.Object >= firstOpened && tx.Kind != closing {
			var err error
			if members, err = c.addPredicate(ctx, tx, i); err != nil {
				return err
			}
		}
	}
	if err := c.Flush(ctx); err != nil {
		return err
	}
	reason := c.observePlanned(tx)
	if members >= 0 {
		c.addMembers(tx, members)
	}
	if reason == 0 {
		reason = c.decide(tx)
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

// addRead adds the statement that reads the account of operation i; none of one that is
// opened, or that an update reads.
func (c *sqlClient) addRead(ctx context.Context, tx *history.Transaction, i int) (err error) {
	op := &tx.Ops[i]
	if c.unread(tx, op) {
		return nil
	}
	read := c.texts.read
	if c.style == Locked && op.Write {
		read = c.texts.readLocking
	}
	c.addKey(i)
	c.results[i], err = c.do(ctx, read)
	return err
}

// unread reports whether no separate statement reads the account of an operation.
func (c *sqlClient) unread(tx *history.Transaction, op *history.Op) bool {
	if op.Object >= firstOpened {
		return tx.Kind == opening
	}
	return op.Write && c.style == Atomic
}

// observePlanned records the results of the statements on single accounts.
func (c *sqlClient) observePlanned(tx *history.Transaction) (reason history.Reason) {
	for i := range planned(tx) {
		op := &tx.Ops[i]
		switch {
		case op.Object >= firstOpened && tx.Kind == opening:
			absent(op)
		case c.unread(tx, op): // as it is written
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

// addOpened adds the statements of a leg of a transaction on an opened account.
func (c *sqlClient) addOpened(ctx context.Context, tx *history.Transaction, i int, leg int64) (err error) {
	op, id := &tx.Ops[i], int64(tx.ID)
	switch {
	case op.Object < firstOpened && c.style == Atomic:
		return c.addRelative(ctx, tx, i, leg)
	case op.Object < firstOpened || tx.Kind == withdrawal || tx.Kind == topUp:
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
