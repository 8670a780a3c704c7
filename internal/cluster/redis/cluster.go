// Package redis starts real Redis servers on this machine: a Cluster is a primary
// with its replicas and a supervisor of our own, for the reasons that cluster.Failover
// gives; Redis Sentinel is what most people run.
//
// The replica with the highest replication offset is promoted, of those that have
// had all data of the lost primary at some time. Redis acknowledges a write before
// a replica has it, so the new primary may miss some that were acknowledged, and
// they are gone for good when the old one comes back and takes its data from the
// new one: https://redis.io/docs/latest/operate/oss_and_stack/management/replication/.
// That is how Redis is made, and no fault of the supervisor's.
package redis

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"stroppy/internal/cluster"
)

// params are what a cluster takes behind its question mark.
type params struct {
	failOver bool          // failover: a lost primary is replaced
	wait     int           // wait: for so many replicas the driver waits at each commit
	timeout  time.Duration // timeout: how long a silent server is waited for
	settings map[string]string
}

// ownSettings are those by which a cluster finds its nodes and their roles, and
// those that change with whom a node speaks or what it is.
var ownSettings = []string{
	"aclfile", "bind", "daemonize", "dir", "include", "logfile", "masterauth", "masteruser", "pidfile", "port",
	"protected-mode", "rename-command", "replica-announce-ip", "replica-announce-port", "replica-read-only", "replicaof",
	"requirepass", "slave-announce-ip", "slave-announce-port", "slave-read-only", "slaveof", "supervised", "tls-port",
	"tls-replication", "unixsocket", "user", "cluster-enabled",
}

// parseParams reads the parameters for a cluster of so many nodes. The error is a
// *cluster.ParamError.
func parseParams(values url.Values, nodes int) (params, error) {
	const fsync = "appendfsync"
	p := params{failOver: true, timeout: time.Second, settings: map[string]string{fsync: "always"}}
	err := cluster.Params{
		Kind: "a cluster of Redis",
		Known: map[string]func(string) error{
			fsync: cluster.OneOf(func(value string) { p.settings[fsync] = value }, "always", "everysec", "no"),
			"wait": func(value string) (err error) {
				if p.wait, err = strconv.Atoi(value); err != nil || p.wait < 0 || p.wait >= nodes {
					return fmt.Errorf("%q is no number of replicas from 0 to %d: more would let every commit wait in vain", value, nodes-1)
				}
				return nil
			},
			"failover": cluster.OnOff(&p.failOver),
			"timeout":  cluster.AnswerTimeout(&p.timeout),
		},
		Set: cluster.Settings("Redis", "-_.", ownSettings, p.settings),
	}.Read(values)
	if err == nil && values.Has(fsync) && values.Has("set."+fsync) {
		err = &cluster.ParamError{Param: "set." + fsync, Reason: "it says the same as appendfsync: leave one of them out"}
	}
	return p, err
}

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
	program, err := findServer(o)
	if err != nil {
		return nil, err
	}
	return cluster.Launch(ctx, cluster.Kind{Name: "redis", PortTaken: "Address already in use"}, o,
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

// findServer returns the path of redis-server or, where there is none, of valkey-server.
func findServer(o cluster.Options) (string, error) {
	program, err := o.Find("redis-server", "redis-server")
	if err != nil {
		if valkey, missing := o.Find("valkey-server", ""); missing == nil {
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
