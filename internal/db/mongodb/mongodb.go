// Package mongodb speaks to a replica set of MongoDB, 4.2 or later, or to the mongos of a
// sharded cluster, as a database of documents with transactions.
//
// A transaction of package db is one of MongoDB's, at read concern snapshot and write
// concern majority unless the URL says otherwise, on a causally consistent session. Its
// commands are built in a buffer of the session and sent as they are.
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
	// maxValue bounds a text, so that a document of it stays below 16 MiB, and maxCommit
	// what one transaction writes, so that it does not live longer than the server lets it:
	// one of 4.2 or later has as many entries of the log as it needs
	// (https://www.mongodb.com/docs/v4.2/core/transactions-production-consideration/).
	maxValue  = 15 << 20
	maxCommit = 64 << 20
	// openTimeout bounds Open, whatever the time-out of a call is.
	openTimeout = 8 * time.Second
	// abortTimeout bounds the abort of a transaction, which need not arrive.
	abortTimeout = time.Second
	// scanFactor: a scan may take so many times as long as a call.
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

// Database is a replica set or a sharded cluster. It satisfies db.Records and
// db.Footprinter.
type Database struct {
	config config
	client *mongo.Client
	data   *mongo.Database // of the collections
	// scanned is the same with the read concern of reads without a transaction, and
	// readOptions have where those are asked. outside and outsideOptions are of transactions
	// that only read, where they ask a secondary.
	scanned, outside            *mongo.Database
	readOptions, outsideOptions *options.RunCmdOptionsBuilder
	sharded                     bool
}

var (
	_ db.Records     = (*Database)(nil)
	_ db.Footprinter = (*Database)(nil)

	_ db.ConnectionLimited = (*Database)(nil)
)

// CheckURL says what Open refuses of a URL by itself. It connects to nothing.
func CheckURL(url string) error {
	_, _, err := readURL(url)
	return err
}

func readURL(url string) (c config, o *options.ClientOptions, err error) {
	if c, err = parseURL(url); err == nil {
		o, err = c.options()
	}
	if err != nil {
		err = &db.Error{Class: db.Fatal, Op: "open MongoDB", Err: err}
	}
	return c, o, err
}

// Open opens a replica set or a sharded cluster by its URL,
//
//	mongodb://[user:password@]h1[:27017],h2[/database][?name=value…]
//
// and returns when its primary, or a mongos, has answered with these credentials. A server
// without transactions is refused. The parameters are, with their defaults:
//
//	timeout=5s                  of a commit, and of all other commands of a transaction together
//	w=majority                  write concern: majority, or a number of members; 1 loses commits in a fail-over
//	readConcernLevel=snapshot   of transactions at the default isolation: snapshot, majority or local
//	readPreference=primary      secondary has transactions that only read ask a secondary, outside any of its transactions
//	via=NAME:PORT=ADDRESS:PORT  where servers are reached whose names in the replica set do not lead to them, with commas between several
//	replicaSet=NAME, authSource=DATABASE, directConnection=true (one server alone, only to read),
//	tls=true, tlsCAFile=PATH, tlsCertificateKeyFile=PATH, tlsInsecure=true
func Open(ctx context.Context, url string) (*Database, error) {
	c, o, err := readURL(url)
	if err != nil {
		return nil, err
	}
	d, err := connect(ctx, c, o)
	if err != nil && len(c.tls) == 0 {
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
		_ = d.Close() // nothing was done over it
		return nil, err
	}
	return d, nil
}

// preference is where is asked what is in no transaction: what was loaded and what is there
// in the end are not to be read where they may be old, whatever the URL says.
func (d *Database) preference() *readpref.ReadPref {
	if d.config.direct {
		return readpref.Nearest()
	}
	return readpref.Primary()
}

// check sees that transactions are to be had, with these credentials.
func (d *Database) check(ctx context.Context) error {
	const op = "open MongoDB"
	admin := d.client.Database("admin")
	build, err := admin.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}, d.readOptions).Raw()
	if ferret := cmp.Or(textAt(build, "ferretdbVersion"), textAt(build, "ferretdb", "version")); ferret != "" { // of 1 and of 2
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
	_, err = d.Exists(ctx, &db.Collection{}) // for which a user is needed where users are
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

// Limits are those of a document and of a transaction. A connection has one command under
// way (https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/), so that as
// many sessions as are used at once take as many connections of the library's pool.
func (*Database) Limits() db.Limits { return db.Limits{Value: maxValue, Commit: maxCommit} }

// IsolationNames implements db.Isolated.
func (*Database) IsolationNames() []string { return Isolations.IsolationNames() }

// Claim says what MongoDB promises at an isolation, by default at the read concern of the
// URL. What other parameters of the URL weaken is in the claim too.
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

// Info asks the server what it is, and how it is set up.
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

// Footprint returns the bytes of the collections and of their indexes on disk, of one copy
// of the data.
func (d *Database) Footprint(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, d.config.timeout)
	defer cancel()
	stats, err := d.data.RunCommand(ctx, bson.D{{Key: "dbStats", Value: 1}}, d.readOptions).Raw()
	if err != nil {
		return 0, d.failure("ask for the size of the database", err, before)
	}
	return numberAt(stats, "storageSize") + numberAt(stats, "indexSize"), nil
}
