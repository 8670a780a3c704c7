package db

import "context"

// Multiplexer is satisfied by a key-value store of which one connection can have
// several transactions under way.
type Multiplexer interface {
	// Lanes opens one connection and n sessions that share it, as far as the
	// database's library has connections at all. Each session is used by one goroutine
	// at a time, and several may be used at once.
	Lanes(ctx context.Context, n int, options SessionOptions) ([]KVSession, error)
}

// SQLMultiplexer is the same of a SQL database.
type SQLMultiplexer interface {
	Lanes(ctx context.Context, n int, options SessionOptions) ([]SQLSession, error)
}
