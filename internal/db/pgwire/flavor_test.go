package pgwire_test

import (
	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
	"stroppy/internal/db/postgres"
)

func init() {
	pgwire.TestFlavor = postgres.Flavor()
	pgwire.BulkLoader = func(d *pgwire.Database) db.BulkLoader { return &postgres.Database{Database: d} }
}
