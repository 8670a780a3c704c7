package etcd

import (
	"bytes"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// requests are a session's messages. gRPC has encoded a message when a call
// returns, however it ended, so the next call may fill it anew.
type requests struct {
	single   pb.RangeRequest
	readTxn  pb.TxnRequest
	ranges   []*pb.RequestOp
	writeTxn pb.TxnRequest
	compares []*pb.Compare
	puts     []*pb.RequestOp
	deletes  []*pb.RequestOp
	ops      []*pb.RequestOp
}

// read makes the request that reads keys; revision 0 is the newest.
func (r *requests) read(keys [][]byte, revision int64, local bool) *pb.TxnRequest {
	for len(r.ranges) < len(keys) {
		r.ranges = append(r.ranges, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{}}})
	}
	for i, key := range keys {
		get := r.ranges[i].Request.(*pb.RequestOp_RequestRange).RequestRange
		get.Key, get.Revision, get.Serializable = key, revision, local
	}
	r.readTxn.Success = r.ranges[:len(keys)]
	return &r.readTxn
}

// commit makes the request that commits s: the comparisons of its isolation and
// its writes.
func (r *requests) commit(s *session) (*pb.TxnRequest, error) {
	const op = "commit"
	if len(s.writes.All()) > maxOperations {
		return nil, db.Fatalf(op, "%d writes, and etcd takes %d in a transaction by default: take smaller batches", len(s.writes.All()), maxOperations)
	}
	compares := 0
	for _, read := range s.reads {
		r.compare(compares, read.key, pb.Compare_EQUAL, read.modRevision)
		compares++
	}
	if s.mode == compareAll && s.revision != 0 {
		for _, w := range s.writes.All() {
			if !wasRead(s.reads, w.Key) {
				// Unchanged since the snapshot, as stm.go's wset.cmps asks.
				r.compare(compares, w.Key, pb.Compare_LESS, s.revision+1)
				compares++
			}
		}
	}
	if compares > maxOperations {
		return nil, db.Fatalf(op, "%d keys to compare, and etcd takes %d in a transaction by default: let the transaction read less", compares, maxOperations)
	}
	r.ops = r.ops[:0]
	puts, deletes := 0, 0
	for _, w := range s.writes.All() {
		if w.Remove {
			r.ops = append(r.ops, r.remove(deletes, w))
			deletes++
		} else {
			r.ops = append(r.ops, r.put(puts, w))
			puts++
		}
	}
	r.writeTxn.Compare, r.writeTxn.Success = r.compares[:compares], r.ops
	return &r.writeTxn, nil
}

func wasRead(reads []readKey, key []byte) bool {
	for i := range reads {
		if bytes.Equal(reads[i].key, key) {
			return true
		}
	}
	return false
}

// compare fills comparison i: the revision of the key's last change is equal to
// revision, or less.
func (r *requests) compare(i int, key []byte, result pb.Compare_CompareResult, revision int64) {
	if i == len(r.compares) {
		r.compares = append(r.compares, &pb.Compare{Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{}})
	}
	c := r.compares[i]
	c.Key, c.Result = key, result
	c.TargetUnion.(*pb.Compare_ModRevision).ModRevision = revision
}

func (r *requests) put(i int, w optimistic.Write) *pb.RequestOp {
	if i == len(r.puts) {
		r.puts = append(r.puts, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{}}})
	}
	put := r.puts[i].Request.(*pb.RequestOp_RequestPut).RequestPut
	put.Key, put.Value = w.Key, w.Value
	return r.puts[i]
}

func (r *requests) remove(i int, w optimistic.Write) *pb.RequestOp {
	if i == len(r.deletes) {
		r.deletes = append(r.deletes, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{}}})
	}
	r.deletes[i].Request.(*pb.RequestOp_RequestDeleteRange).RequestDeleteRange.Key = w.Key
	return r.deletes[i]
}
