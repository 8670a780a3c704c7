package appends

import (
	"context"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// late reports whether the database makes all changes of a transaction at its commit.
func (m *recordModel) late() bool { return m.Database.Limits().Deferred }

// rehearse makes lists, and carries out one transaction for each number of appends and reads.
func (m *recordModel) rehearse(ctx context.Context, s db.RecordSession) error {
	c := &lateClient{chooser: &chooser{}, RecordSession: s, model: m}
	err := c.make(ctx)
	for appends := range int(m.config.Operations) + 1 {
		for reads := range int(m.config.Operations) + 1 - appends {
			var tx history.Transaction
			for i := range appends + reads {
				tx.Ops = append(tx.Ops, history.Op{Object: uint64(i), Write: i < appends})
			}
			if len(tx.Ops) > 0 && err == nil {
				err = c.attempt(ctx, &tx)
			}
		}
	}
	return err
}

// lateClient runs one client's transactions on a session of its own. Each is one round trip: the commit
// appends to the lists, and fills in what all lists were before.
type lateClient struct {
	*chooser
	db.RecordSession
	model *recordModel

	made    uint64      // this client needs no new list below this number
	before  []db.Record // what the list of each operation was
	text    []byte      // the text to append to a list
	args    [1]db.Value
	records [][]db.Value // the lists to make
}

// Attempt implements load.Client.
func (c *lateClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	forget(tx)
	err := c.prepare(ctx, tx)
	if err == nil {
		err = c.attempt(ctx, tx)
	}
	switch {
	case err == nil:
		tx.Outcome = history.Committed
		c.learn(tx)
	case db.ConstraintOf(err) == db.ForeignKey:
		// The cluster was lost, and its lists too.
		c.made, err = 0, nil
		forget(tx)
		workload.Decide(tx, noSuchList)
	}
	return err
}

// prepare makes the lists that a transaction appends to, together with their neighbors. This is not part of the
// transaction: an empty list and a missing list are the same.
func (c *lateClient) prepare(ctx context.Context, tx *history.Transaction) error {
	for i := range tx.Ops {
		for key := keyOf(tx.Ops[i].Object); tx.Ops[i].Write && key >= c.made; c.made += makeRows {
			c.made = max(c.made, c.first/makeRows*makeRows)
			if err := c.make(ctx); taken(err) != nil {
				return unsent(err)
			}
		}
	}
	return nil
}

// make makes the next lists. Lists that are made together appear together, so one existing list stands for all of them.
func (c *lateClient) make(ctx context.Context) error {
	c.records = c.records[:0]
	for k := range uint64(makeRows) {
		c.records = append(c.records, []db.Value{{Int: int64(newObject(c.run, c.made+k))}, {Text: []byte{}}})
	}
	err := c.Begin(ctx, false)
	if err == nil {
		err = c.Insert(ctx, c.model.lists, c.records...)
	}
	if err == nil {
		err = c.Commit(ctx)
	}
	return err
}

func (c *lateClient) attempt(ctx context.Context, tx *history.Transaction) error {
	if err := c.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	for len(c.before) < len(tx.Ops) {
		c.before = append(c.before, db.Record{})
	}
	err := c.change(ctx, tx, true)
	if err == nil {
		err = c.change(ctx, tx, false)
	}
	if err == nil {
		err = c.Commit(ctx)
	}
	if err != nil {
		return err
	}
	appended := uint64(0)
	for from, to := 0, 0; from < len(tx.Ops); from = to {
		to = groupEnd(tx, from)
		text := c.before[from].Values[1].Text
		for i := from; i < to; i++ {
			op := &tx.Ops[i]
			if !op.Write {
				observe(tx, op, text)
				continue
			}
			if i+1 < to { // a read of this transaction may follow
				c.text = appendText(append(c.text[:0], text...), newElement(tx.ID, appended))
				text = c.text
			}
			appended++
		}
	}
	return nil
}

// groupEnd returns the first operation after from that is on another list.
func groupEnd(tx *history.Transaction, from int) (to int) {
	for to = from + 1; to < len(tx.Ops) && tx.Ops[to].Object == tx.Ops[from].Object; to++ {
	}
	return to
}

// change adds the changes of all lists that the transaction appends to, or of all lists that it reads. It repeats the
// last change without an effect until their number is a power of two. Fewer numbers of changes need fewer procedures.
func (c *lateClient) change(ctx context.Context, tx *history.Transaction, appends bool) error {
	number, n, last := uint64(0), 0, db.Value{}
	update, args := c.model.look, c.args[:0]
	if appends {
		update, args = c.model.add, c.args[:]
	}
	for from, to := 0, 0; from < len(tx.Ops); from = to {
		to = groupEnd(tx, from)
		c.text = c.text[:0]
		for i := from; i < to; i++ {
			if tx.Ops[i].Write {
				c.text = appendText(c.text, newElement(tx.ID, number))
				number++
			}
		}
		if len(c.text) > 0 != appends {
			continue
		}
		var err error
		c.args[0].Text, last.Int = c.text, int64(tx.Ops[from].Object)
		if c.before[from], err = c.FindAndUpdate(ctx, update, last, args); err != nil {
			return err
		}
		n++
	}
	c.args[0].Text = c.text[:0]
	for ; n&(n-1) != 0; n++ {
		if _, err := c.Update(ctx, update, []db.Value{last}, args); err != nil {
			return err
		}
	}
	return nil
}
