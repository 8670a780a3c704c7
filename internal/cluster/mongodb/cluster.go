// Package mongodb starts real replica sets and sharded clusters of MongoDB on this machine.
//
// It needs the program mongod on PATH, and mongos for shards; 4.2 is the version that it was
// seen with.
package mongodb

import (
	"context"
	"fmt"

	"stroppy/internal/cluster"
)

// servers are those of a replica set or of a sharded cluster.
type servers struct {
	*cluster.NodeSet[*node]
	mongod, mongos string // the programs
	params         params
	sets           []*set
	// place is the set of the node with a number; nil for a router.
	place func(number int) *set
}

// Start starts a replica set, or a sharded cluster where there is the parameter shards, and
// returns when each set has a primary that takes writes and all nodes have all data of their
// set. An error leaves nothing behind; it is a cluster.MissingError where there is no mongod
// or mongos on PATH, and a *cluster.ParamError for a parameter. The parameters are:
//
//	shards=N              a sharded cluster: so many shards, each a replica set of as many
//	                      nodes as were asked for, with a config server and a mongos
//	election_timeout=1s   how long a silent primary is waited for, MongoDB's
//	                      settings.electionTimeoutMillis; its own is 10s
//	cache=0.25            gigabytes of memory in which each node keeps data,
//	                      --wiredTigerCacheSizeGB
//	w=majority, readConcernLevel=snapshot, readPreference=primary, timeout=5s
//	                      what the URL asks of the driver; see there
//	set.NAME=VALUE        --setParameter NAME=VALUE of every mongod
func Start(ctx context.Context, o cluster.Options) (cluster.Local, error) {
	params, err := parseParams(o.Params, o.Nodes)
	if err != nil {
		return nil, err
	}
	s := servers{params: params}
	kind := cluster.Kind{Name: "mongodb", PortTaken: "Address already in use"}
	s.mongod, kind.Lacks = o.Find("mongod", "")
	if params.shards == 0 {
		return cluster.AsLocal(cluster.Launch(ctx, kind, o, func() *ReplicaSet { return newReplicaSet(s) },
			func(c *ReplicaSet) error { return c.sets[0].start(ctx) }))
	}
	if s.mongos, err = o.Find("mongos", ""); kind.Lacks == nil {
		kind.Lacks = err
	}
	kind.Further = o.Nodes*(params.shards-1) + 2
	return cluster.AsLocal(cluster.Launch(ctx, kind, o, func() *Sharded { return newSharded(s, o.Nodes) }, func(c *Sharded) error { return c.start(ctx) }))
}

// checkHealthy is nil when all sets are.
func (c *servers) checkHealthy(ctx context.Context) error {
	for _, s := range c.sets {
		if err := s.checkHealthy(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ReplicaSet is a running replica set, of which every node has a vote.
type ReplicaSet struct{ *servers }

var (
	_ cluster.Mover   = (*ReplicaSet)(nil)
	_ cluster.Resizer = (*ReplicaSet)(nil)
)

func newReplicaSet(with servers) *ReplicaSet {
	c := &ReplicaSet{&with}
	only := &set{servers: c.servers, name: "stroppy"}
	c.sets, c.place = []*set{only}, func(int) *set { return only }
	c.NodeSet = cluster.NewNodeSet("the replica set", c.newNode, func() func(context.Context) error { return c.checkHealthy })
	return c
}

// URL names all nodes as --db takes them.
func (c *ReplicaSet) URL() string {
	return "mongodb://" + c.Addresses(func(n *node) string { return n.address.String() }) + "/?" + c.params.query("replicaSet", c.sets[0].name)
}

// URL is the address of the node alone, which is only to be read.
func (n *node) URL() string { return "mongodb://" + n.address.String() + "/?directConnection=true" }

// Leader returns the number of the node that a majority of the nodes names as the primary
// of one term. While there is none, or it is dead or paused, Leader waits until ctx ends.
func (c *servers) Leader(ctx context.Context) (number int, err error) {
	primary, err := c.sets[0].primary(ctx)
	if err != nil {
		return 0, fmt.Errorf("find the primary of the replica set: %w", err)
	}
	return primary.Number(), nil
}

// MoveLeader makes a node stand for election, unless it is primary already, until it takes
// writes.
func (c *ReplicaSet) MoveLeader(ctx context.Context, to int) error {
	return c.Move(to, func(target *node) error { return c.sets[0].move(ctx, target) })
}

// Add makes one more host and a node on it, which copies all data before it has a vote.
func (c *ReplicaSet) Add(ctx context.Context) (int, error) {
	return c.AddNode(ctx, c.sets[0].join, c.sets[0].leave)
}

// Remove takes a node out of the set, ends it and removes its data.
func (c *ReplicaSet) Remove(ctx context.Context, number int) error {
	return c.RemoveNode(ctx, number, c.sets[0].leave)
}
