package mongodb

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"stroppy/internal/cluster"
)

// The options of servers with a special role in a sharded cluster.
const (
	shardServer  = "--shardsvr"
	configServer = "--configsvr"
)

// Sharded is a running sharded cluster. Its nodes are the nodes of the shards, in the order of the shards. The
// primary of the first shard counts as their leader. A config server, a replica set of one member, and a mongos, to
// which clients connect, run on their own hosts without faults.
type Sharded struct {
	*servers
	shards int
}

func newSharded(with servers, perShard int) *Sharded {
	c := &Sharded{&with, with.params.shards}
	for i := range c.shards {
		c.sets = append(c.sets, &set{servers: c.servers, name: fmt.Sprintf("shard%d", i), role: shardServer})
	}
	config := &set{servers: c.servers, name: "config", role: configServer}
	c.sets = append(c.sets, config)
	members := c.shards * perShard
	c.place = func(number int) *set {
		switch {
		case number < members:
			return c.sets[number/perShard]
		case number == members:
			return config
		}
		return nil
	}
	c.NodeSet = cluster.NewNodeSet("the sharded cluster", c.newNode, func() func(context.Context) error { return c.checkHealthy })
	c.LedBy(primary, c.sets[0].named)
	return c
}

// router returns the mongos, which was made last.
func (c *Sharded) router() *node {
	all := c.List()
	return all[len(all)-1]
}

// start starts all servers, forms the sets, and makes them shards.
func (c *Sharded) start(ctx context.Context) error {
	group, starting := errgroup.WithContext(ctx)
	for _, s := range c.sets {
		group.Go(func() error { return s.start(starting) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	router := c.router()
	if err := router.Restart(ctx); err != nil {
		return err
	}
	for _, s := range c.sets[:c.shards] {
		if _, err := router.server().run(ctx, changeTimeout, bson.D{{Key: "addShard", Value: s.members()}}); err != nil {
			return fmt.Errorf("add the shard %s: %w", s.name, err)
		}
	}
	return nil
}

// checkHealthy returns nil if all sets are healthy and the mongos has an answer from each shard.
func (c *Sharded) checkHealthy(ctx context.Context) error {
	if err := c.servers.checkHealthy(ctx); err != nil {
		return err
	}
	var known struct{ Shards []bson.Raw }
	answer, err := c.router().server().run(ctx, askTimeout, bson.D{{Key: "listShards", Value: 1}})
	if err == nil {
		err = bson.Unmarshal(answer, &known)
	}
	if err == nil && len(known.Shards) != c.shards {
		err = fmt.Errorf("the mongos knows %d shards instead of %d", len(known.Shards), c.shards)
	}
	if err == nil { // it asks the primary of each shard
		_, err = c.router().server().run(ctx, askTimeout, bson.D{{Key: "listDatabases", Value: 1}})
	}
	return err
}

// Nodes returns the nodes of the shards.
func (c *Sharded) Nodes() (nodes []cluster.Node) {
	for _, s := range c.sets[:c.shards] {
		nodes = append(nodes, cluster.NodesOf(s.nodes())...)
	}
	return nodes
}

// URL returns the address of the mongos.
func (c *Sharded) URL() string {
	return "mongodb://" + c.router().address.String() + "/?" + c.params.query("directConnection", "false")
}

// NodeURL returns "", because no node has all data.
func (c *Sharded) NodeURL(int) string { return "" }
