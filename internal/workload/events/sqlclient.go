package events

import (
	"context"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
)

// sqlClient appends on a session of its own.
type sqlClient struct {
	*appender
	db.SQLSession
	model *sqlModel
	args  [6]db.Value

	// ends are the last places of its own streams, plus 1; 0 is not known. Of
	// shared ones nothing is kept.
	ends []uint64
}

var _ load.Client = (*sqlClient)(nil)

// Attempt implements load.Client.
func (c *sqlClient) Attempt(ctx context.Context, tx *history.Transaction) error {
	c.begin(tx)
	err := c.append(ctx, tx)
	if err == nil {
		return nil
	}
	c.lose(tx)
	if db.ConstraintOf(err) == db.UniqueKey {
		return errTaken
	}
	return err
}

func (c *sqlClient) append(ctx context.Context, tx *history.Transaction) error {
	if err := c.Begin(ctx, false); err != nil {
		return err
	}
	op := &tx.Ops[0]
	end := c.ends[c.slot(op.Object)]
	if end == 0 || c.before != 0 {
		found, err := c.look(ctx, tx.ID, op.Object)
		if err != nil {
			return err
		}
		end = found + 1
	}
	c.tried = end // the place behind the last one
	for member := range c.batch {
		n := int64(0)
		for body := range slices.Chunk(c.make(tx.ID, uint32(member)), c.fragment) {
			c.args = [...]db.Value{{Int: int64(op.Object)}, {Int: int64(c.tried) + int64(member)}, {Int: n}, {Int: int64(tx.ID)}, {Int: int64(member)}, {Text: body}}
			if _, err := c.Do(ctx, c.model.insert, c.args[:]); err != nil {
				return err
			}
			n++
		}
	}
	if err := c.Commit(ctx); err != nil {
		return err
	}
	done(tx, c.tried-1)
	if !c.shared {
		c.ends[c.slot(op.Object)] = end + uint64(c.batch)
	}
	return nil
}

// look reads the last place of a stream, and of a new try whether the one before was
// applied after all.
func (c *sqlClient) look(ctx context.Context, id history.ID, stream uint64) (end uint64, err error) {
	c.args[0] = db.Value{Int: int64(stream)}
	last, err := c.Do(ctx, c.model.end, c.args[:1])
	if err != nil {
		return 0, err
	}
	who := -1
	if c.before != 0 {
		c.args[1] = db.Value{Int: int64(c.before)}
		if who, err = c.Do(ctx, c.model.who, c.args[:2]); err != nil {
			return 0, err
		}
	}
	if err := c.Flush(ctx); err != nil {
		return 0, err
	}
	if who >= 0 {
		if r := c.Result(who); r != nil && r.Rows() > 0 && history.ID(r.Row(0)[0].Int) == id {
			if err := c.Rollback(ctx); err != nil {
				return 0, err
			}
			return 0, load.ErrAlreadyApplied
		}
	}
	if r := c.Result(last); r != nil && r.Rows() > 0 && !r.Row(0)[0].Null {
		end = uint64(r.Row(0)[0].Int)
	}
	return end, nil
}

// slot is where the end of one of its streams is kept.
func (c *sqlClient) slot(stream uint64) uint64 { return (stream - c.first) / c.step }

// lose forgets where the transaction's stream ends.
func (c *sqlClient) lose(tx *history.Transaction) { c.ends[c.slot(tx.Ops[0].Object)] = 0 }

// ResolveUnknown implements load.Client, as the package's comment says.
func (c *sqlClient) ResolveUnknown(ctx context.Context, tx *history.Transaction) error {
	if c.unsent(tx) {
		return nil
	}
	if err := c.take(ctx, tx); err != nil {
		return err
	}
	// A transaction of its own: under snapshot isolation the one above would not
	// see an append that committed while it waited.
	if err := c.Begin(ctx, true); err != nil {
		return err
	}
	c.args[0], c.args[1] = db.Value{Int: int64(tx.Ops[0].Object)}, db.Value{Int: int64(c.tried)}
	who, err := c.Do(ctx, c.model.who, c.args[:2])
	if err != nil {
		return err
	}
	if err := c.Commit(ctx); err != nil {
		return err
	}
	r := c.Result(who)
	switch {
	case r == nil || r.Rows() == 0:
		return errNobody
	case history.ID(r.Row(0)[0].Int) == tx.ID && r.Row(0)[1].Int == 0:
		done(tx, c.tried-1)
	default:
		tx.Outcome = history.Aborted
	}
	return nil
}

// take puts a tombstone at the place that was tried, unless somebody has it.
func (c *sqlClient) take(ctx context.Context, tx *history.Transaction) error {
	if err := c.Begin(ctx, false); err != nil {
		return err
	}
	c.args[0], c.args[1], c.args[2] = db.Value{Int: int64(tx.Ops[0].Object)}, db.Value{Int: int64(c.tried)}, db.Value{Int: int64(tx.ID)}
	_, err := c.Do(ctx, c.model.tombstone, c.args[:3])
	if err == nil {
		err = c.Commit(ctx)
	}
	if db.ConstraintOf(err) == db.UniqueKey {
		return nil // a dialect without DoNothing: somebody has it
	}
	return err
}
