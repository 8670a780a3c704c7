package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"stroppy/internal/cluster"
)

// Cluster is a running primary with its replicas and their supervisor.
type Cluster struct {
	params    params
	layer     bool // a file system of ours is under the data
	program   string
	dir       string
	temporary bool            // StartCluster made dir
	record    *cluster.Record // of what a later start clears if this program is killed
	network   *cluster.Network

	life   context.Context // ends with the cluster
	retire context.CancelCauseFunc
	tasks  sync.WaitGroup // what goes on by itself

	changing lock // held while nodes come or go
	hosts    int  // made so far, which is the next node's number

	// roles is held while it is decided, and made true, who leads.
	roles lock

	mu      sync.Mutex // guards what follows, and each member's state; held for moments only
	members []*member
	primary *member
	events  []Event

	lamented string // why nobody was promoted, as noted last; of the supervisor alone
	stop     sync.Once
	stopErr  error
}

var (
	_ cluster.Cluster = (*Cluster)(nil)
	_ cluster.Mover   = (*Cluster)(nil)
	_ cluster.Resizer = (*Cluster)(nil)
	_ cluster.Node    = (*member)(nil)
)

// StartCluster starts a primary, node 0, and its replicas, and returns when all
// have the same data. An error leaves nothing behind; it is a
// cluster.MissingError where Redis is not installed, and a *cluster.ParamError for
// a parameter. The parameters are:
//
//	appendfsync=always  when the append-only file is synced: always, everysec, no
//	wait=N              the URL asks the driver to wait for N replicas at each commit
//	failover=off        nobody is promoted in place of a lost primary, which is
//	                    waited for
//	timeout=1s          how long a server that does not answer is waited for
//	set.NAME=VALUE      any other setting of Redis, on all nodes
func StartCluster(ctx context.Context, o cluster.Options) (*Cluster, error) {
	if o.Nodes < 1 {
		return nil, fmt.Errorf("start a Redis cluster: %d nodes asked for, at least 1 is needed", o.Nodes)
	}
	params, err := parseParams(o.Params, o.Nodes)
	if err != nil {
		return nil, err
	}
	program, err := cluster.Find("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c := &Cluster{params: params, program: program, layer: o.Layer, changing: newLock(), roles: newLock()}
		c.life, c.retire = context.WithCancelCause(context.Background())
		err := c.start(ctx, o)
		if err == nil {
			return c, nil
		}
		err = fmt.Errorf("start a Redis cluster of %d nodes: %w", o.Nodes, errors.Join(err, c.Stop()))
		if attempt == startAttempts || !strings.Contains(err.Error(), "Address already in use") {
			return nil, err
		}
	}
}

func (c *Cluster) start(ctx context.Context, o cluster.Options) (err error) {
	if c.record, err = cluster.NewRecord(fmt.Sprintf("redis:%d", o.Nodes)); err != nil {
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
		m, err := c.newMember(ctx, c.hosts, c.network.Host(c.hosts))
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.members = append(c.members, m)
		c.mu.Unlock()
	}
	c.primary = c.members[0]
	if err := c.each(func(m *member) error { return m.Restart(ctx) }); err != nil {
		return err
	}
	for _, m := range c.members {
		c.attend(m)
	}
	c.tasks.Go(c.supervise)
	if err = c.Whole(ctx); err != nil {
		return err
	}
	return c.record.SetURL(c.URL())
}

// each does something to all nodes at once.
func (c *Cluster) each(do func(*member) error) error {
	members := c.list()
	errs := make([]error, len(members))
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() { errs[i] = do(m) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// list returns the nodes that belong to the cluster now.
func (c *Cluster) list() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}

// member returns the node of a number.
func (c *Cluster) member(number int) (*member, error) {
	for _, m := range c.list() {
		if m.Number() == number {
			return m, nil
		}
	}
	return nil, fmt.Errorf("the Redis cluster has no node %d", number)
}

// Nodes are the nodes that belong to the cluster now, dead ones included.
func (c *Cluster) Nodes() []cluster.Node {
	var nodes []cluster.Node
	for _, m := range c.list() {
		nodes = append(nodes, m)
	}
	return nodes
}

// URL names all nodes; the driver finds the primary among them. One that was
// opened before a node was added does not know that node.
func (c *Cluster) URL() string {
	var addresses []string
	for _, m := range c.list() {
		addresses = append(addresses, m.address())
	}
	url := "redis://" + strings.Join(addresses, ",") + "/0"
	if c.params.wait > 0 {
		url += fmt.Sprintf("?wait=%d", c.params.wait)
	}
	return url
}

// NodeURL is the address of node i alone, which is read whatever its role is;
// empty if there is none.
func (c *Cluster) NodeURL(i int) string {
	m, err := c.member(i)
	if err != nil {
		return ""
	}
	return "redis://" + m.address() + "/0?read=any"
}

// Network joins the nodes.
func (c *Cluster) Network() *cluster.Network { return c.network }

// Event is something that the supervisor saw or did.
type Event struct {
	Time time.Time
	Text string
}

// Events are all events so far, the oldest first.
func (c *Cluster) Events() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

func (c *Cluster) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, Event{Time: time.Now(), Text: fmt.Sprintf(format, args...)})
}

// Stop ends all nodes with SIGKILL and removes all that StartCluster made, the
// nodes' folders in a folder of the caller's included. It may be called again.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.retire(errStopped) // all that waits for a node gives up
		// A node that is just being added is in the list then, or never will be.
		errs := []error{c.changing.acquire(context.Background())}
		defer c.changing.release()
		c.tasks.Wait()
		errs = append(errs, c.each((*member).erase))
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
			c.stopErr = fmt.Errorf("stop the Redis cluster: %w", err)
		}
	})
	return c.stopErr
}
