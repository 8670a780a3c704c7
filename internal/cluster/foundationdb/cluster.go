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
)

// Cluster is a running FoundationDB cluster. The node with the cluster controller counts as
// its leader. A Restart of one of its nodes returns when the node has joined, for which a
// majority of the coordinators must run: after the loss of a majority, restart the nodes at
// once, not one after another.
type Cluster struct {
	*cluster.NodeSet[*node]
	server, cli string
	params      params
	file        string      // the clients' cluster file, which fdbcli keeps up to date
	formed      atomic.Bool // the nodes are a database
	seen        lastStatus
}

var (
	_ cluster.Local = (*Cluster)(nil)
	_ cluster.Mover = (*Cluster)(nil)
)

// Start starts a cluster and returns when all nodes have joined and the data are healthy.
// An error leaves nothing behind; it is a cluster.MissingError where there is no fdbserver
// or fdbcli on PATH, and a *cluster.ParamError for a parameter. The parameters are:
//
//	redundancy=double  single, double or triple; double from three nodes on
//	storage=ssd        ssd or memory
//	processes=1        fdbserver processes on a node, which fail together
//	exclude=off        on: a node is excluded before it is replaced, and included after
//	knobs=test         knobs with which failures are seen early and files are small
//	set.NAME=VALUE     a knob of the servers
func Start(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params, o.Nodes)
	if err != nil {
		return nil, err
	}
	if o.FaultFS {
		return nil, &cluster.ParamError{Param: "layer", Reason: "the disk faults are not for FoundationDB, which writes to its files past the kernel's cache"}
	}
	server, noServer := o.Find("fdbserver", "", "/usr/sbin")
	cli, noCLI := o.Find("fdbcli", "")
	return cluster.Launch(ctx, cluster.Kind{Name: "fdb", PortTaken: "Address already in use", Lacks: cmp.Or(noServer, noCLI)}, o,
		func() *Cluster {
			c := &Cluster{server: server, cli: cli, params: params, seen: lastStatus{lock: cluster.NewLock()}}
			c.NodeSet = cluster.NewNodeSet("the FoundationDB cluster", c.newNode, func() func(context.Context) error { return c.checkHealthy })
			return c
		},
		func(c *Cluster) error { return c.start(ctx) })
}

// start starts all nodes and makes them a database.
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
	err = cluster.RetryEvery(ctx, askAgain, func() error {
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

// wanted are the addresses of the coordinators when all is well: one on each of the first
// nodes.
func (c *Cluster) wanted() (addresses []string) {
	nodes := c.List()
	for _, n := range nodes[:min(len(nodes), coordinators(len(nodes)))] {
		addresses = append(addresses, n.address())
	}
	return addresses
}

// spare is how many nodes may be lost of a cluster that is whole.
func (c *Cluster) spare() int {
	if c.params.redundancy == "single" {
		return 0
	}
	return 1
}

// checkHealthy is nil when every node runs, has joined and is not excluded, the data have
// all their copies, the last recovery is complete, one more node may be lost where the
// redundancy is for that, and the coordinators are those that are wanted.
func (c *Cluster) checkHealthy(ctx context.Context) error {
	for _, n := range c.List() {
		if !n.Awake() {
			return fmt.Errorf("%s is down or paused", n.Name())
		}
	}
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
		_ = cluster.Sleep(ctx, askAgain) // a question starts a process
	}
	return err
}

// expendable is nil when the data of n are of no need.
func (c *Cluster) expendable(ctx context.Context, n *node) error {
	s, err := c.status(ctx)
	if err != nil {
		return err
	}
	spare := 0
	if n.Awake() {
		spare = 1 // while it is down, its loss is counted already
	}
	if err := s.whole(spare); err != nil {
		_ = cluster.Sleep(ctx, askAgain)
		return err
	}
	return nil
}

// coordinate makes these the coordinators.
func (c *Cluster) coordinate(ctx context.Context, addresses []string) error {
	return cluster.RetryEvery(ctx, askAgain, func() error {
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

// URL is the address of the whole cluster: its cluster file.
func (c *Cluster) URL() string { return "fdb:" + c.file }

// URL is the address of the whole cluster as the node itself has it.
func (n *node) URL() string { return "fdb:" + n.file() }

// Leader returns the number of the node with the cluster controller. While there is none,
// or it is dead or paused, Leader waits until ctx ends.
func (c *Cluster) Leader(ctx context.Context) (number int, err error) {
	err = cluster.RetryEvery(ctx, askAgain, func() error {
		n, err := c.leading(ctx)
		if err == nil {
			number = n.Number()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find the cluster controller of FoundationDB: %w", err)
	}
	return number, nil
}

// leading asks once who leads.
func (c *Cluster) leading(ctx context.Context) (*node, error) {
	s, err := c.status(ctx)
	if err != nil {
		return nil, err
	}
	address := s.controller()
	for _, n := range c.List() {
		if slices.Contains(n.addresses(), address) && n.Awake() {
			return n, nil
		}
	}
	return nil, errors.New("no running node is the cluster controller")
}

// MoveLeader has the cluster controller recruited on a node: a process of that class is
// preferred to any other. With the next cluster controller come a recovery and new logs and
// proxies. The class is taken back afterwards, so that the node goes on to hold data.
func (c *Cluster) MoveLeader(ctx context.Context, to int) error {
	return c.Move(to, func(target *node) error {
		if !target.Awake() {
			return fmt.Errorf("%s does not run", target.Name())
		}
		if n, err := c.leading(ctx); err == nil && n == target {
			return nil
		}
		class := func(ctx context.Context, class string) error {
			return cluster.RetryEvery(ctx, askAgain, func() error {
				return c.command(ctx, askTimeout, "setclass", target.address(), class)
			})
		}
		err := class(ctx, "cluster_controller")
		if err == nil {
			err = cluster.RetryEvery(ctx, askAgain, func() error {
				n, err := c.leading(ctx)
				if err == nil && n != target {
					err = fmt.Errorf("%s is the cluster controller yet", n.Name())
				}
				return err
			})
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
		defer cancel()
		return errors.Join(err, class(limited, "default"))
	})
}

// lastStatus is what was asked last, for all that ask at once.
type lastStatus struct {
	lock cluster.Lock
	at   time.Time // when it was asked for
	status
}
