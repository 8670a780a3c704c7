//go:build dqlite

package dqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/canonical/go-dqlite/driver"

	"stroppy/internal/db"
)

// conn is one connection to the leader, used by package sqlite's sessions. Every statement is a round trip,
// because a dqlite server handles one request of a connection at a time. Closing it drops its statements, and
// the server rolls back an open transaction.
type conn struct {
	*driver.Conn
	timeout  time.Duration // of one call
	prepared map[*db.Statement]*driver.Stmt
	open     bool // a transaction
	broken   bool

	arguments []sqldriver.NamedValue
	row       []sqldriver.Value
	values    []db.Value
	names     []string // of the columns of the last Free statement
}

// Begin implements sqlite.Conn. A writer begins IMMEDIATE, so that it has the write lock before it reads and
// its snapshot cannot become outdated.
func (c *conn) Begin(ctx context.Context, readOnly bool) error {
	begin := "BEGIN"
	if !readOnly {
		begin = "BEGIN IMMEDIATE"
	}
	c.open = true
	return c.exec(ctx, "begin a transaction", begin, false)
}

// exec runs a statement without parameters. committing states that it is COMMIT.
func (c *conn) exec(ctx context.Context, op, statement string, committing bool) error {
	if err := ctx.Err(); err != nil {
		return &db.Error{Class: db.Aborted, Op: op, Err: err}
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if _, err := c.ExecContext(limited, statement, nil); err != nil {
		return c.failure(op, err, committing)
	}
	return nil
}

func (c *conn) Commit(ctx context.Context) error {
	err := c.exec(ctx, "commit", "COMMIT", true)
	c.open = err != nil
	return err
}

// Undo implements sqlite.Conn. It closes an unusable connection, which makes the server roll back.
func (c *conn) Undo() bool {
	if c.open && !c.broken {
		ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
		defer cancel()
		_, err := c.ExecContext(ctx, "ROLLBACK", nil)
		var said driver.Error
		c.broken = err != nil && !(errors.As(err, &said) && strings.Contains(said.Message, "no transaction is active"))
	}
	c.open = false
	return !c.broken
}

func (c *conn) Reads(_ context.Context, statement *db.Statement) (bool, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(statement.SQL), " ")
	return strings.EqualFold(first, "SELECT") || strings.EqualFold(first, "VALUES") || strings.EqualFold(first, "WITH"), nil
}

func (c *conn) Run(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) (affected int64, err error) {
	op := "run " + db.Shorten(statement.SQL)
	if err := ctx.Err(); err != nil {
		return 0, &db.Error{Class: db.Aborted, Op: op, Err: err}
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if len(args) != len(statement.Params) {
		return 0, db.Fatalf(op, "%d arguments are given for %d parameters", len(args), len(statement.Params))
	}
	if err := c.bind(op, statement.Params, args); err != nil {
		return 0, err
	}
	if len(statement.Columns) == 0 && !statement.Free {
		return c.change(limited, op, statement)
	}
	// The statement is not prepared: the rows of a prepared statement panic in go-dqlite 1.11.5 if the
	// connection breaks. A large result comes in parts, each with the connection's deadline.
	rows, err := c.QueryContext(limited, statement.SQL, c.arguments)
	if err != nil {
		return 0, c.failure(op, err, false)
	}
	defer func() {
		if errClose := rows.Close(); err == nil && errClose != nil {
			err = c.failure(op, errClose, false)
		}
	}()
	columns := statement.Columns
	if statement.Free {
		c.names = rows.Columns()
		columns = slices.Repeat([]db.Type{db.Untyped}, len(c.names))
	}
	return c.read(op, columns, rows, row)
}

// Names implements sqlite.Conn.
func (c *conn) Names() []string { return c.names }

// change executes a statement without rows, prepared once for each connection.
func (c *conn) change(ctx context.Context, op string, statement *db.Statement) (affected int64, err error) {
	p := c.prepared[statement]
	if p == nil {
		prepared, err := c.PrepareContext(ctx, statement.SQL)
		if err != nil {
			return 0, c.failure(op, err, false)
		}
		p = prepared.(*driver.Stmt)
		c.prepared[statement] = p
	}
	if p.NumInput() != len(c.arguments) {
		return 0, db.Fatalf(op, "%d arguments are given for %d parameters", len(c.arguments), p.NumInput())
	}
	result, err := p.ExecContext(ctx, c.arguments)
	if err != nil {
		return 0, c.failure(op, err, false)
	}
	return result.RowsAffected()
}

// bind converts arguments to the client's types.
func (c *conn) bind(op string, types []db.Type, args []db.Value) error {
	c.arguments = c.arguments[:0]
	for i, a := range args {
		v := sqldriver.NamedValue{Ordinal: i + 1}
		switch t := types[i]; {
		case t < db.Integer || t > db.Untyped:
			return db.Fatalf(op, "no type has the number %d", t)
		case a.Null:
		case t == db.Text, t == db.Untyped && a.Text != nil:
			v.Value = string(a.Text)
		case a.Double:
			v.Value = math.Float64frombits(uint64(a.Int))
		default:
			v.Value = a.Int
		}
		c.arguments = append(c.arguments, v)
	}
	return nil
}

func (c *conn) read(op string, columns []db.Type, rows sqldriver.Rows, row func([]db.Value) error) (count int64, err error) {
	if n := len(rows.Columns()); n != len(columns) {
		return 0, db.Fatalf(op, "it returns %d columns where %d are expected", n, len(columns))
	}
	c.row = append(c.row[:0], make([]sqldriver.Value, len(columns))...)
	c.values = append(c.values[:0], make([]db.Value, len(columns))...)
	for ; ; count++ {
		if err := rows.Next(c.row); errors.Is(err, io.EOF) {
			return count, nil
		} else if err != nil {
			return count, c.failure(op, err, false)
		}
		for i, v := range c.row {
			if c.values[i], err = value(columns[i], v); err != nil {
				return count, db.Fatalf("read the result of "+op[len("run "):], "%w", err)
			}
		}
		if err := row(c.values); err != nil {
			return count, err
		}
	}
}

// value converts a column of a row to a value of its type.
func value(t db.Type, v any) (db.Value, error) {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	switch v := v.(type) {
	case nil:
		return db.Value{Null: true}, nil
	case int64:
		if t == db.Untyped {
			return db.Value{Text: strconv.AppendInt(nil, v, 10)}, nil
		}
		if t == db.Integer || t == db.Decimal {
			return db.Value{Int: v}, nil
		}
	case float64:
		if t == db.Untyped {
			return db.Value{Text: strconv.AppendFloat(nil, v, 'g', -1, 64)}, nil
		}
	case string:
		if t == db.Text || t == db.Untyped {
			return db.Value{Text: []byte(v)}, nil
		}
	}
	return db.Value{}, fmt.Errorf("there is a %T in a column of another type", v)
}
