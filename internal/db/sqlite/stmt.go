package sqlite

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"

	"stroppy/internal/db"
)

// stmt is a statement prepared on one connection.
type stmt struct {
	c        *conn
	p        uintptr // sqlite3_stmt*
	readOnly bool
	names    []string // of the columns of a Free statement
	room     uintptr  // SQLite's memory for the texts of the parameters
	roomSize int
}

// prepare compiles sql, which must be one statement.
func (c *conn) prepare(sql string) (*stmt, error) {
	op := "prepare " + db.Shorten(sql)
	text, err := libc.CString(sql)
	if err != nil {
		return nil, failure(c.ctx, op, sqlite3.SQLITE_NOMEM, "out of memory", false)
	}
	defer libc.Xfree(c.tls, text)
	tail := c.out + pointerSize
	code := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, text, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, c.out, tail)
	if code != sqlite3.SQLITE_OK {
		return nil, failure(c.ctx, op, code, c.message(code), false)
	}
	s := &stmt{c: c, p: pointerAt(c.out)}
	if s.p == 0 {
		return nil, db.Fatalf(op, "the text holds no statement")
	}
	if rest := strings.Trim(libc.GoString(pointerAt(tail)), "; \t\r\n"); rest != "" {
		s.close()
		return nil, db.Fatalf(op, "the text holds more than one statement: run them one by one")
	}
	s.readOnly = sqlite3.Xsqlite3_stmt_readonly(c.tls, s.p) != 0
	return s, nil
}

// suits compares the text of a statement with its declared types.
func (s *stmt) suits(statement *db.Statement) error {
	op := "prepare " + db.Shorten(statement.SQL)
	n := int(sqlite3.Xsqlite3_column_count(s.c.tls, s.p))
	if statement.Free {
		for i := range n {
			s.names = append(s.names, libc.GoString(sqlite3.Xsqlite3_column_name(s.c.tls, s.p, int32(i))))
		}
	} else if n != len(statement.Columns) {
		return db.Fatalf(op, "it returns %d columns where %d are declared", n, len(statement.Columns))
	}
	if n := int(sqlite3.Xsqlite3_bind_parameter_count(s.c.tls, s.p)); n != len(statement.Params) {
		return db.Fatalf(op, "it takes %d parameters where %d are declared", n, len(statement.Params))
	}
	for _, t := range slices.Concat(statement.Params, statement.Columns) {
		if t < db.Integer || t > db.Untyped {
			return db.Fatalf(op, "no type has the number %d", t)
		}
	}
	return nil
}

func (s *stmt) close() {
	sqlite3.Xsqlite3_finalize(s.c.tls, s.p)
	libc.Xfree(s.c.tls, s.room) // of 0 too
}

// bind sets the arguments of a statement, which must have been reset. It copies texts into the statement's
// own memory, so that SQLite need not copy them again.
func (s *stmt) bind(params []db.Type, args []db.Value) int32 {
	size := 0
	for i := range args {
		size += len(args[i].Text)
	}
	if !s.grow(size) {
		return sqlite3.SQLITE_NOMEM
	}
	tls, at := s.c.tls, s.room
	for i := range args {
		var code int32
		a, n := &args[i], int32(i+1)
		switch {
		case a.Null:
			code = sqlite3.Xsqlite3_bind_null(tls, s.p, n)
		case params[i] == db.Text || params[i] == db.Untyped && a.Text != nil:
			copy(libc.GoBytes(at, len(a.Text)), a.Text)
			code = sqlite3.Xsqlite3_bind_text(tls, s.p, n, at, int32(len(a.Text)), sqlite3.SQLITE_STATIC)
			at += uintptr(len(a.Text))
		case a.Double:
			code = sqlite3.Xsqlite3_bind_double(tls, s.p, n, math.Float64frombits(uint64(a.Int)))
		default:
			code = sqlite3.Xsqlite3_bind_int64(tls, s.p, n, a.Int)
		}
		if code != sqlite3.SQLITE_OK {
			return code
		}
	}
	return sqlite3.SQLITE_OK
}

// grow makes room for n bytes of text. The room is never empty, because SQLite takes address 0 for NULL.
func (s *stmt) grow(n int) bool {
	if n < s.roomSize || n == 0 && s.room != 0 {
		return true
	}
	libc.Xfree(s.c.tls, s.room)
	s.roomSize = 2*n + 16
	s.room = libc.Xmalloc(s.c.tls, types.Size_t(s.roomSize))
	return s.room != 0
}

func (s *stmt) step() int32 { return sqlite3.Xsqlite3_step(s.c.tls, s.p) }

func (s *stmt) reset() { sqlite3.Xsqlite3_reset(s.c.tls, s.p) }

// column reads column i of the current row. Its text belongs to SQLite and is valid until the next step. A
// value of another type than declared is an error, because SQLite would convert it silently, and money must
// not become a floating point number.
func (s *stmt) column(i int, t db.Type) (v db.Value, err error) {
	tls, n := s.c.tls, int32(i)
	switch kind := sqlite3.Xsqlite3_column_type(tls, s.p, n); {
	case kind == sqlite3.SQLITE_NULL:
		v.Null = true
	case kind == sqlite3.SQLITE_INTEGER && t != db.Text:
		v.Int = sqlite3.Xsqlite3_column_int64(tls, s.p, n)
	case kind == sqlite3.SQLITE_TEXT && t == db.Text:
		p := sqlite3.Xsqlite3_column_text(tls, s.p, n)
		v.Text = libc.GoBytes(p, int(sqlite3.Xsqlite3_column_bytes(tls, s.p, n)))
	default:
		declared := kinds[sqlite3.SQLITE_INTEGER]
		if t == db.Text {
			declared = kinds[sqlite3.SQLITE_TEXT]
		}
		err = fmt.Errorf("column %d holds %s, and %s is declared", i+1, kinds[kind], declared)
	}
	return v, err
}

// free reads column i of the current row as text, whatever its type. The text belongs to SQLite and is valid until the
// next step.
func (s *stmt) free(i int) (v db.Value) {
	tls, n := s.c.tls, int32(i)
	if v.Null = sqlite3.Xsqlite3_column_type(tls, s.p, n) == sqlite3.SQLITE_NULL; !v.Null {
		p := sqlite3.Xsqlite3_column_text(tls, s.p, n)
		v.Text = libc.GoBytes(p, int(sqlite3.Xsqlite3_column_bytes(tls, s.p, n)))
	}
	return v
}

// kinds holds the names of SQLite's types for errors.
var kinds = [...]string{
	sqlite3.SQLITE_INTEGER: "an integer", sqlite3.SQLITE_FLOAT: "a floating point number",
	sqlite3.SQLITE_TEXT: "a text", sqlite3.SQLITE_BLOB: "a blob",
}
