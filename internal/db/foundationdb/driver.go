package foundationdb

import (
	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"fdb"}, File: true,
	Also:  []string{"foundationdb"},
	About: "fdb:CLUSTER_FILE[?timeout=5s]  FoundationDB, by the file that its clients have; in a build with the tag fdb",
	Open:  Open, Check: CheckURL,
}
