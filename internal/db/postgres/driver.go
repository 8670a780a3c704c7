package postgres

import (
	"regexp"

	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"postgres", "postgresql"}, Port: "5432", Bindable: true,
	Also:    []string{"pg", "psql", "pgsql", "patroni"},
	Foreign: regexp.MustCompile(`(?i)^jdbc:postgresql:|^\s*(host|hostaddr|port|dbname|user)\s*=`),
	About:   "postgres://USER:PASSWORD@HOST:PORT/DATABASE  PostgreSQL; several hosts with commas",
	Alone:   db.Parameter("target_session_attrs", "any"), Primary: db.Parameter("target_session_attrs", "read-write"),
	Open: db.Opener(Open), Check: CheckURL, Isolations: Flavor().Isolations,
}
