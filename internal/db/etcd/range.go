package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// span is a range that a transaction has read: from ≤ key < to.
type span struct{ from, to []byte }

// RangeSession implements db.Ranger.
func (d *Database) RangeSession(ctx context.Context, options db.SessionOptions) (db.RangeSession, error) {
	list, err := d.Streams(ctx, 1, options)
	if err != nil {
		return nil, err
	}
	return list[0].(*session), nil
}

// Range implements db.RangeSession. Two kinds of comparisons detect a change of the range. The first requires that none
// of its keys was changed after the snapshot, which also detects new keys. The second requires for each found key that
// it still exists. It is needed because etcd's Compare with range_end covers only the keys that exist.
func (s *session) Range(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error {
	if err := s.CheckRead(ctx, nil, nil); err != nil {
		return err
	}
	request := &pb.RangeRequest{Key: from, RangeEnd: to, Revision: s.revision, Serializable: s.local()}
	limited := ctx
	if !s.local() {
		limited = requireLeader(ctx)
	}
	limited, cancel := context.WithTimeout(limited, pageFactor*s.db.config.timeout)
	defer cancel()
	answer, err := s.link.kv.Range(limited, request)
	if err = s.fix(answer.GetHeader(), err); err != nil {
		return s.fail("read a range", err, optimistic.Reading)
	}
	compared := !s.ReadOnly && s.mode != compareNone
	if compared {
		s.spans = append(s.spans, span{s.Writes.Copy(from), s.Writes.Copy(to)})
	}
	for _, kv := range answer.GetKvs() {
		if compared {
			s.reads = append(s.reads, readKey{key: s.Writes.Copy(kv.GetKey()), modRevision: kv.GetModRevision()})
		}
		if err := entry(kv.GetKey(), kv.GetValue()); err != nil {
			s.Rollback()
			return err
		}
	}
	return nil
}
