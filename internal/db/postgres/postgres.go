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
		Size:       "SELECT pg_database_size(current_database())", // of all files, with indexes and dead rows
		Durability: durability,
	}
}

// manual is the address of PostgreSQL's documentation.
const manual = "https://www.postgresql.org/docs/current/"

// durability adds to an Info what PostgreSQL promises about acknowledged commits.
func durability(info *db.Info, several bool) {
	info.Durable = manual + "wal-reliability.html"
	if info.Setting("fsync") == "off" {
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "fsync=off", Source: manual + "runtime-config-wal.html", Cure: "fsync=on",
			Quote: "this can result in unrecoverable data corruption in the event of a power failure or system crash",
		})
	}
	if info.Setting("synchronous_commit") == "off" {
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "synchronous_commit=off", Source: manual + "wal-async-commit.html", Cure: "synchronous_commit=on",
			Quote: "the most recent transactions may be lost if the database should crash",
		})
	}
	if several && info.Setting("synchronous_standby_names") == "" {
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "synchronous_standby_names=''", Source: manual + "warm-standby.html#SYNCHRONOUS-REPLICATION",
			Cure: "synchronous_standby_names (with Patroni: synchronous_mode and synchronous_mode_strict)",
			Quote: "If the primary server crashes then some transactions that were committed may not have been replicated " +
				"to the standby server, causing data loss.",
		})
	}
}
