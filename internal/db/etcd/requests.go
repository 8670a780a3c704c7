package etcd

import (
	"bytes"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"stroppy/internal/db"
)

// requests are a session's messages. gRPC has encoded a message when a call returns, whatever the result, so the next
// call may fill it again.
type requests struct {
	readTxn, writeTxn pb.TxnRequest
	ranges, ops       []*pb.RequestOp
	compares          []*pb.Compare
	writes            []*writeOp
}

// writeOp is a put or a deletion.
type writeOp struct {
	op     pb.RequestOp
	put    pb.RequestOp_RequestPut
	remove pb.RequestOp_RequestDeleteRange
}

// read returns the request that reads keys. Revision 0 is the newest revision.
func (r *requests) read(keys [][]byte, revision int64, local bool) *pb.TxnRequest {
	for i, key := range keys {
		op := slot(&r.ranges, i, func() *pb.RequestOp {
			return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{}}}
		})
		get := op.GetRequestRange()
		get.Key, get.Revision, get.Serializable = key, revision, local
	}
	r.readTxn.Success = r.ranges[:len(keys)]
	return &r.readTxn
}

// commit returns the request with the comparisons of s's isolation and the writes.
func (r *requests) commit(s *session) (*pb.TxnRequest, error) {
	compares := 0
	for _, read := range s.reads {
		r.compare(compares, read.key, pb.Compare_EQUAL, read.modRevision)
		compares++
	}
	for _, span := range s.spans {
		r.compare(compares, span.from, pb.Compare_LESS, s.revision+1)
		r.compares[compares].RangeEnd = span.to
		compares++
	}
	if s.mode == compareAll && s.revision != 0 {
		for _, w := range s.Writes.All() {
			if !slices.ContainsFunc(s.reads, func(r readKey) bool { return bytes.Equal(r.key, w.Key) }) {
				// The key is unchanged since the snapshot, like in wset.cmps of stm.go.
				r.compare(compares, w.Key, pb.Compare_LESS, s.revision+1)
				compares++
			}
		}
	}
	if compares > maxOperations {
		return nil, db.Fatalf("commit", "%d keys to compare, and etcd takes %d in a transaction by default: let the transaction read less", compares, maxOperations)
	}
	r.ops = r.ops[:0]
	for i, w := range s.Writes.All() {
		to := slot(&r.writes, i, func() *writeOp {
			return &writeOp{put: pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{}}, remove: pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{}}}
		})
		if w.Remove {
			to.remove.RequestDeleteRange.Key = w.Key
			to.op.Request = &to.remove
		} else {
			to.put.RequestPut.Key, to.put.RequestPut.Value = w.Key, w.Value
			to.op.Request = &to.put
		}
		r.ops = append(r.ops, &to.op)
	}
	r.writeTxn.Compare, r.writeTxn.Success = r.compares[:compares], r.ops
	return &r.writeTxn, nil
}

// compare fills comparison i, which compares the revision of the key's last change.
func (r *requests) compare(i int, key []byte, result pb.Compare_CompareResult, revision int64) {
	c := slot(&r.compares, i, func() *pb.Compare {
		return &pb.Compare{Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{}}
	})
	c.Key, c.RangeEnd, c.Result = key, nil, result
	c.TargetUnion.(*pb.Compare_ModRevision).ModRevision = revision
}

// slot returns message i of a list that is used again. It creates the message on the first use.
func slot[T any](list *[]T, i int, build func() T) T {
	if i == len(*list) {
		*list = append(*list, build())
	}
	return (*list)[i]
}
