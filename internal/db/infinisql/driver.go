package infinisql

import (
	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"infinisql"}, Port: "15432", Bindable: true,
	About: "infinisql://USER:PASSWORD@HOST:PORT/DOMAIN  InfiniSQL 0.1.2, for TPC-B alone",
	Open:  db.Opener(Open), Check: CheckURL, Isolations: Isolations,
}
