package mongodb

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
)

// sharded is a kind whose payments are spread over two shards.
func sharded() clustertest.Kind {
	k := kind()
	k.Params = url.Values{"shards": {"2"}, "election_timeout": {"2s"}}
	k.Prepare = func(ctx context.Context, c cluster.Local) error {
		router := c.(*Sharded).router()
		_, err := router.server().run(ctx, changeTimeout, bson.D{{Key: "enableSharding", Value: paid}})
		if err == nil {
			_, err = router.server().run(ctx, changeTimeout, bson.D{
				{Key: "shardCollection", Value: paid + "." + paid}, {Key: "key", Value: bson.D{{Key: "_id", Value: "hashed"}}},
			})
		}
		if err != nil && strings.Contains(err.Error(), "already") { // by an earlier payment
			return nil
		}
		return err
	}
	k.Holds = func(ctx context.Context, c cluster.Local, _ int) (map[string]string, error) {
		return c.(*Sharded).router().payments(ctx)
	}
	return k
}

// TestShardedClusterKeepsPaymentsUnderFaults checks that a cluster of two shards keeps all acknowledged payments
// through faults on its shards.
func TestShardedClusterKeepsPaymentsUnderFaults(t *testing.T) {
	k, dir := sharded(), clustertest.OpenDir(t)
	c := k.Start(t, cluster.Options{Nodes: 3, Dir: dir}).(*Sharded)
	nodes := c.Nodes()
	if len(nodes) != 6 || len(c.List()) != 8 || c.NodeURL(0) != "" || strings.Count(c.URL(), ":") != 2 {
		t.Fatalf("%d nodes, %d servers, %q, %s", len(nodes), len(c.List()), c.NodeURL(0), c.URL())
	}
	if _, can := cluster.Local(c).(cluster.Mover); can {
		t.Error("the lead of several shards can be moved")
	}
	ctx := clustertest.Within(t, 2*clustertest.WaitLimit)
	p := k.Pay(t, c)
	var primaries []*node
	for _, s := range c.sets[:2] {
		n, err := s.primary(ctx)
		clustertest.Must(t, err)
		primaries = append(primaries, n)
	}
	if leader, _ := clustertest.Leader(t, c); leader != primaries[0] {
		t.Errorf("%s leads, and %s is the primary of the first shard", leader.Name(), primaries[0].Name())
	}
	for _, n := range primaries { // of both shards at once
		clustertest.Must(t, n.Kill(ctx))
	}
	p.GoOn(20)
	for _, n := range primaries {
		clustertest.Must(t, n.Restart(ctx))
	}
	clustertest.Must(t, nodes[5].(*node).Replace(ctx))
	p.GoOn(20)
	p.EndWell("kill the primaries of both shards, replace a node of the second")
	for _, n := range primaries {
		held, err := n.payments(ctx)
		all, _ := c.router().payments(ctx)
		if err != nil || len(held) == 0 || len(held) == len(all) {
			t.Errorf("%s holds %d of %d payments, %v: they are not spread over the shards", n.Name(), len(held), len(all), err)
		}
	}

	if c.Network().Loopback() == "" {
		p = k.Pay(t, c)
		primary, err := c.sets[1].primary(ctx)
		clustertest.Must(t, err)
		var others []int
		for _, n := range nodes {
			if n != cluster.Node(primary) {
				others = append(others, n.Number())
			}
		}
		heal := clustertest.Cut(t, c, primary.Number(), others...)
		p.GoOn(50)
		heal()
		p.EndWell("cut the primary of the second shard off")
	}
	testGone(t, c, dir)
}

// testGone checks that nothing is left of the nodes, the config server and the mongos.
func testGone(t *testing.T, c *Sharded, dir string) {
	var pids []int
	for _, n := range c.List() {
		pids = append(pids, n.PIDs()...)
	}
	clustertest.Must(t, c.Stop())
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || len(pids) < len(c.List()) {
		t.Errorf("left of the processes %v in the folder: %v, %v", pids, left, err)
	}
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			t.Errorf("the process %d is there after Stop", pid)
		}
	}
}

// payments returns the payments on the server.
func (n *node) payments(ctx context.Context) (map[string]string, error) {
	held := map[string]string{}
	return held, n.server().with(ctx, changeTimeout, func(ctx context.Context, c *mongo.Client) error {
		var documents []struct {
			ID string `bson:"_id"`
		}
		cursor, err := c.Database(paid).Collection(paid).Find(ctx, bson.D{})
		if err == nil {
			err = cursor.All(ctx, &documents)
		}
		for _, d := range documents {
			held[d.ID] = ""
		}
		return err
	})
}
