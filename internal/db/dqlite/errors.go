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
	"stroppy/internal/db/sqlite"
)

// kinds are the kinds of constraints by how SQLite's message begins, for dqlite gives
// the primary code alone in places.
var kinds = map[string]db.ConstraintKind{
	"CHECK": db.CheckFailed, "NOT NULL": db.NotNull, "FOREIGN KEY": db.ForeignKey, "UNIQUE": db.UniqueKey,
}

// failure makes the error of a call, which may have been COMMIT, that ended with err.
// What SQLite's codes mean is the same as in package sqlite: nothing is replicated before
// COMMIT (https://canonical.com/dqlite/docs/explanation/replication), and BUSY comes
// before anything is.
//
// That the node leads no more (SQLITE_IOERR_NOT_LEADER, SQLITE_IOERR_LEADERSHIP_LOST)
// the client reports as a bad connection, as it does of one that broke: before COMMIT
// the transaction is lost, at COMMIT a later leader may have it
// (https://canonical.com/dqlite/docs/explanation/faq, the outcomes of a write).
func (c *conn) failure(op string, err error, committing bool) *db.Error {
	var said driver.Error
	if !errors.As(err, &said) {
		e := &db.Error{Class: db.Unavailable, Op: op, Err: fmt.Errorf("the connection to the leader broke, or it leads no more: %w", err)}
		if c.broken = true; committing {
			e.Class = db.Unknown
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			e.Err = fmt.Errorf("the leader did not answer: %w", context.DeadlineExceeded)
		}
		return e
	}
	e := sqlite.ErrorOf(said.Code&0xff, committing) // of the primary code
	e.Op, e.Err = op, errors.New(said.Message)
	if e.Class != db.Constraint {
		return e
	}
	// A value that a STRICT table does not take is the statement's fault.
	if extended := sqlite.ErrorOf(said.Code, false); extended.Class == db.Fatal || strings.HasPrefix(said.Message, "cannot store ") {
		e.Class = db.Fatal
	} else if e.Constraint = extended.Constraint; e.Constraint == 0 {
		what, _, _ := strings.Cut(said.Message, " constraint failed")
		e.Constraint = kinds[what]
	}
	return e
}
