// Package postgres is the driver for PostgreSQL: its additions to the protocol of package pgwire.
package postgres

import (
	"context"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
	"stroppy/internal/isolation"
)

// Database is one PostgreSQL database.
type Database struct{ *pgwire.Database }

var (
	_ db.SQL         = (*Database)(nil)
	_ db.BulkLoader  = (*Database)(nil)
	_ db.Footprinter = (*Database)(nil)
	_ db.Monitored   = (*Database)(nil)

	_ db.ConnectionLimited = (*Database)(nil)

	_ db.Multiplexer[db.SQLSession] = (*Database)(nil)
)

// CheckURL returns the error with which Open would refuse a URL without connecting.
func CheckURL(url string) error { return pgwire.CheckURL(url, Flavor()) }

// Open connects to a URL like pgwire.Open.
func Open(ctx context.Context, url string) (*Database, error) {
	d, err := pgwire.Open(ctx, url, Flavor())
	if err != nil {
		return nil, err
	}
	return &Database{d}, nil
}

const repeatableRead = "repeatable read"

// maxText is the longest VARCHAR that can be declared
// (https://www.postgresql.org/docs/current/datatype-character.html: n of varchar(n) is at most 10485760).
const maxText = 10_485_760

// Flavor returns PostgreSQL's flavor. Its read uncommitted behaves like read committed, and its repeatable read is
// snapshot isolation. Text is compared bytewise, which Stroppy's keys require and which is faster than a locale's
// rules.
func Flavor() *pgwire.Flavor {
	return &pgwire.Flavor{
		Name:    "PostgreSQL",
		Schemes: []string{"postgres", "postgresql"},
		Dialect: &db.Dialect{
			Placeholder:   func(i int) string { return fmt.Sprintf("$%d", i) },
			IntegerType:   "BIGINT",
			DecimalType:   "NUMERIC(20,2)",
			TextType:      func(length int) string { return fmt.Sprintf(`VARCHAR(%d) COLLATE "C"`, length) },
			ForUpdate:     " FOR UPDATE",
			ForShare:      " FOR SHARE",
			Returning:     true,
			DoNothing:     " ON CONFLICT DO NOTHING",
			Upsert:        db.OnConflict(),
			Procedures:    &db.ProcedureDialect{Language: db.PLpgSQL, Call: "SELECT * FROM "},
			Snapshot:      repeatableRead,
			AddConstraint: true,
			AddColumn:     true, // from version 11 on; before, the rows are written anew
		},
		Limits: db.Limits{Value: maxText},
		Isolations: db.Isolations{
			Product: "PostgreSQL", Source: "PostgreSQL documentation, 13.2 Transaction Isolation",
			Levels: []db.NamedLevel{
				{Name: "read uncommitted", Level: isolation.ReadCommitted},
				{Name: "read committed", Level: isolation.ReadCommitted},
				{Name: repeatableRead, Level: isolation.SnapshotIsolation},
				{Name: "serializable", Level: isolation.Serializable},
			},
		},
		Codes:   codes,
		Warning: warning,
		Pooler:  pooler,
		Asked:   true,
		Product: func(_, serverVersion string) (string, string) { return "PostgreSQL", serverVersion },
		Settings: []string{"fsync", "synchronous_commit", "full_page_writes", "synchronous_standby_names",
			"default_transaction_isolation", "max_connections", "shared_buffers", "wal_level"},
		Durability: durability,
	}
}

// Footprint returns the size of the database's files, including indexes and dead rows.
func (d *Database) Footprint(ctx context.Context) (bytes int64, err error) {
	err = d.Control(ctx, "ask "+d.Location()+" for its size", func(ctx context.Context, c *pgwire.Control) error {
		row, err := c.Row(ctx, "SELECT pg_database_size(current_database())")
		if err == nil {
			_, err = fmt.Sscan(row[0], &bytes)
		}
		return err
	})
	return bytes, err
}
