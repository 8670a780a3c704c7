package cockroach

import (
	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"cockroach", "cockroachdb"}, Port: "26257", Bindable: true,
	Also:  []string{"crdb"},
	About: "cockroach://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE  CockroachDB, its nodes with commas",
	Open:  db.Opener(Open), Check: CheckURL, Isolations: Flavor().Isolations,
}
