package memory

import (
	"context"

	"stroppy/internal/db"
)

var _ db.Multiplexer = (*Database)(nil)

// Lanes implements db.Multiplexer: there is no connection that they could share.
func (d *Database) Lanes(ctx context.Context, n int, options db.SessionOptions) ([]db.KVSession, error) {
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
