// Package infinisql drives InfiniSQL 0.1.2-alpha, the research prototype of one of the studies. Its
// tables are in memory. Simple queries of the PostgreSQL protocol read and write them, and a
// separate administration port creates them.
//
// The package implements records as far as the SQL of the server allows (db.Limits.Simple). A
// collection is a table, and a list is one text in it. The server was observed to behave as follows:
//
//   - If a transaction reads a row and then updates it, the server answers UPDATE 1, commits, and loses
//     the write. So a read before the first write runs outside the transaction, and an update after a
//     read inside it is refused.
//   - A condition with AND finds nothing, and so does a condition on a column without an index. A
//     query of a whole table returns some of its rows, or ends the server, unless the first
//     column is the key. So a condition is on the id alone, which is the first column.
//   - DELETE of a row that the same transaction has inserted ends the server. This package deletes nothing.
//   - BEGIN in a domain without a schema ends the server. A domain gets its schema before its user.
//   - If a statement of a procedure is compiled twice, it does its work twice from then on.
//     Define compiles only the statements of a procedure that cannot be called.
//   - Tables cannot be dropped. Drop creates the domain anew.
//   - SQL compares a password with the password of the last log-in at the administration port, by any
//     user. So the global administrator must have the password of the user.
//   - A connection to the administration port that ends before its answer blocks the port for
//     everybody, for ever. So an operation there is never cut short, and SQL answers all that it can.
//   - Everything is in memory, users and schema too.
package infinisql

import (
	"context"
	"errors"
	"net"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
	"stroppy/internal/isolation"
)

// Database is one InfiniSQL server. It holds no connection: each session has its own.
type Database struct {
	config config
	pg     *pgconn.Config
}

var (
	_ db.Records    = (*Database)(nil)
	_ db.Procedures = (*Database)(nil)
)

// Open connects to the server of a URL such as infinisql://USER:PASSWORD@HOST:15432/DOMAIN. The global administrator
// must have the same PASSWORD. Open creates a missing domain, with an empty schema and the user. The parameters are
//
//	admin_port       of the administration port; 11521 if it is not given
//	procedures       the folder on the server that has the libraries of its procedures
//	connect_timeout  how long a connection may take to be made
//	answer_timeout   how long a transaction waits for an answer
func Open(ctx context.Context, url string) (*Database, error) {
	c, err := readURL(url)
	if err != nil {
		return nil, err
	}
	d := &Database{config: c}
	if d.pg, err = c.postgres(); err != nil {
		return nil, db.Fatalf("open InfiniSQL", "%w", err)
	}
	conn, err := d.connect(ctx)
	if refused(err) {
		if err = c.ensureDomain(ctx); err == nil {
			conn, err = d.connect(ctx)
		}
	}
	var e *db.Error
	switch {
	case refused(err) && errors.As(err, &e):
		e.Class = db.Fatal
		return nil, e
	case err != nil:
		return nil, err
	}
	return d, conn.Close(ctx)
}

// Prepare opens the database at a URL and closes it again. Open creates the domain.
func Prepare(ctx context.Context, url string) error {
	d, err := Open(ctx, url)
	if err != nil {
		return err
	}
	return d.Close()
}

// refused reports whether the server refuses the user or the password.
func refused(err error) bool {
	e, ok := errors.AsType[*db.Error](err)
	return ok && e.Code == "28P01"
}

// postgres returns the configuration of pgconn. It has no TLS, because the server does not answer the request for TLS.
// It ignores the variables of the environment.
func (c *config) postgres() (*pgconn.Config, error) {
	p, err := pgconn.ParseConfig("host=localhost user=u password=p dbname=d sslmode=disable")
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(c.sql)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	p.Host, p.Port, p.User, p.Password, p.Database = host, uint16(number), c.user, c.password, c.domain
	p.Fallbacks, p.RuntimeParams = nil, map[string]string{}
	p.ConnectTimeout, p.DialFunc = c.connect, wire.Dial
	return p, err
}

// Close implements db.Database.
func (d *Database) Close() error { return nil }

// Limits implements db.Database. A text is as long as its column.
func (d *Database) Limits() db.Limits { return db.Limits{Adds: true, Simple: true} }

// Isolations: InfiniSQL does not promise a level. Its program keeps the locks of rows from the first write to the end,
// so that no transaction reads uncommitted data of another. The claim is this behavior.
var Isolations = db.Isolations{
	Product: "InfiniSQL", Source: "no document of InfiniSQL names a level; of its source (Transaction.cc): locks of rows are kept until the end. It promises no durability: a restart loses everything",
	Levels: []db.NamedLevel{{Name: "row locks", Level: isolation.ReadCommitted}},
}

// IsolationNames implements db.Isolated.
func (*Database) IsolationNames() []string { return Isolations.IsolationNames() }

// Claim implements db.Database.
func (d *Database) Claim(name string) (db.Claim, error) { return Isolations.Claim(name) }

// Info implements db.Database. The server does not report its own version. It reports the version of PostgreSQL whose
// protocol it implements.
func (d *Database) Info(ctx context.Context) (db.Info, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return db.Info{}, err
	}
	info := db.Info{Name: "InfiniSQL", Version: "(no version reported)"}
	info.Add("protocol", "PostgreSQL %s", conn.ParameterStatus("server_version"))
	info.Add("durability", "none: all is in memory, and a restart loses data, schema and users")
	return info, conn.Close(ctx)
}
