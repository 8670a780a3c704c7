package db

import (
	"context"
	"net"
)

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

// FailsOver is satisfied by a database that can be watched by others, who let another server
// take over from the one that takes writes.
type FailsOver interface {
	// CheckSuccessors says why no server could take over now; nil if one could, and where
	// nobody watches. A run asks it once, when it begins: in its faults that may become so.
	CheckSuccessors(ctx context.Context) error
}

type connectedKey struct{}

// WithConnected returns a context in which a session that gets a connection, as it is
// opened or Reset, calls seen with the HOST:PORT of the server.
func WithConnected(ctx context.Context, seen func(server string)) context.Context {
	return context.WithValue(ctx, connectedKey{}, seen)
}

// Connected is called by a driver whose session has a connection: to which server, by
// the address of its other end. Behind a pooler that is the pooler's. What is no address
// of TCP names no server.
func Connected(ctx context.Context, server net.Addr) {
	seen, ok := ctx.Value(connectedKey{}).(func(string))
	if tcp, isTCP := server.(*net.TCPAddr); ok && isTCP {
		seen(tcp.String())
	}
}
