package db

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// SQL is the model of a database that runs SQL statements in transactions.
type SQL interface {
	Database
	Dialect() *Dialect

	// Exec runs one statement without parameters outside any transaction, such
	// as DDL.
	Exec(ctx context.Context, statement string) error

	// Session opens a session, which is one connection. Isolation or a mode that
	// the database does not have is an error of class Fatal.
	Session(ctx context.Context, options SessionOptions) (SQLSession, error)
}

// SessionOptions are the same for all transactions of a session.
type SessionOptions struct {
	Isolation string // as the database names it; empty is its own default
	Mode      Mode

	// Blocking requests a session that waits for answers in the system call, on a thread of
	// its own (see Blocker). It suits few sessions with many short calls. A driver may
	// ignore it.
	Blocking bool

	// Loading is set if the session loads records. A record that it inserts is there already only
	// after an earlier try of the same load, with the same values. So an optimistic database does
	// not look for it.
	Loading bool
}

// Blocker is implemented by a session that may have been opened as Blocking. Then the
// process needs all its processors for Go code (GOMAXPROCS), because a waiting session
// keeps its processor until the scheduler takes it back.
type Blocker interface{ Blocks() bool }

// Blocks reports whether s, a session or its user, implements Blocker and blocks.
func Blocks(s any) bool {
	b, ok := s.(Blocker)
	return ok && b.Blocks()
}

// Mode is the way in which the statements of a transaction are sent.
type Mode uint8

const (
	// Pipelined sends statements together until a result is requested. A transaction
	// that requests no result before its end takes one round trip. A database whose
	// protocol cannot pipeline runs it as Interactive.
	Pipelined Mode = iota + 1
	// Interactive sends each statement alone and waits for its result.
	Interactive
)

// SQLSession is one connection and at most one transaction on it. It is used by
// one goroutine at a time. Its errors are *Error.
//
// After an error from any method the transaction is over: the driver has rolled
// it back, or dropped the connection. If the class is Unknown or Unavailable the
// session must be Reset before anything else.
type SQLSession interface {
	// Begin starts a transaction. A readOnly transaction writes nothing, and the
	// database may rely on it.
	Begin(ctx context.Context, readOnly bool) error

	// Do adds a statement to the transaction and returns the number of its
	// result, counted from 0 in this transaction. args are copied. In Pipelined
	// mode nothing is sent yet, so that an error of this statement comes from
	// Flush or Commit.
	Do(ctx context.Context, statement *Statement, args []Value) (result int, err error)

	// Flush makes the results of all statements so far available.
	Flush(ctx context.Context) error

	// Result returns a result that Flush or Commit has made available. It is
	// valid until the next Begin.
	Result(i int) *Result

	// Commit ends the transaction. Only nil means that it is committed: a server
	// that answers COMMIT with ROLLBACK, or warns that it was not replicated,
	// gives an error.
	Commit(ctx context.Context) error

	// Rollback gives up the open transaction; without one it does nothing.
	Rollback(ctx context.Context) error

	// Query runs one statement outside a transaction and hands each row to row,
	// which must not keep it. It does not hold the whole result in memory.
	Query(ctx context.Context, statement *Statement, args []Value, row func([]Value) error) error

	// Reset drops the connection and opens a new one, once: the caller backs off
	// and calls again.
	Reset(ctx context.Context) error

	Close() error
}

// Type is the type of a parameter or of a column.
type Type uint8

const (
	Integer Type = iota + 1 // Value.Int
	Decimal                 // Value.Int, in cents; the database's exact decimal, or its integer where the dialect has none
	Text                    // Value.Text, ASCII
	// Untyped is a parameter whose type the database infers: the text in Value.Text, or without one the whole number
	// or the double (Value.Double) in Value.Int.
	Untyped
)

// Value is one parameter or one column of a row.
type Value struct {
	Int    int64
	Text   []byte
	Null   bool
	Double bool // of an Untyped parameter: Int holds the bits of a float64
}

// AppendUntyped appends the text of an Untyped parameter that is not NULL.
func (v *Value) AppendUntyped(dst []byte) []byte {
	switch {
	case v.Text != nil:
		return append(dst, v.Text...)
	case v.Double:
		return strconv.AppendFloat(dst, math.Float64frombits(uint64(v.Int)), 'g', -1, 64)
	}
	return strconv.AppendInt(dst, v.Int, 10)
}

// Statement is one SQL text with its types. It is made once and never changed:
// a session may keep it prepared, keyed by its address.
type Statement struct {
	SQL     string
	Params  []Type
	Columns []Type // of the rows it returns; none for a statement that returns no rows
	// Counted requests the number of affected rows in Result.Affected. A Counted statement has no Columns and calls no
	// procedure. It may cost a round trip beside statements that return rows.
	Counted bool
	// Parts are the pieces of SQL around its parameters; nil: SQL has nothing else that looks like a parameter.
	Parts []string
	// Free is set if the statement may return any columns, or none. Each is then a text, and Result has the names.
	Free bool
}

// Result is the result of one statement.
type Result struct {
	// Affected is the number of rows that a Counted statement has inserted, deleted or found
	// to update, changed or not. After other statements a driver may leave it 0.
	Affected int64
	Columns  int
	Names    []string // of the columns of a Free statement
	Values   []Value  // row by row
}

func (r *Result) Rows() int {
	if r.Columns == 0 {
		return 0
	}
	return len(r.Values) / r.Columns
}

func (r *Result) Row(i int) []Value { return r.Values[i*r.Columns : (i+1)*r.Columns] }

// Dialect holds the SQL syntax of one database as data.
type Dialect struct {
	Placeholder func(i int) string // the i-th parameter, from 1: "$1" or "?"
	IntegerType string             // a signed 64-bit integer: BIGINT
	DecimalType string             // exact money, such as NUMERIC(20,2); else an integer type
	TextType    func(length int) string
	// CharType is a text of a fixed length, and TimestampType is a moment without a zone. They are set if the types are
	// not CHAR(length) and TIMESTAMP.
	CharType      func(length int) string
	TimestampType string
	TableOptions  string // after the closing bracket of CREATE TABLE
	ForUpdate     string // after a SELECT that locks what it reads, such as " FOR UPDATE"; empty where reading locks enough
	ForShare      string // the same with a shared lock, such as " FOR SHARE"; empty if the database has none
	// NoLockingRead: no SELECT can lock what it reads, and reading alone does not.
	NoLockingRead bool
	Returning     bool   // UPDATE … RETURNING exists
	DoNothing     string // after an INSERT that must not fail on an existing key: " ON CONFLICT DO NOTHING"
	// Upsert is an INSERT that changes an existing row with its key; nil if the database has
	// none.
	Upsert *UpsertDialect
	// JoinFunction is the function that joins texts, such as CONCAT; empty: the operator || joins them.
	JoinFunction string
	// Procedures is the syntax of stored procedures; nil if the database has none. Several
	// result sets of one call are one Result.
	Procedures *ProcedureDialect
	// Snapshot is the weakest isolation, by the database's own name, in which all
	// statements of one transaction read one snapshot; empty: every one does.
	Snapshot string
	// Past returns the clause for a read of the committed state of so long ago. The clause
	// follows the table in a SELECT, or SET TRANSACTION. Past is nil if the database has no such
	// reads.
	Past func(age time.Duration) string
	// NoTable reports whether an error surely means that a table does not exist. It is nil if a
	// table without the right to read it gives the same error.
	NoTable func(err error) bool
	// CountsApart: in a pipeline, a Counted statement costs a round trip beside statements that
	// return rows.
	CountsApart bool
	// AddConstraint: ALTER TABLE can add a primary key after the load.
	AddConstraint bool
	// KeyColumn is a column that numbers the rows of a table as its primary key. It is set if the
	// server refuses rows of a table without a primary key.
	KeyColumn string
	// AddColumn: ALTER TABLE can add a column with a constant default after the load,
	// and writes no row for it.
	AddColumn bool
}

// UpsertDialect is the syntax of an INSERT that changes an existing row with its key.
type UpsertDialect struct {
	Conflict func(key string) string    // between the values and the changes: " ON CONFLICT (key) DO UPDATE SET "
	New      func(column string) string // the value that was to be inserted into a column
}

// OnConflict returns the syntax of PostgreSQL, SQLite and others.
func OnConflict() *UpsertDialect {
	return &UpsertDialect{
		Conflict: func(key string) string { return " ON CONFLICT (" + key + ") DO UPDATE SET " },
		New:      func(column string) string { return "excluded." + column },
	}
}

// Concat returns the expression for the text a followed by the text b.
func (d *Dialect) Concat(a, b string) string {
	if d.JoinFunction != "" {
		return d.JoinFunction + "(" + a + ", " + b + ")"
	}
	return a + " || " + b
}

// CreateTable returns the statement that makes a table. Its lines are the columns and the constraints.
func (d *Dialect) CreateTable(name string, lines ...string) string {
	return "CREATE TABLE " + name + " (\n\t" + strings.Join(lines, ",\n\t") + "\n)" + d.TableOptions
}

// BulkLoader is implemented by a database that loads many rows faster than INSERT does.
type BulkLoader interface {
	// BulkLoad runs load in one transaction: all of it is done, or nothing.
	BulkLoad(ctx context.Context, load BulkLoad) (rows int64, err error)
}

// BulkLoad is one table's load.
type BulkLoad struct {
	Before  []string // statements run first, such as CREATE TABLE
	Table   string
	Columns []string
	Types   []Type
	Next    func(row []Value) bool // fills row with the next row; false at the end
	After   []string               // statements run last, such as ALTER TABLE … ADD PRIMARY KEY
}

// Shorten returns a statement in one line of at most about 60 characters.
func Shorten(statement string) string {
	words := strings.Join(strings.Fields(statement), " ")
	if len(words) > 60 {
		words = words[:60] + " …"
	}
	return words
}

// parameter matches a parameter with its type in the text of a statement.
var parameter = regexp.MustCompile(`\{(integer|decimal|text)\}`)

// Statement makes a statement from SQL in which {integer}, {decimal} and {text} are
// parameters. Each gets the next placeholder, so a value that is used twice is passed twice:
// dialects without numbered placeholders need that. columns are the columns of its rows.
func (d *Dialect) Statement(sql string, columns ...Type) *Statement {
	s := &Statement{Columns: columns}
	s.SQL = parameter.ReplaceAllStringFunc(sql, func(name string) string {
		for t := range typeNames {
			if typeNames[t] == name {
				s.Params = append(s.Params, Type(t))
			}
		}
		return d.Placeholder(len(s.Params))
	})
	return s
}

// Counted returns a statement without columns that counts its affected rows.
func (d *Dialect) Counted(sql string) *Statement {
	s := d.Statement(sql)
	s.Counted = true
	return s
}

var typeNames = [...]string{Integer: "{integer}", Decimal: "{decimal}", Text: "{text}"}

// Row returns a list of parameters in brackets, in the form that Statement reads.
func Row(types ...Type) string {
	var names []string
	for _, t := range types {
		names = append(names, typeNames[t])
	}
	return "(" + strings.Join(names, ", ") + ")"
}
