// Package mongodb starts real replica sets and sharded clusters of MongoDB on this machine.
//
// It needs the program mongod on PATH, and mongos for shards. It was tested with version 4.2.
package mongodb

import (
	"context"
	"errors"
	"fmt"

	"stroppy/internal/cluster"
)

// servers are the servers of a replica set or of a sharded cluster.
type servers struct {
	*cluster.NodeSet[*node]
	mongod, mongos string // the programs
	params         params
	sets           []*set
	// place returns the set of a node by number, or nil for a router.
	place func(number int) *set
}

// Start starts a replica set, or a sharded cluster if the parameter shards is given. It returns when each set has a
// primary that accepts writes and all nodes have all data of their set. An error leaves nothing behind. It is a
// host.MissingError if mongod or mongos is not on PATH, and a *cluster.ParamError for a wrong parameter. The
// parameters are:
//
//	shards=N              a sharded cluster of N shards, each a replica set with the requested
//	                      number of nodes, with a config server and a mongos
//	election_timeout=1s   time to wait for a silent primary, MongoDB's
//	                      settings.electionTimeoutMillis; its default is 10s
//	cache=0.25            gigabytes of memory for each node's cache,
//	                      --wiredTigerCacheSizeGB
//	w=majority, readConcernLevel=snapshot, readPreference=primary, timeout=5s
//	                      options of the driver in the URL
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
		return cluster.AsLocal(cluster.Launch(ctx, kind, o, func() *ReplicaSet { return newReplicaSet(s) }, (*ReplicaSet).start))
	}
	if s.mongos, err = o.Find("mongos", ""); kind.Lacks == nil {
		kind.Lacks = err
	}
	kind.Further = o.Nodes*(params.shards-1) + 2
	return cluster.AsLocal(cluster.Launch(ctx, kind, o, func() *Sharded { return newSharded(s, o.Nodes) }, (*Sharded).start))
}

// checkHealthy returns nil if all sets are healthy.
func (c *servers) checkHealthy(ctx context.Context) error {
	for _, s := range c.sets {
		if err := s.checkHealthy(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ReplicaSet is a running replica set in which every node has a vote.
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
	c.LedBy(primary, only.named)
	return c
}

// primary names the leader of a cluster in errors.
const primary = "the primary of the replica set"

func (c *ReplicaSet) start(ctx context.Context) error { return c.sets[0].start(ctx) }

// URL names all nodes in the form that --db takes.
func (c *ReplicaSet) URL() string {
	return "mongodb://" + c.Addresses(func(n *node) string { return n.address.String() }) + "/?" + c.params.query("replicaSet", c.sets[0].name)
}

// URL returns the address of the node alone, which is only for reading.
func (n *node) URL() string { return "mongodb://" + n.address.String() + "/?directConnection=true" }

// MoveLeader makes a node stand for election, unless it is primary already, until it accepts writes. A newly elected
// node first applies its log for about two seconds, in which another node may be elected instead.
func (c *ReplicaSet) MoveLeader(ctx context.Context, to int) error {
	return c.HandOver(ctx, to, c.sets[0].writes, func(ctx context.Context, leader, target *node) error {
		return errors.Join(fmt.Errorf("%s is primary", leader.Name()), target.server().StepUp(ctx))
	})
}

// Add makes one more host with a node, which copies all data before it gets a vote.
func (c *ReplicaSet) Add(ctx context.Context) (int, error) {
	return c.AddNode(ctx, c.sets[0].join, c.sets[0].leave)
}

// Remove removes a node from the set, ends it and deletes its data.
func (c *ReplicaSet) Remove(ctx context.Context, number int) error {
	return c.RemoveNode(ctx, number, c.sets[0].leave)
}
