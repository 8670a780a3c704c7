package bank

import (
	"cmp"
	"context"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// recordOpenings is a client that opens and closes accounts in a database of records. The accounts of a bank code are
// a range of ids. The client writes back by value, whatever the style, so a record that changed since the snapshot
// refuses the write.
type recordOpenings struct {
	*workload.RecordClient
	*chooser
	ranges   db.RecordRangeSession
	accounts *db.Collection
	guarded  bool // the database refuses a balance below zero at the commit

	from, to []byte
	id       [1]db.Value
}

// placeBalance is the place of the balance among the values of an account.
const placeBalance = 1

// newRecordOpenings opens the client's session, in which all its transactions are.
func (m *recordModel) newRecordOpenings(ctx context.Context, h *chooser, style workload.RecordStyle) (load.Client, error) {
	r := m.Database.(db.RecordRanger) // or the model was refused
	s, err := r.RecordRangeSession(ctx, m.config.SessionOptions())
	if err != nil {
		return nil, err
	}
	return &recordOpenings{
		RecordClient: workload.NewRecordClient(s, h, m.records, rules, style), chooser: h,
		ranges: s, accounts: m.records.Objects, guarded: m.Database.Limits().Guarded,
	}, nil
}

// AppendID implements workload.RecordLogic.
func (c *recordOpenings) AppendID(dst []byte, n uint64) []byte { return c.chooser.AppendID(dst, n) }

// Attempt implements load.Client. The RecordClient makes the transactions that touch no opened account.
func (c *recordOpenings) Attempt(ctx context.Context, tx *history.Transaction) error {
	if !special(tx.Kind) {
		return c.RecordClient.Attempt(ctx, tx)
	}
	tx.Ops = tx.Ops[:planned(tx)]
	workload.Forget(tx)
	err := workload.Ended(tx, c.attempt(ctx, tx), rules)
	c.settle(tx, err)
	return err
}

// ResolveUnknown implements load.Client.
func (c *recordOpenings) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	err := c.RecordClient.ResolveUnknown(ctx, tx)
	c.settle(tx, err)
	return err
}

func (c *recordOpenings) attempt(ctx context.Context, tx *history.Transaction) error {
	there := func(op *history.Op) bool { return tx.Kind != opening || op.Object < firstOpened }
	reason, err := c.ReadObjects(ctx, tx, there)
	if err != nil {
		return err
	}
	if own := opened(tx); own != nil && tx.Kind == opening {
		absent(own)
	}
	if of := predicateOf(tx); of != nil {
		if err := c.readPredicate(ctx, tx, of.Object); err != nil {
			return err
		}
	}
	if tx.Kind.ReadOnly() {
		return c.End(ctx, tx, reason)
	}
	if reason == 0 {
		reason = c.decide(tx)
	}
	if reason = cmp.Or(reason, c.formula.refusal(tx, c.guarded)); reason != 0 {
		return c.End(ctx, tx, reason)
	}
	kept := func(op *history.Op) bool {
		return op.Object < firstOpened || tx.Kind == withdrawal || tx.Kind == topUp
	}
	if err := c.WriteObjects(ctx, tx, kept); err != nil {
		return err
	}
	if err := c.insertOrDelete(ctx, tx); err != nil {
		return err
	}
	return c.End(ctx, tx, 0)
}

// insertOrDelete makes the record of an opened account, or deletes the record of a closed one.
func (c *recordOpenings) insertOrDelete(ctx context.Context, tx *history.Transaction) error {
	own := opened(tx)
	id := c.AppendID(nil, own.Object)
	switch tx.Kind {
	case opening:
		return c.ranges.Insert(ctx, c.accounts, workload.ObjectValues(id, workload.State{Balance: own.Amount, Version: 1, Last: int64(tx.ID)}))
	case closing:
		c.id[0] = db.Value{Text: id}
		found, err := c.ranges.Delete(ctx, c.accounts, c.id[:])
		if err == nil && found != 1 {
			err = db.Fatalf("close an account", "its record was read and is not there to be removed")
		}
		return err
	}
	return nil
}

// readPredicate reads all accounts of the bank code of account n, or those under the
// balance.
func (c *recordOpenings) readPredicate(ctx context.Context, tx *history.Transaction, n uint64) error {
	c.from = append(appendBIC(c.from[:0], c.formula.key(n)), '/')
	c.to = append(c.to[:0], c.from...)
	c.to[len(c.to)-1]++
	r := db.RecordRange{From: db.Value{Text: c.from}, To: db.Value{Text: c.to}}
	if tx.Kind == withdrawal || tx.Kind == byBalance {
		r.Field, r.Below = placeBalance, db.Value{Int: lowBalance}
	}
	return c.ranges.Range(ctx, c.accounts, r, func(account []db.Value) error {
		state, ok := workload.StateOf(account)
		if !ok {
			return db.Fatalf("read "+string(account[db.ID].Text), "one of its fields is missing, which no transaction takes away")
		}
		if key, ok := accountOf(account[db.ID].Text); ok {
			c.member(tx, key, state)
		}
		return nil
	})
}
