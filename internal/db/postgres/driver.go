package postgres

import (
	"net/url"
	"regexp"

	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"postgres", "postgresql"}, Port: "5432", Bindable: true,
	Also:    []string{"pg", "psql", "pgsql", "postgis", "patroni"},
	Foreign: regexp.MustCompile(`(?i)^jdbc:postgresql:|^\s*(host|hostaddr|port|dbname|user)\s*=`),
	About:   "postgres://USER:PASSWORD@HOST:PORT/DATABASE  PostgreSQL; several hosts with commas",
	Alone:   alone("any"), Primary: alone("read-write"),
	Open: db.Opener(Open), Check: CheckURL, Isolations: Flavor().Isolations,
}

// alone returns a function that makes a URL ask one server, whose state must be this. It returns false if the query has
// the addresses of all servers.
func alone(state string) func(url.Values) bool {
	return func(query url.Values) bool {
		query.Set("target_session_attrs", state)
		return !query.Has("hostaddr")
	}
}
