package appends

import (
	"cmp"
	"context"
	"errors"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// valueClient runs one client's transactions on lists that are values under their keys. A transaction reads each list
// before it writes it. The buffers grow to what one transaction needs.
type valueClient struct {
	*chooser
	db.RecordSession
	model    *recordModel
	together bool // the lists of a transaction are read in one round trip

	objects []uint64 // the lists of the transaction
	known   int      // so many of them were read
	found   [][]byte // what was read of each; nil: it is not there
	list    [][]byte // what it is with the transaction's own appends
	slots   []int    // which of them each operation is on
	added   []bool   // the transaction appended to it

	ids     []db.Value // of the lists that one call reads
	records []db.Record
	args    [2]db.Value
	entry   [1][]db.Value // the record to insert
}

// Attempt implements load.Client.
func (c *valueClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	forget(tx)
	err := c.attempt(ctx, tx)
	switch {
	case err == nil:
		tx.Outcome = history.Committed
		c.learn(tx)
	case db.ConstraintOf(err) == db.UniqueKey:
		err = errMeanwhile
		forget(tx)
	case err == load.ErrAlreadyApplied || db.ClassOf(err) != db.Unknown:
		forget(tx)
	}
	return err
}

// forget removes what an earlier try has set.
func forget(tx *history.Transaction) {
	workload.Forget(tx)
	tx.Elements = tx.Elements[:0]
}

func (c *valueClient) attempt(ctx context.Context, tx *history.Transaction) error {
	if err := c.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	c.place(tx)
	appended := uint64(0)
	for i := range tx.Ops {
		slot, op := c.slots[i], &tx.Ops[i]
		if slot >= c.known {
			if err := c.look(ctx, tx.ID, slot); err != nil {
				return err
			}
		}
		if op.Write {
			if i == 0 || c.slots[i-1] != slot {
				observe(tx, op, c.list[slot]) // what the list is written over
			}
			c.list[slot] = appendText(c.list[slot], newElement(tx.ID, appended))
			c.added[slot] = true
			appended++
			continue
		}
		observe(tx, op, c.list[slot])
	}
	for slot := range c.objects {
		if !c.added[slot] {
			continue
		}
		if err := c.write(ctx, slot); err != nil {
			return err
		}
	}
	return c.Commit(ctx)
}

// place gives each list of the transaction a slot.
func (c *valueClient) place(tx *history.Transaction) {
	c.objects, c.slots, c.known = c.objects[:0], c.slots[:0], 0
	for i := range tx.Ops {
		slot := 0
		for slot < len(c.objects) && c.objects[slot] != tx.Ops[i].Object {
			slot++
		}
		if slot == len(c.objects) {
			c.objects = append(c.objects, tx.Ops[i].Object)
		}
		c.slots = append(c.slots, slot)
	}
	for len(c.list) < len(c.objects) {
		c.list, c.found, c.added = append(c.list, nil), append(c.found, nil), append(c.added, false)
		c.ids, c.records = append(c.ids, db.Value{}), append(c.records, db.Record{})
	}
	clear(c.added)
}

// look reads the list of a slot, or all lists where they are read together. An element of
// the transaction itself is of a try that was reported as not applied.
func (c *valueClient) look(ctx context.Context, id history.ID, slot int) error {
	to := slot + 1
	if c.together {
		to = len(c.objects)
	}
	for i := c.known; i < to; i++ {
		c.ids[i].Int = int64(c.objects[i])
	}
	if err := c.Find(ctx, c.model.lists, c.ids[c.known:to], c.records[c.known:to]); err != nil {
		return err
	}
	for ; c.known < to; c.known++ {
		c.found[c.known] = nil
		if r := &c.records[c.known]; r.Found {
			c.found[c.known] = r.Values[1].Text
		}
		c.list[c.known] = append(c.list[c.known][:0], c.found[c.known]...)
		if hasOf(c.list[c.known], id) {
			return cmp.Or(c.Rollback(ctx), load.ErrAlreadyApplied)
		}
	}
	return nil
}

// write gives the list of a slot its new value.
func (c *valueClient) write(ctx context.Context, slot int) error {
	id, value := db.Value{Int: int64(c.objects[slot])}, db.Value{Text: c.list[slot]}
	if c.found[slot] == nil {
		c.args = [...]db.Value{id, value}
		c.entry[0] = c.args[:]
		return c.Insert(ctx, c.model.lists, c.entry[:]...)
	}
	c.ids[slot], c.args[0] = id, value
	n, err := c.Update(ctx, c.model.replace, c.ids[slot:slot+1], c.args[:1])
	if err == nil && n != 1 {
		return cmp.Or(c.Rollback(ctx), error(errMeanwhile)) // the list is no longer there
	}
	return err
}

// observe records the text of a list that a read found.
func observe(tx *history.Transaction, op *history.Op, text []byte) {
	before := len(tx.Elements)
	var ok bool
	tx.Elements, ok = appendParsed(tx.Elements, text)
	op.Observed, op.State, op.Value = true, history.Whole, int64(len(tx.Elements)-before)
	if !ok {
		op.State = history.Broken
	}
}

var errMeanwhile = &db.Error{Class: db.Aborted, Op: "append to a list", Err: errors.New("another client has begun or changed the list at the same time")}
