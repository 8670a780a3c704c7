// Package cockroach is CockroachDB: what it adds to the protocol that package pgwire
// speaks.
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

// CheckURL says what Open refuses of a URL by itself. It connects to nothing.
func CheckURL(url string) error { return pgwire.CheckURL(url, Flavor()) }

// Open connects to a URL as pgwire.Open does, and reads back what each isolation is.
func Open(ctx context.Context, url string) (*Database, error) {
	flavor := Flavor()
	d, err := pgwire.Open(ctx, url, flavor)
	if err != nil {
		return nil, err
	}
	given := map[string]string{}
	err = d.Control(ctx, "ask "+d.Where()+" for its isolations", func(ctx context.Context, c *pgwire.Control) error {
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

// readBack begins a transaction at an isolation and returns the one that it has; empty if
// the server refuses it. Versions to 23.1 take the weaker names without a word and stay
// serializable, and so do later ones where a cluster setting says so
// (https://www.cockroachlabs.com/docs/stable/read-committed, "Enable READ COMMITTED isolation").
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

// Flavor is CockroachDB's. Text is compared byte by byte. Of a transaction at serializable
// real-time order is promised key by key alone, so that strict serializability is not
// claimed.
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
	}
}

// maxText is half of what one message of a client may have
// (sql.conn.max_read_buffer_message_size, 16 MiB).
const maxText = 8 << 20

// number is the version's number in version(); empty if it has none.
func number(version string) string { return versionNumber.FindString(version) }

var versionNumber = regexp.MustCompile(`v?\d+\.\d+[^ ]*`)

// dialectOf is the dialect of a version. SELECT … FOR UPDATE locks from 20.1 on
// (https://www.cockroachlabs.com/docs/releases/v20.1, "SELECT FOR UPDATE"); a version
// without a number is taken for one that has it.
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

// Claim implements db.Database: the promise is that of the isolation which the server
// gives to a transaction that asks for this name.
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

// Info names the version and the settings on which durability turns. A cluster setting that
// this user may not see is left out.
func (d *Database) Info(ctx context.Context) (db.Info, error) {
	info, err := d.Database.Info(ctx)
	if err != nil {
		return info, err
	}
	const unsafe = "kv.raft_log.disable_synchronization_unsafe"
	err = d.Control(ctx, "ask "+d.Where()+" for its settings", func(ctx context.Context, c *pgwire.Control) error {
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

// Footprint is the sum of the keys and values of the database's ranges, indexes and old
// versions included, of one replica of each: what they take on a disk depends on its
// compression. It needs the rights of an admin.
func (d *Database) Footprint(ctx context.Context) (bytes int64, err error) {
	err = d.Control(ctx, "ask "+d.Where()+" for its size", func(ctx context.Context, c *pgwire.Control) error {
		row, err := c.Row(ctx, rangeBytes)
		if err == nil {
			_, err = fmt.Sscan(row[0], &bytes)
		}
		return err
	})
	return bytes, err
}

const rangeBytes = `SELECT CAST(COALESCE(SUM((s->>'key_bytes')::INT + (s->>'val_bytes')::INT), 0) AS INT) FROM
	(SELECT crdb_internal.range_stats(start_key) AS s FROM crdb_internal.ranges_no_leases WHERE database_name = current_database())`
