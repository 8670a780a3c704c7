package sqlite

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"

	"stroppy/internal/db"
)

// conn is one connection: a thin layer over SQLite's C interface, which modernc.org/sqlite/lib translates to Go. That
// module's driver for database/sql allocates for each row, argument and result. It also starts a goroutine for each
// call with a cancellable context. This package does neither.
//
// A conn is used by one goroutine at a time, so it is opened with NOMUTEX. Both callbacks run on the calling
// goroutine.
type conn struct {
	tls     *libc.TLS
	db      uintptr         // sqlite3*
	out     uintptr         // room for two pointers that SQLite returns
	ctx     context.Context // ends the call under way
	timeout time.Duration   // the longest wait for a lock of another process
	waiting time.Time       // since when a lock is waited for
	// committing is set while COMMIT runs. SQLite calls its progress handler even then, but a durable commit must not
	// be reported as interrupted.
	committing bool

	// SQLite holds the addresses of these functions; the fields keep them alive.
	busy     func(*libc.TLS, uintptr, int32) int32
	progress func(*libc.TLS, uintptr) int32

	prepared map[*db.Statement]*stmt
	row      []db.Value // of the statement that runs
	names    []string   // of its columns, if it is Free
}

const (
	pointerSize = unsafe.Sizeof(uintptr(0))
	// progressOps is the number of virtual machine instructions between two looks at the context: some tens of
	// microseconds.
	progressOps = 4096
)

// openConn opens the file at path. It sets only the callbacks.
func openConn(ctx context.Context, path string, flags int32, timeout time.Duration) (*conn, error) {
	const op = "open the SQLite database"
	c := &conn{tls: libc.NewTLS(), ctx: ctx, timeout: timeout, prepared: make(map[*db.Statement]*stmt)}
	c.busy = c.onBusy
	c.progress = func(*libc.TLS, uintptr) int32 { // anything but 0 ends the statement with SQLITE_INTERRUPT
		if !c.committing && c.ctx.Err() != nil {
			return 1
		}
		return 0
	}
	c.out = libc.Xcalloc(c.tls, 2, types.Size_t(pointerSize))
	name, err := libc.CString(path)
	if err != nil || c.out == 0 {
		c.Close()
		return nil, failure(ctx, op, sqlite3.SQLITE_NOMEM, "out of memory", false)
	}
	flags |= sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_NOMUTEX | sqlite3.SQLITE_OPEN_EXRESCODE
	code := sqlite3.Xsqlite3_open_v2(c.tls, name, c.out, flags, 0)
	libc.Xfree(c.tls, name)
	c.db = pointerAt(c.out)
	if code != sqlite3.SQLITE_OK {
		defer c.Close()
		return nil, c.failed(op, code)
	}
	sqlite3.Xsqlite3_busy_handler(c.tls, c.db, funcPointer(c.busy), 0)
	sqlite3.Xsqlite3_progress_handler(c.tls, c.db, progressOps, funcPointer(c.progress), 0)
	return c, nil
}

// Close ends the connection and its open transaction.
func (c *conn) Close() error {
	for _, s := range c.prepared {
		s.close()
	}
	code := sqlite3.Xsqlite3_close_v2(c.tls, c.db) // of 0 too
	libc.Xfree(c.tls, c.out)
	c.tls.Close()
	if code != sqlite3.SQLITE_OK {
		return failure(c.ctx, "close the SQLite database", code, "it could not be closed", false)
	}
	return nil
}

// These are the connection's own statements.
var (
	beginDeferred  = &db.Statement{SQL: "BEGIN DEFERRED"}
	beginImmediate = &db.Statement{SQL: "BEGIN IMMEDIATE"}
	commit         = &db.Statement{SQL: "COMMIT"}
	rollback       = &db.Statement{SQL: "ROLLBACK"}
)

// simple runs one of these statements.
func (c *conn) simple(ctx context.Context, op string, statement *db.Statement) error {
	c.ctx = ctx
	s, err := c.ready(statement)
	if err != nil {
		return err
	}
	code := s.step()
	s.reset()
	if code != sqlite3.SQLITE_DONE {
		return c.failed(op, code)
	}
	return nil
}

// Begin implements Conn. A writer begins IMMEDIATE, so that its snapshot cannot become outdated
// (SQLITE_BUSY_SNAPSHOT). A reader begins DEFERRED, which never waits and reads one snapshot from its first read on.
func (c *conn) Begin(ctx context.Context, readOnly bool) error {
	if readOnly {
		return c.simple(ctx, opBegin, beginDeferred)
	}
	return c.simple(ctx, opBegin, beginImmediate)
}

func (c *conn) Commit(ctx context.Context) error {
	c.committing = true
	defer func() { c.committing = false }()
	return c.simple(ctx, opCommit, commit)
}

func (c *conn) Undo() bool {
	if c.inTransaction() {
		_ = c.simple(context.Background(), "roll back", rollback) // what counts is whether one is open
	}
	return !c.inTransaction()
}

func (c *conn) Reads(ctx context.Context, statement *db.Statement) (bool, error) {
	c.ctx = ctx
	p, err := c.ready(statement)
	return err == nil && p.readOnly, err
}

// ready prepares a statement, once for each connection.
func (c *conn) ready(statement *db.Statement) (p *stmt, err error) {
	if p = c.prepared[statement]; p == nil {
		if p, err = c.prepare(statement.SQL); err == nil {
			if err = p.suits(statement); err != nil {
				p.close()
				return nil, err
			}
			c.prepared[statement] = p
		}
	}
	return p, err
}

func (c *conn) Run(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) (affected int64, err error) {
	c.ctx = ctx
	if err := ctx.Err(); err != nil {
		return 0, cancelled("run "+db.Shorten(statement.SQL), err)
	}
	p, err := c.ready(statement)
	switch {
	case err != nil:
		return 0, err
	case len(args) != len(statement.Params):
		return 0, db.Fatalf("run "+db.Shorten(statement.SQL), "%d arguments are given for %d parameters", len(args), len(statement.Params))
	}
	if code := p.bind(statement.Params, args); code != sqlite3.SQLITE_OK {
		return 0, c.failed("bind the arguments of "+db.Shorten(statement.SQL), code)
	}
	defer p.reset()
	c.names = p.names
	before := sqlite3.Xsqlite3_total_changes64(c.tls, c.db)
	rows := int64(0)
	code := p.step()
	for ; code == sqlite3.SQLITE_ROW; code = p.step() {
		rows++
		c.row = c.row[:0]
		for i, t := range statement.Columns {
			v, err := p.column(i, t)
			if err != nil {
				return 0, db.Fatalf("read the result of "+db.Shorten(statement.SQL), "%w", err)
			}
			c.row = append(c.row, v)
		}
		for i := range p.names {
			c.row = append(c.row, p.free(i))
		}
		if err := row(c.row); err != nil {
			return 0, err
		}
	}
	switch {
	case code != sqlite3.SQLITE_DONE:
		return 0, c.failed("run "+db.Shorten(statement.SQL), code)
	case p.readOnly:
		return rows, nil
	case sqlite3.Xsqlite3_total_changes64(c.tls, c.db) != before:
		return sqlite3.Xsqlite3_changes64(c.tls, c.db), nil
	}
	return 0, nil
}

// Names implements Conn.
func (c *conn) Names() []string { return c.names }

func (c *conn) inTransaction() bool { return sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) == 0 }

// message returns SQLite's text for the code of the last call.
func (c *conn) message(code int32) string {
	if c.db != 0 {
		return libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))
	}
	return libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, code))
}

// failed returns the error of a call that ended with code.
func (c *conn) failed(op string, code int32) error {
	return failure(c.ctx, op, code, c.message(code), c.committing)
}

// exec runs one statement without parameters to its end.
func (c *conn) exec(sql string) error {
	_, err := c.text(sql)
	return err
}

// text runs one statement without parameters to its end. It returns the first column of the first row as text, or an
// empty string. Outside of a transaction, a statement that writes commits itself.
func (c *conn) text(sql string) (first string, err error) {
	s, err := c.prepare(sql)
	if err != nil {
		return "", err
	}
	defer s.close()
	commits := !s.readOnly && !c.inTransaction()
	code := s.step()
	if code == sqlite3.SQLITE_ROW {
		first = libc.GoString(sqlite3.Xsqlite3_column_text(c.tls, s.p, 0))
	}
	for code == sqlite3.SQLITE_ROW {
		code = s.step()
	}
	if code != sqlite3.SQLITE_DONE {
		return "", failure(c.ctx, "run "+db.Shorten(sql), code, c.message(code), commits)
	}
	return first, nil
}

// checkpoint writes the WAL into the database and empties it, unless another connection prevents it. Without a WAL it
// does nothing.
func (c *conn) checkpoint() error {
	err := c.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	if e, ok := errors.AsType[*db.Error](err); ok && (strings.HasPrefix(e.Code, "SQLITE_BUSY") || strings.HasPrefix(e.Code, "SQLITE_LOCKED")) {
		return nil
	}
	return err
}

func (c *conn) setCache(kib int64) error {
	return c.exec("PRAGMA cache_size=-" + strconv.FormatInt(kib, 10))
}

// onBusy is SQLite's busy handler. It is called for the n-th time, from 0, if another connection holds a lock. It
// sleeps and returns whether to try again. Unlike the built-in handler, it ends with the context, which it checks at
// least every 10 ms.
func (c *conn) onBusy(_ *libc.TLS, _ uintptr, n int32) int32 {
	now := time.Now()
	if n == 0 {
		c.waiting = now
	}
	left := c.timeout - now.Sub(c.waiting)
	if left <= 0 || c.ctx.Err() != nil {
		return 0
	}
	time.Sleep(min(time.Millisecond<<min(n, 4), 10*time.Millisecond, left))
	return 1
}

// funcPointer returns function f in the form that SQLite needs: the address of its closure. The caller must keep f
// alive; Go's heap does not move.
func funcPointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func pointerAt(p uintptr) uintptr {
	return *(*uintptr)(unsafe.Pointer(&libc.GoBytes(p, int(pointerSize))[0]))
}
