package etcd

import (
	"context"

	"stroppy/internal/db"
)

var _ db.Multiplexer[db.KVSession] = (*Database)(nil)

// Streams implements db.Multiplexer[db.KVSession]: all n sessions begin on one node, and so on its
// one connection, over which gRPC has any number of calls under way.
func (d *Database) Streams(ctx context.Context, n int, options db.SessionOptions) ([]db.KVSession, error) {
	number := d.nextNode()
	var list []db.KVSession
	for range n {
		s, err := d.open(ctx, options, number)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}
