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

// kinds maps the beginnings of SQLite's messages to kinds of constraints, because dqlite sometimes reports
// only the primary code.
var kinds = map[string]db.ConstraintKind{
	"CHECK": db.CheckFailed, "NOT NULL": db.NotNull, "FOREIGN KEY": db.ForeignKey, "UNIQUE": db.UniqueKey,
}

// failure returns the error of a call, possibly COMMIT, that failed with err. SQLite's codes mean the same as
// in package sqlite: nothing is replicated before COMMIT
// (https://canonical.com/dqlite/docs/explanation/replication), and BUSY comes before that.
//
// If the node lost leadership (SQLITE_IOERR_NOT_LEADER, SQLITE_IOERR_LEADERSHIP_LOST), the client reports a
// bad connection, as for a broken one. Before COMMIT the transaction is lost; during COMMIT a later leader
// may have it (https://canonical.com/dqlite/docs/explanation/faq, the outcomes of a write).
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
	// A value that a STRICT table refuses is an error of the statement.
	if extended := sqlite.ErrorOf(said.Code, false); extended.Class == db.Fatal || strings.HasPrefix(said.Message, "cannot store ") {
		e.Class = db.Fatal
	} else if e.Constraint = extended.Constraint; e.Constraint == 0 {
		what, _, _ := strings.Cut(said.Message, " constraint failed")
		e.Constraint = kinds[what]
	}
	return e
}
