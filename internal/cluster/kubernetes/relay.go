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

// relay leads from an address of this machine, which stays, to a port of a pod, whichever pod
// has the name then: to its address where this machine can reach that, else through the API
// server, as `kubectl port-forward` does. Connections end with their pod.
type relay struct {
	api      *API
	pod      func() *corev1.Pod
	port     int
	direct   bool // the pods' addresses can be reached
	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	tunnel httpstream.Connection // through the API server; nil until one is needed
	into   string                // UID of the pod that the tunnel leads into
	next   int                   // number of the next connection in the tunnel
	failed error                 // why the last connection could not be made, of those that could not
	closed bool
}

// reachLimit bounds how long a pod's address may take to answer.
const reachLimit = time.Second

// newRelay begins to listen on 127.0.0.1.
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

// join connects one connection with the pod until either side ends it.
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
		return // the client sees that its connection has ended
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

// failure is why a connection to the pod could not be made, nil if all could.
func (r *relay) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// keep notes an open connection; false, and it is closed, once the relay is.
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

// dial connects to the pod that is there now.
func (r *relay) dial() (io.ReadWriteCloser, error) {
	pod := r.pod()
	if pod == nil || pod.Status.PodIP == "" {
		return nil, errors.New("the pod is not there")
	}
	if r.direct {
		return net.DialTimeout("tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(r.port)), reachLimit)
	}
	return r.forward(pod)
}

// forward opens one more connection in the tunnel into a pod. The tunnel's protocol is
// portforward.k8s.io (k8s.io/client-go/tools/portforward): two streams a connection, of which
// one brings errors.
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

// tunnel connects to a pod through the API server: by a WebSocket, or by SPDY where that does
// not know the former.
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

// cut ends all connections, as the end of their pod does.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a dead pod says no good-bye
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

// reachable says whether this machine reaches a pod's address itself.
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
