package appends

import (
	"cmp"
	"context"
	"errors"

	"stroppy/internal/check/lists"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// sqlClient runs one client's transactions on a session of its own. A transaction asks for
// nothing before its end, so that it takes one round trip where statements can be pipelined.
type sqlClient struct {
	*chooser
	db.SQLSession
	model *sqlModel

	made    uint64 // all lists below it are there, as far as this client needs them
	args    []db.Value
	text    []byte // of the element that is appended
	results []int  // of the reads, in their order
	writes  []int  // of the appends that show whether they have found their list
}

// Attempt implements load.Client. If a database without keys for transactions applied one that it had reported as not
// applied, the checks show it.
func (c *sqlClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	forget(tx)
	err := c.prepare(ctx, tx)
	if err == nil {
		err = c.attempt(ctx, tx)
	}
	switch {
	case err == nil && tx.Outcome == history.Rejected:
	case err == nil:
		tx.Outcome = history.Committed
		c.learn(tx)
	case db.ConstraintOf(err) == db.UniqueKey: // of two appends that found the same end of a list
		err = errMeanwhile
	}
	return err
}

func (c *sqlClient) attempt(ctx context.Context, tx *history.Transaction) error {
	if err := c.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	c.results, c.writes = c.results[:0], c.writes[:0]
	appended := uint64(0)
	for i := 0; i < len(tx.Ops); {
		if tx.Ops[i].Write {
			if err := c.append(ctx, tx.Ops[i].Object, newElement(tx.ID, appended)); err != nil {
				return err
			}
			appended++
			i++
			continue
		}
		width := c.model.width(tx.Ops[i:])
		if err := c.read(ctx, tx.Ops[i].Object, uint64(width)); err != nil {
			return err
		}
		i += width
	}
	if c.model.config.Mode == workload.Interactive && len(c.writes) > 0 {
		if err := c.Flush(ctx); err != nil {
			return err
		}
		if c.lost() > 0 {
			return cmp.Or(c.Rollback(ctx), c.refuse(tx, true))
		}
	}
	if err := c.Commit(ctx); err != nil {
		return err
	}
	if lost := c.lost(); lost > 0 {
		return c.refuse(tx, lost == appended)
	}
	c.observe(tx)
	return nil
}

// lost counts the appends that have found no list, where their results show that.
func (c *sqlClient) lost() (n uint64) {
	for _, result := range c.writes {
		if r := c.Result(result); r != nil && r.Affected == 0 {
			n++
		}
	}
	return n
}

// errPartly is the error of a transaction that was committed without some of its appends.
var errPartly = &db.Error{Class: db.Unknown, Op: "append to a list", Err: errors.New("the list was made and is not there any more, and other appends of the transaction were committed")}

// refuse ends a transaction of which lists were not there. One that has changed nothing is
// rejected; else what became of it is for the checks to say.
func (c *sqlClient) refuse(tx *history.Transaction, nothing bool) error {
	c.made = 0 // the lists are made again
	if !nothing {
		return errPartly
	}
	workload.Decide(tx, noSuchList)
	return nil
}

// width returns the number of operations in the first step: a read of a range has all that follow each other.
func (m *sqlModel) width(ops []history.Op) int {
	if m.config.Access != Predicate {
		return 1
	}
	return rangeOf(ops)
}

// rangeOf returns the number of reads of neighbors at the beginning of the operations, at least 1.
func rangeOf(ops []history.Op) int {
	n := 1
	for n < len(ops) && !ops[n].Write && ops[n].Object == ops[n-1].Object+1 {
		n++
	}
	return n
}

// append adds the statements of an append.
func (c *sqlClient) append(ctx context.Context, object, element uint64) error {
	c.text = appendText(c.text[:0], element)
	list, number, text := db.Value{Int: int64(object)}, db.Value{Int: int64(element)}, db.Value{Text: c.text}
	c.args = c.args[:0]
	switch c.model.config.Access {
	case Primary, Secondary:
		c.args = append(c.args, text, list)
	case Upsert:
		c.args = append(c.args, list, text)
	case Rows:
		c.args = append(c.args, list, number, list)
	case Predicate:
		return c.appendInRange(ctx, object, number)
	}
	statement := c.model.append[0]
	result, err := c.Do(ctx, statement, c.args)
	if statement.Counted {
		c.writes = append(c.writes, result)
	}
	return err
}

// appendInRange adds the statements that delete the row behind a list's last element, add
// the element, and add another row behind it.
func (c *sqlClient) appendInRange(ctx context.Context, object uint64, element db.Value) error {
	from, last, to := placeIn(object, 0), placeIn(object, lastPlace), placeIn(object+1, 0)
	c.args = append(c.args, last, to)
	if _, err := c.Do(ctx, c.model.append[0], c.args); err != nil {
		return err
	}
	c.args = append(c.args[:0], from, element, from, last)
	if _, err := c.Do(ctx, c.model.append[1], c.args); err != nil {
		return err
	}
	c.args = append(c.args[:0], last, element)
	_, err := c.Do(ctx, c.model.append[2], c.args)
	return err
}

// read adds the statement of a read of lists that are neighbours.
func (c *sqlClient) read(ctx context.Context, object, width uint64) error {
	c.args = append(c.args[:0], db.Value{Int: int64(object)})
	if c.model.config.Access == Predicate {
		c.args = append(c.args[:0], placeIn(object, 0), placeIn(object+width, 0))
	}
	result, err := c.Do(ctx, c.model.read, c.args)
	c.results = append(c.results, result)
	return err
}

// observe records the results of the reads.
func (c *sqlClient) observe(tx *history.Transaction) {
	next := 0
	for i := 0; i < len(tx.Ops); {
		if tx.Ops[i].Write {
			i++
			continue
		}
		width := c.model.width(tx.Ops[i:])
		r := c.Result(c.results[next])
		for k := range width {
			c.take(tx, &tx.Ops[i+k], r)
		}
		next++
		i += width
	}
}

// take records the result of a read of a list. No transaction makes a list that exists more than once.
func (c *sqlClient) take(tx *history.Transaction, op *history.Op, r *db.Result) {
	if r == nil || r.Rows() == 0 {
		observe(tx, op, nil)
		return
	}
	switch c.model.config.Access {
	case Rows:
		observeRows(tx, op, r)
		return
	case Predicate:
		observeRange(tx, op, r)
		return
	}
	observe(tx, op, r.Row(0)[0].Text)
	if r.Rows() > 1 {
		broken(tx, op)
	}
}

// observeRange records the rows of a list among the rows of a range.
func observeRange(tx *history.Transaction, op *history.Op, r *db.Result) {
	op.Observed, op.State, op.Value = true, history.Whole, 0
	for i := range r.Rows() {
		row := r.Row(i)
		if place := uint64(row[0].Int); place>>placeBits == op.Object && place&lastPlace != lastPlace {
			addRow(tx, op, int64(place&lastPlace), row[1].Int)
		}
	}
}

// observeRows records a list with one row per element.
func observeRows(tx *history.Transaction, op *history.Op, r *db.Result) {
	op.Observed, op.State, op.Value = true, history.Whole, 0
	for i := range r.Rows() {
		row := r.Row(i)
		addRow(tx, op, row[0].Int, row[1].Int)
	}
}

// addRow records the element at a place behind the recorded ones. A gap before the place is a missing element. A
// place that no list has is garbage behind the others.
func addRow(tx *history.Transaction, op *history.Op, place, element int64) {
	if place <= op.Value || place >= lastPlace || element < 0 {
		place, element = op.Value+1, 0
	}
	for ; op.Value < place-1; op.Value++ {
		tx.Elements = append(tx.Elements, lists.Missing)
	}
	tx.Elements = append(tx.Elements, uint64(element))
	op.Value++
}

// broken records that the content is no list.
func broken(tx *history.Transaction, op *history.Op) {
	tx.Elements = tx.Elements[:len(tx.Elements)-int(op.Value)]
	op.Observed, op.State, op.Value = true, history.Broken, 0
}

// prepare makes lists that must exist before a transaction appends to them, together with the next ones. That is no
// part of the transaction: an empty list and a missing list are the same.
func (c *sqlClient) prepare(ctx context.Context, tx *history.Transaction) error {
	if c.model.make == nil || tx.Kind.ReadOnly() {
		return nil
	}
	for i := range tx.Ops {
		for key := keyOf(tx.Ops[i].Object); tx.Ops[i].Write && key >= c.made; {
			c.made = max(c.made, c.first/makeLists*makeLists)
			if err := c.makeLists(ctx, c.made); err != nil {
				return unsent(err)
			}
			c.made += makeLists
		}
	}
	return nil
}

// makeLists makes the lists from a number on, unless they exist.
func (c *sqlClient) makeLists(ctx context.Context, key uint64) error {
	there := false
	c.args = append(c.args[:0], db.Value{Int: int64(newObject(c.run, key))})
	err := c.Query(ctx, c.model.read, c.args, func([]db.Value) error {
		there = true
		return nil
	})
	if err != nil || there {
		return err
	}
	if err := c.Begin(ctx, false); err != nil {
		return err
	}
	for from := key; from < key+makeLists; from += makeRows {
		c.args = c.args[:0]
		for k := range uint64(makeRows) {
			for range len(c.model.make.Params) / makeRows {
				c.args = append(c.args, db.Value{Int: int64(newObject(c.run, from+k))})
			}
		}
		if _, err := c.Do(ctx, c.model.make, c.args); err != nil {
			return taken(err)
		}
	}
	return taken(c.Commit(ctx))
}

// taken returns nil if another client has made the lists.
func taken(err error) error {
	if db.ConstraintOf(err) == db.UniqueKey {
		return nil
	}
	return err
}

// unsent returns an error from before the begin of the transaction, which was surely not applied.
func unsent(err error) error {
	if e, ok := errors.AsType[*db.Error](err); ok && e.Class == db.Unknown {
		before := *e
		before.Class, before.Final = db.Unavailable, false
		return &before
	}
	return err
}
