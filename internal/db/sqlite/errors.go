package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"stroppy/internal/db"
)

// meaning is the effect of result codes on the transaction that they ended.
type meaning struct {
	before, atCommit db.Class
	kind             db.ConstraintKind
	codes            map[int32]string // with their names
}

// meanings is the table of SQLite's result codes, from https://www.sqlite.org/rescode.html. An extended code that is
// not listed has the meaning of its primary code, the low byte. A primary code that is not listed is Fatal before
// COMMIT, and Unknown during COMMIT.
//
// Before COMMIT nothing is ever applied. In WAL mode the frames of a transaction count only after the frame with the
// commit mark (https://www.sqlite.org/fileformat2.html#walformat). In rollback mode the hot journal undoes them
// (https://www.sqlite.org/atomiccommit.html).
//
// During COMMIT,
//   - BUSY means that a lock was not granted. SQLite requests it before anything is durable, and the transaction
//     remains open (https://www.sqlite.org/lang_transaction.html). A deferred constraint is also checked before.
//     After the rollback neither is applied;
//   - IOERR and FULL may come after the frame with the commit mark was written: from the fsync, or from the padding
//     up to the end of a sector. This process then forgets the transaction. But if it dies before another one has
//     overwritten the frames, recovery finds a whole transaction and applies it. So the outcome is unknown;
//   - nothing is known about any other code, so the outcome is unknown.
//
// Some codes mean that a new try may succeed:
//   - LOCKED is a conflict within one process;
//   - PROTOCOL is a race for the locks of the WAL index;
//   - SCHEMA is a schema that changed faster than a statement could be prepared.
//
// A cancelled context ends a statement with INTERRUPT. A trigger, a hook, a function or a virtual table may refuse a
// change; package db has no kind for such rules of the schema. A foreign key with RESTRICT is reported as a trigger.
// DATATYPE is a value of a type that a STRICT table does not accept; it is an error of the statement, not of the
// data.
var meanings = [...]meaning{
	{before: db.Aborted, atCommit: db.Aborted, codes: map[int32]string{
		sqlite3.SQLITE_BUSY: "SQLITE_BUSY", sqlite3.SQLITE_BUSY_RECOVERY: "SQLITE_BUSY_RECOVERY",
		sqlite3.SQLITE_BUSY_SNAPSHOT: "SQLITE_BUSY_SNAPSHOT", sqlite3.SQLITE_BUSY_TIMEOUT: "SQLITE_BUSY_TIMEOUT",
	}},
	{before: db.Aborted, atCommit: db.Unknown, codes: map[int32]string{
		sqlite3.SQLITE_LOCKED: "SQLITE_LOCKED", sqlite3.SQLITE_LOCKED_SHAREDCACHE: "SQLITE_LOCKED_SHAREDCACHE",
		sqlite3.SQLITE_PROTOCOL: "SQLITE_PROTOCOL", sqlite3.SQLITE_SCHEMA: "SQLITE_SCHEMA", sqlite3.SQLITE_INTERRUPT: "SQLITE_INTERRUPT",
	}},
	{before: db.Constraint, atCommit: db.Constraint, codes: map[int32]string{
		sqlite3.SQLITE_CONSTRAINT: "SQLITE_CONSTRAINT", sqlite3.SQLITE_CONSTRAINT_TRIGGER: "SQLITE_CONSTRAINT_TRIGGER",
		sqlite3.SQLITE_CONSTRAINT_COMMITHOOK: "SQLITE_CONSTRAINT_COMMITHOOK",
		sqlite3.SQLITE_CONSTRAINT_FUNCTION:   "SQLITE_CONSTRAINT_FUNCTION", sqlite3.SQLITE_CONSTRAINT_VTAB: "SQLITE_CONSTRAINT_VTAB",
		sqlite3.SQLITE_CONSTRAINT_PINNED: "SQLITE_CONSTRAINT_PINNED",
	}},
	{before: db.Constraint, atCommit: db.Constraint, kind: db.CheckFailed, codes: map[int32]string{sqlite3.SQLITE_CONSTRAINT_CHECK: "SQLITE_CONSTRAINT_CHECK"}},
	{before: db.Constraint, atCommit: db.Constraint, kind: db.NotNull, codes: map[int32]string{sqlite3.SQLITE_CONSTRAINT_NOTNULL: "SQLITE_CONSTRAINT_NOTNULL"}},
	{before: db.Constraint, atCommit: db.Constraint, kind: db.ForeignKey, codes: map[int32]string{sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: "SQLITE_CONSTRAINT_FOREIGNKEY"}},
	{before: db.Constraint, atCommit: db.Constraint, kind: db.UniqueKey, codes: map[int32]string{
		sqlite3.SQLITE_CONSTRAINT_UNIQUE: "SQLITE_CONSTRAINT_UNIQUE", sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: "SQLITE_CONSTRAINT_PRIMARYKEY",
		sqlite3.SQLITE_CONSTRAINT_ROWID: "SQLITE_CONSTRAINT_ROWID",
	}},
	{before: db.Fatal, atCommit: db.Unknown, codes: map[int32]string{
		sqlite3.SQLITE_CONSTRAINT_DATATYPE: "SQLITE_CONSTRAINT_DATATYPE", sqlite3.SQLITE_FULL: "SQLITE_FULL",
		sqlite3.SQLITE_IOERR: "SQLITE_IOERR", sqlite3.SQLITE_IOERR_READ: "SQLITE_IOERR_READ",
		sqlite3.SQLITE_IOERR_SHORT_READ: "SQLITE_IOERR_SHORT_READ", sqlite3.SQLITE_IOERR_WRITE: "SQLITE_IOERR_WRITE",
		sqlite3.SQLITE_IOERR_FSYNC: "SQLITE_IOERR_FSYNC", sqlite3.SQLITE_IOERR_DIR_FSYNC: "SQLITE_IOERR_DIR_FSYNC",
		sqlite3.SQLITE_CORRUPT: "SQLITE_CORRUPT", sqlite3.SQLITE_NOTADB: "SQLITE_NOTADB", sqlite3.SQLITE_CANTOPEN: "SQLITE_CANTOPEN",
		sqlite3.SQLITE_READONLY: "SQLITE_READONLY", sqlite3.SQLITE_READONLY_DBMOVED: "SQLITE_READONLY_DBMOVED",
		sqlite3.SQLITE_READONLY_DIRECTORY: "SQLITE_READONLY_DIRECTORY", sqlite3.SQLITE_PERM: "SQLITE_PERM",
		sqlite3.SQLITE_AUTH: "SQLITE_AUTH", sqlite3.SQLITE_NOMEM: "SQLITE_NOMEM", sqlite3.SQLITE_TOOBIG: "SQLITE_TOOBIG",
		sqlite3.SQLITE_MISMATCH: "SQLITE_MISMATCH", sqlite3.SQLITE_RANGE: "SQLITE_RANGE", sqlite3.SQLITE_MISUSE: "SQLITE_MISUSE",
		sqlite3.SQLITE_ERROR: "SQLITE_ERROR",
	}},
}

// ErrorOf returns the error of a transaction that SQLite ended with a result code, during COMMIT or before. The
// caller must add Op and Err. Package dqlite uses it too.
func ErrorOf(code int, committing bool) *db.Error {
	found, name := meaning{before: db.Fatal, atCommit: db.Unknown}, fmt.Sprintf("SQLite %d", code)
	for _, m := range meanings {
		if exact, ok := m.codes[int32(code)]; ok {
			found, name = m, exact
			break
		}
		if primary, ok := m.codes[int32(code&0xff)]; ok {
			found, name = m, fmt.Sprintf("%s (%d)", primary, code)
		}
	}
	e := &db.Error{Class: found.before, Constraint: found.kind, Code: name}
	if committing {
		e.Class = found.atCommit
	}
	return e
}

// failure returns the error of a call that ended with code, during COMMIT or before; message is SQLite's text. If the
// context ended the call, the error is the context's.
func failure(ctx context.Context, op string, code int32, message string, committing bool) *db.Error {
	e := ErrorOf(int(code), committing)
	e.Op, e.Err = op, errors.New(message)
	if primary := code & 0xff; primary == sqlite3.SQLITE_INTERRUPT || primary == sqlite3.SQLITE_BUSY {
		if err := ctx.Err(); err != nil {
			e.Err = err
		}
	}
	return e
}

// noTable implements NoTable of the dialect. SQLite has only a text for it, no code.
func noTable(err error) bool {
	var e *db.Error
	return errors.As(err, &e) && e.Code == "SQLITE_ERROR" && strings.HasPrefix(e.Err.Error(), "no such table")
}

// cancelled returns the error of a transaction that its context ended before COMMIT. It was rolled back, and the
// session is ready.
func cancelled(op string, err error) *db.Error {
	return &db.Error{Class: db.Aborted, Op: op, Err: err}
}
