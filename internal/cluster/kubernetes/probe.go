package kubernetes

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"stroppy/internal/fault"
)

// probeNumber stands for the probe among the numbers of nodes.
const probeNumber = -2

const (
	probePort = 8080
	// dialLimit is the time after which a connection counts as lost.
	dialLimit = time.Second
	// lossTries is the number of connections to measure a loss. Each is lost with its first packet. A delay needs
	// fewer, delayTries.
	lossTries, delayTries = 200, 5
)

// ProbeCommand is the hidden command that runs this program as a probe in a pod.
const ProbeCommand = "pod-probe"

// Probe serves, at all addresses of its pod, requests with the token, which is its argument. GET
// /dial?to=HOST:PORT&count=N makes N connections. GET /echo?to=IP&rate=N&first=N sends echoes of N bytes per second.
// Probe returns after a signal to end.
func Probe(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("`stroppy %s` is started in a pod by a run on Kubernetes", ProbeCommand)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(probePort))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: probing(args[0]), ReadHeaderTimeout: dialLimit}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// dialed is an answer of a probe.
type dialed struct {
	Times []time.Duration // time to connect, of the connections that succeeded
	Lost  int             // number that did not succeed within a second
	Error string          // of the last refused connection
}

func probing(token string) http.Handler {
	mux := http.NewServeMux()
	handle := func(what string, answer http.HandlerFunc) {
		mux.HandleFunc("GET /"+what, func(w http.ResponseWriter, r *http.Request) {
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) != 1 {
				http.Error(w, "the token belongs to another run", http.StatusForbidden)
				return
			}
			answer(w, r)
		})
	}
	handle("dial", func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.Atoi(r.URL.Query().Get("count"))
		if err != nil || count < 1 || count > lossTries {
			http.Error(w, "count is not a valid number of connections", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(dialAll(r.Context(), r.URL.Query().Get("to"), count))
	})
	handle("echo", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		to := net.ParseIP(query.Get("to"))
		rate, errRate := strconv.ParseInt(query.Get("rate"), 10, 64)
		first, errFirst := strconv.ParseInt(query.Get("first"), 10, 64)
		if to == nil || errors.Join(errRate, errFirst) != nil || rate < 1 || rate > mostEchoRate || first < 0 || first > rate+mostRead {
			http.Error(w, fmt.Sprintf("echo takes to=IP, rate=1 to %d bytes a second, and first=0 to %d bytes more than rate", mostEchoRate, mostRead), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(echo(r.Context(), to, rate, first))
	})
	return mux
}

// dialAll makes connections, all at once, and closes them.
func dialAll(ctx context.Context, to string, count int) (d dialed) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for range count {
		group.Go(func() {
			began := time.Now()
			conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", to)
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			var late net.Error
			switch {
			case err == nil:
				d.Times = append(d.Times, took)
				_ = conn.Close()
			case errors.As(err, &late) && late.Timeout():
				d.Lost++
			default:
				d.Error = err.Error()
			}
		})
	}
	group.Wait()
	return d
}

// probe is a pod that reports which pods it reaches.
type probe struct {
	cluster *Cluster
	pods    *podWatch
	relay   *relay
	token   string
}

func (c *Cluster) probeName() string { return c.run + "-probe" }

// startProbe makes the pod and returns when it answers.
func (c *Cluster) startProbe(ctx context.Context) (p *probe, err error) {
	p = &probe{cluster: c, token: NewPassword()}
	security := RestrictedPod()
	// This sysctl allows echoes without a privilege (icmp(7)). Any pod may set it.
	security["sysctls"] = []any{map[string]any{"name": "net.ipv4.ping_group_range", "value": "0 2147483647"}}
	pod := NewObject("v1", podKind.Kind, c.probeName(), map[string]any{"spec": map[string]any{
		"automountServiceAccountToken": false, "terminationGracePeriodSeconds": int64(0),
		"securityContext": security,
		"containers": []any{map[string]any{
			"name": "probe", "image": c.spec.ToolImage, "imagePullPolicy": c.spec.Pull, "args": []any{ProbeCommand, p.token},
			"securityContext": RestrictedContainer(),
			"readinessProbe":  map[string]any{"tcpSocket": map[string]any{"port": int64(probePort)}, "periodSeconds": int64(1)},
		}},
	}})
	asPart(pod, "probe")
	if p.pods, err = c.api.watchPods(ctx, RunLabel+"="+c.run, func(*corev1.Pod) {}); err != nil {
		return nil, err
	}
	if _, err = c.api.Apply(ctx, c.run, pod); err == nil {
		err = p.pods.until(ctx, func() error { return ready(p.pods.get(c.probeName()), c.probeName()) })
	}
	if err == nil {
		direct := reachable(ctx, p.pods.get(c.probeName()), probePort)
		p.relay, err = c.api.newRelay(probePort, direct, func() *corev1.Pod { return p.pods.get(c.probeName()) })
	}
	if err != nil {
		p.stop()
		return nil, c.diagnose(err)
	}
	return p, nil
}

func (p *probe) stop() {
	if p.relay != nil {
		p.relay.stop()
	}
	p.pods.stop()
}

// address returns the address of a node's pod.
func (p *probe) address(node int) (string, error) {
	pod := p.cluster.nodes[node].current()
	if pod == nil || pod.Status.PodIP == "" {
		return "", fmt.Errorf("n%d has no pod now", node)
	}
	return pod.Status.PodIP, nil
}

// ask makes the probe connect to a node.
func (p *probe) ask(ctx context.Context, node, count int) (d dialed, err error) {
	ip, err := p.address(node)
	if err != nil {
		return d, err
	}
	to := net.JoinHostPort(ip, strconv.Itoa(p.cluster.kind.Port))
	return d, p.get(ctx, "dial", map[string]any{"to": to, "count": count}, &d)
}

// get reads an answer of the probe.
func (p *probe) get(ctx context.Context, what string, with map[string]any, answer any) error {
	query := url.Values{}
	for name, value := range with {
		query.Set(name, fmt.Sprint(value))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.relay.address()+"/"+what+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * dialLimit}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask the probe: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostRead))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("ask the probe: it answered %s: %.100s", response.Status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	return err
}

// silent returns an error unless packets of a node do not reach the probe.
func (p *probe) silent(ctx context.Context, node int) error {
	d, err := p.ask(ctx, node, 1)
	switch {
	case err != nil:
		return err
	case d.Lost == 1:
		return nil
	case d.Error != "":
		return fmt.Errorf("n%d answered the probe: %s", node, d.Error)
	}
	return fmt.Errorf("packets of n%d reach the probe although the link is cut", node)
}

// answers returns why a node does not answer the probe, or nil.
func (p *probe) answers(ctx context.Context, node int) error {
	d, err := p.ask(ctx, node, 1)
	switch {
	case err != nil:
		return err
	case d.Lost > 0:
		return fmt.Errorf("no packet of n%d reaches the probe", node)
	case d.Error != "":
		return fmt.Errorf("n%d does not answer the probe: %s", node, d.Error)
	}
	return nil
}

// measure measures a node's link.
func (p *probe) measure(ctx context.Context, node int, link fault.Link) (measured, error) {
	if link.Bandwidth > 0 {
		return p.measureRate(ctx, node, link)
	}
	count := delayTries
	if link.Loss > 0 {
		count = lossTries
	}
	d, err := p.ask(ctx, node, count)
	if err == nil && d.Error != "" {
		err = fmt.Errorf("n%d does not answer the probe: %s", node, d.Error)
	}
	// A lost packet is sent again after a second (RFC 6298); by then the connection counts as lost.
	return measured{sent: count, lost: d.Lost, median: medianOf(d.Times)}, err
}
