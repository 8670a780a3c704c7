// Package etcd starts real etcd clusters on this machine.
//
// It needs the etcd server's binary (3.4 or later), which the Debian package
// etcd-server brings, and speaks to it over the JSON gateway of its client port:
// https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"stroppy/internal/cluster"
)

// Cluster is a running etcd cluster.
type Cluster struct {
	binary    string
	flags     []string // further ones for every node
	layer     bool     // a file system of ours is under the data
	clock     bool     // the clocks can be steered
	dir       string
	temporary bool            // Start made dir
	record    *cluster.Record // of what a later start clears if this program is killed
	network   *cluster.Network
	token     string
	formed    atomic.Bool // the first nodes have become a cluster

	life   context.Context // ends with the cluster
	retire context.CancelCauseFunc

	changing chan struct{} // is full while one node is added, removed or replaced, and once stopped
	hosts    int           // made so far, which is the next node's number

	mu    sync.Mutex
	nodes []*node // that belong to the cluster

	stop    sync.Once
	stopErr error
}

var (
	_ cluster.Cluster = (*Cluster)(nil)
	_ cluster.Mover   = (*Cluster)(nil)
	_ cluster.Resizer = (*Cluster)(nil)
)

var (
	errStopped = errors.New("the cluster is stopped")
	errRemoved = errors.New("the node was removed from the cluster")
)

// startAttempts bounds the tries to start all nodes: on loopback, a port that
// was free when it was chosen may be taken when etcd binds it.
const startAttempts = 3

// Start starts a cluster and returns when every node answers a linearizable
// read. Of the parameters it takes set.FLAG=VALUE, which gives every node
// --FLAG=VALUE. An error leaves nothing behind; it is a cluster.MissingError
// where etcd is not installed.
func Start(ctx context.Context, o cluster.Options) (*Cluster, error) {
	flags, err := flagsOf(o.Params)
	switch {
	case err != nil:
		return nil, err
	case o.Nodes < 1:
		return nil, fmt.Errorf("start an etcd cluster: %d nodes asked for, at least 1 is needed", o.Nodes)
	}
	binary, err := cluster.Find("etcd", "etcd-server")
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c := &Cluster{binary: binary, layer: o.Layer, clock: o.Clock, flags: flags, changing: make(chan struct{}, 1)}
		c.life, c.retire = context.WithCancelCause(context.Background())
		err := c.start(ctx, o)
		if err == nil {
			return c, nil
		}
		err = fmt.Errorf("start an etcd cluster of %d nodes: %w", o.Nodes, errors.Join(err, c.Stop()))
		if attempt == startAttempts || !strings.Contains(err.Error(), "address already in use") {
			return nil, err
		}
	}
}

// decided are the flags that Start gives itself, by which the nodes find each
// other and their data.
var decided = []string{"name", "data-dir", "wal-dir", "config-file", "listen-", "advertise-", "initial-", "log-outputs"}

// flagsOf turns the parameters into flags of etcd. The error is a
// *cluster.ParamError.
func flagsOf(params url.Values) ([]string, error) {
	var flags []string
	for name, values := range params {
		flag, ok := strings.CutPrefix(name, "set.")
		if !ok {
			return nil, &cluster.ParamError{Param: name, Reason: "etcd has none of this name: take set.FLAG=VALUE for a flag of etcd's, such as set.snapshot-count=1000"}
		}
		if slices.ContainsFunc(decided, func(own string) bool { return strings.HasPrefix(flag, own) }) {
			return nil, &cluster.ParamError{Param: name, Reason: "the cluster sets this flag itself, to find its nodes and their data"}
		}
		for _, v := range values {
			flags = append(flags, "--"+flag+"="+v)
		}
	}
	slices.Sort(flags)
	return flags, nil
}

func (c *Cluster) start(ctx context.Context, o cluster.Options) (err error) {
	if c.record, err = cluster.NewRecord(fmt.Sprintf("etcd:%d", o.Nodes)); err != nil {
		return err
	}
	if o.Dir == "" {
		c.temporary = true
		c.dir, err = c.record.TempFolder(temporary(o.InMemory))
	} else if c.dir, err = filepath.Abs(o.Dir); err == nil {
		err = os.MkdirAll(c.dir, 0o755)
	}
	if err != nil {
		return err
	}
	if c.network, err = cluster.NewNetwork(ctx, o.Nodes, o.Loopback); err != nil {
		return err
	}
	for ; c.hosts < o.Nodes; c.hosts++ {
		if _, err = c.newNode(ctx, c.network.Host(c.hosts)); err != nil {
			return err
		}
	}
	c.token = fmt.Sprintf("stroppy-%d-%s", os.Getpid(), c.nodes[0].peer)
	if err = c.restartAll(ctx); err != nil {
		return err
	}
	c.formed.Store(true)
	return c.record.SetURL(c.URL())
}

// restartAll starts all nodes at once, because none answers before a majority
// runs. The error is that of the node that failed first.
func (c *Cluster) restartAll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	for _, n := range c.list() {
		wg.Go(func() {
			if err := n.Restart(ctx); err != nil {
				once.Do(func() { first = err })
				cancel()
			}
		})
	}
	wg.Wait()
	return first
}

// temporary returns the folder for temporary folders.
func temporary(inMemory bool) string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); inMemory && err == nil && info.IsDir() {
		return shm
	}
	return os.TempDir()
}

// list returns the nodes that belong to the cluster now.
func (c *Cluster) list() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// node returns the node of a number.
func (c *Cluster) node(number int) (*node, error) {
	for _, n := range c.list() {
		if n.Number() == number {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the etcd cluster has no node %d", number)
}

// Nodes are the nodes that belong to the cluster now, dead ones included. A
// Restart returns when the node answers a linearizable read, for which a
// majority must run: after the loss of a majority, restart the nodes at once,
// not one after another.
func (c *Cluster) Nodes() []cluster.Node {
	var nodes []cluster.Node
	for _, n := range c.list() {
		nodes = append(nodes, n)
	}
	return nodes
}

// Endpoints returns the client addresses, host:port, in the order of Nodes.
func (c *Cluster) Endpoints() []string {
	var endpoints []string
	for _, n := range c.list() {
		endpoints = append(endpoints, n.client)
	}
	return endpoints
}

// URL returns the cluster as --db takes it: etcd://h1:p1,h2:p2. A client that
// was opened before a node was added does not know that node.
func (c *Cluster) URL() string { return "etcd://" + strings.Join(c.Endpoints(), ",") }

// NodeURL is the address of node i alone; empty if there is none.
func (c *Cluster) NodeURL(i int) string {
	n, err := c.node(i)
	if err != nil {
		return ""
	}
	return "etcd://" + n.client
}

// Network joins the nodes.
func (c *Cluster) Network() *cluster.Network { return c.network }

// Stop ends all nodes and removes all that Start made, the nodes' folders in a
// folder of the caller's included. It may be called again.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.retire(errStopped) // all that waits for a node gives up
		c.changing <- struct{}{}
		nodes := c.list()
		errs := make([]error, len(nodes), len(nodes)+2)
		var wg sync.WaitGroup
		for i, n := range nodes {
			wg.Go(func() { errs[i] = n.erase() })
		}
		wg.Wait()
		if c.network != nil {
			errs = append(errs, c.network.Close())
		}
		if c.temporary && c.dir != "" {
			errs = append(errs, os.RemoveAll(c.dir))
		}
		err := errors.Join(errs...)
		if err == nil && c.record != nil {
			err = c.record.Close()
		}
		if err != nil {
			c.stopErr = fmt.Errorf("stop the etcd cluster: %w", err)
		}
	})
	return c.stopErr
}
