package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// relay forwards connections from a fixed address of this machine to a port of the pod that has a name at that time.
// It uses the pod's address if this machine reaches it. Otherwise it uses the API server, like `kubectl
// port-forward`. Connections end with their pod.
type relay struct {
	api      *API
	pod      func() *corev1.Pod
	port     int
	direct   bool // this machine reaches the pods' addresses
	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	tunnel httpstream.Connection // through the API server; nil until it is needed
	into   string                // UID of the pod at the end of the tunnel
	next   int                   // number of the next connection in the tunnel
	failed error                 // error of the last connection that failed
	closed bool
}

// reachLimit bounds the time for an answer at a pod's address.
const reachLimit = time.Second

// newRelay starts a relay that listens on 127.0.0.1.
func (a *API) newRelay(port int, direct bool, pod func() *corev1.Pod) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for connections to a pod: %w", err)
	}
	r := &relay{api: a, pod: pod, port: port, direct: direct, listener: listener, open: map[net.Conn]struct{}{}}
	r.done.Go(r.accept)
	return r, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.done.Go(func() { r.join(conn) })
	}
}

// join connects a connection with the pod until either side ends it.
func (r *relay) join(conn net.Conn) {
	if !r.keep(conn) {
		return
	}
	defer r.drop(conn)
	other, err := r.dial()
	if err != nil {
		r.mu.Lock()
		r.failed = err
		r.mu.Unlock()
		return // the client sees the end of its connection
	}
	defer other.Close()
	if far, ok := other.(net.Conn); ok {
		if !r.keep(far) {
			return
		}
		defer r.drop(far)
	}
	var both sync.WaitGroup
	copyAll := func(to io.WriteCloser, from io.Reader) {
		_, _ = io.Copy(to, from)
		_ = conn.Close()
		_ = other.Close()
	}
	both.Go(func() { copyAll(other, conn) })
	both.Go(func() { copyAll(conn, other) })
	both.Wait()
}

// failure returns why the last failed connection to the pod failed, or nil.
func (r *relay) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// keep records an open connection. If the relay is closed, it closes the connection and returns false.
func (r *relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
		return false
	}
	r.open[c] = struct{}{}
	return true
}

func (r *relay) drop(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	delete(r.open, c)
	r.mu.Unlock()
}

// dial connects to the present pod.
func (r *relay) dial() (io.ReadWriteCloser, error) {
	pod := r.pod()
	if pod == nil || pod.Status.PodIP == "" {
		return nil, errors.New("the pod does not exist")
	}
	if r.direct {
		return net.DialTimeout("tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(r.port)), reachLimit)
	}
	return r.forward(pod)
}

// forward opens a connection in the tunnel to a pod. The protocol is portforward.k8s.io
// (k8s.io/client-go/tools/portforward). It uses two streams per connection, of which one carries errors.
func (r *relay) forward(pod *corev1.Pod) (io.ReadWriteCloser, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tunnel == nil || r.into != string(pod.UID) {
		if r.tunnel != nil {
			_ = r.tunnel.Close()
		}
		tunnel, err := r.api.tunnel(pod.Name)
		if err != nil {
			r.tunnel = nil
			return nil, err
		}
		r.tunnel, r.into = tunnel, string(pod.UID)
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(r.port))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(r.next))
	r.next++
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failed, err := r.tunnel.CreateStream(headers)
	if err == nil {
		_ = failed.Close() // nothing is sent on it
		headers.Set(corev1.StreamType, corev1.StreamTypeData)
		var data httpstream.Stream
		if data, err = r.tunnel.CreateStream(headers); err == nil {
			return &forwarded{Stream: data, failed: failed, tunnel: r.tunnel}, nil
		}
	}
	_ = r.tunnel.Close()
	r.tunnel = nil
	return nil, fmt.Errorf("open a connection to port %d of the pod %s: %w", r.port, pod.Name, err)
}

// forwarded is one connection in a tunnel.
type forwarded struct {
	httpstream.Stream
	failed httpstream.Stream
	tunnel httpstream.Connection
}

// Close ends both directions.
func (f *forwarded) Close() error {
	err := errors.Join(f.Stream.Reset(), f.failed.Reset())
	f.tunnel.RemoveStreams(f.Stream, f.failed)
	return err
}

// tunnel connects to a pod through the API server by a WebSocket, or by SPDY if the server does not support
// WebSockets.
func (a *API) tunnel(pod string) (httpstream.Connection, error) {
	address := a.url("/api/v1/namespaces/" + a.Namespace + "/pods/" + pod + "/portforward")
	socket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, a.config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(a.config)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	conn, _, err := portforward.NewFallbackDialerForStreaming(socket, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}).Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, fmt.Errorf("reach the pod %s through the API server: %w", pod, a.explain(err))
	}
	return conn, nil
}

// cut ends all connections, like the end of their pod.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a dead pod does not close connections cleanly
		}
		_ = c.Close()
	}
	if r.tunnel != nil {
		_ = r.tunnel.Close()
		r.tunnel = nil
	}
}

func (r *relay) stop() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cut()
	r.done.Wait()
}

// reachable reports whether this machine reaches a pod at its address.
func reachable(ctx context.Context, pod *corev1.Pod, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
