package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// errStopped is what starting a node of a stopped cluster gives.
var errStopped = errors.New("the cluster is stopped")

// errExited marks that etcd ended while it was waited for.
var errExited = errors.New("etcd ended")

const (
	pollEvery   = 20 * time.Millisecond
	askTimeout  = time.Second // of one question to one node, which may hang
	lowestPort  = 20000
	highestPort = 32000 // the kernel takes its own from 32768 up
)

// node is one member: its folder and ports stay, its process comes and goes.
type node struct {
	name     string
	dir      string
	endpoint string // host:port for clients
	binary   string
	args     []string

	mu      sync.Mutex
	process *process // nil while dead
	paused  bool
}

// process is one run of etcd. done is closed when it has ended and was reaped.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func (n *node) start(s *spawner) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	log, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(n.binary, n.args...)
	// etcd takes every ETCD_… variable as a flag, so it gets none but the one
	// that 3.4 asks for outside amd64.
	cmd.Env = []string{"ETCD_UNSUPPORTED_ARCH=" + runtime.GOARCH}
	cmd.Dir = n.dir
	cmd.Stdout, cmd.Stderr = log, log
	if err := s.start(cmd); err != nil {
		return fmt.Errorf("start etcd node %s: %w", n.name, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in its log
	}()
	n.process, n.paused = p, false
	return nil
}

func (n *node) kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return nil
	}
	if err := n.process.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill etcd node %s: %w", n.name, err)
	}
	<-n.process.done
	n.process, n.paused = nil, false
	return nil
}

func (n *node) setPaused(paused bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	verb := "resume"
	if paused {
		verb = "pause"
	}
	if n.process == nil {
		return fmt.Errorf("%s etcd node %s: it is not running: restart it first", verb, n.name)
	}
	if err := signalPaused(n.process.cmd.Process, paused); err != nil {
		return fmt.Errorf("%s etcd node %s: %w", verb, n.name, err)
	}
	n.paused = paused
	return nil
}

// running tells whether the node's process lives and is not paused.
func (n *node) running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil && !n.paused && !ended(n.process)
}

func ended(p *process) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// waitHealthy waits until the node answers a linearizable read, which is what
// etcd's /health makes.
func (n *node) waitHealthy(ctx context.Context) error {
	n.mu.Lock()
	p := n.process
	n.mu.Unlock()
	var last error
	for {
		if p == nil || ended(p) {
			return fmt.Errorf("wait for etcd node %s: %w: %s", n.name, errExited, n.lastLog())
		}
		var health struct{ Health string }
		if last = n.ask(ctx, http.MethodGet, "/health", &health); last == nil && health.Health == "true" {
			return nil
		}
		if err := pollAgain(ctx); err != nil {
			return fmt.Errorf("wait for etcd node %s to be healthy: %w (last answer: %v; last line of its log: %s)", n.name, err, last, n.lastLog())
		}
	}
}

// status is the part of etcd's StatusResponse that tells who leads. The gateway
// writes 64-bit numbers as strings.
type status struct {
	Header struct {
		MemberID uint64 `json:"member_id,string"`
	} `json:"header"`
	Leader   uint64 `json:"leader,string"`
	RaftTerm uint64 `json:"raftTerm,string"`
}

func (n *node) status(ctx context.Context) (s status, err error) {
	err = n.ask(ctx, http.MethodPost, "/v3/maintenance/status", &s)
	return s, err
}

// ask makes one HTTP request on a connection of its own.
func (n *node) ask(ctx context.Context, method, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+n.endpoint+path, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

func (n *node) logPath() string { return filepath.Join(n.dir, "log") }

// lastLog returns the last line that etcd wrote.
func (n *node) lastLog() string {
	text, err := os.ReadFile(n.logPath())
	if err != nil {
		return "it left no log"
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return "its log is empty"
	}
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}

// pollAgain waits until the next poll is due; an error means that ctx has ended.
func pollAgain(ctx context.Context) error {
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// freePorts returns n ports of the loopback interface that nobody listens on.
// The search starts at a place of this process's own, so that two processes
// rarely choose the same.
func freePorts(n int) ([]int, error) {
	const span = highestPort - lowestPort
	first := os.Getpid() * 61 % span
	var ports []int
	for offset := 0; offset < span && len(ports) < n; offset++ {
		port := lowestPort + (first+offset)%span
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer listener.Close() // held until all are chosen
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("find %d free ports between %d and %d: only %d are free", n, lowestPort, highestPort, len(ports))
	}
	return ports, nil
}
