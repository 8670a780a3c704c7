// Package mongodb starts real replica sets of MongoDB on this machine.
//
// It needs the program mongod on PATH; 4.2 is the version that it was seen with.
package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"stroppy/internal/cluster"
)

// Cluster is a running replica set, of which every node has a vote.
type Cluster struct {
	*cluster.NodeSet[*node]
	binary string
	params params
	formed bool // the set was initiated; not changed after Start
}

var _ cluster.Mover = (*Cluster)(nil)

// setName is the replica set's.
const setName = "stroppy"

// Start starts a replica set and returns when it has a primary that takes writes and every
// node has all data. An error leaves nothing behind; it is a cluster.MissingError where
// there is no mongod on PATH, and a *cluster.ParamError for a parameter. The parameters are:
//
//	election_timeout=1s   how long a silent primary is waited for, MongoDB's
//	                      settings.electionTimeoutMillis; its own is 10s
//	cache=0.25            gigabytes of memory in which each node keeps data,
//	                      --wiredTigerCacheSizeGB
//	w=majority, readConcernLevel=snapshot, readPreference=primary, timeout=5s
//	                      what the URL asks of the driver; see there
//	set.NAME=VALUE        --setParameter NAME=VALUE of every node
func Start(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params, o.Nodes)
	if err != nil {
		return nil, err
	}
	binary, err := cluster.Find("mongod", "")
	if err != nil {
		return nil, err
	}
	return cluster.Launch(ctx, cluster.Kind{Name: "mongodb", PortTaken: "Address already in use"}, o,
		func() *Cluster {
			c := &Cluster{binary: binary, params: params}
			c.NodeSet = cluster.NewNodeSet("the replica set", c.newNode, func() func(context.Context) error { return c.checkHealthy })
			return c
		},
		func(c *Cluster) error { return c.start(ctx) })
}

// start starts all nodes and makes them a replica set.
func (c *Cluster) start(ctx context.Context) error {
	group, starting := errgroup.WithContext(ctx)
	members := bson.A{}
	for i, n := range c.List() {
		group.Go(func() error { return n.Restart(starting) })
		members = append(members, bson.D{{Key: "_id", Value: i}, {Key: "host", Value: n.address.String()}})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err := c.List()[0].run(ctx, changeTimeout, bson.D{{Key: "replSetInitiate", Value: bson.D{
		{Key: "_id", Value: setName}, {Key: "protocolVersion", Value: 1}, {Key: "members", Value: members},
		{Key: "settings", Value: bson.D{{Key: "electionTimeoutMillis", Value: c.params.electionTimeout.Milliseconds()}}},
	}}})
	if err != nil {
		return fmt.Errorf("initiate the replica set: %w", err)
	}
	c.formed = true
	return c.WaitHealthy(ctx)
}

// URL names all nodes as --db takes them.
func (c *Cluster) URL() string {
	return "mongodb://" + c.Addresses(func(n *node) string { return n.address.String() }) + "/?replicaSet=" + setName + c.params.ofClient()
}

// URL is the address of the node alone, which is only to be read.
func (n *node) URL() string { return "mongodb://" + n.address.String() + "/?directConnection=true" }

// Leader returns the number of the node that a majority of the nodes names as the primary
// of one term. While there is none, or it is dead or paused, Leader waits until ctx ends.
func (c *Cluster) Leader(ctx context.Context) (number int, err error) {
	primary, err := c.primary(ctx)
	if err != nil {
		return 0, fmt.Errorf("find the primary of the replica set: %w", err)
	}
	return primary.Number(), nil
}

// primary waits until there is one.
func (c *Cluster) primary(ctx context.Context) (primary *node, err error) {
	err = cluster.Retry(ctx, func() error {
		if primary = c.named(ctx); primary == nil {
			return errors.New("no running node is primary")
		}
		return nil
	})
	return primary, err
}

// named is the node that a majority names as the primary of one term, and that runs; nil if
// there is none.
func (c *Cluster) named(ctx context.Context) *node {
	type lead struct {
		host string
		term int64
	}
	return cluster.Named(ctx, c.List(), func(ctx context.Context, n *node) lead {
		s, err := n.status(ctx)
		if host := s.primary(); err == nil && host != "" {
			return lead{host, s.Term}
		}
		return lead{}
	}, func(n *node, l lead) bool { return n.address.String() == l.host && n.Awake() })
}

// MoveLeader makes a node stand for election, unless it is primary already, until it takes
// writes: one that has just been elected first applies what it has, for about two seconds,
// in which another may be elected in its place.
func (c *Cluster) MoveLeader(ctx context.Context, to int) error {
	return c.Move(to, func(target *node) error {
		if !target.Awake() {
			return fmt.Errorf("%s does not run", target.Name())
		}
		return cluster.Retry(ctx, func() error {
			primary := c.named(ctx)
			if primary == nil {
				return errors.New("no running node is primary")
			}
			if primary == target {
				if writable, err := target.serves(ctx, true); err != nil || !writable {
					return errors.Join(fmt.Errorf("%s takes no writes yet", target.Name()), err)
				}
				return nil
			}
			_, err := target.run(ctx, changeTimeout, bson.D{{Key: "replSetStepUp", Value: 1}})
			return errors.Join(fmt.Errorf("%s is primary", primary.Name()), err)
		})
	})
}

// checkHealthy is nil when all nodes name the same primary, which takes writes and has
// committed in its term; each has a vote, is primary or secondary, and has applied all that
// the primary had at the beginning.
func (c *Cluster) checkHealthy(ctx context.Context) error {
	nodes := c.List()
	statuses := make([]status, len(nodes))
	for i, n := range nodes {
		var err error
		if statuses[i], err = n.status(ctx); err != nil {
			return err
		}
	}
	at := slices.IndexFunc(statuses, func(s status) bool { return s.State == statePrimary })
	if at < 0 {
		return errors.New("no node is primary")
	}
	primary, first := nodes[at], statuses[at]
	if writable, err := primary.serves(ctx, true); err != nil || !writable {
		return errors.Join(fmt.Errorf("the primary %s takes no writes yet", primary.Name()), err)
	}
	if first.Times.Committed.Term != first.Term {
		return fmt.Errorf("%s has committed nothing as primary", primary.Name())
	}
	for i, n := range nodes {
		s, err := n.status(ctx)
		switch {
		case err != nil:
			return err
		case s.State != statePrimary && s.State != stateSecondary:
			return fmt.Errorf("%s is %s", n.Name(), s.states()[n.address.String()])
		case s.primary() != primary.address.String() || s.Term != first.Term:
			return fmt.Errorf("%s names the primary %q, and %s is", n.Name(), s.primary(), primary.address)
		case s.Times.Applied.before(first.Times.Applied):
			return fmt.Errorf("%s is behind %s", n.Name(), primary.Name())
		}
		for _, m := range first.Members {
			if m.Name == nodes[i].address.String() && m.State != statePrimary && m.State != stateSecondary {
				return fmt.Errorf("%s takes %s for %s", primary.Name(), n.Name(), m.Text)
			}
		}
	}
	return c.allVote(ctx, primary)
}

// allVote is nil when the set is of these nodes and each has a vote.
func (c *Cluster) allVote(ctx context.Context, primary *node) error {
	config, err := primary.config(ctx)
	if err != nil {
		return err
	}
	nodes := c.List()
	if len(config.Members) != len(nodes) {
		return fmt.Errorf("the replica set has %d members, and %d nodes are here", len(config.Members), len(nodes))
	}
	for _, n := range nodes {
		if at := config.member(n); at < 0 || config.votes(at) != 1 {
			return fmt.Errorf("%s has no vote", n.Name())
		}
	}
	return nil
}
