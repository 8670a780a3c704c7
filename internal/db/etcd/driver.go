package etcd

import (
	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"etcd"}, Port: "2379", OwnState: "reads=serializable",
	About: "etcd://HOST:PORT,HOST:PORT  etcd, its nodes with commas",
	Alone: db.Parameter("reads", "serializable"),
	Open:  db.Opener(Open), Check: CheckURL, Isolations: Isolations, KeyValue: new(Database),
}
