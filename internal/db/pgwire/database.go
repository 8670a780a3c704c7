// Package pgwire is the driver for servers that speak PostgreSQL's extended query protocol. A Flavor describes how a
// server differs.
//
// # Protocol
//
// Package pgconn makes the connections: it supports URLs, several hosts, passwords and TLS. A session then takes over
// the bare connection (Hijack) and speaks the extended query protocol itself. Do appends Bind and Execute to a reused
// buffer; Flush or Commit writes it with one system call and reads until ReadyForQuery. BenchmarkTransfer and
// BenchmarkTransferPgconn show the reason. A transfer of four statements on PostgreSQL 15, with 16 sessions on two
// cores, took 16 to 24 µs of client CPU and no allocation. It took 33 µs and 34 allocations with pgconn.Pipeline, and
// 35 µs and 27 with pgconn.Batch, because of their readers, contexts and command tags.
//
// A transaction that is completely queued when it is committed takes one round trip without BEGIN and COMMIT: all
// statements up to one Sync are one transaction at the isolation of the session (PostgreSQL documentation 55.2.3 and
// 55.2.4, "Extended Query" and "Pipelining"). It is committed only if ReadyForQuery arrives without an earlier error.
// Open verifies that the server keeps this promise; otherwise, BEGIN and COMMIT are sent in the same round trip.
package pgwire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/address"
	"stroppy/internal/db/wire"
)

// Flavor describes what one database adds to the protocol: data, and functions of server responses. It is immutable.
type Flavor struct {
	Name    string   // of the product, for errors
	Schemes []string // of its URLs, the usual one first
	Port    string   // of a server whose address has none; empty: PostgreSQL's
	Dialect *db.Dialect
	Limits  db.Limits

	// Isolations holds the documented promises. The default is the server's.
	Isolations db.Isolations

	// Codes lists the SQLSTATE codes of each meaning, and two-character classes for codes that are not listed.
	// OpenAtCommit lists the codes after which a transaction may have been applied if they arrive during the commit.
	// If it is nil, an error that leaves the session alive has rolled the transaction back.
	Codes        map[Meaning][]string
	OpenAtCommit []string

	// Warning returns an error if a notice during a commit revokes its success. If it is nil, no notice does.
	Warning func(routine, code, message, detail string) error

	// Asked means that a server is asked for its version(), and refused if it is another product.
	Asked bool

	// Explicit means that the statements up to one Sync are never treated as one transaction.
	Explicit bool
	// Equal means that all servers of a URL accept writes, so connections start with different ones.
	Equal bool

	// Pooler interprets an error message that a pooler created itself. If it is nil, poolers are not supported and
	// not detected.
	Pooler func(code, message string) PoolerError

	// Product returns name and version for Info, from version() and server_version.
	Product  func(version, serverVersion string) (name, number string)
	Settings []string // that Info shows
	Size     string   // the query for Footprint

	// Durability adds to an Info what the database promises about acknowledged writes, with one server or several. If
	// it is nil, that is not known.
	Durability func(info *db.Info, several bool)
}

// PoolerError is the meaning of a pooler's error. The zero value means that the error is not known.
type PoolerError struct {
	Code    string // SQLSTATE with which a server would say the same; empty: none would
	NotSent bool   // nothing of the transaction has come to a server, its commit included
	Advice  string // what to do about it; may be empty
}

// Meaning is the meaning of an error code before the commit was sent.
type Meaning struct {
	Class      db.Class
	Constraint db.ConstraintKind
}

// Database is one database on one server, or on several servers from which target_session_attrs in the URL selects
// the primary. It holds no connection: each session has its own, and other calls open one temporarily.
type Database struct {
	flavor *Flavor
	*operations
	config    *pgconn.Config
	where     string // the hosts, for errors
	version   string // what version() answers
	isolation string // of a transaction that names none
	implicit  bool   // all statements up to one Sync are one transaction
	timeout   time.Duration
	made      *atomic.Uint32 // connections so far
	stateless *stateless     // nil where statements are left in a session
	chosen    bool           // by prepare in the URL
	balanced  bool           // connections start with different servers
	pooled    bool           // a pooler stands between
}

// stateless holds what sessions share if nothing may be left in them, so that each statement is sent completely. Its
// content remains until the database is closed.
type stateless struct {
	controls  sync.Map // isolation → *controls
	described sync.Map // *db.Statement → *prepared
}

// CheckURL returns the error with which Open would refuse a URL without connecting.
func CheckURL(url string, flavor *Flavor) error {
	_, err := parseURL(url, flavor)
	return err
}

// Open connects to a URL such as postgres://user:password@host:5432/database, with several hosts and all parameters
// that libpq documents ("Connection URIs"). It asks for the version and the default isolation, and checks whether
// statements that are sent together form one transaction. Two more parameters are
//
//	answer_timeout  how long a transaction waits for an answer, such as 10s; after
//	                that its outcome is unknown if its commit was sent. Other
//	                work, such as a load or a download, is not limited while
//	                the server works
//	prepare         false: nothing is left in a session, neither a statement nor its
//	                isolation, because a pooler assigns another session to each
//	                transaction. This is the default if a pooler is detected.
//	                true: statements are prepared, for a pooler that supports it
//
// A parameter that is neither of libpq nor of these goes to the server as a setting of the session. Parameters that
// other programs put into a URL are in foreign.go.
func Open(ctx context.Context, url string, flavor *Flavor) (*Database, error) {
	d, err := parseURL(url, flavor)
	if err != nil {
		return nil, err
	}
	err = d.Control(ctx, "open "+d.Location(), func(ctx context.Context, c *Control) error {
		err := d.recognize(ctx, c)
		if err == nil && flavor.Pooler != nil {
			err = d.seePooler(ctx, c)
		}
		if err != nil {
			return err
		}
		row, err := c.Row(ctx, "SHOW transaction_isolation")
		if err != nil {
			return err
		}
		if d.isolation, err = flavor.Isolations.Name(row[0]); err != nil || flavor.Explicit {
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

// recognize asks the server for its product, and refuses another one.
func (d *Database) recognize(ctx context.Context, c *Control) error {
	if !d.flavor.Asked {
		return nil
	}
	op := "open " + d.flavor.Schemes[0] + "://" + d.where
	row, err := c.Row(ctx, "SELECT version()")
	if err == nil {
		d.version = row[0]
	} else if d.flavor.fromPgconn(ctx, op, err, wire.Before).Class != db.Fatal {
		return err
	}
	if why := refuses(d.flavor.Name, d.version); why != "" {
		return db.Fatalf(op, "%s", why)
	}
	return nil
}

// Version returns the server's answer to version() at Open, or an empty string if it was not asked.
func (d *Database) Version() string { return d.version }

// Location returns the product and its servers for errors.
func (d *Database) Location() string { return d.flavor.Name + " at " + d.where }

// parseURL parses a URL. The error contains no part of it, because that may be a part of the password.
func parseURL(url string, flavor *Flavor) (*Database, error) {
	const op = "read the database URL"
	unescaped := &address.UnescapedError{Form: flavor.Schemes[0] + "://USER:PASSWORD@HOST:PORT/DATABASE"}
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok || !slices.Contains(flavor.Schemes, scheme) {
		return nil, db.Fatalf(op, "it does not begin with %s://", flavor.Schemes[0])
	}
	// pgconn ends the password at the first @; the rest would be taken for a host.
	authority, end := rest, strings.IndexAny(rest, "/?#")
	if end >= 0 {
		authority = rest[:end]
	}
	if address.Unescaped(rest) || strings.Count(authority, "@") > 1 || end >= 0 && rest[end] == '#' {
		return nil, db.Fatalf(op, "%w", unescaped)
	}
	config, err := flavor.parseConfig(authority, rest[len(authority):], unescaped)
	if err != nil {
		return nil, db.Fatalf(op, "%w", err)
	}
	p := &parameters{answer: wire.AnswerTimeout, name: "stroppy", dialer: wire.Limits()}
	_, chosen := config.RuntimeParams["prepare"]
	if err := p.take(config); err != nil {
		return nil, db.Fatalf(op, "%w", err)
	}
	var servers []string
	for _, t := range tries(config) {
		servers = append(servers, net.JoinHostPort(t.Host, fmt.Sprint(t.Port)))
	}
	servers = slices.Compact(servers)
	if slices.ContainsFunc(servers, func(host string) bool { return strings.LastIndexByte(host, '@') > 0 }) {
		return nil, db.Fatalf(op, "%w", unescaped) // written %40, or in the parameter host
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = wire.ConnectTimeout
	}
	config.DialFunc = p.dial
	d := &Database{
		flavor: flavor, operations: operationsOn(flavor.Name), config: config, where: strings.Join(servers, ","), timeout: p.answer,
		made: new(atomic.Uint32), chosen: chosen, balanced: p.balanced || flavor.Equal,
	}
	if p.whole {
		d.stateless = new(stateless)
	}
	return d, nil
}

// parseConfig parses a URL in two parts: user and hosts, and the rest.
func (f *Flavor) parseConfig(authority, rest string, unescaped error) (*pgconn.Config, error) {
	path, query, _ := strings.Cut(rest, "?")
	query, err := translate(query)
	if err != nil {
		return nil, err
	}
	if addresses := valueOf(query, "hostaddr"); addresses != "" && strings.HasSuffix("@"+authority, "@") && valueOf(query, "host") == "" {
		query += "&host=" + addresses // else the default may be a socket
	}
	config, err := pgconn.ParseConfig("postgres://" + f.withPorts(authority) + path + "?" + query)
	if err == nil {
		return config, nil
	}
	reason := err.Error()
	if i := strings.LastIndex(reason, "`: "); i >= 0 {
		reason = reason[i+len("`: "):]
	}
	if strings.HasPrefix(reason, "failed to parse as") {
		return nil, fmt.Errorf("it is no URL: %w", unescaped)
	}
	return nil, errors.New(reason)
}

// applicationName is the setting that identifies connections for administrators (pg_stat_activity).
const applicationName = "application_name"

// withPorts adds the product's port to servers of a URL without a port.
func (f *Flavor) withPorts(authority string) string {
	user := strings.LastIndexByte(authority, '@') + 1
	if f.Port == "" || user == len(authority) {
		return authority
	}
	servers := strings.Split(authority[user:], ",")
	for i, s := range servers {
		if !strings.Contains(s[strings.LastIndexByte(s, ']')+1:], ":") {
			servers[i] += ":" + f.Port
		}
	}
	return authority[:user] + strings.Join(servers, ",")
}

// Close does nothing: sessions are closed by their users.
func (d *Database) Close() error { return nil }

func (d *Database) Limits() db.Limits { return d.flavor.Limits }

func (d *Database) Dialect() *db.Dialect { return d.flavor.Dialect }

// IsolationNames implements db.Isolated.
func (d *Database) IsolationNames() []string { return d.flavor.Isolations.IsolationNames() }

func (d *Database) Claim(name string) (db.Claim, error) {
	if name == "" {
		name = d.isolation
	}
	return d.flavor.Isolations.Claim(name)
}

// Info returns the product and the settings that affect durability.
func (d *Database) Info(ctx context.Context) (info db.Info, err error) {
	err = d.Control(ctx, "ask "+d.Location()+" for its version", func(ctx context.Context, c *Control) error {
		query := "SELECT version(), current_setting('server_version')"
		for _, name := range d.flavor.Settings {
			query += ", current_setting('" + name + "', true)"
		}
		row, err := c.Row(ctx, query)
		if err != nil {
			return err
		}
		info.Name, info.Version = d.flavor.Product(row[0], row[1])
		for i, name := range d.flavor.Settings {
			info.Settings = append(info.Settings, db.Setting{Name: name, Value: row[2+i]})
		}
		if d.pooled {
			info.Settings = append(info.Settings, db.Setting{Name: "pooler", Value: d.namePooler(ctx)})
		}
		if d.flavor.Durability != nil {
			d.flavor.Durability(&info, len(d.config.Fallbacks) > 0)
		}
		return nil
	})
	return info, err
}

// Footprint returns the size of the database as its Flavor defines it.
func (d *Database) Footprint(ctx context.Context) (bytes int64, err error) {
	err = d.Control(ctx, "ask "+d.Location()+" for its size", func(ctx context.Context, c *Control) error {
		row, err := c.Row(ctx, d.flavor.Size)
		if err == nil {
			_, err = fmt.Sscan(row[0], &bytes)
		}
		return err
	})
	return bytes, err
}

// Exec runs one statement on a temporary connection.
func (d *Database) Exec(ctx context.Context, statement string) error {
	return d.Control(ctx, "execute "+db.Shorten(statement), func(ctx context.Context, c *Control) error {
		if err := d.EnableNotices(ctx, c.Conn); err != nil {
			return err
		}
		c.phase = wire.Committing
		_, err := c.Conn.Exec(ctx, statement).ReadAll()
		if err == nil {
			err = c.warning
		}
		return err
	})
}
