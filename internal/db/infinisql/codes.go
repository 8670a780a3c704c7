package infinisql

import (
	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// classes are the SQLSTATE codes of InfiniSQL 0.1.2, infinisqld/Pg.cc, as each was seen to
// come on the server.
//
// A lock that another transaction has is refused at once, and nothing waits: 55P03 is what
// SELECT and procedures say of it (Pg::errorStatus, APISTATUS_LOCK), 42000 what UPDATE says,
// and INSERT says one of 42000 and 23000. These are also the codes of what no new try can
// help, a value that does not fit its column among them; the load generator bounds the tries.
//
// A server that was restarted has lost its users and its tables. What a client then asks for
// is surely not applied, and is no mistake of its own: 28P01 is a user that is not there, and
// 42704 a table.
var classes = map[string]db.Class{
	"55P03": db.Aborted, "42000": db.Aborted, "23000": db.Aborted,
	"25P02": db.Aborted, // the transaction has failed before
	"42704": db.Aborted,
	"28P01": db.Unavailable,
	"42601": db.Fatal, // a statement that it does not understand
}

// classify gives the meaning of a code that the server has answered to anything but COMMIT. A
// procedure that it refuses is rolled back.
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
