// Package mongodb is a driver for MongoDB, 4.2 or later, as a database of documents with transactions. It connects to
// a replica set, or to the mongos of a sharded cluster.
//
// A transaction of package db is a transaction of MongoDB on a causally consistent session. Its read concern is
// snapshot and its write concern majority, unless the URL sets others. Its commands are built in a buffer of the
// session and sent unchanged.
package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
	"stroppy/internal/isolation"
)

const (
	// maxValue bounds a text, so that its document stays below 16 MiB. maxCommit bounds the writes of one
	// transaction, so that it ends before the server's limit of its lifetime. From 4.2 on a transaction may have
	// several log entries (https://www.mongodb.com/docs/v4.2/core/transactions-production-consideration/).
	maxValue  = 15 << 20
	maxCommit = 64 << 20
	// openTimeout bounds Open, independent of the time-out of a call.
	openTimeout = 8 * time.Second
	// abortTimeout bounds the abort of a transaction, which need not arrive.
	abortTimeout = time.Second
	// scanFactor is the time-out of a scan, as a multiple of the time-out of a call.
	scanFactor = 60
)

// The read concerns, which are the names of the isolations.
const (
	snapshot = "snapshot"
	majority = "majority"
	local    = "local"
)

// Isolations are the read concerns of a transaction.
var Isolations = db.Isolations{
	Product: "MongoDB",
	Source: "https://www.mongodb.com/docs/v4.2/core/transactions/ (read concern of transactions that commit with write concern majority), " +
		"https://www.mongodb.com/docs/v4.2/reference/read-concern-local/ (what is read may be rolled back)",
	Levels: []db.NamedLevel{
		{Name: snapshot, Level: isolation.SnapshotIsolation},
		{Name: majority, Level: isolation.ReadCommitted},
		{Name: local, Level: isolation.ReadUncommitted},
	},
}

// Database is a replica set or a sharded cluster. It satisfies db.Records and db.Footprinter.
type Database struct {
	config config
	client *mongo.Client
	data   *mongo.Database // with the collections
	// scanned is data with the read concern of reads outside a transaction, and readOptions select their server.
	// outside and outsideOptions are used by read-only transactions that read from a secondary.
	scanned, outside            *mongo.Database
	readOptions, outsideOptions *options.RunCmdOptionsBuilder
	sharded                     bool
}

var (
	_ db.Records     = (*Database)(nil)
	_ db.Footprinter = (*Database)(nil)

	_ db.ConnectionLimited = (*Database)(nil)
)

// CheckURL returns the error that Open would return for the URL itself. It makes no connection.
func CheckURL(url string) error {
	_, _, err := readURL(url, false)
	return err
}

func readURL(url string, resolve bool) (c config, o *options.ClientOptions, err error) {
	if c, err = parseURL(url); err == nil {
		o, err = c.options(resolve)
	}
	if _, own := errors.AsType[*db.Error](err); err != nil && !own {
		err = &db.Error{Class: db.Fatal, Op: "open MongoDB", Err: err}
	}
	return c, o, err
}

// Open opens a replica set or a sharded cluster by its URL:
//
//	mongodb://[user:password@]h1[:27017],h2[/database][?name=value…]
//
// It returns when the primary, or a mongos, has answered with these credentials. It refuses a server without
// transactions. The parameters with their defaults are:
//
//	timeout=5s                  of a commit, and of all other commands of a transaction together
//	w=majority                  write concern: majority, or a number of members; 1 loses commits in
//	                            a fail-over
//	readConcernLevel=snapshot   of transactions at the default isolation: snapshot, majority or local
//	readPreference=primary      secondary: read-only transactions read from a secondary, outside of
//	                            its transactions
//	via=NAME:PORT=ADDRESS:PORT  addresses of servers whose names in the replica set cannot be reached,
//	                            separated by commas
//	replicaSet=NAME, authSource=DATABASE, authMechanism=NAME, directConnection=true (only this server,
//	for reading), appName=NAME, retryWrites=false, tls=true, tlsCAFile=PATH, tlsInsecure=true,
//	tlsCertificateKeyFile=PATH, tlsCertificateKeyFilePassword=PASSWORD
//
// With mongodb+srv:// the servers are in the SRV records of the host.
func Open(ctx context.Context, url string) (*Database, error) {
	c, o, err := readURL(url, true)
	if err != nil {
		return nil, err
	}
	d, err := connect(ctx, c, o)
	if err != nil && len(c.tls) == 0 && !c.srv {
		var reached []string
		for _, server := range c.servers {
			reached = append(reached, c.via.of(server))
		}
		err = wire.DemandsTLS(ctx, "open MongoDB", err, "tls=true", reached...)
	}
	return d, err
}

// connect connects with the library's options of a configuration.
func connect(ctx context.Context, c config, o *options.ClientOptions) (d *Database, err error) {
	d = &Database{config: c}
	if d.client, err = mongo.Connect(o); err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: "open MongoDB", Err: err}
	}
	from := func(p *readpref.ReadPref) (*mongo.Database, *options.RunCmdOptionsBuilder) {
		o := options.Database().SetReadPreference(p).SetReadConcern(&readconcern.ReadConcern{Level: c.concern()})
		return d.client.Database(c.database, o), options.RunCmd().SetReadPreference(p)
	}
	d.data = d.client.Database(c.database, options.Database().SetWriteConcern(c.writeConcern()))
	d.scanned, d.readOptions = from(d.preference())
	d.outside, d.outsideOptions = from(readpref.Secondary())
	ctx, cancel := context.WithTimeout(ctx, min(openTimeout, c.timeout+connectTimeout))
	defer cancel()
	if err := d.check(ctx); err != nil {
		_ = d.Close() // it was not used yet
		return nil, err
	}
	return d, nil
}

// preference returns the servers for reads outside of transactions. Loaded data and end states must not be read where
// they may be outdated, whatever the URL says.
func (d *Database) preference() *readpref.ReadPref {
	if d.config.direct {
		return readpref.Nearest()
	}
	return readpref.Primary()
}

// check verifies that transactions are available with these credentials.
func (d *Database) check(ctx context.Context) error {
	const op = "open MongoDB"
	admin := d.client.Database("admin")
	build, err := admin.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}, d.readOptions).Raw()
	if ferret := cmp.Or(textAt(build, "ferretdbVersion"), textAt(build, "ferretdb", "version")); ferret != "" { // of versions 1 and 2
		return refused("%s is FerretDB %s, which has no transactions: give a replica set of MongoDB", d.config.name(), ferret)
	}
	var hello bson.Raw
	if err == nil {
		hello, err = admin.RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}}, d.readOptions).Raw()
	}
	if err != nil {
		return d.failure(op, err, before)
	}
	d.sharded = textAt(hello, "msg") == "isdbgrid"
	if !d.sharded && textAt(hello, "setName") == "" {
		return refused("%s is a server alone, which has no transactions: start it with --replSet and initiate the set, one member is enough", d.config.name())
	}
	if members := elements(documentOf(hello, "hosts")) + elements(documentOf(hello, "passives")); !d.sharded && d.config.members() > members {
		return refused("w=%s, and the replica set has %d members with data: no commit would be acknowledged", d.config.w, members)
	}
	_, err = d.Exists(ctx, &db.Collection{}) // it needs a user if there are users
	return err
}

func refused(format string, args ...any) error {
	return db.Fatalf("open MongoDB", format, args...)
}

// Close closes all connections; open sessions fail from then on.
func (d *Database) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
	defer cancel()
	if err := d.client.Disconnect(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// Limits returns the limits of a document and of a transaction. A connection has one command at a time
// (https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/). So each session in use takes a connection
// of the library's pool.
func (*Database) Limits() db.Limits { return db.Limits{Value: maxValue, Commit: maxCommit} }

// IsolationNames implements db.Isolated.
func (*Database) IsolationNames() []string { return Isolations.IsolationNames() }

// Claim returns what MongoDB promises at an isolation, by default at the read concern of the URL. The claim includes
// the effect of the URL's other parameters.
func (d *Database) Claim(name string) (db.Claim, error) {
	if name == "" {
		name = d.config.readConcern
	}
	claim, err := Isolations.Claim(name)
	if err != nil {
		return claim, err
	}
	if d.config.w != wMajority {
		claim.Source += fmt.Sprintf("; asked for is write concern %s, and a fail-over takes back what less than a majority has, "+
			"https://www.mongodb.com/docs/v4.2/core/replica-set-rollbacks/", d.config.w)
	}
	if d.config.secondary {
		claim.Level = min(claim.Level, isolation.ReadCommitted)
		claim.Source += "; what only reads asks a secondary, outside any transaction, and is not of one moment, " +
			"https://www.mongodb.com/docs/v4.2/core/transactions/ (read preference)"
	}
	return claim, nil
}

// Info asks the server for its version and its configuration.
func (d *Database) Info(ctx context.Context) (db.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, d.config.timeout)
	defer cancel()
	admin := d.client.Database("admin")
	build, err := admin.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}, d.readOptions).Raw()
	if err != nil {
		return db.Info{}, d.failure("ask MongoDB what it is", err, before)
	}
	info := db.Info{Name: "MongoDB", Version: textAt(build, "version")}
	if config, err := admin.RunCommand(ctx, bson.D{{Key: "replSetGetConfig", Value: 1}}, d.readOptions).Raw(); err == nil {
		info.Add("replica set", "%s, %d members", textAt(config, "config", "_id"), elements(documentOf(config, "config", "members")))
		info.Add("electionTimeoutMillis", "%d", numberAt(config, "config", "settings", "electionTimeoutMillis"))
	}
	if shards, err := admin.RunCommand(ctx, bson.D{{Key: "listShards", Value: 1}}, d.readOptions).Raw(); d.sharded && err == nil {
		info.Add("shards", "%d", elements(documentOf(shards, "shards")))
	}
	info.Add("write concern", "%s", d.config.w)
	info.Add("read concern", "%s", d.config.readConcern)
	if d.config.secondary {
		info.Add("read preference", "secondary: what only reads is outside any transaction and may be old")
	}
	info.Add("timeout of a call", "%v", d.config.timeout)
	info.Durable = "https://www.mongodb.com/docs/manual/reference/write-concern/"
	if d.config.w != wMajority {
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "w=" + d.config.w, Source: "https://www.mongodb.com/docs/manual/core/replica-set-write-concern/", Cure: "w=majority",
			Quote: "A write concern of w: 1 only requires acknowledgment from the primary replica set member before returning write concern acknowledgment.",
		})
	}
	return info, nil
}

// Footprint returns the bytes of the collections and their indexes on disk, for one copy of the data.
func (d *Database) Footprint(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, d.config.timeout)
	defer cancel()
	stats, err := d.data.RunCommand(ctx, bson.D{{Key: "dbStats", Value: 1}}, d.readOptions).Raw()
	if err != nil {
		return 0, d.failure("ask for the size of the database", err, before)
	}
	return numberAt(stats, "storageSize") + numberAt(stats, "indexSize"), nil
}
