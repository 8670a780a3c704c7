package db

import "context"

// ConnectionLimited is satisfied by a database that can say how many connections it still
// takes.
type ConnectionLimited interface {
	// FreeConnections asks the server that takes writes. Where no limit is known, as behind
	// a pooler, which has limits of its own, Known is false and there is no error.
	FreeConnections(ctx context.Context) (FreeConnections, error)
}

// FreeConnections is how many more connections one user may open.
type FreeConnections struct {
	Known  bool
	Count  int    // at most, because others may connect meanwhile; never below 0
	Server string // product and address, without secrets
	Limit  string // the setting that decides, such as "max_connections = 100"
	Remedy string // what raises it, such as "raise max_connections"
}

// Tighten takes another limit of the same server if it leaves fewer connections. most is the
// limit, and used is how many it counts now. A limit below 0 is none.
func (f *FreeConnections) Tighten(most, used int, limit, remedy string) {
	free := max(0, most-used)
	if most < 0 || f.Known && f.Count <= free {
		return
	}
	f.Known, f.Count, f.Limit, f.Remedy = true, free, limit, remedy
}
