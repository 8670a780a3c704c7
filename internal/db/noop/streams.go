package noop

import (
	"context"

	"stroppy/internal/db"
)

var _ db.Multiplexer[db.KVSession] = (*Database)(nil)

// Streams implements db.Multiplexer[db.KVSession]: there is no connection that they could share.
func (d *Database) Streams(ctx context.Context, n int, options db.SessionOptions) ([]db.KVSession, error) {
	return db.Separate(ctx, n, options, d.KVSession)
}
