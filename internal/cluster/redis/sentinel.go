package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stroppy/internal/cluster"
)

const (
	// master is the name under which the Sentinels watch the primary.
	master = "stroppy"
	// fewestSentinels are the least of which one may be lost:
	// https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/.
	fewestSentinels = 3
	// parallelSyncs are the replicas that follow a new primary at the same time.
	parallelSyncs = 2
	// discoveryLimit bounds how long the Sentinels may take to find the replicas and each
	// other: they say hello every 2 s.
	discoveryLimit = 8 * time.Second
	// askLimit bounds one question.
	askLimit = time.Second
)

// SentinelCluster is a running primary with its replicas, and Sentinels that fail over.
// One Sentinel is beside each node, on its host, so that who cuts a node off cuts its
// Sentinel off as well; what else is done to a node is done to its server alone. With
// two nodes there is a third Sentinel on a host of its own.
type SentinelCluster struct {
	*cluster.NodeSet[*server]
	cluster.EventLog
	params  params
	program string
	data    int // nodes with data, which come first; the others have a Sentinel alone
}

var (
	_ cluster.Mover     = (*SentinelCluster)(nil)
	_ cluster.LocalNode = (*server)(nil)
)

// StartSentinel starts a primary, node 0, its replicas, and then the Sentinels, and
// returns when all have the same data and every Sentinel knows all the others and all
// replicas: one that comes to know the primary before its replicas are there asks it
// again only after 10 s. See Start.
func StartSentinel(ctx context.Context, o cluster.Options) (*SentinelCluster, error) {
	params, err := parseParams(o.Params, o.Nodes, bySentinel)
	if err != nil {
		return nil, err
	}
	program, lacks := findServer(o)
	kind := cluster.Kind{Name: "redis", PortTaken: portTaken, Lacks: lacks, Further: max(0, fewestSentinels-o.Nodes)}
	return cluster.Launch(ctx, kind, o, func() *SentinelCluster {
		c := &SentinelCluster{params: params, program: program, data: o.Nodes}
		c.NodeSet = cluster.NewNodeSet("the Redis cluster", c.newServer, c.healthy)
		return c
	}, func(c *SentinelCluster) error { return c.start(ctx) })
}

func (c *SentinelCluster) start(ctx context.Context) error {
	first := c.servers()[0]
	if err := first.Server.Restart(ctx); err != nil {
		return err
	}
	err := c.Each(func(n *server) error {
		if n == first || n.witness() {
			return nil
		}
		if err := n.Server.Restart(ctx); err != nil {
			return err
		}
		return cluster.Retry(ctx, func() error { return caughtUp(ctx, n, first.endpoint, first.history(ctx)) })
	})
	if err == nil {
		err = c.Each(func(n *server) error { return n.startSentinel(ctx, first) })
	}
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, discoveryLimit, fmt.Errorf("the Sentinels had %v", discoveryLimit))
	defer cancel()
	if err := c.WaitHealthy(limited); err != nil {
		return err
	}
	c.Tasks.Go(c.watchSentinels)
	for _, n := range c.servers() {
		c.Tasks.Go(func() { c.watchRole(n) })
	}
	return nil
}

// servers are the nodes with data.
func (c *SentinelCluster) servers() []*server { return c.List()[:c.data] }

// Nodes are the nodes with data.
func (c *SentinelCluster) Nodes() (nodes []cluster.Node) {
	for _, n := range c.servers() {
		nodes = append(nodes, n)
	}
	return nodes
}

// Witnesses are the numbers of the hosts that have a Sentinel and no data.
func (c *SentinelCluster) Witnesses() (numbers []int) {
	for _, n := range c.List()[c.data:] {
		numbers = append(numbers, n.Number())
	}
	return numbers
}

// URL names the Sentinels, of which the driver learns who the primary is.
func (c *SentinelCluster) URL() string {
	url := "redis://" + c.Addresses(func(n *server) string { return n.sentinelAt.address() }) + "/0?sentinel=" + master
	if c.params.wait > 0 {
		url += fmt.Sprintf("&wait=%d", c.params.wait)
	}
	return url
}

// quorum is how many Sentinels have to take the primary for down: a majority, which
// has to agree to a fail-over as well.
func (c *SentinelCluster) quorum() int { return len(c.List())/2 + 1 }

// Leader returns the number of the node that most of the Sentinels name as the primary,
// and that says so itself. While there is none Leader waits until ctx ends.
func (c *SentinelCluster) Leader(ctx context.Context) (number int, err error) {
	err = cluster.Retry(ctx, func() error {
		p, _, err := c.leads(ctx)
		if err == nil {
			number = p.Number()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find the primary of the Redis cluster: %w", err)
	}
	return number, nil
}

var errNoPrimary = errors.New("no node that runs is named the primary by most of the Sentinels")

// named is the node that most of the Sentinels name as the primary, and that runs; nil if
// there is none.
func (c *SentinelCluster) named(ctx context.Context, session func(*server) *session) *server {
	type lead struct{ address, epoch string }
	return cluster.Named(ctx, c.List(), func(ctx context.Context, n *server) lead {
		m, err := askMaster(ctx, session(n))
		if err != nil {
			return lead{}
		}
		return lead{m.address(), m["config-epoch"]}
	}, func(n *server, l lead) bool { return !n.witness() && n.address() == l.address && n.Awake() })
}

// leads returns the primary, which takes writes, and its view.
func (c *SentinelCluster) leads(ctx context.Context) (*server, view, error) {
	p := c.named(ctx, (*server).askedSentinel)
	if p == nil {
		return nil, view{}, errNoPrimary
	}
	v, err := look(ctx, p.orders)
	if err == nil && !v.primary {
		err = fmt.Errorf("%s, which is to lead, is a replica yet", p.Name())
	}
	return p, v, err
}

// healthy begins a wait until every node runs, all Sentinels name the same primary and
// know all nodes and each other, and every replica has what the primary had at the first
// look.
func (c *SentinelCluster) healthy() func(context.Context) error {
	var goal view
	return func(ctx context.Context) error {
		for _, n := range c.servers() {
			if !n.Awake() {
				return n.Absent()
			}
		}
		p, v, err := c.leads(ctx)
		if err != nil {
			return err
		}
		if goal.history != v.history { // of another primary, offsets say nothing of this one's
			goal = v
		}
		for _, n := range c.List() {
			if err := c.agrees(ctx, n, p); err != nil {
				return err
			}
		}
		for _, n := range c.servers() {
			if n == p {
				continue
			}
			if err := caughtUp(ctx, n, p.endpoint, goal); err != nil {
				return err
			}
		}
		return nil
	}
}
