package db

import "context"

// TableStore is the model of a database whose SQL is too little for the model SQL: tables
// are not made by it, a row is found by its key alone, nothing is counted, sorted or added
// up, and what a transaction has read it cannot write.
type TableStore interface {
	Database
	// Dialect has placeholders, and nothing of what a dialect may have besides.
	Dialect() *Dialect

	// Exists says whether a table is there.
	Exists(ctx context.Context, t *Table) (bool, error)

	// MakeTables makes tables, empty, in place of all that the database holds.
	MakeTables(ctx context.Context, tables ...*Table) error

	// Define makes a procedure of the database's own ready to be called, for which it calls
	// it with zeros.
	Define(ctx context.Context, p *OwnProcedure) error

	// Session opens a session, which is one connection. Isolation that the database does
	// not have is an error of class Fatal. Statements travel one by one in every mode.
	Session(ctx context.Context, options SessionOptions) (TableSession, error)
}

// TableSession is a session of statements, and of procedures. Nothing waits for a lock: what
// meets another's is Aborted.
type TableSession interface {
	SQLSession
	// Call runs a procedure as one transaction, outside of any other. Only a nil error
	// means that it is committed. The result is valid until the next Begin or Call.
	Call(ctx context.Context, p *OwnProcedure, args []Value) (*Result, error)
}

// Table is a table of a TableStore. It is made once and never changed.
type Table struct {
	Name    string
	Columns []TableColumn // in the order in which INSERT gives their values; the first is the key
}

// TableColumn is a column of numbers, or of texts of at most Length characters.
type TableColumn struct {
	Name   string
	Type   Type // Integer or Text
	Length int
}

// OwnProcedure is a procedure that a database has in a program of its own, and the
// statements that this program executes by their names, of which :0 is the first argument.
// Called with zeros it changes nothing.
type OwnProcedure struct {
	Name       string
	Params     []Type
	Columns    []Type // of the rows it returns
	Statements [][2]string
}
