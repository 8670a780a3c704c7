package sqlite

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"stroppy/internal/db"
)

// meaning is what one result code says about the transaction that it ended.
type meaning struct {
	code             int32
	name             string
	before, atCommit db.Class
	kind             db.ConstraintKind
}

// meanings is the table of SQLite's result codes, from
// https://www.sqlite.org/rescode.html. An extended code that is not in it means
// what its primary code, the low byte, means; a primary code that is not in it
// is Fatal before COMMIT and Unknown while COMMIT was running.
//
// Before COMMIT nothing is ever applied: in WAL mode the frames of a transaction
// count only once the last of them carries the commit mark
// (https://www.sqlite.org/fileformat2.html#walformat), in rollback mode the hot
// journal undoes them (https://www.sqlite.org/atomiccommit.html).
//
// While COMMIT is running,
//   - BUSY says that a lock was not granted, which is asked for before anything
//     is made durable (https://www.sqlite.org/lang_transaction.html: the
//     transaction remains open and can be retried), and a deferred constraint is
//     looked at before that too: after the rollback surely not applied;
//   - IOERR and FULL may come after the frame with the commit mark was written:
//     from the fsync, or from the padding that follows it up to the end of a
//     sector. This process then forgets the transaction, but if it dies before
//     another one has overwritten the frames, recovery finds a whole transaction
//     and applies it: unknown;
//   - of every other code nothing is known: unknown.
//
// LOCKED is a conflict within one process, PROTOCOL a race for the locks of the
// WAL index, SCHEMA a schema that changed faster than a statement could be
// prepared: a new try may succeed. INTERRUPT is how a cancelled context ends a
// statement. A trigger, a hook, a function or a virtual table that refuses a
// change is a rule of the schema of no kind that db knows; a foreign key with
// RESTRICT is reported as a trigger. DATATYPE, a value of a type that a STRICT
// table does not take, is the fault of the statement, not of the data.
var meanings = [...]meaning{
	{sqlite3.SQLITE_BUSY, "SQLITE_BUSY", db.Aborted, db.Aborted, 0},
	{sqlite3.SQLITE_BUSY_RECOVERY, "SQLITE_BUSY_RECOVERY", db.Aborted, db.Aborted, 0},
	{sqlite3.SQLITE_BUSY_SNAPSHOT, "SQLITE_BUSY_SNAPSHOT", db.Aborted, db.Aborted, 0},
	{sqlite3.SQLITE_BUSY_TIMEOUT, "SQLITE_BUSY_TIMEOUT", db.Aborted, db.Aborted, 0},
	{sqlite3.SQLITE_LOCKED, "SQLITE_LOCKED", db.Aborted, db.Unknown, 0},
	{sqlite3.SQLITE_LOCKED_SHAREDCACHE, "SQLITE_LOCKED_SHAREDCACHE", db.Aborted, db.Unknown, 0},
	{sqlite3.SQLITE_PROTOCOL, "SQLITE_PROTOCOL", db.Aborted, db.Unknown, 0},
	{sqlite3.SQLITE_SCHEMA, "SQLITE_SCHEMA", db.Aborted, db.Unknown, 0},
	{sqlite3.SQLITE_INTERRUPT, "SQLITE_INTERRUPT", db.Aborted, db.Unknown, 0},

	{sqlite3.SQLITE_CONSTRAINT, "SQLITE_CONSTRAINT", db.Constraint, db.Constraint, 0},
	{sqlite3.SQLITE_CONSTRAINT_CHECK, "SQLITE_CONSTRAINT_CHECK", db.Constraint, db.Constraint, db.CheckFailed},
	{sqlite3.SQLITE_CONSTRAINT_NOTNULL, "SQLITE_CONSTRAINT_NOTNULL", db.Constraint, db.Constraint, db.NotNull},
	{sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY, "SQLITE_CONSTRAINT_FOREIGNKEY", db.Constraint, db.Constraint, db.ForeignKey},
	{sqlite3.SQLITE_CONSTRAINT_UNIQUE, "SQLITE_CONSTRAINT_UNIQUE", db.Constraint, db.Constraint, db.UniqueKey},
	{sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, "SQLITE_CONSTRAINT_PRIMARYKEY", db.Constraint, db.Constraint, db.UniqueKey},
	{sqlite3.SQLITE_CONSTRAINT_ROWID, "SQLITE_CONSTRAINT_ROWID", db.Constraint, db.Constraint, db.UniqueKey},
	{sqlite3.SQLITE_CONSTRAINT_TRIGGER, "SQLITE_CONSTRAINT_TRIGGER", db.Constraint, db.Constraint, 0},
	{sqlite3.SQLITE_CONSTRAINT_COMMITHOOK, "SQLITE_CONSTRAINT_COMMITHOOK", db.Constraint, db.Constraint, 0},
	{sqlite3.SQLITE_CONSTRAINT_FUNCTION, "SQLITE_CONSTRAINT_FUNCTION", db.Constraint, db.Constraint, 0},
	{sqlite3.SQLITE_CONSTRAINT_VTAB, "SQLITE_CONSTRAINT_VTAB", db.Constraint, db.Constraint, 0},
	{sqlite3.SQLITE_CONSTRAINT_PINNED, "SQLITE_CONSTRAINT_PINNED", db.Constraint, db.Constraint, 0},
	{sqlite3.SQLITE_CONSTRAINT_DATATYPE, "SQLITE_CONSTRAINT_DATATYPE", db.Fatal, db.Unknown, 0},

	{sqlite3.SQLITE_FULL, "SQLITE_FULL", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_IOERR, "SQLITE_IOERR", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_IOERR_READ, "SQLITE_IOERR_READ", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_IOERR_SHORT_READ, "SQLITE_IOERR_SHORT_READ", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_IOERR_WRITE, "SQLITE_IOERR_WRITE", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_IOERR_FSYNC, "SQLITE_IOERR_FSYNC", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_IOERR_DIR_FSYNC, "SQLITE_IOERR_DIR_FSYNC", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_NOTADB, "SQLITE_NOTADB", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_CANTOPEN, "SQLITE_CANTOPEN", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_READONLY, "SQLITE_READONLY", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_READONLY_DBMOVED, "SQLITE_READONLY_DBMOVED", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_READONLY_DIRECTORY, "SQLITE_READONLY_DIRECTORY", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_PERM, "SQLITE_PERM", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_AUTH, "SQLITE_AUTH", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_NOMEM, "SQLITE_NOMEM", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_TOOBIG, "SQLITE_TOOBIG", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_MISMATCH, "SQLITE_MISMATCH", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_RANGE, "SQLITE_RANGE", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_MISUSE, "SQLITE_MISUSE", db.Fatal, db.Unknown, 0},
	{sqlite3.SQLITE_ERROR, "SQLITE_ERROR", db.Fatal, db.Unknown, 0},
}

// ErrorOf makes the error of a transaction that SQLite ended with a result code, while
// COMMIT was running or before; Op and Err are the caller's to add. Package dqlite
// shares it.
func ErrorOf(code int, committing bool) *db.Error {
	found := meaning{name: fmt.Sprintf("SQLite %d", code), before: db.Fatal, atCommit: db.Unknown}
	for _, m := range meanings {
		if int(m.code) == code {
			found = m
			break
		}
		if int(m.code) == code&0xff {
			found = m
			found.name = fmt.Sprintf("%s (%d)", m.name, code)
		}
	}
	e := &db.Error{Class: found.before, Constraint: found.kind, Code: found.name}
	if committing {
		e.Class = found.atCommit
	}
	return e
}

// failure makes the error of a call that ended with code, while COMMIT was running or
// before; message is SQLite's own. If the context ended the call, the error is the context's.
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

// cancelled is the error of a transaction that its context ended before COMMIT;
// it was rolled back and the session is ready for another.
func cancelled(op string, err error) *db.Error {
	return &db.Error{Class: db.Aborted, Op: op, Err: err}
}
