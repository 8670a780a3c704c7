package etcd

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/optimistic"
)

// fakeServer imitates an etcd member with the answers that a test chooses. A real member gives some of them very
// rarely.
type fakeServer struct {
	pb.UnimplementedKVServer
	address string
	grpc    *grpc.Server
	cluster uint64
	commits atomic.Int32                // the number of commits that arrived
	commit  func(context.Context) error // answers a commit
	read    func() error                // answers a Range, except the Range that probes the node
}

func newFakeServer(t *testing.T, cluster uint64) *fakeServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{address: listener.Addr().String(), grpc: grpc.NewServer(), cluster: cluster}
	pb.RegisterKVServer(f.grpc, f)
	go func() { _ = f.grpc.Serve(listener) }()
	t.Cleanup(f.grpc.Stop)
	return f
}

func (f *fakeServer) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if f.read != nil && r.Key[0] != 0 {
		if err := f.read(); err != nil {
			return nil, err
		}
	}
	return &pb.RangeResponse{Header: &pb.ResponseHeader{ClusterId: f.cluster, Revision: 1}}, nil
}

func (f *fakeServer) Txn(ctx context.Context, _ *pb.TxnRequest) (*pb.TxnResponse, error) {
	f.commits.Add(1)
	if err := f.commit(ctx); err != nil {
		return nil, err
	}
	return &pb.TxnResponse{Header: &pb.ResponseHeader{ClusterId: f.cluster, Revision: 2}, Succeeded: true}, nil
}

func openSession(t *testing.T, url string) *session {
	t.Helper()
	d := drivertest.Open(t, Open, url)
	s, err := d.KVSession(t.Context(), db.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*session)
}

func (s *session) commitOne(ctx context.Context) error {
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	s.Set([]byte("k"), []byte("v"))
	return s.Commit(ctx)
}

// TestCommitErrorsAreClassified checks the class of every error with which a server can answer a commit, and that
// each commit is sent once.
func TestCommitErrorsAreClassified(t *testing.T) {
	server := newFakeServer(t, 7)
	s := openSession(t, "etcd://"+server.address)
	cases := map[error]db.Class{
		// The server's own deadline ends before ours. This hazard is the reason why the client's retries are off.
		rpctypes.ErrGRPCDeadlineExceeded:              db.Unknown,
		rpctypes.ErrGRPCCanceled:                      db.Unknown,
		rpctypes.ErrGRPCTimeout:                       db.Unknown,
		rpctypes.ErrGRPCTimeoutDueToLeaderFail:        db.Unknown,
		rpctypes.ErrGRPCTimeoutDueToConnectionLost:    db.Unknown,
		rpctypes.ErrGRPCTimeoutWaitAppliedIndex:       db.Unknown,
		rpctypes.ErrGRPCLeaderChanged:                 db.Unknown,
		rpctypes.ErrGRPCStopped:                       db.Unknown,
		rpctypes.ErrGRPCNotLeader:                     db.Unknown,
		rpctypes.ErrGRPCUnhealthy:                     db.Unknown,
		status.Error(codes.Unknown, "raft: stopped"):  db.Unknown,
		status.Error(codes.Unknown, dropped):          db.Unavailable,
		status.Error(codes.Internal, "x"):             db.Unknown,
		status.Error(codes.ResourceExhausted, "x"):    db.Unknown,
		status.Error(codes.InvalidArgument, "x"):      db.Unknown,
		status.Error(codes.PermissionDenied, "x"):     db.Unknown,
		status.Error(codes.Unavailable, "some proxy"): db.Unknown,
	}
	for _, r := range refusals {
		cases[r.err] = r.class
	}
	for answer, class := range cases {
		server.commit = func(context.Context) error { return answer }
		server.commits.Store(0)
		err := s.commitOne(t.Context())
		if db.ClassOf(err) != class {
			t.Errorf("%v: class %v, want %v (%v)", answer, db.ClassOf(err), class, err)
		}
		if n := server.commits.Load(); n != 1 {
			t.Errorf("%v: the commit arrived %d times", answer, n)
		}
		broken := class == db.Unknown || class == db.Unavailable
		if err := s.Begin(t.Context(), false); (err != nil) != broken {
			t.Errorf("%v: Begin after it gives %v", answer, err)
		}
		if broken {
			if err := s.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestReadErrorIsNeverUnknown checks the class of every error with which a server can answer a read.
func TestReadErrorIsNeverUnknown(t *testing.T) {
	server := newFakeServer(t, 7)
	s := openSession(t, "etcd://"+server.address)
	for answer, class := range map[error]db.Class{
		rpctypes.ErrGRPCLeaderChanged:     db.Unavailable,
		rpctypes.ErrGRPCTimeout:           db.Unavailable,
		rpctypes.ErrGRPCDeadlineExceeded:  db.Unavailable,
		rpctypes.ErrGRPCCompacted:         db.Aborted,
		rpctypes.ErrGRPCFutureRev:         db.Aborted,
		rpctypes.ErrGRPCPermissionDenied:  db.Fatal,
		status.Error(codes.DataLoss, "x"): db.Unavailable,
	} {
		server.read = func() error { return answer }
		if err := s.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Begin(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		err := s.Read(t.Context(), [][]byte{[]byte("k")}, make([]db.Entry, 1))
		if db.ClassOf(err) != class {
			t.Errorf("%v: class %v, want %v", answer, db.ClassOf(err), class)
		}
	}
}

// TestServerKilledDuringCommitIsUnknown checks that a commit is unknown if the server dies during the commit, and
// not applied if it died before.
func TestServerKilledDuringCommitIsUnknown(t *testing.T) {
	server := newFakeServer(t, 7)
	s := openSession(t, "etcd://"+server.address)
	server.commit = func(ctx context.Context) error {
		go server.grpc.Stop()
		<-ctx.Done()
		return ctx.Err()
	}
	err := s.commitOne(t.Context())
	if db.ClassOf(err) != db.Unknown || server.commits.Load() != 1 {
		t.Errorf("killed while committing: %d arrived, %v", server.commits.Load(), err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for state := s.link.conn.GetState(); state != connectivity.TransientFailure; state = s.link.conn.GetState() {
		if !s.link.conn.WaitForStateChange(ctx, state) {
			t.Fatalf("the connection stays %v", state)
		}
	}
	s.Broken = false // like a session that shares the connection and was idle
	err = s.commitOne(t.Context())
	if db.ClassOf(err) != db.Unavailable || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: class %v: %v", db.ClassOf(err), err)
	}
	if err := s.Reset(t.Context()); db.ClassOf(err) != db.Unavailable {
		t.Errorf("reset with no server: %v", err)
	}
	if server.commits.Load() != 1 {
		t.Errorf("%d commits arrived", server.commits.Load())
	}
}

// TestCancelledCommitIsUnknown checks that a commit is unknown if the caller cancels it while the server works on
// it.
func TestCancelledCommitIsUnknown(t *testing.T) {
	server := newFakeServer(t, 7)
	s := openSession(t, "etcd://"+server.address)
	ctx, cancel := context.WithCancel(t.Context())
	server.commit = func(call context.Context) error {
		cancel()
		<-call.Done()
		return call.Err()
	}
	err := s.commitOne(ctx)
	if db.ClassOf(err) != db.Unknown {
		t.Errorf("cancelled while committing: %v", err)
	}
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.commitOne(ctx); db.ClassOf(err) != db.Aborted {
		t.Errorf("cancelled before committing: class %v: %v", db.ClassOf(err), err)
	}
	if server.commits.Load() != 1 {
		t.Errorf("%d commits arrived", server.commits.Load())
	}
}

func TestNodeOfAnotherClusterIsRefused(t *testing.T) {
	one, other := newFakeServer(t, 7), newFakeServer(t, 8)
	s := openSession(t, "etcd://"+one.address+","+other.address)
	if _, err := s.db.KVSession(t.Context(), db.SessionOptions{}); db.ClassOf(err) != db.Fatal {
		t.Errorf("the other cluster's node was taken: %v", err)
	}
	var err error
	for tries := 0; err == nil && tries < 20; tries++ { // a slow node is passed over
		err = s.Reset(t.Context())
	}
	if db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("reset to the other cluster's node: %v", err)
	}
}

func TestErrorKeepsCauseCodeAndServer(t *testing.T) {
	err := failure("read", "h1:1", context.DeadlineExceeded, optimistic.Reading)
	if !errors.Is(err, context.DeadlineExceeded) || err.Code != "DeadlineExceeded" || !strings.Contains(err.Error(), "h1:1") {
		t.Errorf("%v, code %q", err, err.Code)
	}
}
