//go:build dqlite

package dqlite

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/canonical/go-dqlite/client"
	"github.com/canonical/go-dqlite/driver"

	"stroppy/internal/db"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/isolation"
)

// Database is an open dqlite database. It implements db.SQL and db.BulkLoader.
type Database struct {
	config config
	driver *driver.Driver
	// Sessions are SQLite's: one of this process writes at a time, because dqlite refuses a second writer
	// immediately.
	*sqlite.Sessions
}

var (
	_ db.SQL        = (*Database)(nil)
	_ db.BulkLoader = (*Database)(nil)
)

// CheckURL returns the error with which Open would refuse a URL without connecting.
func CheckURL(url string) error {
	_, err := readURL(url)
	return err
}

// Open opens the database at url, which need not exist. Errors are of class Fatal, or Unavailable if no
// leader is found.
func Open(ctx context.Context, url string) (db.Database, error) {
	c, err := readURL(url)
	if err != nil {
		return nil, err
	}
	if c.copy {
		return openCopy(ctx, c)
	}
	store := client.NewInmemNodeStore()
	var nodes []client.NodeInfo
	for _, address := range c.nodes {
		nodes = append(nodes, client.NodeInfo{Address: address})
	}
	if err := store.Set(ctx, nodes); err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: "open dqlite", Err: err}
	}
	quiet := func(client.LogLevel, string, ...any) {} // what it would log is in the errors
	d := &Database{config: c}
	d.Sessions = sqlite.NewSessions(isolations, d.connect, math.MaxInt64)
	d.driver, err = driver.New(store, driver.WithLogFunc(quiet), driver.WithAttemptTimeout(max(c.timeout/3, time.Millisecond)),
		driver.WithConnectionBackoffFactor(10*time.Millisecond), driver.WithConnectionBackoffCap(100*time.Millisecond))
	if err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: "open dqlite", Err: err}
	}
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	_ = conn.Close() // it has shown that there is a leader
	return d, nil
}

// connect finds the leader and connects to it.
func (d *Database) connect(ctx context.Context) (sqlite.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, d.config.timeout)
	defer cancel()
	connector, err := d.driver.OpenConnector(d.config.database)
	if err == nil {
		made, errConnect := connector.Connect(limited)
		if errConnect == nil {
			return &conn{Conn: made.(*driver.Conn), timeout: d.config.timeout, prepared: map[*db.Statement]*driver.Stmt{}}, nil
		}
		err = errConnect
	}
	return nil, &db.Error{Class: db.Unavailable, Op: "connect to the leader of dqlite at " + strings.Join(d.config.nodes, ","),
		Err: fmt.Errorf("%w: %s", err, db.CheckServer)}
}

// Dialect implements db.SQL. It is SQLite's dialect without RETURNING: if a constraint refuses such a
// statement, dqlite 1.11 reports SQLITE_ERROR with a column name.
func (d *Database) Dialect() *db.Dialect { return dialect() }

func dialect() *db.Dialect {
	d := sqlite.Dialect()
	d.Returning = false
	return d
}

// isolations lists dqlite's only isolation. It does not promise that a read sees everything committed before
// it began.
var isolations = db.Isolations{
	Product: "dqlite", Source: "Consistency model, https://canonical.com/dqlite/docs/explanation/consistency-model",
	Levels: []db.NamedLevel{{Name: "serializable", Level: isolation.Serializable}},
}

func (d *Database) Info(ctx context.Context) (db.Info, error) {
	info := db.Info{Name: "dqlite", Durable: "https://canonical.com/dqlite/docs/explanation/consistency-model"}
	s, err := d.Session(ctx, db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		return info, err
	}
	defer s.Close()
	version := &db.Statement{SQL: "SELECT sqlite_version()", Columns: []db.Type{db.Text}}
	if err := s.Query(ctx, version, nil, func(row []db.Value) error {
		info.Version = "SQLite " + string(row[0].Text)
		return nil
	}); err != nil {
		return info, err
	}
	limited, cancel := context.WithTimeout(ctx, d.config.timeout)
	defer cancel()
	c, err := client.New(limited, d.config.nodes[0])
	if err != nil {
		return info, nil // one node need not answer
	}
	defer c.Close()
	if nodes, err := c.Cluster(limited); err == nil {
		info.Add("nodes", "%d", len(nodes))
		info.Add("voters", "%d", len(slices.DeleteFunc(nodes, func(n client.NodeInfo) bool { return n.Role != client.Voter })))
	}
	return info, nil
}

// BulkLoad implements db.BulkLoader with one transaction, which dqlite replicates when it commits. Each
// statement has as many rows as the protocol's parameters allow.
func (d *Database) BulkLoad(ctx context.Context, load db.BulkLoad) (rows int64, err error) {
	return d.Load(ctx, load, driver.MaxTupleParams, func(sqlite.Conn) error { return nil })
}

// Close implements db.Database. Sessions have their own connections.
func (d *Database) Close() error { return nil }
