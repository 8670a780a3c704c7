//go:build fdb

package foundationdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
	"stroppy/internal/isolation"
)

const (
	// maxValue is FoundationDB's limit for a value. maxCommit is below FoundationDB's limit of 10,000,000 bytes for a
	// transaction. It leaves room for the conflict range of each key, which has the key twice
	// (https://apple.github.io/foundationdb/known-limitations.html).
	maxValue, maxCommit = 100_000, 5_000_000
	maxWrites           = 10_000

	// probeTimeout bounds the wait for a read version of the cluster.
	probeTimeout = 5 * time.Second
	// statusTimeout bounds a request for the status, which the cluster collects from all processes.
	statusTimeout = 10 * time.Second
)

// snapshotReads is the isolation at which no read conflicts.
const snapshotReads = "snapshot reads"

// isolations have the names of FoundationDB's documentation. A snapshot read adds no read conflict range, so two
// transactions that read and write one key both commit. The reads come from one version, and updates are lost.
var isolations = db.Isolations{
	Product: "FoundationDB",
	Source:  "https://apple.github.io/foundationdb/developer-guide.html (Transaction basics: strict serializability; Snapshot reads)",
	Levels: []db.NamedLevel{
		{Name: "serializable", Level: isolation.StrictSerializable},
		{Name: snapshotReads, Level: isolation.ReadCommitted},
	},
}

// Database is a FoundationDB cluster. It implements db.KV, db.Adder, db.Ranger, db.Footprinter and db.Monitored.
type Database struct {
	config   config
	cluster  clusterFile
	clients  []fdb.Database // one for each thread of the library
	sessions atomic.Uint32  // the number of sessions opened so far
	closed   atomic.Bool
}

var (
	_ db.KV          = (*Database)(nil)
	_ db.Adder       = (*Database)(nil)
	_ db.Ranger      = (*Database)(nil)
	_ db.Footprinter = (*Database)(nil)
	_ db.Monitored   = (*Database)(nil)
)

// Missing returns an error if this program cannot use FoundationDB.
func Missing() error { return nil }

// CheckURL returns the error of Open for a URL that is wrong by itself. It connects to nothing.
func CheckURL(url string) error {
	_, err := readURL(url)
	return err
}

// Open opens a cluster by its URL,
//
//	fdb:CLUSTER_FILE[?timeout=5s][&automatic_idempotency=on][&api_version=730]
//	    [&tls_certificate=FILE&tls_key=FILE&tls_ca=FILE&tls_verify_peers=RULE]
//	    [&external_client=FILE&external_clients=FOLDER&client_threads=N]
//	fdb:?connection=DESCRIPTION:ID@HOST:PORT,HOST:PORT[&timeout=5s]…
//
// and returns when the cluster has given a read version. timeout applies to each transaction.
func Open(ctx context.Context, url string) (db.Database, error) {
	c, err := readURL(url)
	if err != nil {
		return nil, err
	}
	d := &Database{config: c}
	if d.cluster, err = c.cluster(); err != nil {
		return nil, err
	}
	if err := c.library.start(); err != nil {
		return nil, err
	}
	for range c.library.threads {
		client, err := d.client()
		if err != nil {
			return nil, db.Fatalf("open FoundationDB", "%w", said(err))
		}
		d.clients = append(d.clients, client)
	}
	if err := d.probe(ctx, d.clients[0], min(probeTimeout, c.timeout)); err != nil {
		return nil, err
	}
	return d, nil
}

// client opens the cluster once. It uses the connection string and not the file. The binding keeps a database that was
// opened by a file for the life of the process, and frees it twice when it is closed. The garbage collector frees a
// database that was opened by a connection string. Such a database follows the cluster when its coordinators change,
// and does not write the file.
func (d *Database) client() (fdb.Database, error) {
	client, err := fdb.OpenWithConnectionString(d.cluster.connection)
	if err != nil {
		return client, err
	}
	options := client.Options()
	err = options.SetTransactionTimeout(d.config.timeout.Milliseconds())
	if err == nil && d.config.idempotency {
		err = options.SetTransactionAutomaticIdempotency()
	}
	return client, err
}

// probe returns when the cluster has given a read version.
func (d *Database) probe(ctx context.Context, client fdb.Database, limit time.Duration) error {
	tr, err := client.CreateTransaction()
	if err == nil {
		err = tr.Options().SetTimeout(limit.Milliseconds())
	}
	if err != nil {
		return d.unreachable(ctx, err, limit)
	}
	defer whileUsed(ctx, tr)()
	if _, err = tr.GetReadVersion().Get(); err != nil {
		return d.unreachable(ctx, err, limit)
	}
	return nil
}

// dialTimeout bounds the check whether a coordinator's port is open.
const dialTimeout = 500 * time.Millisecond

// unreachable returns the error of a cluster that gave no read version within limit.
func (d *Database) unreachable(ctx context.Context, err error, limit time.Duration) error {
	const op = "ask FoundationDB for a read version"
	if ctx.Err() != nil {
		return optimistic.Cancelled(op, ctx.Err())
	}
	e, _ := failure(op, numberOf(err), said(err), optimistic.Reading)
	if e.Class != db.Unavailable {
		return e
	}
	open := 0
	for _, coordinator := range d.cluster.coordinators {
		if conn, err := net.DialTimeout("tcp", coordinator, dialTimeout/time.Duration(len(d.cluster.coordinators))); err == nil {
			conn.Close()
			open++
		}
	}
	state := fmt.Sprintf("no answer within %v, and %d of its %d coordinators (%s) take connections", limit, open, len(d.cluster.coordinators), strings.Join(d.cluster.coordinators, ", "))
	if open > len(d.cluster.coordinators)/2 {
		state += ": the cluster is not available now, has another version than this client, or what listens there is not the FoundationDB of " + d.config.source()
	} else {
		state += ": check " + d.config.source() + ", and whether the servers run"
	}
	e.Err = db.MessageError{Text: state, Cause: err}
	return e
}

// source returns the origin of the addresses of the coordinators.
func (c *config) source() string {
	if c.connection != "" {
		return "the connection in the URL"
	}
	return c.file
}

// Close refuses new sessions and resets from now on. The connections end when the last session is freed.
func (d *Database) Close() error {
	d.closed.Store(true)
	return nil
}

// pick returns the next client, round robin, unless the database is closed.
func (d *Database) pick() (fdb.Database, error) {
	if d.closed.Load() {
		return fdb.Database{}, db.Fatalf("use FoundationDB", "the database is closed")
	}
	return d.clients[int(d.sessions.Add(1)-1)%len(d.clients)], nil
}

// Limits implements db.Database with the documented limits.
func (*Database) Limits() db.Limits {
	return db.Limits{Value: maxValue, Commit: maxCommit, Writes: maxWrites, Connectionless: true}
}

// IsolationNames implements db.Isolated.
func (*Database) IsolationNames() []string { return isolations.IsolationNames() }

// Claim implements db.Database.
func (*Database) Claim(name string) (db.Claim, error) { return isolations.Claim(name) }

// statusKey is the key under which a transaction reads the machine-readable status
// (https://apple.github.io/foundationdb/mr-status.html).
const statusKey = "\xff\xff/status/json"

func (d *Database) status(ctx context.Context) (status, error) {
	const op = "ask FoundationDB for its status"
	client := d.clients[rand.IntN(len(d.clients))]
	tr, err := client.CreateTransaction()
	if err == nil {
		err = tr.Options().SetTimeout(statusTimeout.Milliseconds())
	}
	var text []byte
	if err == nil {
		defer whileUsed(ctx, tr)()
		text, err = tr.Get(fdb.Key(statusKey)).Get()
	}
	if ctx.Err() != nil {
		return status{}, optimistic.Cancelled(op, ctx.Err())
	}
	if err != nil {
		e, _ := failure(op, numberOf(err), said(err), optimistic.Reading)
		return status{}, e
	}
	s, err := parseStatus(text)
	if err != nil {
		return s, &db.Error{Class: db.Unavailable, Op: op, Err: err}
	}
	return s, nil
}

// Info reads the description of the cluster from its status.
func (d *Database) Info(ctx context.Context) (db.Info, error) {
	s, err := d.status(ctx)
	if err != nil {
		return db.Info{}, err
	}
	info := db.Info{Name: "FoundationDB", Durable: "https://apple.github.io/foundationdb/developer-guide.html"}
	s.describe(&info)
	info.Add("API version", "%d", d.config.library.api)
	info.Add("timeout of a transaction", "%v", d.config.timeout)
	info.Add("AUTOMATIC_IDEMPOTENCY", "%s", map[bool]string{false: "off", true: "on"}[d.config.idempotency])
	if n := len(d.clients); n > 1 {
		info.Add("threads of the client library", "%d", n)
	}
	info.Add("durability", "a commit is acknowledged when every transaction log that has to keep it has synced it; the storage servers write it to their files later")
	return info, nil
}

// monitor reads the status.
type monitor struct{ database *Database }

// Monitor implements db.Monitored. The metrics are transactions, lag, queues and latencies. The state holds roles, lag
// and recovery.
func (d *Database) Monitor() db.Monitor { return monitor{d} }

// Interval implements db.Monitor. The processes report to the status in the same interval (WORKER_LOGGING_INTERVAL of
// flow/Knobs).
func (monitor) Interval() time.Duration { return 5 * time.Second }
func (monitor) Metrics() []db.Metric    { return metrics() }
func (monitor) Close()                  {}

// Sample implements db.Monitor.
func (m monitor) Sample(ctx context.Context) (db.Sample, error) {
	s, err := m.database.status(ctx)
	if err != nil {
		return db.Sample{}, err
	}
	state, err := s.sample()
	return db.Sample{Values: s.values(), State: state}, err
}

// Footprint returns the bytes of all keys and values in one copy, as the data distributor estimates them. The space on
// the disks also holds the other copies, the logs, and the free space of the storage engine.
func (d *Database) Footprint(ctx context.Context) (int64, error) {
	s, err := d.status(ctx)
	if err == nil && s.Cluster.Data.KVBytes == 0 {
		err = &db.Error{Class: db.Unavailable, Op: "ask FoundationDB for the size of the data", Err: errors.New("its status does not have it now")}
	}
	return s.Cluster.Data.KVBytes, err
}
