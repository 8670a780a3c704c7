package mongodb

import (
	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"mongodb"}, Port: "27017",
	Also:  []string{"mongo", "mongodb+srv"},
	About: "mongodb://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE  MongoDB, the members of a replica set with commas",
	Alone: db.Parameter("directConnection", "true"),
	Open:  db.Opener(Open), Check: CheckURL, Isolations: Isolations,
}
