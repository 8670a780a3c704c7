package infinisql

import (
	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// classes holds the SQLSTATE codes of InfiniSQL 0.1.2, infinisqld/Pg.cc. Each was observed on the server.
//
// InfiniSQL refuses a lock of another transaction at once, and nothing waits. SELECT and procedures report such a lock
// as 55P03 (Pg::errorStatus, APISTATUS_LOCK). UPDATE reports it as 42000, and INSERT as 42000 or 23000. The same codes
// come for errors that no new try can help, such as a value that does not fit its column. The load generator bounds the
// tries.
//
// A restarted server has lost its users and its tables. A request of a client is then surely not applied, and is not
// the client's mistake. The code 28P01 is a missing user, and 42704 a missing table.
var classes = map[string]db.Class{
	"55P03": db.Aborted, "42000": db.Aborted, "23000": db.Aborted,
	"25P02": db.Aborted, // the transaction has failed before
	"42704": db.Aborted,
	"28P01": db.Unavailable,
	"42601": db.Fatal, // a statement that it does not understand
}

// classify returns the class of a code that the server has answered to anything but COMMIT. A procedure that the server
// refuses is rolled back.
func classify(code string, at wire.Phase) db.Class {
	class, known := classes[code]
	switch {
	case known:
		return class
	case at == wire.Committing:
		return db.Unknown
	}
	return db.Fatal
}
