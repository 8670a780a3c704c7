//go:build dqlite

package dqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/canonical/go-dqlite/driver"

	"stroppy/internal/db"
)

// phase says whether COMMIT was running when an error arose.
type phase uint8

const (
	beforeCommit phase = iota
	atCommit
)

// meaning is what a primary result code of SQLite says of the transaction that it
// ended.
type meaning struct {
	code             int
	name             string
	before, atCommit db.Class
}

// meanings are the codes of https://www.sqlite.org/rescode.html. One that is not in
// the table is Fatal before COMMIT and Unknown while it was running. Nothing is
// replicated before COMMIT (https://canonical.com/dqlite/docs/explanation/replication),
// and BUSY comes before anything is. LOCKED, PROTOCOL and SCHEMA are conflicts,
// INTERRUPT ends a statement whose client went away.
//
// That the node leads no more (SQLITE_IOERR_NOT_LEADER, SQLITE_IOERR_LEADERSHIP_LOST)
// the client tells as a bad connection, as it does of one that broke: before COMMIT
// the transaction is lost, at COMMIT a later leader may have it
// (https://canonical.com/dqlite/docs/explanation/faq, the outcomes of a write).
var meanings = []meaning{
	{5, "SQLITE_BUSY", db.Aborted, db.Aborted},
	{6, "SQLITE_LOCKED", db.Aborted, db.Unknown},
	{9, "SQLITE_INTERRUPT", db.Aborted, db.Unknown},
	{15, "SQLITE_PROTOCOL", db.Aborted, db.Unknown},
	{17, "SQLITE_SCHEMA", db.Aborted, db.Unknown},
	{19, "SQLITE_CONSTRAINT", db.Constraint, db.Constraint},
	{1, "SQLITE_ERROR", db.Fatal, db.Unknown},
	{10, "SQLITE_IOERR", db.Fatal, db.Unknown},
	{11, "SQLITE_CORRUPT", db.Fatal, db.Unknown},
	{13, "SQLITE_FULL", db.Fatal, db.Unknown},
}

// datatype is the extended code of a value that a STRICT table does not take, which
// is the statement's fault.
const datatype = 19 | 12<<8

// constraints are the kinds by the extended code, and by how SQLite's message begins,
// for dqlite gives the primary code alone in places.
var constraints = []struct {
	code int
	text string
	kind db.ConstraintKind
}{
	{19 | 1<<8, "CHECK constraint failed", db.CheckFailed},
	{19 | 5<<8, "NOT NULL constraint failed", db.NotNull},
	{19 | 3<<8, "FOREIGN KEY constraint failed", db.ForeignKey},
	{19 | 8<<8, "UNIQUE constraint failed", db.UniqueKey},
	{19 | 6<<8, "UNIQUE constraint failed", db.UniqueKey},
}

// failure makes the error of a call that ended with err.
func failure(op string, err error, at phase) *db.Error {
	var said driver.Error
	if !errors.As(err, &said) {
		e := &db.Error{Class: db.Unavailable, Op: op, Err: fmt.Errorf("the connection to the leader broke, or it leads no more: %w", err)}
		if at == atCommit {
			e.Class = db.Unknown
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			e.Err = fmt.Errorf("the leader did not answer: %w", context.DeadlineExceeded)
		}
		return e
	}
	m := meaning{name: fmt.Sprintf("SQLite %d", said.Code), before: db.Fatal, atCommit: db.Unknown}
	for _, known := range meanings {
		if known.code == said.Code&0xff {
			m = known
		}
	}
	e := &db.Error{Class: m.before, Code: m.name, Op: op, Err: errors.New(said.Message)}
	if at == atCommit {
		e.Class = m.atCommit
	}
	if e.Class != db.Constraint {
		return e
	}
	if said.Code == datatype || strings.HasPrefix(said.Message, "cannot store ") {
		e.Class = db.Fatal
		return e
	}
	for _, c := range constraints {
		if said.Code == c.code || strings.HasPrefix(said.Message, c.text) {
			e.Constraint = c.kind
			break
		}
	}
	return e
}
