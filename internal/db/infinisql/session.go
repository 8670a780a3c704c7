package infinisql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// session is one connection of the PostgreSQL protocol, on which statements travel as simple
// queries, one by one: InfiniSQL gives Parse no answer, and ends a connection on which a
// second message arrives before it has answered the first.
type session struct {
	database *Database
	conn     *pgconn.PgConn // nil: broken
	wire.Deadlines
	state wire.State

	text    []byte      // of the statement being sent
	results []db.Result // of this transaction; their values are kept for the next
	used    int
	calls   map[*db.OwnProcedure]*db.Statement
}

var _ db.TableSession = (*session)(nil)

const (
	opBegin  = "begin a transaction on InfiniSQL"
	opCommit = "commit on InfiniSQL"
)

// connect logs in. It is refused also where a restart has lost the user.
func (d *Database) connect(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, d.pg.Copy())
	if err == nil {
		return conn, nil
	}
	op := "connect to InfiniSQL at " + d.config.sql
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return nil, &db.Error{Class: classify(e.Code, wire.Before), Code: e.Code, Op: op,
			Err: db.MessageError{Text: wire.WrongUser.Text(e.Message, ""), Cause: err}}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, &db.Error{Class: db.Unavailable, Op: op, Err: db.MessageError{Text: reason(err) + ": " + db.CheckServer, Cause: err}}
}

// Session implements db.TableStore.
func (d *Database) Session(ctx context.Context, options db.SessionOptions) (db.TableSession, error) {
	s, err := d.session(ctx, options.Isolation)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (d *Database) session(ctx context.Context, isolation string) (*session, error) {
	if _, err := d.Claim(isolation); err != nil {
		return nil, err
	}
	s := &session{database: d, calls: map[*db.OwnProcedure]*db.Statement{}}
	return s, s.Reset(ctx)
}

// Reset implements db.SQLSession.
func (s *session) Reset(ctx context.Context) error {
	s.drop()
	conn, err := s.database.connect(ctx)
	if err != nil {
		return err
	}
	s.conn, s.state = conn, wire.Idle
	s.Deadlines = wire.Deadlines{Conn: conn.Conn(), Limit: s.database.config.answer}
	return nil
}

// drop ends the connection without a word.
func (s *session) drop() {
	if s.conn != nil {
		_ = s.conn.Conn().Close() // an error of a connection that is given up changes nothing
		s.Disarm()
	}
	s.conn = nil
}

// Close implements db.SQLSession. A transaction is rolled back first: InfiniSQL keeps the
// locks of one whose connection has ended.
func (s *session) Close() error {
	_ = s.Rollback(context.Background()) // what it cannot end is over
	if s.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.Disarm()
	_ = s.conn.Close(ctx) // a courtesy
	s.conn = nil
	return nil
}

// exec sends one statement and reads its answer; row gets each of its rows, and may be nil.
func (s *session) exec(ctx context.Context, op, sql string, at wire.Phase, bounded bool, row func(values [][]byte) error) (tag string, err error) {
	if s.conn == nil {
		return "", wire.Broken(op)
	}
	if err := s.Arm(ctx, time.Now(), bounded); err != nil {
		s.drop()
		return "", wire.Lost(op, err, wire.Before)
	}
	answers := s.conn.Exec(context.Background(), sql) // which Arm has bounded
	var kept error
	for answers.NextResult() {
		rows := answers.ResultReader()
		for rows.NextRow() {
			if row != nil && kept == nil {
				kept = row(rows.Values())
			}
		}
		done, err := rows.Close()
		if err == nil {
			tag = done.String()
		}
	}
	err = answers.Close()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return "", &db.Error{Class: classify(e.Code, at), Code: e.Code, Op: op, Err: db.MessageError{Text: e.Message, Cause: err}}
	}
	if err != nil {
		err = wire.Lost(op, s.Because(ctx, err), at)
		s.drop()
		return "", err
	}
	return tag, kept
}

// Begin implements db.SQLSession.
func (s *session) Begin(ctx context.Context, _ bool) error {
	if s.conn == nil || s.state != wire.Idle {
		return wire.Misuse(opBegin, s.conn == nil, s.state)
	}
	s.used = 0
	if _, err := s.exec(ctx, opBegin, "BEGIN", wire.Before, true, nil); err != nil {
		return err
	}
	s.state = wire.Open
	return nil
}

// Do implements db.SQLSession: the statement is sent at once.
func (s *session) Do(ctx context.Context, statement *db.Statement, args []db.Value) (int, error) {
	const op = "execute a statement on InfiniSQL"
	if s.conn == nil || s.state != wire.Open {
		return 0, wire.Misuse(op, s.conn == nil, s.state)
	}
	r, err := s.run(ctx, op, statement, args, wire.Before)
	if err != nil {
		_ = s.Rollback(ctx) // the first error is the one to report
		return 0, err
	}
	return r, nil
}

// run sends a statement and keeps its result, of which it returns the number.
func (s *session) run(ctx context.Context, op string, statement *db.Statement, args []db.Value, at wire.Phase) (int, error) {
	var err error
	if s.text, err = appendStatement(s.text[:0], statement, args); err != nil {
		return 0, err
	}
	r, number := s.result(len(statement.Columns))
	tag, err := s.exec(ctx, op, string(s.text), at, true, func(values [][]byte) error {
		r.Values, err = appendRow(r.Values, statement.Columns, values)
		return err
	})
	if err == nil {
		r.Affected = affected(tag)
	}
	return number, err
}

// result takes the next of the results.
func (s *session) result(columns int) (r *db.Result, number int) {
	if s.used == len(s.results) {
		s.results = append(s.results, db.Result{})
	}
	r, number = &s.results[s.used], s.used
	*r = db.Result{Columns: columns, Values: r.Values[:0]}
	s.used++
	return r, number
}

// affected is the number that ends a command tag, such as UPDATE 1.
func affected(tag string) int64 {
	n, err := strconv.ParseInt(tag[strings.LastIndexByte(tag, ' ')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Flush implements db.SQLSession.
func (s *session) Flush(context.Context) error { return nil }

// Result implements db.SQLSession.
func (s *session) Result(i int) *db.Result { return &s.results[i] }

var errRolledBack = errors.New("the server rolled the transaction back")

// Commit implements db.SQLSession. InfiniSQL answers ROLLBACK for a transaction that has
// failed before.
func (s *session) Commit(ctx context.Context) error {
	if s.conn == nil || s.state != wire.Open {
		return wire.Misuse(opCommit, s.conn == nil, s.state)
	}
	s.state = wire.Idle
	tag, err := s.exec(ctx, opCommit, "COMMIT", wire.Committing, true, nil)
	var refused *db.Error
	switch {
	case errors.As(err, &refused) && refused.Code != "":
		refused.Class = db.Unknown // what it says to COMMIT leaves open what was applied
		s.drop()
		return refused
	case err != nil:
		return err
	case tag != "COMMIT":
		return &db.Error{Class: db.Aborted, Op: opCommit, Err: errRolledBack}
	}
	return nil
}

// Rollback implements db.SQLSession.
func (s *session) Rollback(ctx context.Context) error {
	if s.conn == nil || s.state != wire.Open {
		return nil
	}
	s.state = wire.Idle
	_, err := s.exec(ctx, "roll back on InfiniSQL", "ROLLBACK", wire.Before, true, nil)
	if err != nil {
		s.drop()
	}
	return err
}

// Call implements db.TableSession.
func (s *session) Call(ctx context.Context, p *db.OwnProcedure, args []db.Value) (*db.Result, error) {
	op := "call a procedure on InfiniSQL"
	if s.conn == nil || s.state != wire.Idle {
		return nil, wire.Misuse(op, s.conn == nil, s.state)
	}
	s.used = 0
	statement := s.calls[p]
	if statement == nil {
		statement = calling(p)
		s.calls[p] = statement
	}
	r, err := s.run(ctx, op, statement, args, wire.Committing)
	if err != nil {
		return nil, err
	}
	return s.Result(r), nil
}

// Query implements db.SQLSession. It takes no locks: one that meets another's would keep its
// own for ever.
func (s *session) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	const op = "query InfiniSQL"
	if s.conn == nil || s.state != wire.Idle {
		return wire.Misuse(op, s.conn == nil, s.state)
	}
	text, err := appendStatement(nil, statement, args)
	if err != nil {
		return err
	}
	var values []db.Value
	_, err = s.exec(ctx, op, string(text)+" NO LOCK", wire.Before, false, func(fields [][]byte) error {
		if values, err = appendRow(values[:0], statement.Columns, fields); err != nil {
			return err
		}
		return row(values)
	})
	return err
}

// appendStatement writes a statement with its arguments in the place of its parameters, of
// which there are less than ten.
func appendStatement(dst []byte, statement *db.Statement, args []db.Value) ([]byte, error) {
	for i := 0; i < len(statement.SQL); i++ {
		if statement.SQL[i] != '$' {
			dst = append(dst, statement.SQL[i])
			continue
		}
		i++
		n := statement.SQL[i] - '1'
		if statement.Params[n] != db.Text {
			dst = strconv.AppendInt(dst, args[n].Int, 10)
			continue
		}
		text := args[n].Text
		for _, b := range text {
			if b < ' ' || b > '~' || b == '\'' || b == '\\' {
				return dst, db.Fatalf("write a statement for InfiniSQL", "the text %q has a character that cannot be written there", text)
			}
		}
		dst = append(append(append(dst, '\''), text...), '\'')
	}
	return dst, nil
}

// appendRow reads the fields of a row as the columns of a statement.
func appendRow(dst []db.Value, columns []db.Type, fields [][]byte) ([]db.Value, error) {
	if len(fields) != len(columns) {
		return dst, fmt.Errorf("a row of %d columns came, and %d were asked for", len(fields), len(columns))
	}
	for i, field := range fields {
		switch {
		case field == nil:
			dst = append(dst, db.Value{Null: true})
		case columns[i] == db.Text:
			dst = append(dst, db.Value{Text: bytes.Clone(bytes.TrimRight(field, " "))}) // spaces fill up its column
		default:
			n, err := strconv.ParseInt(string(field), 10, 64)
			if err != nil {
				return dst, fmt.Errorf("%q came for a whole number", field)
			}
			dst = append(dst, db.Value{Int: n})
		}
	}
	return dst, nil
}
