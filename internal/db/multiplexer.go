package db

import "context"

// Multiplexer is satisfied by a database of which one connection can have several
// transactions under way. S is the session of one of its models.
type Multiplexer[S any] interface {
	// Streams opens one connection and n sessions that share it, as far as the
	// database's library has connections at all. Each session is used by one goroutine
	// at a time, and several may be used at once.
	Streams(ctx context.Context, n int, options SessionOptions) ([]S, error)
}

// Separate opens n sessions, for a database without a connection that they could share.
func Separate[S any](ctx context.Context, n int, options SessionOptions, open func(context.Context, SessionOptions) (S, error)) ([]S, error) {
	list := make([]S, 0, n)
	for range n {
		s, err := open(ctx, options)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}
