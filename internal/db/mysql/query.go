package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"stroppy/internal/db"
)

// Query streams the rows of one statement. The time between two rows is not
// limited, for a sort can take long; a server that stops answering altogether is
// noticed.
func (s *session) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	const what = "query"
	switch {
	case s.link == nil:
		return &db.Error{Class: db.Unavailable, Op: s.op(what), Err: errBroken}
	case s.state != idle:
		return db.Fatalf(s.op(what), "a transaction is open in the session")
	case len(args) != len(statement.Params):
		return db.Fatalf(s.op(what), "%s has %d parameters, not %d", db.Shorten(statement.SQL), len(statement.Params), len(args))
	}
	if err := s.wake(ctx, what, false); err != nil {
		return err
	}
	p, own := s.known(statement)
	if own != nil {
		return own
	}
	guarded, release := s.database.guard(ctx, s.link.host)
	defer release()
	if err := s.stream(guarded, p, args, row); err != nil {
		return s.fail(ctx, err)
	}
	s.Disarm()
	return nil
}

// rowError is an error of the function that takes the rows.
type rowError struct{ error }

func (s *session) stream(ctx context.Context, p *prepared, args []db.Value, row func([]db.Value) error) *db.Error {
	op := s.op("query")
	if err := s.arm(ctx, false); err != nil {
		return lost(op, err, before)
	}
	if err := s.prepare(p); err != nil {
		return s.explain(ctx, p, err, s.out)
	}
	sent := s.out
	err := s.streamRows(p, args, row)
	var bad unreadable
	var stopped rowError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &stopped): // the rest of the rows is not waited for, so that the connection ends
		return &db.Error{Class: db.Unknown, Op: op, Err: stopped.error}
	case errors.As(err, &bad):
		return db.Fatalf(s.op("execute "+db.Shorten(p.statement.SQL)), "%w", bad.err)
	}
	return s.failure(ctx, op, s.database.server.product, err, committing, sent)
}

func (s *session) streamRows(p *prepared, args []db.Value, row func([]db.Value) error) error {
	if len(p.statement.Columns) == 0 {
		_, err := p.handle.(driver.StmtExecContext).ExecContext(never, p.bind(args))
		return err
	}
	rows, err := p.handle.(driver.StmtQueryContext).QueryContext(never, p.bind(args))
	if err != nil {
		return err
	}
	err = s.each(rows, p.statement.Columns, row)
	var stopped rowError
	if errors.As(err, &stopped) {
		return err
	}
	if e := rows.Close(); err == nil {
		err = e
	}
	return err
}

// each hands the rows on. After one that cannot be read the others are not.
func (s *session) each(rows driver.Rows, types []db.Type, row func([]db.Value) error) error {
	n := len(rows.Columns())
	if n != len(types) {
		return unreadable{errColumns(n, len(types))}
	}
	columns := make([]driver.Value, n)
	var values []db.Value
	var text []byte
	for {
		switch err := rows.Next(columns); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		var err error
		if values, text, err = appendRow(types, columns, values[:0], text[:0]); err != nil {
			return unreadable{err}
		}
		if err := row(values); err != nil {
			return rowError{err}
		}
	}
}
