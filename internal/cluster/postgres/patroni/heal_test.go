package patroni

import (
	"context"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/etcd"
)

// overwrite writes a node into Patroni's leader key with a new lease. Version 3.0.2 does this on a node that was
// paused for longer than ttl, when it resumes.
func overwrite(t *testing.T, c *Cluster, n *node) {
	t.Helper()
	_, err := etcd.Ask(t.Context(), []string{c.stores()[0].client.String()}, askLimit, func(ctx context.Context, client *clientv3.Client) (*clientv3.PutResponse, error) {
		lease, err := client.Grant(ctx, int64(c.params.ttl.Seconds()))
		if err != nil {
			return nil, err
		}
		return client.Put(ctx, "/service/"+scope+"/leader", n.Name(), clientv3.WithLease(lease.ID))
	})
	clustertest.Must(t, err)
}

// testOverwrittenLeader checks a paused primary that takes the leader key back from the node that was promoted
// meanwhile. The cluster must become healthy, and a repair must be noted. Patroni by itself retries for ever to let
// the others follow.
func testOverwrittenLeader(t *testing.T, c *Cluster) {
	t.Helper()
	c.stuckFor = 3 * time.Second // nothing else is wrong, so a wait of 15 s proves no more
	defer func() { c.stuckFor = stuckFor }()
	const tries = 5
	for try := range tries {
		if overwritten(t, c) {
			return
		}
		t.Logf("try %d: the node did not keep the lead that it was given", try+1)
	}
	t.Errorf("in %d tries no node kept the lead that it was given", tries)
}

// overwritten pauses the leader and gives it leadership back from the promoted node. It returns false if the node did
// not keep leadership, so that there was nothing to repair.
func overwritten(t *testing.T, c *Cluster) bool {
	t.Helper()
	p, ctx, before := kind().Pay(t, c), clustertest.Within(t, clustertest.WaitLimit), len(c.Events())
	leader, _ := clustertest.Leader(t, c)
	n := leader.(*node)
	clustertest.Must(t, n.Pause(ctx))
	clustertest.Succeeds(t, c, n)
	p.GoOn(20)
	overwrite(t, c, n)
	clustertest.Must(t, n.Resume(ctx))
	p.GoOn(20)
	lost := p.End("overwrite the leader key")
	repaired := slices.ContainsFunc(c.Events()[before:], func(e cluster.Event) bool { return e.Repair })
	if now, _ := clustertest.Leader(t, c); now != n && !repaired {
		return false
	}
	if lost == 0 {
		t.Error("nothing is lost of what the node acknowledged that was promoted: this test proves nothing")
	}
	if !repaired {
		t.Error("no event says that the cluster was repaired")
	}
	return true
}
