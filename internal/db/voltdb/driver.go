package voltdb

import (
	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"voltdb"}, Port: "21212", Bindable: true,
	About: "voltdb://[USER:PASSWORD@]HOST:PORT,HOST:PORT  VoltDB, its nodes with commas",
	Open:  db.Opener(Open), Check: CheckURL, Isolations: Isolations,
}
