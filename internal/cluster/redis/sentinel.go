package redis

import (
	"context"
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
type SentinelCluster struct{ *Cluster }

var _ cluster.Mover = (*SentinelCluster)(nil)

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
		return &SentinelCluster{newCluster(o, params, program)}
	}, func(c *SentinelCluster) error { return c.start(ctx) })
}

func (c *SentinelCluster) start(ctx context.Context) error {
	err := c.startServers(ctx)
	if err == nil {
		err = c.Each(func(n *server) error { return n.startSentinel(ctx, c.servers()[0]) })
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

// Nodes are the nodes with data.
func (c *SentinelCluster) Nodes() (nodes []cluster.Node) {
	for _, n := range c.servers() {
		nodes = append(nodes, watched{n})
	}
	return nodes
}

// watched is a node with a Sentinel beside it.
type watched struct{ *server }

// Agent is the node's Sentinel.
func (n watched) Agent() cluster.Auxiliary { return agent{n.sentinel} }

// quorum is how many Sentinels have to take the primary for down: a majority, which
// has to agree to a fail-over as well.
func (c *Cluster) quorum() int { return len(c.List())/2 + 1 }
