// Package voltdb drives VoltDB, a database of stored procedures. Each call is one transaction, without steps of a
// client in between. Collections of records are tables, and the driver makes the procedures for the transactions that
// it meets.
//
// It implements the client wire protocol itself; docs/reference/dependencies.md gives the reason.
package voltdb

import (
	"context"
	"strings"
	"sync/atomic"

	"stroppy/internal/db"
	"stroppy/internal/isolation"
)

// Database is one VoltDB cluster. A session has a connection to one of its nodes, which answers for all nodes.
type Database struct {
	config  config
	version string
	opened  atomic.Uint64 // connections so far, so that they use different first nodes
	schema  schema
}

var (
	_ db.Records                       = (*Database)(nil)
	_ db.Declarer                      = (*Database)(nil)
	_ db.Rehearser                     = (*Database)(nil)
	_ db.Multiplexer[db.RecordSession] = (*Database)(nil)
	_ db.Footprinter                   = (*Database)(nil)
	_ db.Monitored                     = (*Database)(nil)
)

// Open connects to the first node of a URL that accepts the login.
func Open(ctx context.Context, url string) (*Database, error) {
	c, err := readURL(url)
	if err != nil {
		return nil, err
	}
	d := &Database{config: c, schema: schema{procedures: map[string]bool{}}}
	l, err := d.connect(ctx, 0)
	if err != nil {
		return nil, err
	}
	d.version = l.version
	l.close()
	return d, nil
}

// connect connects to the first node that accepts the login. It begins with the node of number first.
func (d *Database) connect(ctx context.Context, first int) (*link, error) {
	var failed error
	for i := range d.config.nodes {
		l, err := dial(ctx, &d.config, d.config.nodes[(first+i)%len(d.config.nodes)])
		if err == nil {
			return l, nil
		}
		if db.ClassOf(err) == db.Fatal || failed == nil {
			failed = err
		}
		if db.ClassOf(err) == db.Fatal || ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// next returns the number of the first node for the next connection.
func (d *Database) next() int { return int(d.opened.Add(1) - 1) }

// Close implements db.Database. It does nothing, because each session has its own connection.
func (d *Database) Close() error { return nil }

// Limits implements db.Database. Value is the limit of VARCHAR, in bytes.
func (d *Database) Limits() db.Limits {
	return db.Limits{Value: mostText, Writes: mostWrites, Reads: mostFound, Deferred: true}
}

// mostFound bounds the records that one call reads by their ids.
const mostFound = 10_000

// mostText is VoltDB's limit for a VARCHAR, in bytes: https://docs.voltdb.com/UsingVoltDB/ddlref_createtable.php.
const mostText = 1 << 20

// Isolations lists one isolation: every transaction is serializable. Since version 6.4 VoltDB promises real-time order
// too (Jepsen, VoltDB 6.3, section 4: "VoltDB 6.4 … strict serializability").
var Isolations = db.Isolations{
	Product: "VoltDB", Source: "VoltDB documentation, Using VoltDB, How VoltDB Works: serializable; of real-time order: VoltDB 6.4 release notes",
	Levels: []db.NamedLevel{{Name: "serializable", Level: isolation.StrictSerializable}},
}

// IsolationNames implements db.Isolated.
func (*Database) IsolationNames() []string { return Isolations.IsolationNames() }

// Claim implements db.Database.
func (d *Database) Claim(name string) (db.Claim, error) { return Isolations.Claim(name) }

// with opens a session for work outside the transactions of clients.
func (d *Database) with(ctx context.Context, use func(s *session) error) error {
	s, err := d.session(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return use(s)
}

// Info implements db.Database.
func (d *Database) Info(ctx context.Context) (db.Info, error) {
	info := db.Info{Name: "VoltDB", Version: d.version}
	about, err := d.about(ctx, "DEPLOYMENT")
	if err != nil {
		return info, err
	}
	for _, name := range []string{"hostcount", "kfactor", "sitesperhost", "commandlogenabled", "heartbeattimeout"} {
		if value := about[0][name]; value != "" {
			info.Add(name, "%s", value)
		}
	}
	return info, nil
}

// nameColumn is the column of @SystemCatalog with the names of tables and procedures.
const nameColumn = 2

// catalog returns the names of the tables or the procedures that are there, in lower case.
func (d *Database) catalog(ctx context.Context, of string) (names []string, err error) {
	err = d.with(ctx, func(s *session) error {
		r, err := s.system(ctx, "@SystemCatalog", of)
		if err != nil {
			return err
		}
		for i := range r.Rows() {
			names = append(names, strings.ToLower(string(r.Row(i)[nameColumn].Text)))
		}
		return nil
	})
	return names, err
}

// exec changes the schema by statements: all of them, or none.
func (d *Database) exec(ctx context.Context, statements ...string) error {
	if len(statements) == 0 {
		return nil
	}
	return d.with(ctx, func(s *session) error {
		_, err := s.system(ctx, "@AdHoc", strings.Join(statements, ";\n")+";")
		return err
	})
}
