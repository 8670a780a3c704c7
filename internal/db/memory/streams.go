package memory

import (
	"context"

	"stroppy/internal/db"
)

var _ db.Multiplexer[db.KVSession] = (*Database)(nil)

// Streams implements db.Multiplexer[db.KVSession]: there is no connection that they could share.
func (d *Database) Streams(ctx context.Context, n int, options db.SessionOptions) ([]db.KVSession, error) {
	var list []db.KVSession
	for range n {
		s, err := d.KVSession(ctx, options)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}
