//go:build dqlite

package dqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/canonical/go-dqlite/driver"

	"stroppy/internal/db"
)

// session is one connection to the leader and at most one transaction on it.
type session struct {
	d        *Database
	conn     *driver.Conn // nil: broken until Reset
	prepared map[*db.Statement]*driver.Stmt

	open, readOnly, writing bool
	results                 []db.Result
	values                  []db.Value
	arguments               []sqldriver.NamedValue
	row                     []sqldriver.Value
}

var (
	errBroken = errors.New("the session lost its connection: reset it")
	errIdle   = errors.New("no transaction is open: begin one")
	errOpen   = errors.New("a transaction is open: end it first")
)

const (
	opBegin  = "begin a transaction"
	opCommit = "commit"
)

// usable is an error unless the session has a connection, and a transaction as asked.
func (s *session) usable(op string, open bool) error {
	switch {
	case s.conn == nil:
		return &db.Error{Class: db.Unavailable, Op: op, Err: errBroken}
	case open && !s.open:
		return &db.Error{Class: db.Fatal, Op: op, Err: errIdle}
	}
	return nil
}

// enter waits for this session's turn to write.
func (s *session) enter(ctx context.Context) error {
	select {
	case s.d.writers <- struct{}{}:
		s.writing = true
		return nil
	case <-ctx.Done():
		return &db.Error{Class: db.Aborted, Op: "wait for the turn to write", Err: ctx.Err()}
	}
}

func (s *session) leave() {
	if s.writing {
		s.writing = false
		<-s.d.writers
	}
}

// Begin implements db.SQLSession. A writer begins IMMEDIATE, so that it has the
// write lock before it reads and its snapshot is never outdated.
func (s *session) Begin(ctx context.Context, readOnly bool) error {
	if err := s.usable(opBegin, false); err != nil {
		return err
	}
	if s.open {
		return &db.Error{Class: db.Fatal, Op: opBegin, Err: errOpen}
	}
	s.results, s.values = s.results[:0], s.values[:0]
	begin := "BEGIN"
	if s.readOnly = readOnly; !readOnly {
		if err := s.enter(ctx); err != nil {
			return err
		}
		begin = "BEGIN IMMEDIATE"
	}
	s.open = true
	return s.exec(ctx, opBegin, begin, beforeCommit)
}

// exec runs a statement without parameters.
func (s *session) exec(ctx context.Context, op, statement string, at phase) error {
	if err := ctx.Err(); err != nil {
		return s.fail(&db.Error{Class: db.Aborted, Op: op, Err: err})
	}
	limited, cancel := context.WithTimeout(ctx, s.d.config.timeout)
	defer cancel()
	if _, err := s.conn.ExecContext(limited, statement, nil); err != nil {
		return s.fail(failure(op, err, at))
	}
	return nil
}

// Do implements db.SQLSession.
func (s *session) Do(ctx context.Context, statement *db.Statement, args []db.Value) (int, error) {
	op := "run " + db.Shorten(statement.SQL)
	if err := s.usable(op, true); err != nil {
		return 0, err
	}
	if s.readOnly && !reads(statement.SQL) {
		return 0, s.fail(db.Fatalf(op, "it writes, but the transaction was begun as read-only"))
	}
	first := len(s.values)
	affected, err := s.run(ctx, op, statement, args, func(row []db.Value) error {
		s.values = append(s.values, row...)
		return nil
	})
	if err != nil {
		return 0, s.fail(err)
	}
	s.results = append(s.results, db.Result{
		Affected: affected, Columns: len(statement.Columns), Values: s.values[first:len(s.values):len(s.values)],
	})
	return len(s.results) - 1, nil
}

// reads tells whether a statement can only read.
func reads(statement string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(statement), " ")
	return strings.EqualFold(first, "SELECT") || strings.EqualFold(first, "VALUES") || strings.EqualFold(first, "WITH")
}

// run executes a statement and hands over its rows, whose texts are its own.
func (s *session) run(ctx context.Context, op string, statement *db.Statement, args []db.Value, row func([]db.Value) error) (affected int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, &db.Error{Class: db.Aborted, Op: op, Err: err}
	}
	limited, cancel := context.WithTimeout(ctx, s.d.config.timeout)
	defer cancel()
	if len(args) != len(statement.Params) {
		return 0, db.Fatalf(op, "%d arguments are given for %d parameters", len(args), len(statement.Params))
	}
	if err := s.bind(op, statement.Params, args); err != nil {
		return 0, err
	}
	if len(statement.Columns) == 0 {
		return s.change(limited, op, statement)
	}
	// Not prepared: the rows of a prepared statement panic in go-dqlite 1.11.5 when the
	// connection breaks. A large result comes in parts, each with the connection's
	// deadline.
	rows, err := s.conn.QueryContext(limited, statement.SQL, s.arguments)
	if err != nil {
		return 0, failure(op, err, beforeCommit)
	}
	defer func() {
		if errClose := rows.Close(); err == nil && errClose != nil {
			err = failure(op, errClose, beforeCommit)
		}
	}()
	return s.read(op, statement.Columns, rows, row)
}

// change executes a statement without rows, prepared once in the life of the
// connection.
func (s *session) change(ctx context.Context, op string, statement *db.Statement) (affected int64, err error) {
	p := s.prepared[statement]
	if p == nil {
		prepared, err := s.conn.PrepareContext(ctx, statement.SQL)
		if err != nil {
			return 0, failure(op, err, beforeCommit)
		}
		p = prepared.(*driver.Stmt)
		s.prepared[statement] = p
	}
	if p.NumInput() != len(s.arguments) {
		return 0, db.Fatalf(op, "%d arguments are given for %d parameters", len(s.arguments), p.NumInput())
	}
	result, err := p.ExecContext(ctx, s.arguments)
	if err != nil {
		return 0, failure(op, err, beforeCommit)
	}
	return result.RowsAffected()
}

// bind makes the arguments those of the client.
func (s *session) bind(op string, types []db.Type, args []db.Value) error {
	s.arguments = s.arguments[:0]
	for i, a := range args {
		v := sqldriver.NamedValue{Ordinal: i + 1}
		switch t := types[i]; {
		case t != db.Integer && t != db.Decimal && t != db.Text:
			return db.Fatalf(op, "no type has the number %d", t)
		case a.Null:
		case t == db.Text:
			v.Value = string(a.Text)
		default:
			v.Value = a.Int
		}
		s.arguments = append(s.arguments, v)
	}
	return nil
}

func (s *session) read(op string, columns []db.Type, rows sqldriver.Rows, row func([]db.Value) error) (count int64, err error) {
	if n := len(rows.Columns()); n != len(columns) {
		return 0, db.Fatalf(op, "it returns %d columns where %d are expected", n, len(columns))
	}
	s.row = append(s.row[:0], make([]sqldriver.Value, len(columns))...)
	values := make([]db.Value, len(columns))
	for ; ; count++ {
		if err := rows.Next(s.row); errors.Is(err, io.EOF) {
			return count, nil
		} else if err != nil {
			return count, failure(op, err, beforeCommit)
		}
		for i, v := range s.row {
			if values[i], err = value(columns[i], v); err != nil {
				return count, db.Fatalf("read the result of "+op[len("run "):], "%w", err)
			}
		}
		if err := row(values); err != nil {
			return count, err
		}
	}
}

// value makes a column of a row a value of its type.
func value(t db.Type, v any) (db.Value, error) {
	switch v := v.(type) {
	case nil:
		return db.Value{Null: true}, nil
	case int64:
		if t == db.Integer || t == db.Decimal {
			return db.Value{Int: v}, nil
		}
	case string:
		if t == db.Text {
			return db.Value{Text: []byte(v)}, nil
		}
	case []byte:
		if t == db.Text {
			return db.Value{Text: append([]byte(nil), v...)}, nil
		}
	}
	return db.Value{}, fmt.Errorf("there is a %T in a column of another type", v)
}

// Flush implements db.SQLSession: every result is there at once.
func (s *session) Flush(context.Context) error { return s.usable("flush", true) }

// Result implements db.SQLSession.
func (s *session) Result(i int) *db.Result {
	if i < 0 || i >= len(s.results) {
		return &db.Result{}
	}
	return &s.results[i]
}

// Commit implements db.SQLSession.
func (s *session) Commit(ctx context.Context) error {
	if err := s.usable(opCommit, true); err != nil {
		return err
	}
	if err := s.exec(ctx, opCommit, "COMMIT", atCommit); err != nil {
		return err
	}
	s.open = false
	s.leave()
	return nil
}

// Rollback implements db.SQLSession.
func (s *session) Rollback(context.Context) error {
	if s.conn != nil && s.open {
		s.abandon()
	}
	return nil
}

// Query implements db.SQLSession.
func (s *session) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	op := "run " + db.Shorten(statement.SQL)
	if err := s.usable(op, false); err != nil {
		return err
	}
	if s.open {
		return &db.Error{Class: db.Fatal, Op: op, Err: errOpen}
	}
	_, err := s.run(ctx, op, statement, args, row)
	var e *db.Error
	if errors.As(err, &e) {
		return s.fail(err)
	}
	return err
}

// fail ends the transaction because of err and returns err. The connection is
// dropped if it is not fit any more, or if nobody knows what became of a COMMIT.
func (s *session) fail(err error) error {
	var e *db.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Class == db.Unknown, e.Class == db.Unavailable:
		s.drop()
	case s.open && !s.abandon():
		e.Class = db.Unavailable
	}
	return err
}

// abandon rolls the transaction back and tells whether the connection is fit for
// another one; if not, it is dropped, with which the server rolls back. The caller's
// context may have ended.
func (s *session) abandon() bool {
	ctx, cancel := context.WithTimeout(context.Background(), s.d.config.timeout)
	defer cancel()
	_, err := s.conn.ExecContext(ctx, "ROLLBACK", nil)
	var said driver.Error
	if err != nil && !(errors.As(err, &said) && strings.Contains(said.Message, "no transaction is active")) {
		s.drop()
		return false
	}
	s.open = false
	s.leave()
	return true
}

func (s *session) drop() {
	s.open = false
	s.leave()
	if s.conn != nil {
		_ = s.conn.Close() // its statements go with it
		s.conn = nil
	}
	clear(s.prepared)
}

// Reset implements db.SQLSession.
func (s *session) Reset(ctx context.Context) (err error) {
	s.drop()
	s.conn, err = s.d.connect(ctx)
	return err
}

// Close implements db.SQLSession. The server rolls an open transaction back.
func (s *session) Close() error {
	s.drop()
	return nil
}
