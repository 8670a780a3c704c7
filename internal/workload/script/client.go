package script

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/script"
	"stroppy/internal/workload"
	"stroppy/internal/workload/sampling"
)

// client runs the scripts of one client.
type client struct {
	w       *Script
	s       db.SQLSession
	source  *rand.Rand
	machine *script.Machine
	number  uint64
	count   uint64 // transactions so far
	weights int

	chosen int // the script
	// A transaction of the script that is not applied is repeated from its first step, with the values that were drawn.
	first place // where the current transaction of the script begins
	rest  place // where the script goes on in the next transaction of the history; at step 0: it has ended
	again bool

	open       bool // between BEGIN and its end
	implicit   bool // the pipeline of the script has begun the transaction
	pipelining bool
	receipted  bool // the current transaction of the script has its receipt
	written    bool // the transaction with the receipt is committed
	sums       *summing
	timings    [][]timing // nil: the statements are not measured
	args       []db.Value
	slots      map[*db.Statement][]int // of the columns of a result; -1: no script uses the column
	record     recorder
}

// place is a place in a script.
type place struct {
	step       int
	pipelining bool
}

func newClient(w *Script, s db.SQLSession, number uint64) *client {
	c := &client{
		w: w, s: s, number: number, source: sampling.NewSource(w.seed, 0, number), slots: map[*db.Statement][]int{},
		sums: newSumming(w.summed), timings: w.timings.client(w.program),
	}
	for _, one := range w.program.Scripts {
		c.weights += one.Weight
	}
	c.machine = w.program.NewMachine(c.source.Uint64(), c.source.Uint64())
	c.machine.Debug = func(file string, line int, v script.Value) {
		w.report(fmt.Sprintf("%s:%d: debug: %s %s", file, line, v.Kind, v.Append(nil)))
	}
	c.define("scale", int64(w.scale))
	c.define("client_id", int64(number))
	c.define("random_seed", int64(w.seed))
	c.define("default_seed", int64(sampling.Mix(w.seed)>>1))
	return c
}

// define sets a variable of the tool, unless the user has defined it.
func (c *client) define(name string, value int64) {
	own := func(line string) bool { return strings.HasPrefix(line, name+"=") }
	if slot, ok := c.w.program.Slot(name); ok && !slices.ContainsFunc(c.w.config.Define, own) {
		c.machine.Vars[slot] = script.Value{Kind: script.Integer, Int: value}
	}
}

// Next implements load.Client.
func (c *client) Next(tx *history.Transaction) {
	c.count++
	*tx = history.Transaction{ID: history.NewID(c.w.run, c.number, c.count), Ops: tx.Ops[:0]}
	if c.rest.step == 0 {
		c.choose()
	}
	tx.Kind = c.w.kind(c.chosen)
	c.sums.next(c.rest.step > 0)
	c.first, c.rest, c.again, c.written = c.rest, place{}, false, false
	c.machine.Save()
}

// choose draws a script by the weights.
func (c *client) choose() {
	drawn := c.source.IntN(c.weights)
	for c.chosen = 0; drawn >= c.w.program.Scripts[c.chosen].Weight; c.chosen++ {
		drawn -= c.w.program.Scripts[c.chosen].Weight
	}
}

// leaves reports whether the transactions of the chosen script leave receipts.
func (c *client) leaves() bool { return c.w.receipts != nil && c.w.texts[c.chosen].writes }

// Attempt implements load.Client.
func (c *client) Attempt(ctx context.Context, tx *history.Transaction) error {
	workload.Forget(tx)
	if c.again {
		c.machine.Restore()
	}
	c.again = true
	c.sums.begin()
	c.open, c.implicit, c.pipelining, c.receipted, c.rest = false, false, c.first.pipelining, false, place{}
	c.record.begin()
	reason, err := c.perform(ctx, tx)
	if err != nil && c.open {
		c.open = false
		_ = c.s.Rollback(ctx) // the first error counts
	}
	if tx.Ops = tx.Ops[:0]; c.leaves() && (c.receipted || c.written) {
		tx.Ops = append(tx.Ops, history.Op{Write: true, Amount: 1})
	}
	tx.Ops = c.sums.appendOps(tx.Ops)
	if len(c.w.tracked) > 0 {
		tx.Ops = c.record.append(tx.Ops)
	}
	if err == nil {
		if c.written { // by an earlier transaction of the script
			reason = 0
		}
		workload.Decide(tx, reason)
		return nil
	}
	return c.ended(tx, err)
}

// ended returns the result of a try that ended with err.
func (c *client) ended(tx *history.Transaction, err error) error {
	class, constraint := db.ClassOf(err), db.ConstraintOf(err)
	switch {
	case class == db.Fatal:
		return err
	case c.written || c.sums != nil && c.sums.done: // a look-up finds the receipt
		return &db.Error{Class: db.Unknown, Op: "run the script after its commit", Err: err}
	case constraint == db.UniqueKey && strings.Contains(err.Error(), receiptTable):
		return workload.Ended(tx, err, workload.Rules{Logged: true})
	case refusals[constraint] != 0:
		workload.Decide(tx, refusals[constraint])
		return nil
	}
	return workload.Ended(tx, err, workload.Rules{})
}

var refusals = map[db.ConstraintKind]history.Reason{
	db.CheckFailed: checkFailed, db.NotNull: notNull, db.ForeignKey: foreignKey, db.UniqueKey: uniqueKey,
}

// parted reports whether another transaction of the history begins at a step. A receipt, and the versions of tracked
// rows, belong to one transaction of the database.
func (c *client) parted(step *script.Step, at int) bool {
	own := &c.w.texts[c.chosen]
	if c.open || !c.written && c.record.kept == 0 || own.plan.steps == nil && (own.parts < 2 || c.w.receipts == nil) {
		return false
	}
	switch {
	case step.Op == script.StartPipeline:
		return true
	case step.Op != script.Execute:
		return false
	}
	return c.pipelining || step.SQL.Control == script.Begin || step.SQL.Writes != script.No ||
		own.plan.steps != nil && own.plan.recorded[at] != nil
}

// perform runs the script from the first step of its current transaction to its end, or to the step at which it is
// parted.
func (c *client) perform(ctx context.Context, tx *history.Transaction) (reason history.Reason, err error) {
	steps, texts := c.w.program.Scripts[c.chosen].Steps, &c.w.texts[c.chosen]
	for i := c.first.step; i < len(steps); i++ {
		step := &steps[i]
		if c.parted(step, i) {
			c.rest = place{i, c.pipelining}
			break
		}
		switch step.Op {
		case script.Assign:
			c.machine.Vars[step.Slot], err = c.machine.Eval(step.Expr)
			c.sums.assigned(step.Slot)
		case script.Jump:
			i = step.Target - 1
		case script.JumpUnless:
			var yes bool
			if yes, err = c.machine.True(step.Expr); err == nil && !yes {
				i = step.Target - 1
			}
		case script.Sleep:
			err = c.sleep(ctx, step)
		case script.StartPipeline:
			c.pipelining = true
		case script.SyncPipeline, script.EndPipeline:
			c.pipelining = step.Op == script.SyncPipeline
			if c.implicit {
				err = c.commit(ctx, tx, i)
			} else if c.open {
				err = c.flush(ctx, tx)
			}
		default:
			var refused history.Reason
			if c.timings == nil {
				refused, err = c.execute(ctx, tx, step, texts.at[i], i)
			} else {
				began := time.Now()
				refused, err = c.execute(ctx, tx, step, texts.at[i], i)
				c.timings[c.chosen][i].add(time.Since(began), err)
			}
			if refused != 0 {
				reason = refused
			}
		}
		if err != nil {
			return 0, located(err, c.w.program.Scripts[c.chosen].Name, step.Line)
		}
	}
	if c.open {
		return 0, db.Fatalf("run "+c.w.program.Scripts[c.chosen].Name, "the script ends in a transaction: end it with COMMIT")
	}
	if c.written || c.sums != nil && c.sums.done { // what it wrote is committed, though a later transaction was rolled back
		reason = 0
	}
	return reason, nil
}

// located adds the place in the script to an error that no new try can help.
func located(err error, file string, line int) error {
	if own, ok := err.(*script.Error); ok {
		return &db.Error{Class: db.Fatal, Op: "run the script", Err: own}
	}
	if own, ok := err.(*db.Error); ok && own.Class == db.Fatal {
		copied := *own
		copied.Op = fmt.Sprintf("%s:%d: %s", file, line, own.Op)
		return &copied
	}
	return err
}

func (c *client) sleep(ctx context.Context, step *script.Step) error {
	d, err := c.machine.Duration(step)
	if err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &db.Error{Class: db.Aborted, Op: "sleep in a script", Err: ctx.Err()}
	}
}

// commit commits a transaction of the script. The next one begins at the step after it.
func (c *client) commit(ctx context.Context, tx *history.Transaction, step int) error {
	if err := c.sums.take(c.machine); err != nil {
		return err
	}
	if c.record.wrote && len(c.record.pending) > 0 { // the commit's answer may be lost, and the versions with it
		if err := c.flush(ctx, tx); err != nil {
			return err
		}
	}
	c.open, c.implicit = false, false
	err := c.s.Commit(ctx)
	if err == nil {
		c.harvest(tx)
		c.first, c.written, c.receipted = place{step + 1, c.pipelining}, c.written || c.receipted || c.record.wrote, false
		c.record.kept = len(c.record.ops)
		c.machine.Save()
		c.sums.ended(true)
	}
	return err
}

// readsOnly reports whether the database may begin a read-only transaction.
func (c *client) readsOnly(tx *history.Transaction) bool {
	return tx.Kind.ReadOnly() && !c.w.texts[c.chosen].locks
}

// flush waits for the results of all statements.
func (c *client) flush(ctx context.Context, tx *history.Transaction) error {
	err := c.s.Flush(ctx)
	if err == nil {
		c.harvest(tx)
	}
	return err
}

// begin begins a transaction of the script. Statements before BEGIN in a pipeline become a part of it: no
// Sync has ended them.
func (c *client) begin(ctx context.Context, tx *history.Transaction) error {
	switch {
	case c.implicit:
		c.implicit = false
		return nil
	case c.open:
		return db.Fatalf("BEGIN", "a transaction is open already: end it before the next BEGIN")
	}
	c.open = true
	return c.s.Begin(ctx, c.readsOnly(tx))
}

// execute runs one statement.
func (c *client) execute(ctx context.Context, tx *history.Transaction, step *script.Step, statement *db.Statement, at int) (history.Reason, error) {
	q := step.SQL
	switch q.Control {
	case script.Begin:
		return 0, c.begin(ctx, tx)
	case script.Commit, script.Rollback:
		if !c.open {
			return 0, db.Fatalf(q.Parts[0], "there is no transaction: begin one with BEGIN")
		}
		if q.Control == script.Commit {
			return 0, c.commit(ctx, tx, at)
		}
		c.open, c.receipted = false, false
		c.record.undo()
		err := c.s.Rollback(ctx)
		c.first = place{at + 1, c.pipelining}
		c.machine.Save()
		c.sums.ended(false)
		return rolledBack, err
	}
	if err := c.machine.Bound(q); err != nil {
		return 0, err
	}
	if q.Writes != script.No {
		c.sums.writes()
	}
	alone, tracked := !c.open, c.recorded(at)
	if alone && !c.pipelining && tracked == nil && (q.Writes == script.No || !c.leaves() && c.sums == nil) {
		return 0, c.query(ctx, q, statement)
	}
	if alone {
		if err := c.s.Begin(ctx, c.readsOnly(tx)); err != nil {
			return 0, err
		}
		c.open, c.implicit = true, c.pipelining
	}
	result, err := c.do(ctx, tx, tracked, statement, q)
	if err == nil && q.Writes != script.No {
		err = c.receipt(ctx, tx)
	}
	switch {
	case err != nil:
		return 0, err
	case alone && !c.pipelining:
		if err := c.commit(ctx, tx, at); err != nil {
			return 0, err
		}
	case q.Store != script.NoStore || !c.pipelining && c.w.config.mode() == workload.Interactive:
		if err := c.flush(ctx, tx); err != nil {
			return 0, err
		}
	}
	if q.Store == script.NoStore {
		return 0, nil
	}
	extra := 0
	if tracked != nil {
		extra = tracked.Extra
	}
	return 0, c.store(q, statement, c.s.Result(result), extra)
}

// do sends a statement; tracked is nil if it is not recorded.
func (c *client) do(
	ctx context.Context, tx *history.Transaction, tracked *trackedStatement, statement *db.Statement, q *script.SQL,
) (int, error) {
	if tracked != nil {
		return c.doTracked(ctx, tx, tracked, statement, q)
	}
	return c.s.Do(ctx, statement, c.arguments(q))
}

// receipt inserts the receipt of a transaction with its first statement that writes.
func (c *client) receipt(ctx context.Context, tx *history.Transaction) error {
	if !c.leaves() || c.receipted {
		return nil
	}
	c.receipted = true
	var args [2]db.Value
	args[0].Int, args[1].Int = int64(tx.ID), int64(c.chosen)+1
	_, err := c.s.Do(ctx, c.w.receipts.insert, args[:])
	return err
}

// arguments evaluates the parameters of a statement.
func (c *client) arguments(q *script.SQL) []db.Value {
	c.args = c.args[:0]
	for _, slot := range q.Params {
		v, own := &c.machine.Vars[slot], db.Value{}
		switch v.Kind {
		case script.Null:
			own.Null = true
		case script.Double:
			own.Int, own.Double = int64(math.Float64bits(v.Double)), true
		case script.Text:
			own.Text = v.Text
		default:
			own.Int = v.Int
		}
		c.args = append(c.args, own)
	}
	return c.args
}

// query runs a statement outside of transactions.
func (c *client) query(ctx context.Context, q *script.SQL, statement *db.Statement) error {
	if q.Store != script.NoStore {
		if err := c.s.Begin(ctx, q.Writes == script.No && !c.w.texts[c.chosen].locks); err != nil {
			return err
		}
		result, err := c.s.Do(ctx, statement, c.arguments(q))
		if err == nil {
			err = c.s.Commit(ctx)
		}
		if err != nil {
			return err
		}
		return c.store(q, statement, c.s.Result(result), 0)
	}
	return c.s.Query(ctx, statement, c.arguments(q), ignore)
}

func ignore([]db.Value) error { return nil }

// store sets the variables of \gset and \aset from a result, without the extra columns at its end.
func (c *client) store(q *script.SQL, statement *db.Statement, r *db.Result, extra int) error {
	rows := r.Rows()
	switch {
	case q.Store == script.GSet && rows != 1:
		return db.Fatalf("store the result of "+db.Shorten(statement.SQL), "\\gset needs one row, and there are %d", rows)
	case rows == 0:
		return nil
	}
	slots, known := c.slots[statement]
	if !known {
		for _, name := range r.Names[:len(r.Names)-extra] {
			slot, err := c.w.program.Column(q, name)
			if err != nil {
				return err
			}
			slots = append(slots, slot)
		}
		c.slots[statement] = slots
	}
	for i, v := range r.Row(rows - 1) {
		if i < len(slots) && slots[i] >= 0 {
			c.machine.SetText(slots[i], v.Text, v.Null)
			c.sums.assigned(slots[i])
		}
	}
	return nil
}

// ResolveUnknown implements load.Client.
func (c *client) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if !c.leaves() {
		tx.Outcome = history.Unknown
		return nil
	}
	return workload.ResolveByRow(ctx, c.s, tx, c.w.receipts.tombstone, c.w.receipts.find)
}

// Reset implements load.Client.
func (c *client) Reset(ctx context.Context) error { return c.s.Reset(ctx) }

// Close implements load.Client.
func (c *client) Close() error { return c.s.Close() }
