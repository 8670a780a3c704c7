package db

import "context"

// Multiplexer is satisfied by a database of which one connection can have several
// transactions under way. S is the session of one of its models.
type Multiplexer[S any] interface {
	// Streams opens one connection and n sessions that share it. Each session is used by
	// one goroutine at a time, and several may be used at once.
	Streams(ctx context.Context, n int, options SessionOptions) ([]S, error)
}
