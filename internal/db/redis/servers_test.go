package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/db/drivertest"
)

// serverOptions describe the servers to start. The zero value of each field except Nodes gives Redis's own settings: a
// snapshot from time to time, and no append-only file.
type serverOptions struct {
	Nodes int // 1 or more; node 0 is the primary, the others are its replicas

	// Dir is the parent of one new folder a node, which Stop keeps. If Dir is empty, the servers use a new temporary
	// folder, which Stop removes.
	Dir string

	// InMemory puts the temporary folder into /dev/shm if the machine has it. Then fsync costs nothing and protects
	// nothing.
	InMemory bool

	// Settings go into every node's redis.conf, such as {"appendfsync": "always"}. The value is written unchanged. So a
	// value with spaces is several words, and an empty value is written as "".
	Settings map[string]string

	// Users are further lines for redis.conf, such as "user teller on >secret ~* +@all": access control lists.
	Users []string

	// Password is required from every client and replica. If it is empty, there is none.
	Password string
}

// errNoSuchNode is the error for the number of a node that does not exist.
var errNoSuchNode = errors.New("there is no such node")

// servers are a running primary and its replicas. Several goroutines may call their methods. Nobody watches the
// primary: a test fails over with Promote.
type servers struct {
	nodes     []*node
	password  string
	dir       string
	temporary bool

	mu      sync.Mutex
	primary int // the last node that was made the primary
}

// startAttempts limits the tries to start all nodes. A port that was free when it was chosen may be taken when Redis
// binds it.
const startAttempts = 3

// startServers starts the servers and returns when every replica has the primary's data. If it fails, it leaves nothing
// behind. The error is a host.MissingError if Redis is not installed.
func startServers(ctx context.Context, o serverOptions) (*servers, error) {
	if o.Nodes < 1 {
		return nil, fmt.Errorf("start Redis: %d nodes requested, at least 1 is needed", o.Nodes)
	}
	program, err := host.Find("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		s, err := tryStart(ctx, program, o)
		if err == nil {
			return s, nil
		}
		if attempt == startAttempts || !strings.Contains(err.Error(), "Address already in use") {
			return nil, fmt.Errorf("start Redis with %d nodes: %w", o.Nodes, err)
		}
	}
}

func tryStart(ctx context.Context, program string, o serverOptions) (_ *servers, err error) {
	s := &servers{dir: o.Dir, password: o.Password}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp(cluster.TempDir(o.InMemory), "stroppy-redis-"); err != nil {
			return nil, err
		}
		s.temporary = true
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return nil, err
	}
	for i := range o.Nodes {
		port, err := host.FreePort(ctx)
		if err != nil {
			return nil, err
		}
		n := &node{program: program, dir: filepath.Join(s.dir, fmt.Sprintf("redis-n%d", i)), port: port, password: o.Password}
		if err := n.prepare(o); err != nil {
			return nil, err
		}
		s.nodes = append(s.nodes, n)
		if err := n.start(ctx, s.follows(i)); err != nil {
			return nil, err
		}
	}
	for i := range s.nodes {
		if err := s.synchronized(ctx, i); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// follows returns the port from which node i replicates, or 0 for the primary.
func (s *servers) follows(i int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i == s.primary {
		return 0
	}
	return s.nodes[s.primary].port
}

// Nodes returns the number of nodes, including dead ones.
func (s *servers) Nodes() int { return len(s.nodes) }

// Endpoints returns the address, host:port, of every node by its number.
func (s *servers) Endpoints() []string {
	endpoints := make([]string, len(s.nodes))
	for i, n := range s.nodes {
		endpoints[i] = n.address()
	}
	return endpoints
}

// URL returns the servers as --db takes them: redis://h1:p1,h2:p2/0, with the password if there is one.
func (s *servers) URL() string {
	u := url.URL{Scheme: "redis", Host: strings.Join(s.Endpoints(), ","), Path: "/0"}
	if s.password != "" {
		u.User = url.UserPassword("", s.password)
	}
	return u.String()
}

// Dir returns the folder of node i with redis.conf, server.log and the data.
func (s *servers) Dir(i int) string { return s.nodes[i].dir }

func (s *servers) node(i int) (*node, error) {
	if i < 0 || i >= len(s.nodes) {
		return nil, fmt.Errorf("redis node %d of %d: %w", i, len(s.nodes), errNoSuchNode)
	}
	return s.nodes[i], nil
}

// Kill ends node i with SIGKILL. Its written data stay in the page cache. A dead node stays dead.
func (s *servers) Kill(i int) error {
	n, err := s.node(i)
	if err != nil {
		return err
	}
	return n.kill()
}

// Restart starts node i again on its own data. It kills the node first if it runs. If the node was the last to be made
// the primary, it returns as the primary. Any other node returns as a replica of the primary, whatever it was before.
// Then Restart waits until the replica has the primary's data.
func (s *servers) Restart(ctx context.Context, i int) error {
	n, err := s.node(i)
	if err != nil {
		return err
	}
	if err := n.kill(); err != nil {
		return err
	}
	if err := n.start(ctx, s.follows(i)); err != nil {
		return err
	}
	return s.synchronized(ctx, i)
}

// Pause stops node i's process with SIGSTOP. Its connections stay open and nothing answers. The kernel's buffers still
// receive data from others. So a paused replica lags only by the data that do not fit into these buffers: see Stall.
func (s *servers) Pause(i int) error {
	n, err := s.node(i)
	if err != nil {
		return err
	}
	return n.setPaused(true)
}

// Resume lets a paused node i continue.
func (s *servers) Resume(i int) error {
	n, err := s.node(i)
	if err != nil {
		return err
	}
	return n.setPaused(false)
}

// Stall pauses the replica i and lets the primary close its replication links. Nothing that is written from now on
// reaches the replica until Resume. The other replicas connect again at once. Stall returns when the primary no longer
// counts the replica.
func (s *servers) Stall(ctx context.Context, i int) error {
	primary, err := s.Primary(ctx)
	if err != nil {
		return err
	}
	if i == primary {
		return fmt.Errorf("stall redis node %d: it is the primary", i)
	}
	if err := s.Pause(i); err != nil {
		return err
	}
	if _, err := s.nodes[primary].do(ctx, "CLIENT", "KILL", "TYPE", "replica"); err != nil {
		return err
	}
	line := fmt.Sprintf("port=%d,", s.nodes[i].port)
	return s.wait(ctx, fmt.Sprintf("the primary still counts the replica %d", i), func() bool {
		info, err := s.nodes[primary].do(ctx, "INFO", "replication")
		return err == nil && !strings.Contains(info, line)
	})
}

// Primary returns the number of the last node that was made the primary. If the node is dead or paused, or does not
// report the role of a primary, Primary waits until ctx ends.
func (s *servers) Primary(ctx context.Context) (int, error) {
	s.mu.Lock()
	primary := s.primary
	s.mu.Unlock()
	err := s.wait(ctx, fmt.Sprintf("node %d, which was made the primary, does not run as one", primary), func() bool {
		return s.nodes[primary].role(ctx) == "master"
	})
	return primary, err
}

// Promote makes node i the primary, as an operator's fail-over does: REPLICAOF NO ONE. Every other node that answers
// follows it from then on. Dead nodes follow it at Restart. Paused nodes are not changed.
func (s *servers) Promote(ctx context.Context, i int) error {
	n, err := s.node(i)
	if err != nil {
		return err
	}
	if _, err := n.do(ctx, "REPLICAOF", "NO", "ONE"); err != nil {
		return fmt.Errorf("promote redis node %d: %w", i, err)
	}
	s.mu.Lock()
	s.primary = i
	s.mu.Unlock()
	var errs []error
	for j, other := range s.nodes {
		if j != i && other.running() {
			_, err := other.do(ctx, "REPLICAOF", "127.0.0.1", strconv.Itoa(n.port))
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Command runs one command on node i and returns its reply as text. Each element of an array has its own line, and a
// nil is "".
func (s *servers) Command(ctx context.Context, i int, words ...string) (string, error) {
	n, err := s.node(i)
	if err != nil {
		return "", err
	}
	return n.do(ctx, words...)
}

// synchronized waits until node i has all data and the primary counts it. The primary itself always has all data.
func (s *servers) synchronized(ctx context.Context, i int) error {
	if s.follows(i) == 0 {
		return nil
	}
	s.mu.Lock()
	primary := s.nodes[s.primary]
	s.mu.Unlock()
	counted := fmt.Sprintf("port=%d,state=online", s.nodes[i].port)
	return s.wait(ctx, fmt.Sprintf("the replica %d has not the primary's data", i), func() bool {
		info, err := s.nodes[i].do(ctx, "INFO", "replication")
		if err != nil || !strings.Contains(info, "master_link_status:up") {
			return false
		}
		info, err = primary.do(ctx, "INFO", "replication")
		return err == nil && strings.Contains(info, counted)
	})
}

// pollEvery is the time between two checks of wait.
const pollEvery = 5 * time.Millisecond

// wait returns when done returns true. If ctx ends first, it returns an error with what.
func (s *servers) wait(ctx context.Context, what string, done func() bool) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for Redis: %s: %w", what, context.Cause(ctx))
		case <-ticker.C:
		}
	}
	return nil
}

// Stop ends all nodes. Nodes whose folder is kept get an orderly shutdown, replicas first. Stop may be called again.
func (s *servers) Stop() error {
	var errs []error
	for i := len(s.nodes) - 1; i >= 0; i-- {
		if !s.temporary {
			errs = append(errs, s.nodes[i].shutdown())
		}
		errs = append(errs, s.nodes[i].kill())
	}
	if s.temporary {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop Redis: %w", err)
	}
	return nil
}

func TestServerPairStartsReplicatesAndStops(t *testing.T) {
	c := startRaw(t, serverOptions{
		Nodes: 2, InMemory: true, Password: "se cret@1",
		Settings: map[string]string{"requirepass": `"se cret@1"`, "masterauth": `"se cret@1"`, "appendonly": "yes", "save": ""},
	})
	ctx := within(t, time.Minute)
	if want := "redis://:se%20cret%401@" + strings.Join(c.Endpoints(), ",") + "/0"; c.URL() != want {
		t.Errorf("URL is %s, want %s", c.URL(), want)
	}
	for _, endpoint := range c.Endpoints() {
		if _, text, _ := strings.Cut(endpoint, ":"); text >= "32768" {
			t.Errorf("%s is among the ephemeral ports", endpoint)
		}
	}
	answer(t, c, 0, "SET", "a", "1")
	drivertest.Must(t, c.wait(ctx, "the write has not reached the replica", func() bool { return answer(t, c, 1, "GET", "a") == "1" }))
	if _, err := c.Command(ctx, 1, "SET", "a", "2"); err == nil || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("a write to the replica: %v", err)
	}

	drivertest.Must(t, c.Kill(0))
	drivertest.Must(t, c.Kill(0))
	if err := c.Pause(0); err == nil {
		t.Error("a dead node was paused")
	}
	drivertest.Must(t, c.Promote(ctx, 1))
	if i, err := c.Primary(ctx); err != nil || i != 1 {
		t.Errorf("the primary is %d, %v", i, err)
	}
	answer(t, c, 1, "SET", "a", "3")
	drivertest.Must(t, c.Restart(ctx, 0)) // as a replica of the new primary
	drivertest.Must(t, c.wait(ctx, "the old primary has not the new one's data", func() bool { return answer(t, c, 0, "GET", "a") == "3" }))
	if role := c.nodes[0].role(ctx); role != "slave" {
		t.Errorf("the old primary is %s", role)
	}
	drivertest.Must(t, c.Kill(1))
	drivertest.Must(t, c.Restart(ctx, 1))
	if got := answer(t, c, 1, "GET", "a"); got != "3" {
		t.Errorf("after a kill and a restart with an append-only file: %q", got)
	}
	drivertest.Must(t, c.Promote(ctx, 0)) // both run, and they exchange their roles
	drivertest.Must(t, c.synchronized(ctx, 1))
	if role := c.nodes[1].role(ctx); role != "slave" {
		t.Errorf("the demoted primary is %s", role)
	}

	dir := c.dir
	drivertest.Must(t, c.Stop())
	drivertest.Must(t, c.Stop())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stop left the folder %s", dir)
	}
}

// TestWritesDuringReplicaStallAreLost checks that writes made while a replica stalls are missing when it is
// promoted. The known-bad case relies on this loss.
func TestWritesDuringReplicaStallAreLost(t *testing.T) {
	c := startRaw(t, serverOptions{Nodes: 2, InMemory: true, Settings: map[string]string{"save": ""}})
	ctx := within(t, time.Minute)
	answer(t, c, 0, "SET", "before", "1")
	drivertest.Must(t, c.wait(ctx, "the write has not reached the replica", func() bool { return answer(t, c, 1, "GET", "before") == "1" }))
	drivertest.Must(t, c.Stall(ctx, 1))
	if _, err := c.Command(ctx, 1, "PING"); err == nil {
		t.Error("a stalled node answered")
	}
	answer(t, c, 0, "SET", "after", "1")
	drivertest.Must(t, c.Kill(0))
	drivertest.Must(t, c.Resume(1))
	drivertest.Must(t, c.Promote(ctx, 1))
	if before, after := answer(t, c, 1, "GET", "before"), answer(t, c, 1, "GET", "after"); before != "1" || after != "" {
		t.Errorf("the promoted replica has before=%q, after=%q", before, after)
	}
	if err := c.Stall(ctx, 1); err == nil {
		t.Error("the primary was stalled")
	}
}

func TestStoppedServerKeepsItsFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "servers")
	c := startRaw(t, serverOptions{Nodes: 1, Dir: dir, Settings: map[string]string{"save": "3600 1"}})
	answer(t, c, 0, "SET", "a", "1")
	drivertest.Must(t, c.Pause(0))
	drivertest.Must(t, c.Stop()) // an orderly shutdown, which writes a snapshot
	if _, err := os.Stat(filepath.Join(c.Dir(0), "dump.rdb")); err != nil {
		t.Errorf("no snapshot: %v", err)
	}
	if _, err := startServers(within(t, time.Minute), serverOptions{Nodes: 1, Dir: dir}); err == nil || !strings.Contains(err.Error(), "must be new") {
		t.Errorf("a folder that is there already: %v", err)
	}
}

func TestInvalidServerOptionsAreRefused(t *testing.T) {
	startRaw(t, serverOptions{Nodes: 1}) // skips without Redis
	_, err := startServers(within(t, time.Minute), serverOptions{Nodes: 1, Settings: map[string]string{"no-such-setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("a setting that does not exist: %v", err)
	}
	if _, err := startServers(t.Context(), serverOptions{}); err == nil {
		t.Error("no nodes were started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := startServers(ctx, serverOptions{Nodes: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled start: %v", err)
	}
	c := startRaw(t, serverOptions{Nodes: 1})
	for _, err := range []error{c.Kill(1), c.Pause(-1), c.Resume(5), c.Restart(t.Context(), 1), c.Promote(t.Context(), 1)} {
		if !errors.Is(err, errNoSuchNode) {
			t.Errorf("a node that is not there: %v", err)
		}
	}
}
