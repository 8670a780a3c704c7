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
	// fewestSentinels is the smallest number of which one may be lost:
	// https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/.
	fewestSentinels = 3
	// parallelSyncs is the number of replicas that follow a new primary at the same time.
	parallelSyncs = 2
	// discoveryLimit bounds the time until the Sentinels have found the replicas and each other: they announce
	// themselves every 2 s.
	discoveryLimit = 8 * time.Second
	// askLimit bounds one query.
	askLimit = time.Second
)

// SentinelCluster is a running primary with replicas, and Sentinels that fail over. Each node has a Sentinel on its
// host, so a cut of the node also cuts its Sentinel off. Other faults of a node affect only its server. With two
// nodes there is a third Sentinel on its own host.
type SentinelCluster struct{ *Cluster }

var _ cluster.Mover = (*SentinelCluster)(nil)

// StartSentinel starts a primary, node 0, its replicas, and then the Sentinels. It returns when all have the same
// data and every Sentinel knows all the others and all replicas. A Sentinel that finds the primary before its
// replicas asks it again only after 10 s. See Start.
func StartSentinel(ctx context.Context, o cluster.Options) (*SentinelCluster, error) {
	params, err := parseParams(o.Params, o.Nodes, bySentinel)
	if err != nil {
		return nil, err
	}
	program, lacks := findServer(o)
	kind := cluster.Kind{Name: "redis", PortTaken: portTaken, Lacks: lacks, Further: max(0, fewestSentinels-o.Nodes)}
	return cluster.Launch(ctx, kind, o, func() *SentinelCluster {
		return &SentinelCluster{newCluster(o, params, program)}
	}, (*SentinelCluster).start)
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

// Nodes returns the nodes with data.
func (c *SentinelCluster) Nodes() (nodes []cluster.Node) {
	for _, n := range c.servers() {
		nodes = append(nodes, watched{n})
	}
	return nodes
}

// watched is a node with its Sentinel.
type watched struct{ *server }

// Agent returns the node's Sentinel.
func (n watched) Agent() cluster.Auxiliary { return agent{n.sentinel} }

// quorum returns how many Sentinels must regard the primary as down: a majority, which must also agree to a failover.
func (c *Cluster) quorum() int { return len(c.List())/2 + 1 }
