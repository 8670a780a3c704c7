package sqlite

import (
	"context"

	sqlite3 "modernc.org/sqlite/lib"

	"stroppy/internal/db"
)

// Query implements db.SQLSession. A statement that reads is a read transaction
// of its own: it holds one snapshot while it hands out the rows, and writers go
// on beside it. A statement that writes, such as INSERT … RETURNING, is a write
// transaction: if it fails, row may have seen rows of what was rolled back.
func (s *session) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	op := "query " + brief(statement.SQL)
	switch {
	case s.c == nil:
		return broken(op)
	case s.open:
		s.abandon()
		return misuse(op, errOpen)
	}
	p, err := s.ready(ctx, statement, args)
	if err != nil {
		return s.fail(err)
	}
	if !p.readOnly {
		s.open, s.readOnly = true, false
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	var stopped error // by row, which says nothing of this session
	err = s.stream(op, p, statement, func(r []db.Value) error {
		stopped = row(r)
		return stopped
	})
	switch {
	case stopped != nil:
		s.abandon()
		return stopped
	case err != nil:
		return s.fail(err)
	case p.readOnly:
		return nil
	}
	return s.Commit(ctx)
}

// stream hands out the rows of a statement that is bound.
func (s *session) stream(op string, p *stmt, statement *db.Statement, row func([]db.Value) error) error {
	defer p.reset()
	values := make([]db.Value, p.columns)
	for {
		switch code := p.step(); code {
		case sqlite3.SQLITE_DONE:
			return nil
		case sqlite3.SQLITE_ROW:
		default:
			return s.c.failed(op, code, beforeCommit)
		}
		for i, t := range statement.Columns {
			if err := p.column(i, t, &values[i]); err != nil {
				return db.Fatalf(op, "%w", err)
			}
		}
		if err := row(values); err != nil {
			return err
		}
	}
}
