package script

import (
	"context"

	"stroppy/internal/check/rows"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/script"
	"stroppy/internal/workload/script/track"
)

// recorder collects what a try did with tracked rows.
type recorder struct {
	ops     []history.Op
	kept    int       // operations of committed transactions
	pending []pending // statements whose results have not arrived
	wrote   bool      // the current transaction has written a tracked row

	reads, writes, unversioned int64 // statements that were not recorded
	args                       []db.Value
	follow                     [1]db.Value
}

type pending struct {
	statement *trackedStatement
	result    int
	follow    int // the result of the statement that reads the version; -1: none
}

// begin forgets an earlier try.
func (r *recorder) begin() {
	r.ops, r.kept, r.pending, r.wrote = r.ops[:0], 0, r.pending[:0], false
	r.reads, r.writes, r.unversioned = 0, 0, 0
}

// undo forgets the current transaction.
func (r *recorder) undo() {
	r.ops, r.pending, r.wrote = r.ops[:r.kept], r.pending[:0], false
}

// count counts a statement that is not recorded.
func (r *recorder) count(s *track.Statement) {
	switch {
	case s.Writes:
		r.writes++
	case s.Reads:
		r.reads++
	}
	if s.Blind {
		r.unversioned++
	}
}

// recorded returns the tracked statement of a step, and nil if it is not recorded. It counts the others.
func (c *client) recorded(step int) *trackedStatement {
	plan := &c.w.texts[c.chosen].plan
	if plan.steps == nil {
		return nil
	}
	if plan.recorded[step] == nil {
		c.record.count(&plan.steps[step])
		return nil
	}
	return plan.recorded[step]
}

// doTracked sends a tracked statement, and returns its result like db.SQLSession.Do.
func (c *client) doTracked(
	ctx context.Context, tx *history.Transaction, s *trackedStatement, statement *db.Statement, q *script.SQL,
) (int, error) {
	r, values := &c.record, c.arguments(q)
	r.args = r.args[:0]
	next := 0
	for _, own := range s.Own {
		if own {
			r.args = append(r.args, db.Value{Int: int64(tx.ID)})
		} else {
			r.args = append(r.args, values[next])
			next++
		}
	}
	if s.Kind != track.Read {
		r.wrote = true
	}
	result, err := c.s.Do(ctx, statement, r.args)
	if err != nil {
		return result, err
	}
	p := pending{s, result, -1}
	if s.follow != nil {
		args := r.follow[:0]
		if s.FollowBy >= 0 {
			args = append(args, values[s.FollowBy])
		}
		p.follow, err = c.s.Do(ctx, s.follow, args)
	}
	r.pending = append(r.pending, p)
	return result, err
}

// harvest records the results that have arrived.
func (c *client) harvest(tx *history.Transaction) {
	r := &c.record
	for i := range r.pending {
		p := &r.pending[i]
		number, extra := p.result, p.statement.Extra
		if p.follow >= 0 {
			number, extra = p.follow, 3
		}
		result := c.s.Result(number)
		if result == nil || result.Rows() > 0 && result.Columns < extra {
			r.lose(p)
			continue
		}
		for n := range result.Rows() {
			row := result.Row(n)
			c.observe(p.statement, row[len(row)-extra:], tx.ID)
		}
	}
	r.pending = r.pending[:0]
}

// observe records a row with its key, its version and, if the statement has it, its writer.
func (c *client) observe(s *trackedStatement, row []db.Value, id history.ID) {
	version, ok := track.Integer(row[1].Text)
	if !ok {
		if s.Kind != track.Read {
			c.record.unversioned++
		}
		return
	}
	op := history.Op{Object: c.w.tracked.object(s.Table, row[0].Text), Observed: true, Version: uint64(version)}
	if len(row) > 2 {
		writer, _ := track.Integer(row[2].Text)
		op.Writer = history.ID(writer)
	}
	if s.Kind != track.Read {
		if s.follow != nil && op.Writer != id {
			return // the statement found no row to write
		}
		op.Write, op.Writer, op.Version = true, 0, op.Version-1
	}
	if s.Kind == track.Insert {
		op.State = history.Absent
	}
	if s.computes {
		op.Amount = 1
	}
	c.record.ops = append(c.record.ops, op)
}

// lose counts a write whose result is lost.
func (r *recorder) lose(p *pending) {
	if p.statement.Kind != track.Read {
		r.unversioned++
	}
}

// append appends the operations of the try.
func (r *recorder) append(ops []history.Op) []history.Op {
	for i := range r.pending {
		r.lose(&r.pending[i])
	}
	r.pending = r.pending[:0]
	ops = append(ops, r.ops...)
	for _, one := range [...]history.Op{
		{Object: rows.OtherReads, Amount: r.reads}, {Object: rows.OtherWrites, Write: true, Amount: r.writes},
		{Object: rows.Unversioned, Write: true, Amount: r.unversioned},
	} {
		if one.Amount > 0 {
			ops = append(ops, one)
		}
	}
	return ops
}
