// Package etcd starts a real etcd cluster on this machine's loopback interface,
// hurts its nodes on request, and leaves nothing behind.
//
// It needs the etcd server's binary (3.4 or later), which the Debian package
// etcd-server brings, and speaks to it over the JSON gateway of its client port:
// https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Options say what cluster to start.
type Options struct {
	Nodes int // 1 or more; 3 survive the loss of one

	// Dir gets one folder a node. Empty takes a new temporary folder.
	Dir string

	// InMemory takes the temporary folder from /dev/shm where the machine has
	// it, which takes away the cost of fsync and, with it, its meaning.
	InMemory bool

	// Args are further flags for every node, such as --quota-backend-bytes=….
	Args []string
}

// MissingError says that a program is not installed.
type MissingError struct {
	Program string // the binary that was looked for
	Package string // the Debian package that brings it
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("start an etcd cluster: the program %s is not installed: install the Debian package %s, or put the binary into the PATH", e.Program, e.Package)
}

// ErrNoSuchNode is what a node's number outside the cluster gives.
var ErrNoSuchNode = errors.New("the cluster has no such node")

// Cluster is a running etcd cluster. Its methods may be called from several
// goroutines.
type Cluster struct {
	nodes   []*node
	spawner *spawner
	dir     string // removed by Stop; empty if the caller's own
	stop    sync.Once
	stopErr error
}

// startAttempts bounds the tries to start all nodes: a port that was free when
// it was chosen may be taken when etcd binds it.
const startAttempts = 3

// Start starts a cluster and returns when every node answers a linearizable
// read. An error leaves nothing behind; it is a *MissingError where etcd is not
// installed.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Nodes < 1 {
		return nil, fmt.Errorf("start an etcd cluster: %d nodes asked for, at least 1 is needed", options.Nodes)
	}
	binary, err := exec.LookPath("etcd")
	if err != nil {
		return nil, &MissingError{Program: "etcd", Package: "etcd-server"}
	}
	for attempt := 1; ; attempt++ {
		c, err := start(ctx, binary, options)
		if err == nil {
			return c, nil
		}
		if attempt == startAttempts || ctx.Err() != nil || !errors.Is(err, errExited) {
			return nil, fmt.Errorf("start an etcd cluster of %d nodes: %w", options.Nodes, err)
		}
	}
}

func start(ctx context.Context, binary string, options Options) (_ *Cluster, err error) {
	c := &Cluster{spawner: newSpawner()}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	dir := options.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp(temporary(options.InMemory), "stroppy-etcd-"); err != nil {
			return nil, err
		}
		c.dir = dir
	}
	ports, err := freePorts(2 * options.Nodes)
	if err != nil {
		return nil, err
	}
	token := fmt.Sprintf("stroppy-%d-%d", os.Getpid(), ports[0])
	peers := make([]string, options.Nodes)
	for i := range peers {
		peers[i] = fmt.Sprintf("n%d=http://127.0.0.1:%d", i, ports[2*i+1])
	}
	for i := range options.Nodes {
		n := &node{
			name:     fmt.Sprintf("n%d", i),
			dir:      filepath.Join(dir, fmt.Sprintf("etcd-n%d", i)),
			endpoint: fmt.Sprintf("127.0.0.1:%d", ports[2*i]),
			binary:   binary,
		}
		if _, err = os.Stat(n.dir); err == nil {
			return nil, fmt.Errorf("%s exists already: take another folder or remove it", n.dir)
		}
		if err = os.MkdirAll(n.dir, 0o700); err != nil {
			return nil, err
		}
		n.args = append([]string{
			"--name", n.name,
			"--data-dir", filepath.Join(n.dir, "data"),
			"--listen-client-urls", "http://" + n.endpoint,
			"--advertise-client-urls", "http://" + n.endpoint,
			"--listen-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", ports[2*i+1]),
			"--initial-advertise-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", ports[2*i+1]),
			"--initial-cluster", strings.Join(peers, ","),
			"--initial-cluster-state", "new",
			"--initial-cluster-token", token,
			"--heartbeat-interval", "50",
			"--election-timeout", "500",
			"--logger", "zap", "--log-level", "warn", "--log-outputs", "stderr",
		}, options.Args...)
		c.nodes = append(c.nodes, n)
		if err = n.start(c.spawner); err != nil {
			return nil, err
		}
	}
	for _, n := range c.nodes {
		if err = n.waitHealthy(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// temporary returns the folder for temporary folders.
func temporary(inMemory bool) string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); inMemory && err == nil && info.IsDir() {
		return shm
	}
	return os.TempDir()
}

// Nodes returns the number of nodes, dead ones included.
func (c *Cluster) Nodes() int { return len(c.nodes) }

// Endpoints returns the client address, host:port, of every node by its number.
func (c *Cluster) Endpoints() []string {
	endpoints := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		endpoints[i] = n.endpoint
	}
	return endpoints
}

// URL returns the cluster as --db takes it: etcd://h1:p1,h2:p2.
func (c *Cluster) URL() string { return "etcd://" + strings.Join(c.Endpoints(), ",") }

func (c *Cluster) node(i int) (*node, error) {
	if i < 0 || i >= len(c.nodes) {
		return nil, fmt.Errorf("etcd node %d of %d: %w", i, len(c.nodes), ErrNoSuchNode)
	}
	return c.nodes[i], nil
}

// Kill ends node i as a power cut would end the process: SIGKILL. What it wrote
// stays in the page cache. A dead node is left as it is.
func (c *Cluster) Kill(i int) error {
	n, err := c.node(i)
	if err != nil {
		return err
	}
	return n.kill()
}

// Restart starts node i again on its own data, killing it first if it runs, and
// returns when it answers a linearizable read, for which a majority must run.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	n, err := c.node(i)
	if err != nil {
		return err
	}
	if err := n.kill(); err != nil {
		return err
	}
	if err := n.start(c.spawner); err != nil {
		return err
	}
	return n.waitHealthy(ctx)
}

// Pause stops node i's process with SIGSTOP: its connections stay open and
// nothing answers.
func (c *Cluster) Pause(i int) error {
	n, err := c.node(i)
	if err != nil {
		return err
	}
	return n.setPaused(true)
}

// Resume lets a paused node i go on.
func (c *Cluster) Resume(i int) error {
	n, err := c.node(i)
	if err != nil {
		return err
	}
	return n.setPaused(false)
}

// Leader returns the number of the node that leads. While there is none, or it
// is dead or paused, it waits for one until ctx ends.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	for {
		if i, ok := c.leader(ctx); ok {
			return i, nil
		}
		if err := pollAgain(ctx); err != nil {
			return 0, fmt.Errorf("find the leader of the etcd cluster: no running node leads: %w", err)
		}
	}
}

// leader asks every running node once. Of different answers, as an isolated node
// gives, the one of the highest raft term counts.
func (c *Cluster) leader(ctx context.Context) (leader int, ok bool) {
	members := map[uint64]int{}
	var newest status
	for i, n := range c.nodes {
		if !n.running() {
			continue
		}
		s, err := n.status(ctx)
		if err != nil {
			continue
		}
		members[s.Header.MemberID] = i
		if s.Leader != 0 && s.RaftTerm >= newest.RaftTerm {
			newest = s
		}
	}
	leader, ok = members[newest.Leader]
	return leader, ok && newest.Leader != 0
}

// Stop ends all nodes and removes all that Start made. It may be called again.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		var errs []error
		for _, n := range c.nodes {
			errs = append(errs, n.kill(), os.RemoveAll(n.dir))
		}
		c.spawner.close()
		if c.dir != "" {
			errs = append(errs, os.RemoveAll(c.dir))
		}
		if err := errors.Join(errs...); err != nil {
			c.stopErr = fmt.Errorf("stop the etcd cluster: %w", err)
		}
	})
	return c.stopErr
}
