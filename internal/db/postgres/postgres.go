// Package postgres is PostgreSQL, and everything that speaks its extended query
// protocol, as a database of the SQL model.
//
// # Protocol
//
// Connections are made by pgconn, which knows URLs, several hosts, passwords and
// TLS. A session then takes the bare connection from it (Hijack) and speaks the
// extended query protocol itself: Do appends Bind and Execute to a buffer that
// is kept, and Flush or Commit writes it with one system call and reads until
// ReadyForQuery. BenchmarkTransfer and BenchmarkTransferPgconn measure why: a
// transfer of four statements on PostgreSQL 15, 16 sessions, two cores, took 16
// to 24 µs of client CPU and no allocation; pgconn.Pipeline took 33 µs and 34
// allocations, pgconn.Batch 35 µs and 27, for their readers, contexts and
// command tags.
//
// A transaction that is still wholly queued when it is committed travels in one
// round trip without BEGIN and COMMIT: all statements up to one Sync are one
// transaction (PostgreSQL documentation 55.2.3 and 55.2.4, "Extended Query" and
// "Pipelining"), at the isolation of the session. It is committed when
// ReadyForQuery arrives and no error came before it, and only then. Open sees
// whether the server keeps this promise; where it does not, BEGIN and COMMIT travel
// along in the same round trip.
package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/address"
	"stroppy/internal/db/wire"
)

const (
	connectTimeout = 5 * time.Second // of a URL that names none
	// answerTimeout is how long a transaction waits for an answer if the URL names
	// no answer_timeout, so that a frozen server does not hang a client for ever.
	answerTimeout = 10 * time.Second
)

// Database is one PostgreSQL database, or several servers of one of which the
// URL's target_session_attrs chooses the primary. It holds no connection: each
// session has its own, and everything else makes one for as long as it needs it.
type Database struct {
	config    *pgconn.Config
	where     string // the hosts, for errors
	isolation string // default_transaction_isolation
	implicit  bool   // all statements up to one Sync are one transaction
	whole     bool   // nothing is left in a session: each statement is sent whole
	timeout   time.Duration
}

var (
	_ db.SQL         = (*Database)(nil)
	_ db.BulkLoader  = (*Database)(nil)
	_ db.Footprinter = (*Database)(nil)
)

// Open connects to a URL such as postgres://user:password@host:5432/database,
// with several hosts and all the parameters that libpq documents ("Connection
// URIs"), asks for the default isolation, and sees whether statements that are sent
// together are one transaction. Two more parameters are
//
//	answer_timeout  how long a transaction waits for an answer, such as 10s, after
//	                which its outcome is unknown if its commit was sent. What is no
//	                transaction, such as a load or a download, may take any time
//	                while the server works
//	prepare         false: nothing is left in a session, neither a statement nor its
//	                isolation, because a pooler lends each transaction another one
func Open(ctx context.Context, url string) (*Database, error) {
	d, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	err = d.control(ctx, "open PostgreSQL at "+d.where, func(ctx context.Context, c *control) error {
		row, err := c.row(ctx, "SHOW default_transaction_isolation")
		if err != nil {
			return err
		}
		if d.isolation, err = isolationName(row[0]); err != nil {
			return err
		}
		d.implicit, err = c.keepsImplicit(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// unescaped says how a URL is written.
var unescaped = &address.UnescapedError{Form: "postgres://USER:PASSWORD@HOST:PORT/DATABASE"}

// parseURL reads a URL. Nothing of it is in the error, for it may be a piece of
// the password.
func parseURL(url string) (*Database, error) {
	const op = "read the database URL"
	rest, ok := strings.CutPrefix(url, "postgres://")
	if !ok {
		if rest, ok = strings.CutPrefix(url, "postgresql://"); !ok {
			return nil, db.Fatalf(op, "it does not begin with postgres://")
		}
	}
	// pgconn ends the password at the first @: what follows would be a host.
	authority, end := rest, strings.IndexAny(rest, "/?#")
	if end >= 0 {
		authority = rest[:end]
	}
	if address.Unescaped(rest) || strings.Count(authority, "@") > 1 || end >= 0 && rest[end] == '#' {
		return nil, db.Fatalf(op, "%w", unescaped)
	}
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		reason := err.Error()
		if i := strings.LastIndex(reason, "`: "); i >= 0 {
			reason = reason[i+len("`: "):]
		}
		if strings.HasPrefix(reason, "failed to parse as") {
			return nil, db.Fatalf(op, "it is no URL: %w", unescaped)
		}
		return nil, db.Fatalf(op, "%s", reason)
	}
	if slices.ContainsFunc(servers(config), func(host string) bool { return strings.LastIndexByte(host, '@') > 0 }) {
		return nil, db.Fatalf(op, "%w", unescaped) // written %40, or in the parameter host
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	config.DialFunc = wire.Dial
	d := &Database{config: config, where: hosts(config), timeout: answerTimeout}
	ours := func(name string) (text string, given bool) {
		text, given = config.RuntimeParams[name]
		delete(config.RuntimeParams, name) // the others go to the server
		return text, given
	}
	if text, given := ours("answer_timeout"); given {
		if d.timeout, err = time.ParseDuration(text); err != nil || d.timeout <= 0 {
			return nil, db.Fatalf(op, "answer_timeout=%s is no time: write one such as 10s", text)
		}
	}
	if text, given := ours("prepare"); given {
		prepare, err := strconv.ParseBool(text)
		if err != nil {
			return nil, db.Fatalf(op, "prepare=%s is neither true nor false", text)
		}
		d.whole = !prepare
	}
	return d, nil
}

// hosts names the servers, for errors.
func hosts(config *pgconn.Config) string { return strings.Join(servers(config), ",") }

// servers are host:port of each server, in the order of the URL.
func servers(config *pgconn.Config) []string {
	names := []string{net.JoinHostPort(config.Host, fmt.Sprint(config.Port))}
	for _, f := range config.Fallbacks {
		names = append(names, net.JoinHostPort(f.Host, fmt.Sprint(f.Port)))
	}
	return slices.Compact(names)
}

// Close has nothing to close: sessions are closed by whoever opened them.
func (d *Database) Close() error { return nil }

// Dialect is that of PostgreSQL. Text is compared byte by byte, as Stroppy's
// keys are made to be, which is also faster than a locale's rules.
func (d *Database) Dialect() *db.Dialect {
	return &db.Dialect{
		Placeholder:   func(i int) string { return fmt.Sprintf("$%d", i) },
		IntegerType:   "BIGINT",
		DecimalType:   "NUMERIC(20,2)",
		TextType:      func(length int) string { return fmt.Sprintf(`VARCHAR(%d) COLLATE "C"`, length) },
		ForUpdate:     " FOR UPDATE",
		Returning:     true,
		DoNothing:     " ON CONFLICT DO NOTHING",
		Procedures:    &db.ProcedureDialect{Language: db.PLpgSQL, Call: "SELECT * FROM "},
		Snapshot:      repeatableRead,
		AddConstraint: true,
		AddColumn:     true, // from version 11 on; before, the rows are written anew
	}
}

// Info names the product and the settings on which durability turns.
func (d *Database) Info(ctx context.Context) (info db.Info, err error) {
	err = d.control(ctx, "ask PostgreSQL at "+d.where+" for its version", func(ctx context.Context, c *control) error {
		row, err := c.row(ctx, "SELECT version(), current_setting('server_version')")
		if err != nil {
			return err
		}
		info.Name, info.Version = product(row[0], row[1])
		for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes", "synchronous_standby_names",
			"default_transaction_isolation", "max_connections", "shared_buffers", "wal_level"} {
			row, err := c.row(ctx, "SELECT current_setting('"+name+"', true)")
			if err != nil {
				return err
			}
			info.Settings = append(info.Settings, db.Setting{Name: name, Value: row[0]})
		}
		return nil
	})
	return info, err
}

// product tells a database that only speaks PostgreSQL's protocol by version(),
// as in "CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, …)".
func product(version, serverVersion string) (string, string) {
	rest, ok := strings.CutPrefix(version, "CockroachDB")
	if !ok {
		return "PostgreSQL", serverVersion
	}
	for _, word := range strings.Fields(rest) {
		if strings.HasPrefix(word, "v") {
			return "CockroachDB", word
		}
	}
	return "CockroachDB", strings.TrimSpace(rest)
}

// Footprint is the size of the database's files, indexes and dead rows included.
func (d *Database) Footprint(ctx context.Context) (bytes int64, err error) {
	err = d.control(ctx, "ask PostgreSQL at "+d.where+" for its size", func(ctx context.Context, c *control) error {
		row, err := c.row(ctx, "SELECT pg_database_size(current_database())")
		if err == nil {
			_, err = fmt.Sscan(row[0], &bytes)
		}
		return err
	})
	return bytes, err
}

// Exec runs one statement on a connection of its own.
func (d *Database) Exec(ctx context.Context, statement string) error {
	return d.control(ctx, "execute "+db.Shorten(statement), func(ctx context.Context, c *control) error {
		if err := d.hear(ctx, c.conn); err != nil {
			return err
		}
		c.phase = committing
		_, err := c.conn.Exec(ctx, statement).ReadAll()
		if err == nil {
			err = c.warning
		}
		return err
	})
}

// control is a connection that one call makes for itself.
type control struct {
	conn    *pgconn.PgConn
	phase   phase // how far the call has gone, for its errors
	warning error // what took the success from a commit
}

// control makes a connection, hands it to do, closes it, and turns the error
// into one of ours.
func (d *Database) control(ctx context.Context, op string, do func(context.Context, *control) error) error {
	c := &control{phase: connecting}
	config := d.config.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if err := warning(n.Routine, n.Code, n.Message, n.Detail); err != nil && c.phase == committing {
			c.warning = err
		}
	}
	var err error
	if c.conn, err = pgconn.ConnectConfig(ctx, config); err != nil {
		return fromPgconn(ctx, op, err, connecting)
	}
	c.phase = before
	remote := c.conn.Conn().RemoteAddr()
	guarded, release := d.guard(ctx, remote)
	err = do(guarded, c)
	var own *db.Error
	switch {
	case err == nil:
	case c.warning != nil:
		own = &db.Error{Class: db.Unknown, Final: true, Op: op, Err: c.warning}
	case !errors.As(err, &own):
		own = fromPgconn(guarded, op, err, c.phase)
	}
	release()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = c.conn.Close(closing) // the call's outcome is known, and the server drops what is left
	if own != nil {
		return own
	}
	return nil
}

// row runs a query and returns its only row as text; NULL is empty.
func (c *control) row(ctx context.Context, sql string) ([]string, error) {
	results, err := c.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, fmt.Errorf("%s did not return one row", sql)
	}
	row := make([]string, len(results[0].Rows[0]))
	for i, v := range results[0].Rows[0] {
		row[i] = string(v)
	}
	return row, nil
}

// guard returns a context that ends when the server at that address stops
// answering. It asks the server whether it speaks TLS, which needs neither a
// password nor a session (PostgreSQL documentation 55.2.11, "SSL Session
// Encryption").
func (d *Database) guard(ctx context.Context, address net.Addr) (context.Context, func()) {
	return wire.Guard(ctx, d.timeout, func(ctx context.Context) error { return probe(ctx, address, d.config.ConnectTimeout) })
}

// probe asks the server at that address for one byte.
func probe(ctx context.Context, address net.Addr, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, address.Network(), address.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	const sslRequest = 80877103
	message := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), sslRequest)
	if _, err := conn.Write(message); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, message[:1])
	return err
}
