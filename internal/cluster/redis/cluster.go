package redis

import (
	"context"
	"fmt"

	"stroppy/internal/cluster"
)

// Cluster is a running primary with its replicas and their supervisor.
type Cluster struct {
	*cluster.Failover[*member]
	params  params
	program string
}

var (
	_ cluster.Local     = (*Cluster)(nil)
	_ cluster.Mover     = (*Cluster)(nil)
	_ cluster.Resizer   = (*Cluster)(nil)
	_ cluster.LocalNode = (*member)(nil)
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
	params, err := parseParams(o.Params, o.Nodes)
	if err != nil {
		return nil, err
	}
	program, err := cluster.Find("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	return cluster.Launch(ctx, cluster.Kind{Name: "redis", PortTaken: "Address already in use"}, o,
		func() *Cluster {
			c := &Cluster{params: params, program: program}
			c.Failover = cluster.NewFailover("the Redis cluster", "replica", c.newMember)
			return c
		},
		func(c *Cluster) error { return c.start(ctx) })
}

func (c *Cluster) start(ctx context.Context) error {
	members := c.List()
	c.Primary = members[0]
	if err := c.Each(func(m *member) error { return m.Restart(ctx) }); err != nil {
		return err
	}
	for _, m := range members {
		m.Watch()
	}
	c.Supervise(glance, c.step)
	return nil
}

// URL names all nodes; the driver finds the primary among them. One that was
// opened before a node was added does not know that node.
func (c *Cluster) URL() string {
	url := "redis://" + c.Addresses((*member).address) + "/0"
	if c.params.wait > 0 {
		url += fmt.Sprintf("?wait=%d", c.params.wait)
	}
	return url
}

// URL is the address of the node alone, which is read whatever its role is.
func (m *member) URL() string { return "redis://" + m.address() + "/0?read=any" }
