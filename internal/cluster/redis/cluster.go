// Package redis starts real Redis servers on this machine, a primary with its replicas:
// a SentinelCluster fails over by Redis Sentinel, which is what most people run, and a
// Cluster by a supervisor of our own, for the reasons that cluster.Failover gives.
//
// The supervisor promotes the replica with the highest replication offset, of those that have had
// all data of the lost primary at some time. Redis acknowledges a write before
// a replica has it, so the new primary may miss some that were acknowledged, and
// they are gone for good when the old one comes back and takes its data from the
// new one: https://redis.io/docs/latest/operate/oss_and_stack/management/replication/.
// That is how Redis is made, and no fault of the supervisor's.
package redis

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"stroppy/internal/cluster"
)

// portTaken is what a server says when somebody else has its port.
const portTaken = "Address already in use"

// Cluster is a running primary with its replicas and their supervisor.
type Cluster struct {
	*cluster.Failover[*member]
	params  params
	program string
}

var (
	_ cluster.Mover     = (*Cluster)(nil)
	_ cluster.Resizer   = (*Cluster)(nil)
	_ cluster.LocalNode = (*member)(nil)
)

// Start starts the kind of cluster that the parameter failover names. An error leaves
// nothing behind; it is a cluster.MissingError where Redis is not installed, and a
// *cluster.ParamError for a parameter. The parameters are:
//
//	failover=sentinel   Sentinel fails over, or our own supervisor (ideal), or nobody:
//	                    a lost primary is waited for (off). A server alone has no Sentinel
//	appendonly=yes      whether there is an append-only file
//	appendfsync=always  when it is synced: always, everysec, no
//	save=               SECONDS CHANGES, after which a snapshot is written; empty: none
//	min-replicas-to-write=0, min-replicas-max-lag=1
//	                    a primary takes no writes while fewer replicas have answered
//	                    within so many seconds
//	repl-diskless-sync  yes: a replica gets all data over the network from memory, which
//	                    is the default with Sentinel; no: by way of a file
//	wait=N              the URL asks the driver to wait for N replicas at each commit
//	down-after=1s, failover-timeout=2s
//	                    Sentinel's down-after-milliseconds and failover-timeout
//	timeout=1s          how long our supervisor waits for a server that does not answer
//	set.NAME=VALUE      any other setting of Redis, on all nodes
func Start(ctx context.Context, o cluster.Options) (cluster.Local, error) {
	params, err := parseParams(o.Params, o.Nodes, usualFailover(o.Nodes))
	if err != nil {
		return nil, err
	}
	if params.sentinel {
		return local(StartSentinel(ctx, o))
	}
	return local(StartCluster(ctx, o))
}

// local hands a value of a concrete type on, which counts only without an error.
func local[C cluster.Local](c C, err error) (cluster.Local, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// StartCluster starts a primary, node 0, and its replicas under our own supervisor, and
// returns when all have the same data. See Start.
func StartCluster(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params, o.Nodes, bySupervisor)
	if err != nil {
		return nil, err
	}
	program, lacks := findServer(o)
	return cluster.Launch(ctx, cluster.Kind{Name: "redis", PortTaken: portTaken, Lacks: lacks}, o,
		func() *Cluster {
			c := &Cluster{params: params, program: program}
			c.Failover = cluster.NewFailover("the Redis cluster", cluster.FailoverKind[*member]{
				Replica: "replica", Timeout: params.timeout, Every: glance,
				Candidates: func(p *member) []*member {
					if !params.failOver {
						return nil
					}
					return c.candidates(p)
				},
				Farthest: c.farthest,
				Promote: func(ctx context.Context, _, m *member) error {
					c.setPrimary(m)
					return m.assign(ctx)
				},
				WhyWaiting: func(p *member) string {
					return fmt.Sprintf("nobody can be promoted in place of %s, which is waited for", p.Name())
				},
				Review:       func(context.Context, *member) {},
				NeedsRestart: func(m *member) bool { return !m.Running() },
				Next:         c.next, HandOver: c.handOver,
				Discard: func(context.Context, *member) error { return nil },
			}, c.newMember, c.healthy)
			return c
		},
		func(c *Cluster) error { return c.start(ctx) })
}

// servers are the programs of the products, of which the first found is taken.
var servers = []string{"redis-server", "valkey-server"}

// findServer returns the path of redis-server or valkey-server: that of the folder bin, else
// of the first folder on PATH that has one of them.
func findServer(o cluster.Options) (string, error) {
	if !o.Params.Has("bin") {
		for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
			for _, name := range servers {
				if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil && filepath.IsAbs(folder) {
					return path, nil
				}
			}
		}
	}
	program, err := o.Find(servers[0], "redis-server")
	if err != nil {
		if valkey, missing := o.Find(servers[1], ""); missing == nil {
			return valkey, nil
		}
	}
	return program, err
}

func (c *Cluster) start(ctx context.Context) error {
	c.Primary = c.List()[0]
	err := c.Each(func(m *member) error { return m.Restart(ctx) })
	if err == nil {
		c.Supervise()
	}
	return err
}

// Description says who fails over.
func (c *Cluster) Description() string {
	if !c.params.failOver {
		return "by nobody: a lost primary is waited for"
	}
	return c.Failover.Description()
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
