package etcd

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// session is a db.KVSession on one node of the cluster. The next transaction uses all its memory again, including the
// requests.
type session struct {
	optimistic.Session
	db   *Database
	mode mode
	link *link // to the last node that answered

	revision int64 // of the snapshot; 0 before the first Read
	reads    []readKey
	spans    []span // ranges that were read

	requests requests
	peer     peer.Peer // gRPC sets it when it has opened a stream for the commit
	options  []grpc.CallOption
}

type readKey struct {
	key         []byte
	modRevision int64 // of the key's last change; 0 for an absent key
}

// KVSession implements db.KV. options.Mode has no effect.
func (d *Database) KVSession(ctx context.Context, options db.SessionOptions) (db.KVSession, error) {
	list, err := d.Streams(ctx, 1, options)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Streams implements db.Multiplexer. All n sessions begin on the next node, round robin. If that node does not answer,
// they begin on the first later node that does. They share its one connection, on which gRPC has any number of calls
// under way.
func (d *Database) Streams(ctx context.Context, n int, options db.SessionOptions) ([]db.KVSession, error) {
	name, err := Isolations.Name(options.Isolation)
	if err != nil {
		return nil, err
	}
	l, err := connectAny(ctx, d.nodes, int(d.sessions.Add(1)-1)%len(d.nodes))
	if err != nil {
		return nil, err
	}
	var list []db.KVSession
	for range n {
		s := &session{db: d, mode: modes[name], link: l}
		s.options = []grpc.CallOption{grpc.Peer(&s.peer)}
		list = append(list, s)
	}
	return list, nil
}

// Begin starts a transaction. It sends nothing.
func (s *session) Begin(ctx context.Context, readOnly bool) error {
	s.clear()
	return s.Start(ctx, readOnly)
}

func (s *session) clear() {
	s.Open, s.revision = false, 0
	s.reads, s.spans = s.reads[:0], s.spans[:0]
	s.Writes.Clear()
}

// Read reads up to 128 keys in one round trip. 128 is the server's limit for one request. More keys take more requests,
// all at the revision of the first.
func (s *session) Read(ctx context.Context, keys [][]byte, out []db.Entry) error {
	if err := s.CheckRead(ctx, keys, out); err != nil {
		return err
	}
	for first := 0; first < len(keys); first += maxOperations {
		last := min(first+maxOperations, len(keys))
		if err := s.readAtOnce(ctx, keys[first:last], out[first:last]); err != nil {
			return s.fail("read", err, optimistic.Reading)
		}
	}
	return nil
}

// local reports whether the member may answer a read from its own state.
func (s *session) local() bool { return s.db.config.stale || s.revision != 0 }

// readAtOnce reads the keys by one request. At a revision that this member has already served, nothing can have
// changed. So neither the member nor the leader needs to confirm its role.
func (s *session) readAtOnce(ctx context.Context, keys [][]byte, out []db.Entry) error {
	if !s.local() {
		ctx = requireLeader(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, s.db.config.timeout)
	defer cancel()
	request := s.requests.read(keys, s.revision, s.local())
	if len(keys) == 1 {
		answer, err := s.link.kv.Range(ctx, request.Success[0].GetRequestRange())
		if err = s.fix(answer.GetHeader(), err); err == nil {
			s.found(keys[0], answer, &out[0])
		}
		return err
	}
	answer, err := s.link.kv.Txn(ctx, request)
	answers := answer.GetResponses()
	if err = s.fix(answer.GetHeader(), err); err == nil && len(answers) != len(keys) {
		err = fmt.Errorf("the server answered %d of %d reads", len(answers), len(keys))
	}
	if err != nil {
		return err
	}
	for i, a := range answers {
		s.found(keys[i], a.GetResponseRange(), &out[i])
	}
	return nil
}

// fix takes the snapshot's revision from the first successful answer.
func (s *session) fix(header *pb.ResponseHeader, err error) error {
	if s.revision == 0 && err == nil {
		if s.revision = header.GetRevision(); s.revision <= 0 {
			return errors.New("the server answered without a revision")
		}
	}
	return err
}

func (s *session) found(key []byte, answer *pb.RangeResponse, out *db.Entry) {
	*out = db.Entry{}
	var modRevision int64
	if kvs := answer.GetKvs(); len(kvs) > 0 {
		*out = db.Entry{Value: kvs[0].GetValue(), Found: true}
		modRevision = kvs[0].GetModRevision()
	}
	if !s.ReadOnly && s.mode != compareNone {
		s.reads = append(s.reads, readKey{key: s.Writes.Copy(key), modRevision: modRevision})
	}
}

// Commit sends the comparisons and the writes as one request, once. A transaction that wrote nothing sends nothing. All
// its reads have one revision, and that revision was the newest during its first Read.
func (s *session) Commit(ctx context.Context) error {
	writes := len(s.Writes.All())
	if err := s.CheckCommit(ctx, writes, maxOperations); err != nil || writes == 0 {
		return err
	}
	request, err := s.requests.commit(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(requireLeader(ctx), s.db.config.timeout)
	defer cancel()
	s.peer.Addr = nil
	answer, err := s.link.kv.Txn(ctx, request, s.options...)
	if err != nil {
		// gRPC sets the peer of every call for which it has opened a stream (grpc-go rpc_util.go,
		// PeerCallOption.after). It repeats only calls that the server declares as not processed (RFC 9113, 8.7). So a
		// call without a peer means that no server has seen the commit.
		at := optimistic.Sent
		if s.peer.Addr == nil {
			at = optimistic.Unsent
		}
		return s.fail("commit", err, at)
	}
	if !answer.GetSucceeded() {
		return optimistic.ErrConflict
	}
	return nil
}

func (s *session) fail(op string, err error, at optimistic.Phase) error {
	return s.Lose(failure(op, s.link.node.address, err, at))
}

// Rollback forgets the transaction. etcd has no state of it.
func (s *session) Rollback() { s.clear() }

// Reset moves to the next node that answers. It tries each node once, and its own node last. The connection that it
// leaves is shared with other sessions and reconnects by itself.
func (s *session) Reset(ctx context.Context) error {
	if s.Closed {
		return s.Usable()
	}
	s.clear()
	s.Broken = true
	l, err := connectAny(ctx, s.db.nodes, s.link.node.number+1)
	if err == nil {
		s.link, s.Broken = l, false
	}
	return err
}

// Close ends the session. The connection stays with the Database.
func (s *session) Close() error {
	s.clear()
	s.Closed = true
	return nil
}
