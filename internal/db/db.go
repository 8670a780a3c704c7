// Package db defines a database for Stroppy: its description, the meaning of its
// errors, and the data models that workloads use. Each folder below it holds one
// database. No database sees a workload.
package db

import (
	"context"
	"errors"
	"fmt"

	"stroppy/internal/isolation"
)

// Database is an open database of any model. It also implements a model (SQL, Records
// or KV), and may implement the capabilities below. All methods may be
// called at the same time from several goroutines.
type Database interface {
	// Info asks the server for its product, version and settings. Success proves that the server
	// can be reached and that the credentials are right.
	Info(ctx context.Context) (Info, error)

	// Claim returns the level that the database claims at the isolation with this name. The
	// empty name is the default of the database. The error for an unknown name lists the
	// known names.
	Claim(name string) (Claim, error)

	// Limits returns the same value each time.
	Limits() Limits

	Close() error
}

// Info describes a server. Nothing in it is secret.
type Info struct {
	Name     string    // the product, such as PostgreSQL
	Version  string    // as the server reports it
	Settings []Setting // what a reader must know to trust the measurements: durability above all
	// Durable is the source of the promise that acknowledged writes survive in this configuration; empty: there is
	// none.
	Durable  string
	Caveats  []Caveat // the settings in effect that void the promise
	Warnings []string // properties that the server should have and lacks, a sentence each, with the cure
}

// Add adds a setting with a formatted value.
func (i *Info) Add(name, format string, args ...any) {
	i.Settings = append(i.Settings, Setting{Name: name, Value: fmt.Sprintf(format, args...)})
}

// Warn adds a formatted warning.
func (i *Info) Warn(format string, args ...any) {
	i.Warnings = append(i.Warnings, fmt.Sprintf(format, args...))
}

// Caveat is a setting in effect under which a database does not promise to keep acknowledged writes.
type Caveat struct {
	Setting string // as people set it, such as "w=1"
	Quote   string // a sentence of its documentation
	Source  string // the address of that page
	Cure    string // the setting that promises it
}

// Setting returns the value of a setting that is shown; empty if there is none.
func (i *Info) Setting(name string) string {
	for _, s := range i.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

type Setting struct{ Name, Value string }

// Claim is the promise of a database at one isolation.
type Claim struct {
	Isolation string          // the database's own name for it
	Level     isolation.Level // the promised level
	Source    string          // the document with the promise
}

// Volatile is implemented by a database that keeps nothing, so no end state
// can be checked. Every check of a run on it is unknown. The database noop: is volatile.
type Volatile interface{ Volatile() bool }

// Footprinter is implemented by a database that reports the bytes of its data on disk,
// with indexes and dead rows.
type Footprinter interface {
	Footprint(ctx context.Context) (int64, error)
}

// Class is the outcome of a transaction that ended with an error. The zero
// value is the only safe guess: unknown.
type Class uint8

const (
	// Unknown: the transaction may have been applied. The session is broken
	// until Reset.
	Unknown Class = iota
	// Aborted: surely not applied, and a new try may succeed at once or soon:
	// a conflict, a deadlock, a lock time-out. The session is ready for Begin.
	Aborted
	// Unavailable: surely not applied because no server could be reached or the
	// connection ended before the commit was sent. The session is broken until
	// Reset.
	Unavailable
	// Constraint: surely not applied, because a constraint of the schema refused it. Error.Constraint holds the kind of
	// constraint. The session is ready for Begin.
	Constraint
	// Fatal: surely not applied, and no new try can help: a wrong password, a
	// missing right, a statement that the server does not understand. It ends
	// the run.
	Fatal
)

var classNames = [...]string{"unknown", "aborted", "unavailable", "constraint", "fatal"}

func (c Class) String() string { return classNames[c] }

// ConstraintKind is the kind of constraint that refused a transaction.
type ConstraintKind uint8

const (
	_           ConstraintKind = iota
	CheckFailed                // a CHECK: a balance would be below zero
	NotNull                    // a NULL where none may be
	ForeignKey                 // a reference to a row that is not there
	UniqueKey                  // a key that is there already
)

// Error is the error type of all drivers. Its text is one sentence for a person: the
// operation, its object, and the cause. It contains no secrets.
type Error struct {
	Class      Class
	Constraint ConstraintKind // of class Constraint
	Code       string         // the vendor's own code, such as 40001; empty if it has none
	Op         string         // the operation, such as "commit"
	// Final forbids the look-up by id after an error of class Unknown. A look-up now could give a wrong answer, for
	// example if a primary committed but did not replicate.
	Final bool
	Err   error
}

func (e *Error) Error() string {
	if e.Code != "" {
		return fmt.Sprintf("%s: %v (code %s)", e.Op, e.Err, e.Code)
	}
	return fmt.Sprintf("%s: %v", e.Op, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Fatalf returns an error of class Fatal with a formatted cause.
func Fatalf(op, format string, args ...any) *Error {
	return &Error{Class: Fatal, Op: op, Err: fmt.Errorf(format, args...)}
}

// MessageError wraps Cause with a different message. errors.Is and errors.As
// still find the cause.
type MessageError struct {
	Text  string
	Cause error
}

func (t MessageError) Error() string { return t.Text }
func (t MessageError) Unwrap() error { return t.Cause }

// CheckServer is the advice if a server cannot be reached.
const CheckServer = "check the address, and whether a server runs there"

// ClassOf returns the class of any error; one that is no *Error is Unknown.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Unknown
}

// ConstraintOf returns the kind of constraint that err names; 0 if none.
func ConstraintOf(err error) ConstraintKind {
	if e, ok := errors.AsType[*Error](err); ok && e.Class == Constraint {
		return e.Constraint
	}
	return 0
}

// Limits bounds the reads and writes of a workload. A field with the value 0 sets no
// bound.
type Limits struct {
	Value  int // bytes of one value of a key-value store, or of one text in a row
	Commit int // bytes of all that one transaction writes, keys included
	Writes int // Sets and Deletes of one key-value transaction
	// Reads is the best number of keys for one Read of a key-value store. It is set if
	// such a Read costs far less than several small Reads, or fails less often beside
	// writers.
	Reads int
	// Connectionless is set if the database has no connections: any number of transactions
	// can be under way.
	Connectionless bool

	// The other fields are about records. Optimistic is set if the database computes nothing: each
	// change reads first, and the commit fails if a record was changed since. Read-modify-write
	// then has the fewest round trips.
	Optimistic bool
	// Guarded is set if an optimistic database itself enforces Field.NonNegative at the
	// commit.
	Guarded bool
	// Deferred is set if a transaction of the database is one call, so that the commit makes all changes. Update and
	// FindAndUpdate count a record that the transaction has not read as found. The commit fills in the values that
	// FindAndUpdate has returned for such a record. If the record is not there, the commit is refused: class
	// Constraint, ForeignKey. If the record does not meet the condition, the kind is CheckFailed. A session for loading
	// inserts each record at once, unless the record is there. FindAndUpdate with an Update that changes nothing makes
	// the commit read a record. If that record is not there, its fields are Null.
	Deferred bool
	// Adds is set if the database can add to a Counter without reading it.
	Adds bool
	// Simple is set if the SQL of the database allows only a part of the model:
	//   - an Update changes one field, without a condition, and not after a read of the record;
	//   - FindAndUpdate adds;
	//   - Scan gives all records, in no order;
	//   - Drop removes all collections.
	Simple bool
}

// Multiplexer is implemented by a database that can run several transactions on one connection at the same time. S is
// the session of one of its models.
type Multiplexer[S any] interface {
	// Streams opens one connection and n sessions that share it. Each session is used by
	// one goroutine at a time, and several may be used at once.
	Streams(ctx context.Context, n int, options SessionOptions) ([]S, error)
}
