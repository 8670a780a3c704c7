package db

import (
	"context"
	"net"
)

// ConnectionLimited is implemented by a database that knows how many more connections it
// accepts.
type ConnectionLimited interface {
	// FreeConnections asks the server that takes writes. If the limit is not known, as behind
	// a pooler, Known is false and there is no error.
	FreeConnections(ctx context.Context) (FreeConnections, error)
}

// FreeConnections is the number of connections that one user may still open.
type FreeConnections struct {
	Known  bool
	Count  int    // at most, because others may connect meanwhile; never below 0
	Server string // product and address, without secrets
	Limit  string // the setting that decides, such as "max_connections = 100"
	Remedy string // what raises it, such as "raise max_connections"
}

// Tighten applies another limit of the same server if it leaves fewer connections. used is the number of connections
// that count against most now. A negative limit is no limit.
func (f *FreeConnections) Tighten(most, used int, limit, remedy string) {
	free := max(0, most-used)
	if most < 0 || f.Known && f.Count <= free {
		return
	}
	f.Known, f.Count, f.Limit, f.Remedy = true, free, limit, remedy
}

// FailsOver is implemented by a database that may have a supervisor, which lets another server
// take over the writes.
type FailsOver interface {
	// CheckSuccessors returns an error if no server could take over now. It returns nil if there
	// is no supervisor. A run calls it once, at its start: faults may change the answer.
	CheckSuccessors(ctx context.Context) error
}

type connectedKey struct{}

// WithConnected returns a context that reports connections. Each time a session gets a connection, when it is opened or
// Reset, it calls seen with the HOST:PORT of the server.
func WithConnected(ctx context.Context, seen func(server string)) context.Context {
	return context.WithValue(ctx, connectedKey{}, seen)
}

// Connected reports the server of a new connection of a session, by its remote address. Behind a pooler this is the
// address of the pooler. Connected ignores an address that is not a TCP address.
func Connected(ctx context.Context, server net.Addr) {
	seen, ok := ctx.Value(connectedKey{}).(func(string))
	if tcp, isTCP := server.(*net.TCPAddr); ok && isTCP {
		seen(tcp.String())
	}
}
