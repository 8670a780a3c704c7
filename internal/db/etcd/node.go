package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
	"stroppy/internal/db/wire"
)

const (
	// probeTimeout bounds the question whether a node works.
	probeTimeout = time.Second
	// waitLimit is how long one node may take to answer it before the next is asked
	// as well, so that a frozen one costs a fail-over no more than this.
	waitLimit = 100 * time.Millisecond
)

// node is one member as the URL names it, with a client of its own: one client
// over all nodes would go on asking a member that is cut off from the others.
// All sessions of a node share its one connection, because gRPC then writes what
// several of them send in fewer system calls: with 64 sessions on three nodes, a
// transfer took 161 µs of CPU with one connection a node, 166 µs with two and
// 176 µs with four (BenchmarkTransferEtcd).
type node struct {
	number  int
	address string
	config  *config
	cluster *atomic.Uint64 // the cluster's id, 0 until a node has sent it; shared by all nodes

	mu     sync.Mutex
	client *clientv3.Client // nil until it is first asked for
	closed bool
}

// link is a connection to a node that has answered.
type link struct {
	node *node
	conn *grpc.ClientConn
	kv   pb.KVClient
}

// connect returns a link to the node after it has answered a linearizable read,
// which a member that is cut off from the majority cannot.
func (n *node) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, min(probeTimeout, n.config.timeout))
	defer cancel()
	// A plain connection shows at once that nobody listens; gRPC would back off.
	dialer := net.Dialer{}
	plain, err := dialer.DialContext(ctx, "tcp", n.address)
	if err != nil {
		return nil, n.unreachable(err)
	}
	plain.Close()
	conn, err := n.connection()
	if err != nil {
		return nil, n.unreachable(err)
	}
	l := &link{node: n, conn: conn, kv: pb.NewKVClient(conn)}
	again, asked, leaderless := false, requireLeader(ctx), error(nil)
	for {
		answer, err := l.kv.Range(asked, &pb.RangeRequest{Key: []byte{0}, CountOnly: true}, grpc.WaitForReady(true))
		text := rpctypes.ErrorDesc(err)
		switch {
		case err == nil:
			return l, n.sameCluster(answer.GetHeader().GetClusterId())
		case text == rpctypes.ErrorDesc(rpctypes.ErrGRPCPermissionDenied):
			return l, nil // it answered; which keys the user may use is not for us to guess
		case text == rpctypes.ErrorDesc(rpctypes.ErrGRPCNoLeader), text == rpctypes.ErrorDesc(rpctypes.ErrGRPCLeaderChanged):
			// The member works, and its cluster is between two leaders. Without the header it
			// holds a read until there is one, and answers it then, or says that the leader
			// has changed (v3_server.go, linearizableReadLoop).
			leaderless, asked = err, ctx
		case leaderless != nil && (ctx.Err() != nil || late(err)):
			// None was elected in time: the earlier answer says more than the end of the time.
			return nil, n.unreachable(leaderless)
		case leaderless == nil && !again && n.unreachable(err).Class == db.Aborted:
			again = true // the token was old, and the client has a new one now
			continue
		default:
			return nil, n.unreachable(err)
		}
		if ctx.Err() != nil {
			return nil, n.unreachable(leaderless)
		}
	}
}

// late reports whether the time was up for a call, on our side or, which the server says
// with the code Unknown, on its own.
func late(err error) bool {
	code, _ := codeOf(err)
	return code == codes.DeadlineExceeded || rpctypes.ErrorDesc(err) == context.DeadlineExceeded.Error()
}

const opConnect = "connect to etcd"

// unreachable makes the error of a node to which there is no connection.
func (n *node) unreachable(err error) *db.Error {
	e := failure(opConnect, n.address, err, optimistic.Reading)
	if e.Class != db.Unavailable {
		return e
	}
	text, reason := e.Err.Error(), wire.Reason(err)
	if late(err) {
		reason = wire.LateReason
	}
	if reason != "" {
		text, e.Code = fmt.Sprintf("etcd node %s: %s", n.address, reason), "" // the code was our client's
	}
	e.Err = db.MessageError{Text: text + ": " + db.CheckServer, Cause: err}
	return e
}

// sameCluster refuses a node of another cluster than the first's: half of the data is there.
func (n *node) sameCluster(id uint64) error {
	if !n.cluster.CompareAndSwap(0, id) && n.cluster.Load() != id {
		return db.Fatalf(opConnect, "etcd node %s belongs to the cluster %x, another node of the URL to the cluster %x: name the nodes of one cluster", n.address, id, n.cluster.Load())
	}
	return nil
}

// connection returns the node's connection and makes it when it is first asked
// for. It outlives the context of the caller who was first.
func (n *node) connection() (*grpc.ClientConn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errors.New("the database is closed")
	}
	if n.client != nil {
		return n.client.ActiveConnection(), nil
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{n.address},
		Username:    n.config.user,
		Password:    n.config.password,
		DialTimeout: min(probeTimeout, n.config.timeout), // of the authentication that New makes
		// One attempt and no more. By default the client sends a write once more
		// when the server answers DeadlineExceeded a moment before the client's
		// own deadline (retry_interceptor.go, "its the callCtx deadline"): a
		// commit that was applied would then be answered with a conflict.
		MaxUnaryRetries: 1,
		// A broken connection is noticed without traffic in 13 s; gRPC takes no less than 10.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(n.authenticateApart),
			// A page of a scan may be larger than gRPC's default of 4 MiB.
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
				MinConnectTimeout: probeTimeout,
			}),
		},
	})
	if err != nil {
		return nil, err
	}
	n.client = client
	return client.ActiveConnection(), nil
}

func (n *node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.client == nil {
		return nil
	}
	err := n.client.Close()
	n.client = nil
	// A client's Close reports the end of its own context, which it causes.
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close the connection to etcd node %s: %w", n.address, err)
	}
	return nil
}

// connectAny returns a link to the first node that answers. It begins with
// number first, and asks the next one when one has failed or has not answered within
// waitLimit, each of them once. All that were asked and did not fail may still answer.
func connectAny(ctx context.Context, nodes []*node, first int) (*link, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		link *link
		err  error
	}
	answers := make(chan answer, len(nodes))
	asked, failed := 0, 0
	ask := func() {
		n := nodes[(first+asked)%len(nodes)]
		asked++
		go func() {
			l, err := n.connect(ctx)
			answers <- answer{l, err}
		}()
	}
	ask()
	late := time.NewTicker(waitLimit)
	defer late.Stop()
	for {
		select {
		case a := <-answers:
			switch {
			case a.err == nil:
				return a.link, nil
			case db.ClassOf(a.err) == db.Fatal:
				return nil, a.err
			}
			if failed++; failed < len(nodes) && (failed < asked || ctx.Err() == nil) {
				break
			}
			if failed == 1 {
				return nil, a.err
			}
			err := fmt.Errorf("none of %d etcd nodes answers, the last try: %w", failed, a.err)
			return nil, &db.Error{Class: db.Unavailable, Op: opConnect, Err: err}
		case <-late.C:
		}
		if asked < len(nodes) && ctx.Err() == nil {
			ask()
		}
	}
}

// leaderRequired is the header with which a member that knows no leader refuses
// a call at once instead of holding it (api/v3rpc/interceptor.go). It is never
// changed: clientv3 copies it before it adds its own.
var leaderRequired = metadata.Pairs(rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)

func requireLeader(ctx context.Context) context.Context {
	return metadata.NewOutgoingContext(ctx, leaderRequired)
}

// authenticateApart sends the request for a token over a connection of its own,
// which carries no token. A server before 3.5 refuses the request for a new
// token when the old one, which it has forgotten, comes with it, and clientv3
// then asks again until the call's time is up (https://github.com/etcd-io/etcd/pull/12165).
func (n *node) authenticateApart(ctx context.Context, method string, question, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if method != pb.Auth_Authenticate_FullMethodName {
		return invoke(ctx, method, question, answer, conn, opts...)
	}
	own, err := grpc.NewClient("passthrough:///"+n.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer own.Close()
	return invoke(ctx, method, question, answer, own, opts...)
}
