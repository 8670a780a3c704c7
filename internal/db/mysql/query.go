package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// Query streams the rows of one statement. The time between two rows is not limited, because a sort can take
// long. A server that stops answering is detected.
func (s *session) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	const what = "query"
	switch {
	case s.link == nil || s.state != wire.Idle:
		return s.misuse(what)
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
	if err := s.arm(guarded, false); err != nil {
		return s.fail(ctx, wire.Lost(s.op(what), err, wire.Before))
	}
	if _, err := s.one(guarded, what, wire.Committing, p, args, new(rowBuffer), row); err != nil {
		return s.fail(ctx, err)
	}
	s.Disarm()
	return nil
}

// rowError is an error of the function that receives the rows.
type rowError struct{ error }

// unreadable is an answer of the server that this driver cannot read.
type unreadable struct{ error }

type rowBuffer struct {
	values  []db.Value     // row by row
	bytes   []byte         // behind the values
	columns []driver.Value // of the row that arrives
	names   []string       // of the columns of the last Free statement
	free    []db.Type      // the types of these columns
}

// read reads the rows of one result set of a statement. It keeps them all or, if row is not nil, passes each to row.
// The caller closes rows.
func (b *rowBuffer) read(rows driver.Rows, statement *db.Statement, row func([]db.Value) error) error {
	types, n := statement.Columns, len(rows.Columns())
	if statement.Free {
		b.names = rows.Columns()
		for len(b.free) < n {
			b.free = append(b.free, db.Untyped)
		}
		types = b.free[:n]
	}
	if n != len(types) {
		return unreadable{fmt.Errorf("it returns %d columns, not %d", n, len(types))}
	}
	if cap(b.columns) < n {
		b.columns = make([]driver.Value, n)
	}
	for {
		switch err := rows.Next(b.columns[:n]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := b.append(types, b.columns[:n]); err != nil {
			return unreadable{err}
		}
		if row == nil {
			continue
		}
		if err := row(b.values); err != nil {
			return rowError{err}
		}
		b.values, b.bytes = b.values[:0], b.bytes[:0]
	}
}

// append adds the columns of a row to the values.
func (b *rowBuffer) append(types []db.Type, row []driver.Value) error {
	for i, t := range types {
		v, text, err := decode(t, row[i])
		if err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
		if text != nil {
			start := len(b.bytes)
			b.bytes = append(b.bytes, text...)
			v.Text = b.bytes[start:len(b.bytes):len(b.bytes)]
		}
		b.values = append(b.values, v)
	}
	return nil
}
