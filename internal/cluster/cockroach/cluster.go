// Package cockroach starts real CockroachDB clusters on this machine.
//
// It needs the program cockroach on PATH. It was tested with version 20.1.5.
package cockroach

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

// Cluster is a running CockroachDB cluster of equal nodes. Restart of a node returns when the node answers a query,
// which needs a majority of nodes. After the loss of a majority, restart the nodes at the same time, not one after
// another.
type Cluster struct {
	*cluster.NodeSet[*node]
	binary string
	params params
}

var (
	_ cluster.Local   = (*Cluster)(nil)
	_ cluster.Resizer = (*Cluster)(nil)
)

// replicas is the number of replicas of each range, if there are enough nodes.
const replicas = 3

// Start starts a cluster and returns when every node answers and every range has all its replicas. An error leaves
// nothing behind. It is a host.MissingError if cockroach is not on PATH, and a *cluster.ParamError for a wrong
// parameter. The parameters are:
//
//	election_ticks=6   ticks of 200 ms to wait for a silent leader; leases last as long, and so
//	                   does the outage of a killed node; CockroachDB's default is 15
//	max_offset=500ms   allowed difference of clocks: CockroachDB's --max-offset
//	set.NAME=VALUE     a cluster setting
func Start(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params)
	if err != nil {
		return nil, err
	}
	binary, lacks := o.Find("cockroach", "")
	return cluster.Launch(ctx, cluster.Kind{Name: "cockroach", PortTaken: "address already in use", Lacks: lacks}, o, func() *Cluster {
		c := &Cluster{binary: binary, params: params}
		c.NodeSet = cluster.NewNodeSet("the CockroachDB cluster", c.newNode, func() func(context.Context) error { return c.checkHealthy })
		return c
	}, (*Cluster).start)
}

// params are the parameters of a cluster.
type params struct {
	ticks     int // 0: CockroachDB's default
	maxOffset time.Duration
	settings  map[string]string
}

// minTicks is needed because nodes panic with fewer ticks: a heartbeat takes five.
const minTicks, maxTicks = 6, 1000

func parseParams(values url.Values) (params, error) {
	p := params{settings: map[string]string{}}
	err := cluster.Params{
		Known: map[string]func(string) error{
			"election_ticks": cluster.Number(&p.ticks, minTicks, maxTicks),
			"max_offset":     cluster.Between(&p.maxOffset, time.Millisecond, time.Minute, "500ms"),
		},
		Set:  cluster.Settings("CockroachDB", "._", nil, p.settings),
		Kind: "a cluster of CockroachDB",
	}.Read(values)
	return p, err
}

// start starts all nodes at once, because none answers before they have formed a cluster.
func (c *Cluster) start(ctx context.Context) error {
	group, starting := errgroup.WithContext(ctx)
	group.Go(func() error { return cluster.RestartAll(starting, c.List()) })
	group.Go(func() error { return c.initialize(starting) })
	if err := group.Wait(); err != nil {
		return err
	}
	first := c.List()[0]
	for _, name := range slices.Sorted(maps.Keys(c.params.settings)) {
		if err := first.server().Set(ctx, name, c.params.settings[name]); err != nil {
			return err
		}
	}
	return nil
}

// initialize forms the cluster when the first node runs.
func (c *Cluster) initialize(ctx context.Context) error {
	first := c.List()[0]
	return wait.RetryEvery(ctx, 100*time.Millisecond, func() error {
		limited, cancel := context.WithTimeout(ctx, changeTimeout)
		defer cancel()
		out, err := exec.CommandContext(limited, c.binary, "init", "--insecure", "--host="+first.sql.String()).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "already been initialized") {
			return fmt.Errorf("cockroach init: %w: %s", err, host.LastLines(out))
		}
		return nil
	})
}

// checkHealthy returns nil if all nodes are Healthy.
func (c *Cluster) checkHealthy(ctx context.Context) error {
	var servers []Server
	for _, n := range c.List() {
		servers = append(servers, n.server())
	}
	return Healthy(ctx, servers)
}

// replicated is a range with the ids of the nodes that have its replicas.
type replicated struct {
	id       int64
	replicas []int64
}

// complete returns nil if the range has all its replicas on existing nodes.
func (r replicated) complete(ids []int64) error {
	if need := min(replicas, len(ids)); len(r.replicas) < need {
		return fmt.Errorf("the range %d has %d replicas instead of %d", r.id, len(r.replicas), need)
	}
	for _, id := range r.replicas {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("the range %d has a replica on the node with the id %d, which no longer exists", r.id, id)
		}
	}
	return nil
}

// expendable returns nil if every range has a majority of its replicas on running nodes other than n. Then the data
// of n are not needed.
func (n *node) expendable(ctx context.Context) error {
	c := n.cluster
	if nodes := len(c.List()); nodes < replicas {
		return cluster.Refuse("a cluster of %d has no majority without it to readmit it: use at least %d nodes", nodes, replicas)
	}
	awake := slices.DeleteFunc(c.Others(n), func(m *node) bool { return !m.Awake() })
	if len(awake) == 0 {
		return errors.New("no other node runs")
	}
	var ids []int64
	for _, m := range awake {
		id, err := m.server().ask(ctx)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	ranges, err := awake[0].server().ranges(ctx)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		held := len(slices.DeleteFunc(slices.Clone(r.replicas), func(id int64) bool { return !slices.Contains(ids, id) }))
		if most := len(r.replicas)/2 + 1; held < most {
			return fmt.Errorf("%d replicas of the range %d are on other running nodes, and %d of %d are needed", held, r.id, most, len(r.replicas))
		}
	}
	return nil
}

// URL names all nodes; a client's sessions start with different ones.
func (c *Cluster) URL() string {
	return urlOf(c.Addresses(func(n *node) string { return n.sql.String() }))
}

// URL returns the address of the node alone, through which the whole database can be read.
func (n *node) URL() string { return urlOf(n.sql.String()) }

func urlOf(hosts string) string {
	return URLOf(hosts) + "&connect_timeout=1"
}
