package etcd

import (
	"stroppy/internal/db"
)

// Driver is what a registry needs of this database.
var Driver = db.Driver{
	Schemes: []string{"etcd"}, Port: "2379", OwnState: "reads=serializable",
	About: "etcd://HOST:PORT,HOST:PORT  etcd, its nodes with commas",
	Alone: db.Parameter("reads", "serializable"),
	Open:  db.Opener(Open), Check: CheckURL, Isolations: Isolations, KeyValue: new(Database),
}
