// Package sqlite drives SQLite, embedded in this process and without C.
//
// An address is sqlite:PATH[?parameter=value&…], with the parameters
//
//	synchronous    full (the default with journal=wal), extra (the default with
//	               journal=delete), normal or off: what is on disk when COMMIT returns
//	journal        wal (the default) or delete
//	busy_timeout   the longest wait for the write lock, such as 500ms; 10s by default, 1h at most
//	cache_size     page cache of each connection in KiB; 8192 by default
//
// SQLite has one writer at a time. The writers of this process queue for its
// turn, first come, first served; see queue.
package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"stroppy/internal/db"
	"stroppy/internal/isolation"
)

// Database is an open SQLite database. It implements db.SQL, db.BulkLoader and db.Footprinter.
type Database struct {
	options options
	wanted  string // the journal that a run would set, if Look has left it
	*Sessions

	mu    sync.Mutex // guards admin
	admin *conn      // for Info and Exec; nil once closed
}

var (
	_ db.SQL         = (*Database)(nil)
	_ db.BulkLoader  = (*Database)(nil)
	_ db.Footprinter = (*Database)(nil)
)

// Open opens the database at url, or creates an empty one. Errors are of class Fatal, or Aborted if another
// process holds the database.
func Open(ctx context.Context, url string) (*Database, error) {
	d, err := locate(url)
	if err != nil {
		return nil, err
	}
	d.Sessions = NewSessions(isolations, func(ctx context.Context) (Conn, error) { return d.connect(ctx) }, d.options.busyTimeout)
	if d.admin, err = d.openFirst(ctx); err != nil {
		return nil, d.explain(err)
	}
	return d, nil
}

func (d *Database) opOpen() string { return "open the SQLite database " + d.options.path }

// Place returns an error if the file of a URL cannot exist. It does not open or create it.
func Place(url string) error {
	_, err := locate(url)
	return err
}

// locate returns the database of a URL, which is not opened, or an error as Place does.
func locate(url string) (*Database, error) {
	o, err := parseURL(url)
	if err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: "open SQLite", Err: err}
	}
	d := &Database{options: o}
	if err := checkPlace(o.path); err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: d.opOpen(), Err: err}
	}
	return d, nil
}

// checkPlace returns plain errors for what SQLite calls "unable to open database file". It does not open the
// file, because closing it would drop the locks of SQLite in this process
// (https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
func checkPlace(path string) error {
	dir := filepath.Dir(path)
	for _, name := range []string{dir, path} {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == path:
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("the directory %s does not exist: create it or name another", dir)
		case errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("the directory %s may not be entered by this user", dir)
		case err != nil:
			return err
		case name == dir && !info.IsDir():
			return fmt.Errorf("%s is no directory", dir)
		case name == path && info.IsDir():
			return fmt.Errorf("%s is a directory: name a file in it", path)
		case name == path && !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", path)
		}
	}
	return nil
}

// openFirst opens the first connection. It creates the file if necessary and sets the journal mode, which is
// a property of the file.
func (d *Database) openFirst(ctx context.Context) (*conn, error) {
	c, err := openConn(ctx, d.options.path, sqlite3.SQLITE_OPEN_CREATE, d.options.busyTimeout)
	if err != nil {
		return nil, err
	}
	mode, err := c.text("PRAGMA journal_mode=" + d.options.journal)
	if err == nil && mode != d.options.journal {
		err = db.Fatalf("", "the journal stayed %s where %s was asked for: the file system may not have the locks or the shared memory that it needs", mode, d.options.journal)
	}
	if err == nil && sqlite3.Xsqlite3_db_readonly(c.tls, c.db, 0) == 1 {
		err = db.Fatalf("", "this user may read the file but not write it")
	}
	if err == nil {
		err = d.configure(c)
	}
	if err == nil { // reads the file's first page
		_, err = c.text("SELECT count(*) FROM sqlite_schema")
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// explained lists advice for the codes of invalid paths.
var explained = []struct{ code, text string }{
	{"SQLITE_NOTADB", "the file is no SQLite database: name another"},
	{"SQLITE_CORRUPT", "the file is a damaged SQLite database: restore or remove it"},
	{"SQLITE_CANTOPEN", "this user may not open the file, or not make files in its directory: change their permissions"},
	{"SQLITE_PERM", "this user may not open the file, or not make files in its directory: change their permissions"},
	{"SQLITE_READONLY", "this user may read the file or its directory but not write there: change their permissions"},
}

// explain adds the path and advice to an error of Open.
func (d *Database) explain(err error) error {
	if e, ok := errors.AsType[*db.Error](err); ok {
		e.Op = d.opOpen()
		for _, known := range explained {
			if strings.HasPrefix(e.Code, known.code) {
				e.Err = errors.New(known.text)
			}
		}
	}
	return err
}

func (d *Database) configure(c *conn) error {
	for _, pragma := range []string{
		"PRAGMA synchronous=" + d.options.synchronous,
		"PRAGMA foreign_keys=ON",
		// The WAL collects this number of pages before a committing connection writes them to the database;
		// it is SQLite's default.
		"PRAGMA wal_autocheckpoint=1000",
		// On macOS, fsync leaves data in the drive's cache; elsewhere this setting has no effect.
		"PRAGMA fullfsync=" + strconv.FormatBool(d.options.synchronous == "full" || d.options.synchronous == "extra"),
	} {
		if err := c.exec(pragma); err != nil {
			return err
		}
	}
	return c.setCache(d.options.cacheKiB)
}

// connect opens another connection to the file, which must exist.
func (d *Database) connect(ctx context.Context) (*conn, error) {
	c, err := openConn(ctx, d.options.path, 0, d.options.busyTimeout)
	if err == nil {
		if err = d.configure(c); err == nil {
			return c, nil
		}
		c.Close()
	}
	err = d.explain(err)
	if e, ok := errors.AsType[*db.Error](err); ok {
		e.Class = db.Unavailable // the file was there before, so it may be there again
	}
	return nil, err
}

func (d *Database) Dialect() *db.Dialect { return Dialect() }

// Dialect returns SQLite's dialect, which package dqlite uses too.
//
// SQLite has no exact decimal type: NUMERIC becomes a floating point number, so money is stored as whole
// cents in an INTEGER. STRICT makes SQLite refuse values of other types. WITHOUT ROWID is not used, because
// it needs a primary key in every table, and a plain history table has none. It would save a B-tree for keys
// that are not integers: 14 of the 77 µs of CPU of a transfer. FOR UPDATE is not needed, because a write
// transaction holds the only write lock from its BEGIN on.
func Dialect() *db.Dialect {
	return &db.Dialect{
		Placeholder:   func(i int) string { return "?" + strconv.Itoa(i) },
		IntegerType:   "INTEGER",
		DecimalType:   "INTEGER",
		TextType:      func(int) string { return "TEXT" },
		CharType:      func(int) string { return "TEXT" },
		TimestampType: "TEXT", // as CURRENT_TIMESTAMP is
		TableOptions:  " STRICT",
		Returning:     true,
		DoNothing:     " ON CONFLICT DO NOTHING",
		Upsert:        db.OnConflict(),
		NoTable:       noTable,
	}
}

// Claim is Database.Claim for every database of this package.
func Claim(name string) (db.Claim, error) { return isolations.Claim(name) }

var isolations = db.Isolations{
	Product: "SQLite", Source: "Isolation In SQLite, https://www.sqlite.org/isolation.html",
	Levels: []db.NamedLevel{{Name: "serializable", Level: isolation.Serializable}},
}

// Info implements db.Database. The settings are those that SQLite reports for a connection, except
// busy_timeout, which belongs to this driver.
func (d *Database) Info(ctx context.Context) (db.Info, error) {
	info := db.Info{Name: "SQLite"}
	err := d.withAdmin(ctx, func(c *conn) error {
		info.Version = libc.GoString(sqlite3.Xsqlite3_libversion(c.tls))
		for _, name := range []string{"journal_mode", "synchronous", "fullfsync", "foreign_keys", "page_size", "cache_size", "wal_autocheckpoint"} {
			value, err := c.text("PRAGMA " + name)
			if err != nil {
				return err
			}
			if name == "synchronous" {
				value += map[string]string{"0": " (off)", "1": " (normal)", "2": " (full)", "3": " (extra)"}[value]
			}
			info.Add(name, "%s", value)
		}
		return nil
	})
	info.Add("busy_timeout", "%v", d.options.busyTimeout)
	durability(&info)
	return info, err
}

// durability adds to an Info what SQLite promises about acknowledged commits.
func durability(info *db.Info) {
	info.Durable = "https://www.sqlite.org/atomiccommit.html"
	switch info.Setting("synchronous") {
	case "0 (off)":
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "synchronous=OFF", Source: "https://www.sqlite.org/pragma.html#pragma_synchronous", Cure: "synchronous=FULL",
			Quote: "the database might become corrupted if the operating system crashes or the computer loses power before that data has been written to the disk surface",
		})
	case "1 (normal)":
		if info.Setting("journal_mode") == "wal" {
			info.Caveats = append(info.Caveats, db.Caveat{
				Setting: "synchronous=NORMAL", Source: "https://www.sqlite.org/pragma.html#pragma_synchronous", Cure: "synchronous=FULL",
				Quote: "A transaction committed in WAL mode with synchronous=NORMAL might roll back following a power loss or system crash.",
			})
		}
	}
}

// withAdmin calls use with the connection that belongs to no session.
func (d *Database) withAdmin(ctx context.Context, use func(*conn) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.admin == nil {
		return &db.Error{Class: db.Unavailable, Op: "use the SQLite database", Err: errors.New("it was closed")}
	}
	d.admin.ctx = ctx
	return use(d.admin)
}

// Exec implements db.SQL. The statement commits itself.
func (d *Database) Exec(ctx context.Context, statement string) error {
	if err := d.writers.enter(ctx, stoppedTimer(), d.options.busyTimeout); err != nil {
		return err
	}
	defer d.writers.leave()
	return d.withAdmin(ctx, func(c *conn) error { return c.exec(statement) })
}

// Footprint implements db.Footprinter. It includes the database file and the WAL or the rollback journal.
func (d *Database) Footprint(context.Context) (int64, error) {
	var sum int64
	for _, suffix := range []string{"", "-wal", "-journal"} {
		info, err := os.Stat(d.options.path + suffix)
		if errors.Is(err, fs.ErrNotExist) && suffix != "" {
			continue
		}
		if err != nil {
			return 0, &db.Error{Class: db.Unavailable, Op: "measure the SQLite database", Err: err}
		}
		sum += info.Size()
	}
	return sum, nil
}

// Close implements db.Database. It writes the WAL back into the database as far as other connections allow;
// the last connection removes the WAL.
func (d *Database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.admin == nil {
		return nil
	}
	c := d.admin
	d.admin = nil
	c.ctx, c.timeout = context.Background(), 0 // whoever is in the way is not waited for
	return cmp.Or(c.checkpoint(), c.Close())
}
