package mongodb

import (
	"stroppy/internal/db"
)

// Driver is what a registry needs of this database.
var Driver = db.Driver{
	Schemes: []string{"mongodb"}, Port: "27017",
	About: "mongodb://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE  MongoDB, the members of a replica set with commas",
	Alone: db.Parameter("directConnection", "true"),
	Open:  db.Opener(Open), Check: CheckURL, Isolations: Isolations,
}
