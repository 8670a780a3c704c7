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
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
	"stroppy/internal/db/wire"
)

const (
	// probeTimeout limits the request that checks whether a node works.
	probeTimeout = time.Second
	// waitLimit is the time after which the next node is asked too, because the first has not answered. So a frozen
	// node delays a fail-over by no more than this.
	waitLimit = 100 * time.Millisecond
)

// node is one member of the URL, with its own client. One client for all nodes would keep asking a member that is cut
// off from the others.
//
// All sessions of a node share its one connection, because gRPC then writes the requests of several sessions in fewer
// system calls. With 64 sessions on three nodes, one connection a node took 161 µs of CPU for a transfer. Two took 166
// µs and four took 176 µs (BenchmarkTransferEtcd).
type node struct {
	number  int
	address string
	config  *config
	cluster *atomic.Uint64 // the cluster's id, shared by all nodes; 0 until a node has sent it

	mu     sync.Mutex
	client *clientv3.Client // nil until it is needed
	closed bool
}

// link is a connection to a node that has answered.
type link struct {
	node *node
	conn *grpc.ClientConn
	kv   pb.KVClient
}

// connect returns a link to the node after the node has answered a linearizable read. A member that is cut off from the
// majority cannot answer such a read.
func (n *node) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, min(probeTimeout, n.config.timeout))
	defer cancel()
	if err := n.probe(ctx); err != nil {
		return nil, n.unreachable(err)
	}
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
			return l, nil // it answered; the driver does not check which keys the user may use
		case text == rpctypes.ErrorDesc(rpctypes.ErrGRPCNoLeader), text == rpctypes.ErrorDesc(rpctypes.ErrGRPCLeaderChanged):
			// The member works, and its cluster has no leader now. Without the header the member holds a read until the
			// cluster has a leader. Then it answers the read, or reports that the leader has changed (v3_server.go,
			// linearizableReadLoop).
			leaderless, asked = err, ctx
		case leaderless != nil && (ctx.Err() != nil || late(err)):
			// No leader was elected in time. The earlier answer is more exact than the end of the time.
			return nil, n.unreachable(leaderless)
		case leaderless == nil && !again && n.unreachable(err).Class == db.Aborted:
			again = true // the token was old, and the client now has a new one
			continue
		default:
			return nil, n.unreachable(err)
		}
		if ctx.Err() != nil {
			return nil, n.unreachable(leaderless)
		}
	}
}

// late reports whether a call exceeded its deadline, on our side or on the server's. The server reports its own
// deadline with the code Unknown.
func late(err error) bool {
	code, _ := codeOf(err)
	return code == codes.DeadlineExceeded || rpctypes.ErrorDesc(err) == context.DeadlineExceeded.Error()
}

// probe makes a connection of its own, which shows at once that nobody listens, or what is wrong with TLS. gRPC would
// back off. A member answers the begin of HTTP/2 with its settings, a frame whose fourth byte is 4 (RFC 9113, 3.4 and
// 6.5).
func (n *node) probe(ctx context.Context) error {
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", n.address)
	}
	var conn net.Conn
	var err error
	if n.config.secure == nil {
		conn, err = dial(ctx)
	} else {
		const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		c := n.config.secure.Clone()
		c.NextProtos = []string{"h2"}
		tls := wire.Handshake{Dial: dial, Config: c, Server: n.address, Question: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings, End: 4}
		conn, err = tls.Connect(ctx)
	}
	if err == nil {
		_ = conn.Close() // it has answered
	}
	return err
}

// credentials are for a connection of gRPC.
func (n *node) credentials() credentials.TransportCredentials {
	if n.config.secure == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(n.config.secure.Clone())
}

const opConnect = "connect to etcd"

// inURL states how a URL avoids a refusal.
var inURL = map[wire.Refusal]string{
	wire.NeedsTLS: "tls=true", wire.LacksTLS: "tls=false", wire.Untrusted: "ca=FILE", wire.WrongHost: "or write insecure=true",
	wire.NeedsCertificate: "cert=FILE&key=FILE",
}

// unreachable returns the error of a node that has no connection.
func (n *node) unreachable(err error) *db.Error {
	denied, why := wire.CertificateRefusal(err)
	if wire.AnswersPlain(err) {
		denied = wire.LacksTLS
	}
	if denied != 0 {
		return db.Fatalf(opConnect, "%w", db.MessageError{Text: "etcd node " + n.address + ": " + denied.Text(why, inURL[denied]), Cause: err})
	}
	e := failure(opConnect, n.address, err, optimistic.Reading)
	if e.Class != db.Unavailable {
		return e
	}
	text, reason := e.Err.Error(), wire.Reason(err)
	if late(err) {
		reason = wire.LateReason
	}
	if reason != "" {
		text, e.Code = fmt.Sprintf("etcd node %s: %s", n.address, reason), "" // the code came from our client
	}
	e.Err = db.MessageError{Text: text + ": " + db.CheckServer, Cause: err}
	return e
}

// sameCluster returns an error if a node is of another cluster than the first node. Half of the data would be there.
func (n *node) sameCluster(id uint64) error {
	if !n.cluster.CompareAndSwap(0, id) && n.cluster.Load() != id {
		return db.Fatalf(opConnect, "etcd node %s belongs to the cluster %x, another node of the URL to the cluster %x: name the nodes of one cluster", n.address, id, n.cluster.Load())
	}
	return nil
}

// connection returns the node's connection, and opens it on the first call. The connection outlives the context of that
// call.
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
		TLS:         n.config.secure,
		DialTimeout: min(probeTimeout, n.config.timeout), // of the authentication in New
		// Only one attempt. By default the client repeats a write if the server answers DeadlineExceeded a moment
		// before the client's own deadline (retry_interceptor.go, "its the callCtx deadline"). A commit that was
		// applied would then be answered with a conflict.
		MaxUnaryRetries: 1,
		// A broken connection is noticed without traffic in 13 s. gRPC's minimum is 10.
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
	// Close of a client returns the error of the client's own context, which Close has cancelled.
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close the connection to etcd node %s: %w", n.address, err)
	}
	return nil
}

// connectAny returns a link to the first node that answers. It begins with number first. It asks the next node when one
// has failed or has not answered within waitLimit. Each node is asked once. All nodes that were asked and did not fail
// may still answer.
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

// leaderRequired is the header that makes a member without a leader refuse a call at once instead of holding it
// (api/v3rpc/interceptor.go). It is never changed: clientv3 copies it before it adds its own headers.
var leaderRequired = metadata.Pairs(rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)

func requireLeader(ctx context.Context) context.Context {
	return metadata.NewOutgoingContext(ctx, leaderRequired)
}

// authenticateApart sends the request for a token over a separate connection, which carries no token. A server before
// 3.5 refuses the request if it carries the old token, which the server has forgotten. clientv3 then repeats the
// request until the call's deadline (https://github.com/etcd-io/etcd/pull/12165).
func (n *node) authenticateApart(ctx context.Context, method string, question, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if method != pb.Auth_Authenticate_FullMethodName {
		return invoke(ctx, method, question, answer, conn, opts...)
	}
	own, err := grpc.NewClient("passthrough:///"+n.address, grpc.WithTransportCredentials(n.credentials()))
	if err != nil {
		return err
	}
	defer own.Close()
	return invoke(ctx, method, question, answer, own, opts...)
}
