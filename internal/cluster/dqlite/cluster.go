//go:build dqlite

package dqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/canonical/go-dqlite/client"

	"stroppy/internal/cluster"
)

// Cluster is a running dqlite cluster. A Restart of one of its nodes returns when
// the node knows a leader, for which a majority must run: after the loss of a
// majority, restart the nodes at once, not one after another.
type Cluster struct {
	*cluster.NodeSet[*node]
	program string
	formed  atomic.Bool // the first nodes have become a cluster
}

var (
	_ cluster.Mover = (*Cluster)(nil)
)

// Start starts a cluster and returns when every node is a member. It takes no
// parameters. An error leaves nothing behind.
func Start(ctx context.Context, o cluster.Options) (*Cluster, error) {
	for name := range o.Params {
		return nil, &cluster.ParamError{Param: name, Reason: "dqlite has none"}
	}
	if o.FaultFS {
		return nil, &cluster.ParamError{Param: "layer", Reason: "the disk faults are not for dqlite, whose writes go to the kernel asynchronously"}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start a dqlite cluster: find this program, which is to be its nodes: %w", err)
	}
	return cluster.Launch(ctx, cluster.Kind{Name: "dqlite", PortTaken: "address already in use"}, o,
		func() *Cluster {
			c := &Cluster{program: program}
			c.NodeSet = cluster.NewNodeSet("the dqlite cluster", c.newNode, func() func(context.Context) error { return c.checkHealthy })
			return c
		},
		func(c *Cluster) error { return c.start(ctx) })
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

// URL is the address of all nodes.
func (c *Cluster) URL() string {
	return "dqlite://" + c.Addresses(func(n *node) string { return n.address }) + "/" + Database
}

// URL is the address of a copy of what the node holds.
func (n *node) URL() string {
	return (&url.URL{Scheme: "dqlite", Host: n.address, Path: "/" + Database, RawQuery: "read=node"}).String()
}

// askLimit bounds one question to a node, connecting included.
const askLimit = 2 * time.Second

// quiet leaves what the client would log to the errors.
func quiet(client.LogLevel, string, ...any) {}

// store holds the addresses of the nodes that count.
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

// ask connects to the leader, which is looked for among the nodes that run, and asks it
// something.
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

// Leader returns the number of the node that takes the writes. While there is none
// it waits until ctx ends.
func (c *Cluster) Leader(ctx context.Context) (number int, err error) {
	err = cluster.Retry(ctx, func() error {
		return c.ask(ctx, func(ctx context.Context, leader *client.Client) error {
			info, err := leader.Leader(ctx)
			if err != nil {
				return err
			}
			for _, n := range c.List() {
				if n.address == info.Address {
					number = n.Number()
					return nil
				}
			}
			return fmt.Errorf("the leader is at %s, where no node is", info.Address)
		})
	})
	return number, err
}

// MoveLeader gives the lead to a node that votes.
func (c *Cluster) MoveLeader(ctx context.Context, to int) error {
	return c.Move(to, func(n *node) error {
		return cluster.Retry(ctx, func() error {
			return c.ask(ctx, func(ctx context.Context, leader *client.Client) error {
				if info, err := leader.Leader(ctx); err != nil || info.Address == n.address {
					return err
				}
				member, err := memberAt(ctx, leader, n.address)
				if err != nil {
					return err
				}
				if err := leader.Transfer(ctx, member.ID); err != nil {
					return err
				}
				return errors.New("the lead has just been handed over") // it is seen in the next look
			})
		})
	})
}

// errNoMember is what memberAt gives where there is none.
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

// checkHealthy is nil when all nodes run, are members, name the same leader and have
// applied what was committed, and as many vote as can.
func (c *Cluster) checkHealthy(ctx context.Context) error {
	for _, n := range c.List() {
		if !n.Awake() {
			return fmt.Errorf("%s is down or paused", n.Name())
		}
	}
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
			return fmt.Errorf("%s is no member", n.Name())
		}
		if seen, err := n.seesLeader(ctx); err != nil || seen != info.Address {
			return fmt.Errorf("%s takes %q for the leader, which is at %s: %w", n.Name(), seen, info.Address, err)
		}
	}
	return nil
}

// voters is how many nodes vote at most: an odd number from 3 on, as dqlite asks for.
func (c *Cluster) voters() int { return max(3, (c.Options.Nodes-1)/2*2+1) }

func addresses(nodes []*node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.address)
	}
	return strings.Join(all, ",")
}
