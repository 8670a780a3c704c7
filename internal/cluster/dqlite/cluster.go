//go:build dqlite

package dqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/canonical/go-dqlite/client"

	"stroppy/internal/cluster"
)

// Cluster is a running dqlite cluster. Restart of a node returns when the node knows a leader, which needs a majority
// of nodes. After the loss of a majority, restart the nodes at the same time, not one after another.
type Cluster struct {
	*cluster.NodeSet[*node]
	program string
	formed  atomic.Bool // the first nodes have formed a cluster
}

var (
	_ cluster.Mover = (*Cluster)(nil)
)

// Start starts a cluster and returns when every node is a member. It takes no parameters. An error leaves nothing
// behind.
func Start(ctx context.Context, o cluster.Options) (*Cluster, error) {
	for name := range o.Params {
		return nil, &cluster.ParamError{Param: name, Reason: "dqlite has no parameters"}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start a dqlite cluster: find the program for its nodes: %w", err)
	}
	return cluster.Launch(ctx, cluster.Kind{
		Name: "dqlite", PortTaken: "address already in use",
		NoFaultFS: "disk faults are not possible with dqlite, which writes asynchronously",
	}, o, func() *Cluster {
		c := &Cluster{program: program}
		c.NodeSet = cluster.NewNodeSet("the dqlite cluster", c.newNode, func() func(context.Context) error { return c.checkHealthy })
		c.LedBy("the leader of the dqlite cluster", c.leads)
		return c
	}, (*Cluster).start)
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.List()[0].Restart(ctx); err != nil {
		return err
	}
	if err := c.Each(func(n *node) error { return n.Restart(ctx) }); err != nil {
		return err
	}
	c.formed.Store(true)
	return nil
}

// URL returns the address of all nodes.
func (c *Cluster) URL() string {
	return "dqlite://" + c.Addresses(func(n *node) string { return n.address }) + "/" + Database
}

// URL returns the address of a copy of the node's data.
func (n *node) URL() string {
	return (&url.URL{Scheme: "dqlite", Host: n.address, Path: "/" + Database, RawQuery: "read=node"}).String()
}

// askLimit bounds one query to a node, including the connection.
const askLimit = 2 * time.Second

// quiet drops the client's log messages, because they are in the errors too.
func quiet(client.LogLevel, string, ...any) {}

// store returns the addresses of the selected nodes.
func (c *Cluster) store(ctx context.Context, counts func(*node) bool) (client.NodeStore, error) {
	var found []client.NodeInfo
	for _, n := range c.List() {
		if counts(n) {
			found = append(found, client.NodeInfo{Address: n.address})
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no node runs")
	}
	store := client.NewInmemNodeStore()
	return store, store.Set(ctx, found)
}

// ask finds the leader through the running nodes, connects to it, and calls question.
func (c *Cluster) ask(ctx context.Context, question func(ctx context.Context, leader *client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var leader *client.Client
	store, err := c.store(ctx, (*node).Awake)
	if err == nil {
		leader, err = client.FindLeader(ctx, store, client.WithLogFunc(quiet))
	}
	if err != nil {
		return fmt.Errorf("find the leader of the dqlite cluster: %w", err)
	}
	defer leader.Close()
	return question(ctx, leader)
}

// leads returns the node that accepts writes.
func (c *Cluster) leads(ctx context.Context) (found *node, err error) {
	err = c.ask(ctx, func(ctx context.Context, leader *client.Client) error {
		info, err := leader.Leader(ctx)
		if err != nil {
			return err
		}
		for _, found = range c.List() {
			if found.address == info.Address {
				return nil
			}
		}
		return fmt.Errorf("the leader is at %s, which is not the address of a node", info.Address)
	})
	return found, err
}

// MoveLeader moves leadership to a voting node.
func (c *Cluster) MoveLeader(ctx context.Context, to int) error {
	return c.HandOver(ctx, to, c.leads, func(ctx context.Context, _, target *node) error {
		return c.ask(ctx, func(ctx context.Context, leader *client.Client) error {
			member, err := memberAt(ctx, leader, target.address)
			if err == nil {
				err = leader.Transfer(ctx, member.ID)
			}
			return cmp.Or(err, errors.New("leadership has just moved")) // the next check sees it
		})
	})
}

// errNoMember is returned by memberAt if there is no such member.
var errNoMember = errors.New("the cluster has no such member")

func memberAt(ctx context.Context, leader *client.Client, address string) (client.NodeInfo, error) {
	members, err := leader.Cluster(ctx)
	if err != nil {
		return client.NodeInfo{}, err
	}
	if i := slices.IndexFunc(members, func(m client.NodeInfo) bool { return m.Address == address }); i >= 0 {
		return members[i], nil
	}
	return client.NodeInfo{}, fmt.Errorf("%w at %s", errNoMember, address)
}

// checkHealthy returns nil if all nodes are members, name the same leader and have applied all commits. As many
// as possible must vote.
func (c *Cluster) checkHealthy(ctx context.Context) error {
	if err := c.ask(ctx, c.checkMembers); err != nil {
		return err
	}
	return c.catchUp(ctx)
}

func (c *Cluster) checkMembers(ctx context.Context, leader *client.Client) error {
	info, err := leader.Leader(ctx)
	if err != nil {
		return err
	}
	members, err := leader.Cluster(ctx)
	if err != nil {
		return err
	}
	voters := 0
	for _, m := range members {
		if m.Role == client.Voter {
			voters++
		}
	}
	nodes := c.List()
	if want := min(len(nodes), c.voters()); len(members) != len(nodes) || voters < want {
		return fmt.Errorf("the cluster has %d members of which %d vote, want %d and %d", len(members), voters, len(nodes), want)
	}
	for _, n := range nodes {
		if !slices.ContainsFunc(members, func(m client.NodeInfo) bool { return m.Address == n.address }) {
			return fmt.Errorf("%s is not a member", n.Name())
		}
		if seen, err := n.seesLeader(ctx); err != nil || seen != info.Address {
			return fmt.Errorf("%s names %q as the leader, which is at %s: %w", n.Name(), seen, info.Address, err)
		}
	}
	return nil
}

// voters returns the largest number of voting nodes, which must be odd and at least 3 for dqlite.
func (c *Cluster) voters() int { return max(3, (c.Options.Nodes-1)/2*2+1) }

func addresses(nodes []*node) string {
	return cluster.Join(nodes, func(n *node) string { return n.address })
}
