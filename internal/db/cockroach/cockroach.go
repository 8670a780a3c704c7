// Package cockroach is the driver for CockroachDB: its additions to the protocol of package pgwire.
package cockroach

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
	"stroppy/internal/isolation"
)

// Database is one database of a CockroachDB cluster.
type Database struct {
	*pgwire.Database
	dialect *db.Dialect       // of the version
	given   map[string]string // isolation → the one that a transaction gets that asks for it
}

var (
	_ db.SQL         = (*Database)(nil)
	_ db.BulkLoader  = (*Database)(nil)
	_ db.Footprinter = (*Database)(nil)

	_ db.Multiplexer[db.SQLSession] = (*Database)(nil)
)

// CheckURL returns the error with which Open would refuse a URL without connecting.
func CheckURL(url string) error { return pgwire.CheckURL(url, Flavor()) }

// Open connects to a URL like pgwire.Open, and reads back the level of each isolation.
func Open(ctx context.Context, url string) (*Database, error) {
	flavor := Flavor()
	d, err := pgwire.Open(ctx, url, flavor)
	if err != nil {
		return nil, err
	}
	given := map[string]string{}
	err = d.Control(ctx, "ask "+d.Location()+" for its isolations", func(ctx context.Context, c *pgwire.Control) error {
		for _, level := range flavor.Isolations.Levels {
			if given[level.Name], err = readBack(ctx, c, level.Name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Database{Database: d, dialect: dialectOf(d.Version()), given: given}, nil
}

// readBack begins a transaction at an isolation and returns the one that it has, or an empty string if the server
// refuses it. Versions up to 23.1 accept weaker names but stay serializable, and so do later ones with a cluster
// setting (https://www.cockroachlabs.com/docs/stable/read-committed, "Enable READ COMMITTED isolation").
func readBack(ctx context.Context, c *pgwire.Control, name string) (string, error) {
	results, err := c.Conn.Exec(ctx, "BEGIN ISOLATION LEVEL "+name+"; SHOW transaction_isolation; ROLLBACK").ReadAll()
	switch {
	case pgwire.Refused(err):
		_, err = c.Conn.Exec(ctx, "ROLLBACK").ReadAll() // of what may have begun
		if pgwire.Refused(err) {
			err = nil
		}
		return "", err
	case err != nil:
		return "", err
	case len(results) != 3 || len(results[1].Rows) != 1:
		return "", fmt.Errorf("the server did not say which isolation a transaction has that begins at %s", name)
	}
	return string(results[1].Rows[0][0]), nil
}

const serializable = "serializable"

// Flavor returns CockroachDB's flavor. Text is compared bytewise. At serializable, real-time order is promised only
// for each key, so strict serializability is not claimed.
func Flavor() *pgwire.Flavor {
	return &pgwire.Flavor{
		Name: "CockroachDB",
		Durability: func(info *db.Info, _ bool) {
			info.Durable = "https://www.cockroachlabs.com/docs/stable/architecture/transaction-layer"
		},
		Schemes: []string{"cockroach", "cockroachdb"},
		Port:    "26257",
		Dialect: &db.Dialect{
			Placeholder: func(i int) string { return fmt.Sprintf("$%d", i) },
			IntegerType: "BIGINT",
			DecimalType: "DECIMAL(20,2)",
			TextType:    func(length int) string { return fmt.Sprintf("VARCHAR(%d)", length) },
			ForUpdate:   " FOR UPDATE",
			Returning:   true,
			DoNothing:   " ON CONFLICT DO NOTHING",
			Upsert:      db.OnConflict(),
			Snapshot:    serializable,
			Past:        func(age time.Duration) string { return fmt.Sprintf(" AS OF SYSTEM TIME '-%dms'", age.Milliseconds()) },
		},
		Limits: db.Limits{Value: maxText},
		Isolations: db.Isolations{
			Product: "CockroachDB", Source: "CockroachDB documentation, Transaction Layer, Isolation levels; of real-time order: Cockroach Labs, CockroachDB's Consistency Model",
			Levels: []db.NamedLevel{
				{Name: serializable, Level: isolation.Serializable},
				{Name: "snapshot", Level: isolation.SnapshotIsolation},
				{Name: "repeatable read", Level: isolation.SnapshotIsolation},
				{Name: "read committed", Level: isolation.ReadCommitted},
				{Name: "read uncommitted", Level: isolation.ReadCommitted},
			},
		},
		Codes: codes, OpenAtCommit: openAtCommit,
		Asked:    true,
		Explicit: true, // statements outside of BEGIN and COMMIT commit one by one
		Equal:    true,
		Product:  func(version, _ string) (string, string) { return "CockroachDB", number(version) },
		Settings: []string{"transaction_isolation", "statement_timeout"},
		Size:     rangeBytes,
	}
}

// maxText is half of the maximal size of a client's message (sql.conn.max_read_buffer_message_size, 16 MiB).
const maxText = 8 << 20

// number returns the version number in version(), or an empty string.
func number(version string) string { return versionNumber.FindString(version) }

var versionNumber = regexp.MustCompile(`v?\d+\.\d+[^ ]*`)

// dialectOf returns the dialect of a version. SELECT … FOR UPDATE locks since 20.1
// (https://www.cockroachlabs.com/docs/releases/v20.1, "SELECT FOR UPDATE"); a version without a number is assumed to
// support it.
func dialectOf(version string) *db.Dialect {
	d := *Flavor().Dialect
	year, _, _ := strings.Cut(strings.TrimPrefix(number(version), "v"), ".")
	if n, err := strconv.Atoi(year); err == nil && n < 20 {
		d.ForUpdate, d.NoLockingRead = "", true
	}
	return &d
}

// Dialect implements db.SQL.
func (d *Database) Dialect() *db.Dialect { return d.dialect }

// Claim implements db.Database. It returns the promise of the isolation that the server actually uses for this name.
func (d *Database) Claim(name string) (db.Claim, error) {
	asked, err := d.Database.Claim(name)
	if err != nil {
		return asked, err
	}
	given := d.given[asked.Isolation]
	if given == "" {
		return db.Claim{}, db.Fatalf("choose the isolation", "CockroachDB %s refuses the isolation %s: take %s", number(d.Version()), asked.Isolation, serializable)
	}
	return d.Database.Claim(given)
}

// Info returns the version and the settings that affect durability. Cluster settings that this user may not see are
// omitted.
func (d *Database) Info(ctx context.Context) (db.Info, error) {
	info, err := d.Database.Info(ctx)
	if err != nil {
		return info, err
	}
	const unsafe = "kv.raft_log.disable_synchronization_unsafe"
	err = d.Control(ctx, "ask "+d.Location()+" for its settings", func(ctx context.Context, c *pgwire.Control) error {
		row, err := c.Row(ctx, "SHOW CLUSTER SETTING "+unsafe)
		switch {
		case err == nil:
			info.Add(unsafe, "%s", row[0])
		case !pgwire.Refused(err):
			return err
		}
		return nil
	})
	return info, err
}

// rangeBytes asks for the size of the keys and values in the database's ranges, including indexes and old versions, for
// one replica of each. Their size on disk depends on compression. It needs admin rights.
const rangeBytes = `SELECT CAST(COALESCE(SUM((s->>'key_bytes')::INT + (s->>'val_bytes')::INT), 0) AS INT) FROM
	(SELECT crdb_internal.range_stats(start_key) AS s FROM crdb_internal.ranges_no_leases WHERE database_name = current_database())`
