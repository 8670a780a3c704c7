// Package redis starts real Redis servers on this machine: a primary with replicas. A SentinelCluster fails over by
// Redis Sentinel, the usual way. A Cluster has no failover, and waits for a lost primary.
//
// Redis acknowledges a write before a replica has it. So a promoted replica may lack acknowledged writes:
// https://redis.io/docs/latest/operate/oss_and_stack/management/replication/.
package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
)

// portTaken is the server's message for a port in use.
const portTaken = "Address already in use"

// Cluster is a running primary with replicas, without failover.
type Cluster struct {
	*cluster.NodeSet[*server]
	cluster.EventLog
	params  params
	program string
	data    int // number of nodes with data, which come first; the others have only a Sentinel
}

var _ cluster.LocalNode = (*server)(nil)

func newCluster(o cluster.Options, params params, program string) *Cluster {
	c := &Cluster{params: params, program: program, data: o.Nodes}
	c.NodeSet = cluster.NewNodeSet("the Redis cluster", c.newServer, c.healthy)
	c.LedBy("the primary of the Redis cluster", c.leads)
	return c
}

// Start starts the kind of cluster that the parameter failover names. An error leaves nothing behind. It is a
// host.MissingError if Redis is not installed, and a *cluster.ParamError for a wrong parameter. The parameters
// are:
//
//	failover=sentinel   Sentinel fails over; off: no failover. A single server has no
//	                    Sentinel
//	appendonly=yes      whether there is an append-only file
//	appendfsync=always  when it is synced: always, everysec, no
//	save=               SECONDS CHANGES, after which a snapshot is written; empty: none
//	min-replicas-to-write=0, min-replicas-max-lag=1
//	                    a primary accepts writes only if so many replicas have answered
//	                    within so many seconds
//	repl-diskless-sync  yes (default): a replica gets all data over the network from
//	                    memory; no: through a file
//	wait=N              the URL makes the driver wait for N replicas at each commit
//	down-after=1s, failover-timeout=2s
//	                    Sentinel's down-after-milliseconds and failover-timeout
//	set.NAME=VALUE      any other setting of Redis, on all nodes
func Start(ctx context.Context, o cluster.Options) (cluster.Local, error) {
	params, err := parseParams(o.Params, o.Nodes, usualFailover(o.Nodes))
	if err != nil {
		return nil, err
	}
	if params.sentinel {
		return cluster.AsLocal(StartSentinel(ctx, o))
	}
	return cluster.AsLocal(StartCluster(ctx, o))
}

// StartCluster starts a primary, node 0, and its replicas without Sentinels, and returns when all have the same data.
// A server that ends by itself is restarted. See Start.
func StartCluster(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params, o.Nodes, byNobody)
	if err != nil {
		return nil, err
	}
	program, lacks := findServer(o)
	return cluster.Launch(ctx, cluster.Kind{Name: "redis", PortTaken: portTaken, Lacks: lacks}, o,
		func() *Cluster { return newCluster(o, params, program) },
		func(c *Cluster, ctx context.Context) error {
			err := c.startServers(ctx)
			if err == nil {
				c.RestartEnded(&c.EventLog)
			}
			return err
		})
}

// servers are the programs of the supported products; the first found is used.
var servers = []string{"redis-server", "valkey-server"}

// findServer returns the path of redis-server or valkey-server: in the folder bin, or else in the first folder on
// PATH with one of them.
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

// startServers starts the primary and then its replicas, and returns when all have the same data.
func (c *Cluster) startServers(ctx context.Context) error {
	first := c.servers()[0]
	if err := first.Server.Restart(ctx); err != nil {
		return err
	}
	return c.Each(func(n *server) error {
		if n == first || n.witness() {
			return nil
		}
		if err := n.Server.Restart(ctx); err != nil {
			return err
		}
		return wait.Retry(ctx, func() error { return caughtUp(ctx, n, first.endpoint, first.history(ctx)) })
	})
}

// Description describes the failover; it is empty for a single server.
func (c *Cluster) Description() string {
	if c.data == 1 {
		return ""
	}
	return "by nobody: a lost primary is waited for"
}

// servers returns the nodes with data.
func (c *Cluster) servers() []*server { return c.List()[:c.data] }

// Witnesses returns the numbers of the hosts with a Sentinel and no data.
func (c *Cluster) Witnesses() []int { return cluster.Numbers(c.List()[c.data:]) }

// URL names the Sentinels, from which the driver learns the primary, or without Sentinels all nodes.
func (c *Cluster) URL() string {
	url, sign := "redis://"+c.Addresses((*server).address)+"/0", "?"
	if c.params.sentinel {
		url = "redis://" + c.Addresses(func(n *server) string { return n.sentinelAt.address() }) + "/0?sentinel=" + master
		sign = "&"
	}
	if c.params.wait > 0 {
		url += fmt.Sprintf("%swait=%d", sign, c.params.wait)
	}
	return url
}

var errNoPrimary = errors.New("no node that runs is named the primary by most of the Sentinels")

// named returns the primary if it runs: the node that most of the Sentinels name, or without Sentinels the first one.
// It returns nil if there is none.
func (c *Cluster) named(ctx context.Context, session func(*server) *session) *server {
	if first := c.servers()[0]; !c.params.sentinel {
		if first.Awake() {
			return first
		}
		return nil
	}
	type lead struct{ address, epoch string }
	leader, _ := cluster.Named(ctx, c.List(), func(ctx context.Context, n *server) lead {
		m, err := askMaster(ctx, session(n))
		if err != nil {
			return lead{}
		}
		return lead{m.address(), m["config-epoch"]}
	}, func(n *server, l lead) bool { return !n.witness() && n.address() == l.address && n.Awake() })
	return leader
}

// leads returns the primary, which must confirm its role.
func (c *Cluster) leads(ctx context.Context) (*server, error) {
	p, _, err := c.viewed(ctx)
	return p, err
}

// viewed returns the primary, which accepts writes, and its view.
func (c *Cluster) viewed(ctx context.Context) (*server, view, error) {
	p := c.named(ctx, (*server).askedSentinel)
	switch {
	case p == nil && !c.params.sentinel:
		return nil, view{}, c.servers()[0].Absent()
	case p == nil:
		return nil, view{}, errNoPrimary
	}
	v, err := look(ctx, p.orders)
	if err == nil && !v.primary {
		err = fmt.Errorf("%s, which should lead, is still a replica", p.Name())
	}
	return p, v, err
}

// healthy begins a wait until every replica has the data that the primary had at the first check.
// All Sentinels must name the same primary, and know all nodes and each other.
func (c *Cluster) healthy() func(context.Context) error {
	var goal view
	return func(ctx context.Context) error {
		p, v, err := c.viewed(ctx)
		if err != nil {
			return err
		}
		if goal.history != v.history { // offsets of another history cannot be compared
			goal = v
		}
		for _, n := range c.List() {
			if !c.params.sentinel {
				break
			}
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

// caughtUp returns an error unless a replica follows the primary at an address and has all data up to goal.
func caughtUp(ctx context.Context, m *server, primary endpoint, goal view) error {
	v, err := look(ctx, m.orders)
	switch {
	case err != nil:
		return fmt.Errorf("%s does not answer: %w", m.Name(), err)
	case !v.follows(primary.address()) || !v.up || v.history != goal.history:
		return fmt.Errorf("%s is not connected to the primary %s", m.Name(), primary.address())
	case v.offset < goal.offset:
		return fmt.Errorf("%s lacks %d bytes of the primary's data", m.Name(), goal.offset-v.offset)
	}
	return nil
}
