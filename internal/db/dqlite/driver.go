package dqlite

import (
	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"dqlite"},
	About:   "dqlite://HOST:PORT,HOST:PORT[/DATABASE]  dqlite, SQLite replicated by Raft; in a build with the tag dqlite",
	Open:    Open, Check: CheckURL,
}
