package bank

import (
	"context"
	"embed"
	"errors"
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/money"
	"stroppy/internal/workload"
)

// verdicts holds the answers of a procedure: the transfer is done, or a rule of the bank refused it and nothing was
// written.
var verdicts = [...]history.Reason{0, insufficientFunds, noSuchAccount}

//go:embed transfer.*.sql
var transferTexts embed.FS

// newProcedure returns the procedure of one style. It takes the keys and the amounts as lists with commas; an amount
// of 0 marks an account that is only read. The payer and that account together must keep at_least, 0 without such a
// rule. The procedure returns one row per account in the order given: the verdict, and the account's balance, version
// and last transfer before. A value that was not read is NULL.
func newProcedure(d *db.Dialect, style string) *db.Procedure {
	return db.ReadProcedure(transferTexts, "transfer", "stroppy_transfer_"+style, d, style,
		[]db.Type{db.Integer, db.Text, db.Text, db.Text, db.Decimal}, append([]db.Type{db.Integer}, stateColumns...))
}

// errAnswer is the error of a procedure that returned an impossible result.
var errAnswer = &db.Error{
	Class: db.Fatal, Op: "call the stored procedure of the transfer",
	Err: errors.New("its answer is not one row an account with a known verdict: another program has replaced it"),
}

// procedure runs the transaction as one call.
func (c *sqlClient) procedure(ctx context.Context, tx *history.Transaction) error {
	r, err := c.call(ctx, c.callArgs(tx))
	if err != nil {
		return err
	}
	if r.Rows() != len(tx.Ops) {
		return errAnswer
	}
	for i := range tx.Ops {
		if row := r.Row(i); !row[2].Null {
			workload.Observe(&tx.Ops[i], row[1].Int, row[2].Int, row[3].Int)
		}
	}
	verdict := r.Row(0)[0].Int
	if verdict < 0 || verdict >= int64(len(verdicts)) {
		return errAnswer
	}
	workload.Decide(tx, verdicts[verdict])
	return nil
}

// callArgs builds the arguments of a call.
func (c *sqlClient) callArgs(tx *history.Transaction) []db.Value {
	c.args = append(c.args[:0], integer(int64(tx.ID)))
	c.lists = c.lists[:0]
	list := func(add func(dst []byte, i int) []byte) {
		from := len(c.lists)
		for i := range tx.Ops {
			if i > 0 {
				c.lists = append(c.lists, ',')
			}
			c.lists = add(c.lists, i)
		}
		// Should the lists move later, the argument keeps what it had.
		c.args = append(c.args, db.Value{Text: c.lists[from:len(c.lists):len(c.lists)]})
	}
	list(func(dst []byte, i int) []byte { return append(dst, c.keys[i].bic[:]...) })
	list(func(dst []byte, i int) []byte { return strconv.AppendInt(dst, c.keys[i].ban, 10) })
	list(func(dst []byte, i int) []byte { return money.Append(dst, tx.Ops[i].Amount) })
	atLeast := int64(0)
	if payer, _ := jointOps(tx); tx.Kind == joint && payer != nil {
		atLeast = c.formula.floor(payer.Object)
	}
	c.args = append(c.args, integer(atLeast))
	return c.args
}
