// Package mysql is the driver for MySQL, also with Group Replication, and for MariaDB, also with Galera.
//
// An address is mysql://user:password@host:port,host2:port2/database?name=value, with the parameters
//
//	timeout         the limit of one attempt to connect; 5s by default
//	answer_timeout  how long a transaction waits for an answer, after which its
//	                outcome is unknown if its commit was sent; 10s by default
//	tls             true, skip-verify, preferred or false (the default)
//	compress        true or false (the default)
//	spread          true makes sessions begin with different hosts, as for the nodes
//	                of Galera; by default all take the first host that works
//	allowCleartextPasswords
//
// and any session variable of the server, such as innodb_snapshot_isolation=ON or
// group_replication_consistency=BEFORE. A value that is not a single word is sent unchanged, so it may be an
// expression, with text in quotes. With several hosts, a connection skips a host that does not answer or is
// read-only. It also skips a Galera node outside the primary component, and a member of Group Replication without a
// majority. A new session waits until its node has everything that the cluster has committed.
//
// # Connections
//
// Package github.com/go-sql-driver/mysql makes the connections and speaks the protocol. Package database/sql is not
// used, because its pool repeats a statement on another connection if the driver reports a bad connection. A session
// is one connection of the library and ends with it. The connection below the library counts the bytes sent, so that
// a COMMIT that never left this machine is known not to be done.
//
// # Modes
//
// Interactive prepares every statement once and sends each execution separately.
//
// The protocol has no pipelining: a client may send a command only after the answer to the previous one. A server
// that received several at once would continue after a failed one, including COMMIT. Pipelined instead sends START
// TRANSACTION, all statements and COMMIT as one text, with semicolons and literal arguments. The server runs them in
// order and stops at the first error (https://dev.mysql.com/doc/c-api/8.4/en/c-api-multiple-queries.html), so it
// reaches COMMIT only if everything before was done.
//
// The library returns affected rows only for a text without rows, and skips answers without rows in any other text.
// Counted statements are therefore sent separately from those with rows. The refused statement is known only within
// the range between the last rows that arrived and the next. If COMMIT is in that range, the error counts as one of
// COMMIT.
//
// On Galera the server does not stop at the first error, so Pipelined is Interactive there. The same applies to Group
// Replication, whose documentation promises nothing. A transaction of another node may take the locks of one that is
// between two statements of a text. Then MariaDB 10.11 with Galera 4 rolls it back, runs the next statement in a new
// transaction, and commits half a transfer. If the statements are sent one by one, the next one is refused with error
// 1213.
//
// UPDATE returns no rows. A SELECT after it in the same transaction shows the result: the row is locked, and its
// newest version belongs to the transaction, which sees it at every isolation.
//
// # Money
//
// A decimal is bound as text in a CAST, or written as a decimal literal; both are exact. Plain text in arithmetic
// would become a floating point number (https://dev.mysql.com/doc/refman/8.4/en/type-conversion.html).
package mysql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// decimalType is the column type for money.
const decimalType = "DECIMAL(20,2)"

// Database is one database on one server, or on several that hold the same data. It holds no connection: each session
// has its own, and other calls open one temporarily.
type Database struct {
	address   *address
	server    *server // as it was at Open
	isolation string  // the default
	limit     time.Duration
	host      atomic.Int64 // the one that worked last; with spread, the next session's
}

var (
	_ db.SQL         = (*Database)(nil)
	_ db.BulkLoader  = (*Database)(nil)
	_ db.Footprinter = (*Database)(nil)
	_ db.Monitored   = (*Database)(nil)

	_ db.ConnectionLimited = (*Database)(nil)
)

// CheckURL returns the error with which Open would refuse a URL without connecting.
func CheckURL(url string) error {
	_, err := parseURL(url)
	return err
}

// Open connects to a URL and determines the kind of server.
func Open(ctx context.Context, url string) (*Database, error) {
	a, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	d := &Database{address: a, limit: a.answer, server: &server{product: mySQL}}
	op := "open MySQL or MariaDB at " + a.where() // which of them is not known yet
	err = d.control(ctx, op, func(_ context.Context, c *link) error {
		s, err := c.ask()
		if err != nil {
			return err
		}
		if err := s.check(); err != nil {
			return db.Fatalf(op, "%w", err)
		}
		d.server = s
		if d.isolation, err = s.isolation(); err != nil {
			return db.Fatalf(op, "%w", err)
		}
		return nil
	})
	if err != nil {
		return nil, d.demandsTLS(ctx, op, err)
	}
	return d, nil
}

// demandsTLS returns the error of an Open that failed with err. If the account, or MariaDB's
// require_secure_transport, demands TLS, a server reports a wrong password. The same user is then accepted with TLS.
func (d *Database) demandsTLS(ctx context.Context, op string, err error) error {
	var denied *db.Error
	if !errors.As(err, &denied) || denied.Code != "1045" {
		return err
	}
	switch secure, certified := usesTLS(d.address.hosts[0]); {
	case certified:
		return err
	case secure:
		text := denied.Err.Error() + "; if the account demands a certificate (REQUIRE X509), write " + certificateInURL
		return &db.Error{Class: db.Fatal, Code: denied.Code, Op: op, Err: db.MessageError{Text: text, Cause: err}}
	}
	secure := *d.address
	secure.hosts = nil
	for _, host := range d.address.hosts {
		c := host.Clone()
		c.TLS = &tls.Config{InsecureSkipVerify: true} // no more is at stake than without TLS
		secure.hosts = append(secure.hosts, c)
	}
	try := &Database{address: &secure, limit: d.limit, server: d.server}
	l, failed := try.dial(ctx, op, d.first())
	switch {
	case failed == nil:
		l.end()
	case failed.Code != "1044" && failed.Code != "1049": // these are errors of a user who was admitted
		return err
	}
	return &db.Error{Class: db.Fatal, Code: denied.Code, Op: op, Err: db.MessageError{Text: wire.NeedsTLS.Text("", inURL[wire.NeedsTLS]), Cause: err}}
}

// Close does nothing: sessions are closed by their users.
func (d *Database) Close() error { return nil }

// maxText leaves room for other columns in a row, whose declared size is at most 65,535 bytes including each
// VARCHAR's full length (https://dev.mysql.com/doc/refman/8.4/en/column-count-limit.html).
const maxText = 65_000

func (*Database) Limits() db.Limits { return db.Limits{Value: maxText} }

// Dialect returns InnoDB's dialect. Text is compared bytewise, which Stroppy's keys require.
func (d *Database) Dialect() *db.Dialect {
	return &db.Dialect{
		Placeholder: func(int) string { return "?" },
		IntegerType: "BIGINT",
		DecimalType: decimalType,
		TextType: func(length int) string {
			return fmt.Sprintf("VARCHAR(%d) CHARACTER SET ascii COLLATE ascii_bin", length)
		},
		TableOptions: " ENGINE=InnoDB",
		ForUpdate:    " FOR UPDATE",
		ForShare:     d.server.shareLock(),
		Procedures:   &db.ProcedureDialect{Language: db.PSM, Call: "CALL ", Exists: "1304" /* ER_SP_ALREADY_EXISTS; IF NOT EXISTS is of 8.0.29 */},
		Upsert: &db.UpsertDialect{
			Conflict: func(string) string { return " ON DUPLICATE KEY UPDATE " },
			New:      func(column string) string { return "VALUES(" + column + ")" },
		},
		JoinFunction:  "CONCAT", // || is OR unless the session says otherwise
		Snapshot:      repeatableRead,
		CountsApart:   true,
		AddConstraint: d.server.keyless(),
		KeyColumn:     d.server.keyColumn(),
	}
}

// Info returns the product and the settings that affect durability and isolation.
func (d *Database) Info(ctx context.Context) (info db.Info, err error) {
	err = d.control(ctx, d.op("ask for its version"), func(_ context.Context, c *link) error {
		s, err := c.ask()
		if err == nil {
			info = s.info()
		}
		return err
	})
	return info, err
}

func (d *Database) op(what string) string {
	return what + ", " + d.server.product.String() + " at " + d.address.where()
}

// Footprint returns the size of the files of the database's tables, including indexes and free space. Redo, undo and
// binary logs belong to the whole server and are not included. A user without the PROCESS privilege gets the server's
// estimate.
func (d *Database) Footprint(ctx context.Context) (bytes int64, err error) {
	files := "information_schema.INNODB_TABLESPACES"
	if d.server.product == mariaDB {
		files = "information_schema.INNODB_SYS_TABLESPACES"
	}
	err = d.control(ctx, d.op("ask for its size"), func(_ context.Context, c *link) error {
		// Names are encoded like file names there, so a database with a special character in its name has no match
		// and is estimated too.
		row, err := c.row("SELECT COUNT(*), COALESCE(SUM(FILE_SIZE), 0) FROM " + files +
			" WHERE SUBSTRING_INDEX(NAME, '/', 1) = DATABASE()")
		if err == nil && row[0] != "0" {
			_, err = fmt.Sscan(row[1], &bytes)
			return err
		}
		row, err = c.row("SELECT COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH + DATA_FREE), 0)" +
			" FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()")
		if err == nil {
			_, err = fmt.Sscan(row[0], &bytes)
		}
		return err
	})
	return bytes, err
}

// Exec runs one statement on a temporary connection.
func (d *Database) Exec(ctx context.Context, statement string) error {
	return d.control(ctx, d.op("execute "+db.Shorten(statement)), func(ctx context.Context, c *link) error {
		return d.run(ctx, c, wire.Committing, statement)
	})
}
