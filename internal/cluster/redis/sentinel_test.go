package redis

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/wait"
)

// sentinelKind has a down-after that a busy machine meets. A primary that continues while another one is elected
// loses its acknowledged writes.
func sentinelKind() clustertest.Kind {
	k := kind()
	k.Engine, k.Launch, k.Supervised, k.LeaderOnly = "redis-sentinel", clustertest.Launcher(StartSentinel), false, true
	k.Params = url.Values{"failover": {"sentinel"}, "down-after": {"1s"}}
	k.Loses = []string{"kill the leader", "pause the leader", "stop the leader", "move the lead", "replace the leader",
		"kill all and restart", "stop all and restart", "cut the leader off"}
	return k
}

func startSentinel(t *testing.T, nodes int, query string) *SentinelCluster {
	t.Helper()
	params, err := url.ParseQuery("failover=sentinel&down-after=1s&" + query)
	clustertest.Must(t, err)
	return sentinelKind().Start(t, cluster.Options{Nodes: nodes, Params: params}).(*SentinelCluster)
}

// TestSentinelClusterKeepsPaymentsUnderAllFaults checks that a cluster with Sentinels keeps all acknowledged
// payments through each kind of fault.
func TestSentinelClusterKeepsPaymentsUnderAllFaults(t *testing.T) {
	c := startSentinel(t, 3, "")
	if len(c.Witnesses()) > 0 || !strings.HasSuffix(c.URL(), "/0?sentinel=stroppy") || strings.Contains(c.NodeURL(2), ",") {
		t.Errorf("the URLs are %s and %s, and the hosts without data %v", c.URL(), c.NodeURL(2), c.Witnesses())
	}
	sentinelKind().Hurt(t, c)
}

// TestTwoNodesHaveThirdSentinel checks that two nodes have a third Sentinel on its own host, which is not a node.
func TestTwoNodesHaveThirdSentinel(t *testing.T) {
	c := startSentinel(t, 2, "wait=1")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	if witnesses := c.Witnesses(); len(c.Nodes()) != 2 || len(witnesses) != 1 || c.NodeURL(2) != "" || !strings.HasSuffix(c.URL(), "&wait=1") {
		t.Errorf("%d nodes, the hosts without data %v, %s", len(c.Nodes()), witnesses, c.URL())
	}
	if err := c.MoveLeader(ctx, 2); err == nil || !strings.Contains(err.Error(), "no data") {
		t.Errorf("the lead was moved to a node without data: %v", err)
	}
	// Without its only replica the primary acknowledges nothing. With its Sentinel on the smaller side it stops
	// leading.
	leader, others := clustertest.Leader(t, c)
	p := sentinelKind().Pay(t, c)
	heal := clustertest.Cut(t, c, leader.Number(), others[0].Number(), 2)
	if clustertest.Succeeds(t, c, leader) != others[0] {
		t.Error("the replica does not lead")
	}
	testNoted(t, c, others[0].Name())
	heal()
	p.GoOn(20)
	p.EndWell("cut the primary off from the replica and the third Sentinel")
}

// testNoted checks that a new primary is noted when it accepts writes, and then when a Sentinel names it to the
// clients.
func testNoted(t *testing.T, c *SentinelCluster, name string) {
	t.Helper()
	var events []cluster.Event
	clustertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error {
		if events = c.Events(); len(events) < 2 {
			return fmt.Errorf("the events are %v", events)
		}
		return nil
	}))
	led, named := events[0], events[1]
	if len(events) != 2 || led.Leader != name || led.Text != name+" takes writes" || named.Leader != "" || named.Named != name {
		t.Errorf("the events are %+v", events)
	}
}

// TestNewLeaderIsRecognized checks which observations of a node show that it has become the leader.
func TestNewLeaderIsRecognized(t *testing.T) {
	replica, primary, followed := view{}, view{primary: true}, view{primary: true, replicas: 1}
	for name, c := range map[string]struct {
		seen  roleSeen
		least int
		looks []view
		came  []bool
	}{
		"promoted":                       {roleSeen{}, 0, []view{replica, primary, primary}, []bool{false, true, false}},
		"restarted as what it was":       {roleSeen{primary: true}, 0, []view{primary, primary}, []bool{false, false}},
		"made a replica, and promoted":   {roleSeen{primary: true}, 0, []view{primary, replica, primary}, []bool{false, false, true}},
		"promoted and without a replica": {roleSeen{}, 1, []view{primary, followed, primary, followed}, []bool{false, true, false, false}},
	} {
		for i, v := range c.looks {
			if came := c.seen.came(v, c.least); came != c.came[i] {
				t.Errorf("%s: look %d is %v", name, i, came)
			}
		}
	}
}

// TestNoFailOverWithoutMajorityOfSentinels checks that no fail-over happens while most of the Sentinels are dead
// or paused, and that it happens after their return.
func TestNoFailOverWithoutMajorityOfSentinels(t *testing.T) {
	c := startSentinel(t, 3, "wait=1")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	leader, others := clustertest.Leader(t, c)
	dead, paused := others[0].(watched).Agent(), others[1].(watched).Agent()
	clustertest.Must(t, dead.Kill(ctx))
	clustertest.Must(t, paused.Pause(ctx))
	if dead.Running() || paused.StillPaused(ctx) != nil || !others[0].Running() {
		t.Errorf("%s and %s: a Sentinel goes on, or a server does not", dead.Name(), paused.Name())
	}
	clustertest.Must(t, leader.Kill(ctx))
	short, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	if number, err := c.Leader(short); err == nil {
		t.Errorf("n%d leads by the word of one Sentinel of three", number)
	}
	clustertest.Must(t, dead.Restart(ctx))
	clustertest.Must(t, paused.Resume(ctx))
	clustertest.Succeeds(t, c, leader)
	clustertest.Must(t, leader.Restart(ctx))
	clustertest.Must(t, c.WaitHealthy(ctx))
}

// TestPrimaryRestartedEmptyLosesAllWrites checks that all acknowledged writes are lost if a primary without
// persistence restarts before the Sentinels notice its end.
func TestPrimaryRestartedEmptyLosesAllWrites(t *testing.T) {
	c := startSentinel(t, 2, "appendonly=no")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	leader, _ := clustertest.Leader(t, c)
	p := sentinelKind().Pay(t, c)
	p.GoOn(100)
	clustertest.Must(t, leader.Kill(ctx))
	clustertest.Must(t, leader.Restart(ctx))
	p.GoOn(20)
	for _, e := range c.Events() {
		if e.Leader != "" {
			t.Errorf("a primary that was restarted is noted as a new one: %+v", e)
		}
	}
	if lost := p.End("restart the primary empty"); lost < 100 {
		t.Errorf("%d acknowledged payments are lost", lost)
	}
}

// TestSentinelStartRejectsInvalidOptions checks that invalid options of a start with Sentinels are rejected.
// Sentinels that cannot find the replicas must give an error of one sentence.
func TestSentinelStartRejectsInvalidOptions(t *testing.T) {
	k := sentinelKind()
	k.Launch = Start
	k.Refuses(t, []string{"redis-server"},
		clustertest.Refusal{Query: "failover=sentinel&set.no-such-setting=1", Options: cluster.Options{Nodes: 2}, Says: "Bad directive"},
		clustertest.Refusal{Query: "failover=sentinel&set.replica-announced=no", Options: cluster.Options{Nodes: 2}, Says: "knows 0 of 1 replicas"},
		clustertest.Refusal{Query: "failover=sentinel", Options: cluster.Options{Nodes: 1}, Says: "use at least 2 nodes"})
}
