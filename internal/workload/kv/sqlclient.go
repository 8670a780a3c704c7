package kv

import (
	"context"
	"errors"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// sqlSession is a client's session of a SQL database. A transaction of one statement asks
// for nothing before its end, so that it takes one round trip.
type sqlSession struct {
	db.SQLSession
	model *sqlModel
	args  []db.Value
}

func (s *sqlSession) transact(ctx context.Context, c *client, tx *history.Transaction) error {
	if err := s.Begin(ctx, tx.Kind.ReadOnly()); err != nil {
		return err
	}
	op := &tx.Ops[0]
	if tx.Kind == history.Modify {
		if writes, err := s.beforeUpdate(ctx, c, tx); err != nil || !writes {
			return err
		}
	}
	result, err := s.last(ctx, c, tx)
	if err != nil {
		return err
	}
	if err := s.Commit(ctx); err != nil {
		return err
	}
	switch r := s.Result(result); {
	case tx.Kind == history.Get:
		s.take(c, op, result)
	case tx.Kind == history.Insert:
		absent(op)
	case tx.Kind == history.Scan:
		c.scanned.start(tx)
		for i := range r.Rows() {
			c.scanned.add(r.Row(i)[0].Text, r.Row(i)[1].Text)
		}
	case r == nil || r.Affected == 0: // an update of nothing
		reject(tx)
		absent(op)
	}
	return nil
}

// last adds the last statement of a transaction, which of all but one kind is the only
// one.
func (s *sqlSession) last(ctx context.Context, c *client, tx *history.Transaction) (result int, err error) {
	key := db.Value{Text: c.key}
	switch tx.Kind {
	case history.Get:
		return s.do(ctx, s.model.read, key)
	case history.Insert:
		return s.do(ctx, s.model.insert, key, db.Value{Text: c.newValue(tx)})
	case history.Scan:
		return s.do(ctx, s.model.scan, key, db.Value{Int: tx.Ops[0].Amount})
	}
	return s.do(ctx, s.model.update, db.Value{Text: c.newValue(tx)}, key)
}

// beforeUpdate reads the record that is then written, without a lock: whether another
// may write in between is for the isolation to say. Where there is no record it ends
// the transaction.
func (s *sqlSession) beforeUpdate(ctx context.Context, c *client, tx *history.Transaction) (writes bool, err error) {
	result, err := s.do(ctx, s.model.read, db.Value{Text: c.key})
	if err != nil {
		return false, err
	}
	if err := s.Flush(ctx); err != nil {
		return false, err
	}
	s.take(c, &tx.Ops[0], result)
	writes, err = mayWrite(tx)
	switch {
	case err != nil:
		err = errors.Join(s.Rollback(ctx), err)
	case !writes:
		err = s.Commit(ctx)
	}
	return writes, err
}

// do adds a statement to the transaction.
func (s *sqlSession) do(ctx context.Context, statement *db.Statement, args ...db.Value) (result int, err error) {
	s.args = append(s.args[:0], args...)
	return s.Do(ctx, statement, s.args)
}

// take notes what the statement that reads one record has brought.
func (s *sqlSession) take(c *client, op *history.Op, result int) {
	if r := s.Result(result); r != nil && r.Rows() > 0 {
		c.formula.observe(op, r.Row(0)[0].Text)
		return
	}
	absent(op)
}

func (s *sqlSession) look(ctx context.Context, c *client, op *history.Op) error {
	if err := s.Begin(ctx, true); err != nil {
		return err
	}
	result, err := s.do(ctx, s.model.read, db.Value{Text: c.key})
	if err != nil {
		return err
	}
	if err := s.Commit(ctx); err != nil {
		return err
	}
	s.take(c, op, result)
	return nil
}
