//go:build fdb

package foundationdb

import (
	"context"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// RangeSession implements db.Ranger.
func (d *Database) RangeSession(ctx context.Context, options db.SessionOptions) (db.RangeSession, error) {
	s, err := d.AddSession(ctx, options)
	if err != nil {
		return nil, err
	}
	return s.(*session), nil
}

// Range implements db.RangeSession. The library adds the whole range to the read conflict ranges, as Read adds a key.
// The range of a snapshot read conflicts with nothing.
func (s *session) Range(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error {
	const op = "read a range"
	if err := s.CheckRead(ctx, nil, nil); err != nil {
		return err
	}
	if err := s.watch(ctx); err != nil {
		s.Open, s.used = false, true
		return optimistic.Cancelled(op, err)
	}
	s.used = true
	keys, options := fdb.KeyRange{Begin: fdb.Key(from), End: fdb.Key(to)}, fdb.RangeOptions{Mode: fdb.StreamingModeWantAll}
	found := s.tr.GetRange
	if s.snapshot || s.ReadOnly {
		found = s.tr.Snapshot().GetRange
	}
	for i := found(keys, options).Iterator(); i.Advance(); {
		next, err := i.Get()
		if err != nil {
			return s.fail(ctx, op, err, optimistic.Reading)
		}
		if err := entry(next.Key, next.Value); err != nil {
			s.Rollback()
			return err
		}
	}
	return nil
}
