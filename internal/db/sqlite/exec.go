package sqlite

import (
	"errors"
	"strconv"
	"strings"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"stroppy/internal/db"
)

// exec runs one statement without parameters to its end.
func (c *conn) exec(sql string) error {
	_, err := c.text(sql)
	return err
}

// text runs one statement without parameters to its end and returns the first
// column of its first row as text; empty if there is none.
func (c *conn) text(sql string) (string, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return "", err
	}
	defer s.close()
	first, rows := "", 0
	code := s.step()
	for ; code == sqlite3.SQLITE_ROW; code = s.step() {
		if rows == 0 && s.columns > 0 {
			first = libc.GoString(sqlite3.Xsqlite3_column_text(c.tls, s.p, 0))
		}
		rows++
	}
	if code != sqlite3.SQLITE_DONE {
		return "", c.failed("run "+db.Shorten(sql), code, c.phaseOf(s))
	}
	return first, nil
}

// phaseOf says how far a statement may have come: one that writes and is not in
// a transaction commits itself.
func (c *conn) phaseOf(s *stmt) phase {
	if s.readOnly || c.inTransaction() {
		return beforeCommit
	}
	return atCommit
}

// checkpoint writes the WAL into the database and empties it, unless another
// connection is in the way. Without a WAL it does nothing.
func (c *conn) checkpoint() error {
	err := c.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	var e *db.Error
	if errors.As(err, &e) && (strings.HasPrefix(e.Code, "SQLITE_BUSY") || strings.HasPrefix(e.Code, "SQLITE_LOCKED")) {
		return nil
	}
	return err
}

// setCache sets the size of the connection's page cache.
func (c *conn) setCache(kib int64) error {
	return c.exec("PRAGMA cache_size=-" + strconv.FormatInt(kib, 10))
}

// readOnlyFile reports whether SQLite could open the file for reading only.
func (c *conn) readOnlyFile() bool {
	return sqlite3.Xsqlite3_db_readonly(c.tls, c.db, 0) == 1
}

func (c *conn) changes() int64      { return sqlite3.Xsqlite3_changes64(c.tls, c.db) }
func (c *conn) totalChanges() int64 { return sqlite3.Xsqlite3_total_changes64(c.tls, c.db) }

// quote spells a name as an SQL identifier.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
