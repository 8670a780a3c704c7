package mongodb

import (
	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"mongodb", srvScheme}, Port: "27017",
	Also:  []string{"mongo"},
	About: "mongodb://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE  MongoDB, the members of a replica set with commas",
	Alone: db.Parameter("directConnection", "true"),
	Open:  db.Opener(Open), Check: CheckURL, Isolations: Isolations,
}
