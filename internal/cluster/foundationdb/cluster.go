//go:build fdb

package foundationdb

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
)

// Cluster is a running FoundationDB cluster. The node with the cluster controller counts as its leader. Restart of a
// node returns when the node has joined, which needs a majority of the coordinators. After the loss of a majority,
// restart the nodes at the same time, not one after another.
type Cluster struct {
	*cluster.NodeSet[*node]
	server, cli string
	params      params
	file        string      // the clients' cluster file, which fdbcli updates
	formed      atomic.Bool // the nodes have formed a database
	seen        lastStatus
}

var (
	_ cluster.Local = (*Cluster)(nil)
	_ cluster.Mover = (*Cluster)(nil)
)

// Start starts a cluster and returns when all nodes have joined and the data are healthy. An error leaves nothing
// behind. It is a host.MissingError if fdbserver or fdbcli is not on PATH, and a *cluster.ParamError for a wrong
// parameter. The parameters are:
//
//	redundancy=double  single, double or triple; default for three nodes or more: double
//	storage=ssd        ssd or memory
//	processes=1        fdbserver processes per node, which fail together
//	exclude=off        on: a node is excluded before it is replaced, and included afterwards
//	knobs=test         knobs that detect failures early and keep files small
//	set.NAME=VALUE     a knob of the servers
func Start(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params, o.Nodes)
	if err != nil {
		return nil, err
	}
	server, noServer := o.Find("fdbserver", "", "/usr/sbin")
	cli, noCLI := o.Find("fdbcli", "")
	return cluster.Launch(ctx, cluster.Kind{
		Name: "fdb", PortTaken: "Address already in use", Lacks: cmp.Or(noServer, noCLI),
		NoFaultFS: "disk faults are not possible with FoundationDB, which bypasses the kernel's cache",
	}, o, func() *Cluster {
		c := &Cluster{server: server, cli: cli, params: params, seen: lastStatus{lock: wait.NewLock()}}
		c.NodeSet = cluster.NewNodeSet("the FoundationDB cluster", c.newNode, func() func(context.Context) error { return c.checkHealthy })
		c.LedBy("the cluster controller of FoundationDB", c.leading)
		return c
	}, (*Cluster).start)
}

// start starts all nodes and forms the database.
func (c *Cluster) start(ctx context.Context) error {
	dir, err := c.TempFolder(os.TempDir())
	if err != nil {
		return err
	}
	c.file = filepath.Join(dir, "fdb.cluster")
	connection := "stroppy:" + rand.Text() + "@" + strings.Join(c.wanted(), ",")
	if err := os.WriteFile(c.file, []byte(connection+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the cluster file: %w", err)
	}
	if err := c.Each(func(n *node) error { return n.Restart(ctx) }); err != nil {
		return err
	}
	err = wait.RetryEvery(ctx, askAgain, func() error {
		err := c.command(ctx, changeTimeout, "configure", "new", c.params.redundancy, c.params.storage)
		if err != nil && strings.Contains(err.Error(), "already exists") {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	c.formed.Store(true)
	return nil
}

// wanted returns the intended coordinators: one on each of the first nodes.
func (c *Cluster) wanted() (addresses []string) {
	nodes := c.List()
	for _, n := range nodes[:min(len(nodes), coordinators(len(nodes)))] {
		addresses = append(addresses, n.address())
	}
	return addresses
}

// spare returns how many nodes of a healthy cluster may be lost.
func (c *Cluster) spare() int {
	if c.params.redundancy == "single" {
		return 0
	}
	return 1
}

// checkHealthy returns nil if four things hold. Every node has joined and is not excluded. The data have all
// their copies, and the last recovery is complete. One more node may be lost if the redundancy allows it. The
// coordinators are the wanted ones.
func (c *Cluster) checkHealthy(ctx context.Context) error {
	s, err := c.status(ctx)
	if err == nil {
		err = s.whole(c.spare())
	}
	for _, n := range c.List() {
		if err != nil {
			break
		}
		if joined := s.joined(n.addresses()); joined != nil {
			err = fmt.Errorf("%s: %w", n.Name(), joined)
		}
	}
	if err == nil {
		err = s.coordinated(c.wanted())
	}
	if err != nil {
		_ = wait.Sleep(ctx, askAgain) // each query starts a process
	}
	return err
}

// expendable returns nil if the data of the node are not needed.
func (n *node) expendable(ctx context.Context) error {
	c := n.cluster
	if c.spare() == 0 {
		return cluster.Refuse("its data are the only copy: use a cluster of at least %d nodes with redundancy=double", nodesFor["double"])
	}
	s, err := c.status(ctx)
	if err != nil {
		return err
	}
	spare := 0
	if n.Awake() {
		spare = 1 // the loss of a node that is down is counted already
	}
	if err := s.whole(spare); err != nil {
		_ = wait.Sleep(ctx, askAgain)
		return err
	}
	return nil
}

// coordinate sets the coordinators.
func (c *Cluster) coordinate(ctx context.Context, addresses []string) error {
	return wait.RetryEvery(ctx, askAgain, func() error {
		s, err := c.status(ctx)
		if err == nil && s.sameCoordinators(addresses) {
			return nil
		}
		err = c.command(ctx, changeTimeout, append([]string{"coordinators"}, addresses...)...)
		if err != nil && strings.Contains(err.Error(), "No change") {
			return nil
		}
		return err
	})
}

// URL returns the address of the whole cluster: its cluster file.
func (c *Cluster) URL() string { return "fdb:" + c.file }

// URL returns the address of the whole cluster through the node's own cluster file.
func (n *node) URL() string { return "fdb:" + n.file() }

// leading asks once for the node with the cluster controller.
func (c *Cluster) leading(ctx context.Context) (*node, error) {
	s, err := c.status(ctx)
	address := s.controller()
	for _, n := range c.List() {
		if err == nil && slices.Contains(n.addresses(), address) && n.Awake() {
			return n, nil
		}
	}
	_ = wait.Sleep(ctx, askAgain) // each query starts a process
	return nil, cmp.Or(err, errors.New("no running node is the cluster controller"))
}

// MoveLeader makes a node's process the cluster controller by its process class, which is preferred. A new cluster
// controller causes a recovery with new logs and proxies. Then the class is reset, so that the node continues to hold
// data.
func (c *Cluster) MoveLeader(ctx context.Context, to int) error {
	return c.HandOver(ctx, to, c.leading, func(_ context.Context, _, target *node) error {
		class := func(ctx context.Context, class string) error {
			return wait.RetryEvery(ctx, askAgain, func() error {
				return c.command(ctx, askTimeout, "setclass", target.address(), class)
			})
		}
		err := class(ctx, "cluster_controller")
		if err == nil {
			err = wait.RetryEvery(ctx, askAgain, func() error {
				n, err := c.leading(ctx)
				if err == nil && n != target {
					err = fmt.Errorf("%s is still the cluster controller", n.Name())
				}
				return err
			})
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
		defer cancel()
		return errors.Join(err, class(limited, "default"))
	})
}

// lastStatus is the last answer, for all callers that ask at the same time.
type lastStatus struct {
	lock wait.Lock
	at   time.Time // start of the query
	status
}
