package patroni

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/cluster/wait"
)

// demoted waits until a former primary is a standby, or is being made one.
func demoted(t *testing.T, n *node) {
	t.Helper()
	clustertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error {
		if recovering, err := server.One[bool](t.Context(), n.over, "SELECT pg_is_in_recovery()"); err == nil && !recovering {
			return fmt.Errorf("%s takes writes yet", n.Name())
		}
		return nil
	}))
}

// TestFaultsOfPatroniAndEtcdLoseNothing checks that no acknowledged payment is lost if Patroni or all etcd servers
// are killed or paused. It uses strict mode, because otherwise Patroni 3.0.2 may start beside a running primary with a
// postgresql.conf without synchronous_standby_names. Then a primary that has lost leadership acknowledges waiting
// commits. In the end the cluster is stopped, which must leave nothing behind.
func TestFaultsOfPatroniAndEtcdLoseNothing(t *testing.T) {
	dir := clustertest.OpenDir(t)
	k := kind()
	c := k.Start(t, cluster.Options{Nodes: 2, Dir: dir, Loopback: true, Params: url.Values{"synchronous": {"strict"}, "store": {"3"}}}).(*Cluster)
	leads := func() *node { l, _ := clustertest.Leader(t, c); return l.(*node) }
	faults := []struct {
		name         string
		inject, heal func(cluster.Auxiliary, context.Context) error
	}{
		{"kill", cluster.Auxiliary.Kill, cluster.Auxiliary.Restart},
		{"pause", cluster.Auxiliary.Pause, cluster.Auxiliary.Resume},
	}
	for _, do := range faults {
		t.Run(do.name+" the agent", func(t *testing.T) {
			p, ctx, n := k.Pay(t, c), clustertest.Within(t, clustertest.WaitLimit), leads()
			a := n.Agent()
			clustertest.Must(t, do.inject(a, ctx))
			if recovering, err := server.One[bool](ctx, n.over, "SELECT pg_is_in_recovery()"); err != nil || recovering {
				t.Errorf("without Patroni %s is no primary: %v", n.Name(), err)
			}
			clustertest.Succeeds(t, c, n)
			clustertest.Must(t, do.heal(a, ctx))
			if !a.Running() || a.StillPaused(ctx) == nil {
				t.Errorf("%s does not go on", a.Name())
			}
			demoted(t, n)
			p.GoOn(20)
			p.EndWell(do.name + " the agent")
		})
	}
	for _, do := range faults {
		t.Run(do.name+" the store", func(t *testing.T) {
			p, ctx, n := k.Pay(t, c), clustertest.Within(t, clustertest.WaitLimit), leads()
			if len(c.Store()) != 3 {
				t.Fatalf("%d servers keep the state of the cluster", len(c.Store()))
			}
			all := func(act func(cluster.Auxiliary, context.Context) error) {
				errs := make(chan error)
				for _, server := range c.Store() { // at once: one server alone has no majority
					go func() { errs <- act(server, ctx) }()
				}
				for range c.Store() {
					clustertest.Must(t, <-errs)
				}
			}
			all(do.inject)
			demoted(t, n)
			all(do.heal)
			p.GoOn(20)
			p.EndWell(do.name + " the store")
		})
	}
	t.Run("lead again", func(t *testing.T) { testLeadsAgain(t, c, leads()) })
	t.Run("stop leaves nothing", func(t *testing.T) { k.Gone(t, c, dir) })
}

// testLeadsAgain checks the events of a node that loses Patroni's leader key and gets it back, because no other
// Patroni is awake. It also checks the events of a node that is demoted and promoted with the key.
func testLeadsAgain(t *testing.T, c *Cluster, n *node) {
	ctx, before := clustertest.Within(t, clustertest.WaitLimit), len(c.Events())
	noted := func(what string, is func(cluster.Event) bool) {
		t.Helper()
		clustertest.Must(t, wait.Retry(ctx, func() error {
			if events := c.Events()[before:]; !slices.ContainsFunc(events, is) {
				return fmt.Errorf("%s is not noted: %v", what, events)
			}
			return nil
		}))
	}
	other := c.servers()[1-n.Number()].Agent()
	clustertest.Must(t, other.Pause(ctx))
	clustertest.Must(t, n.Agent().Pause(ctx))
	noted("the loss of the key", func(e cluster.Event) bool { return strings.HasPrefix(e.Text, "nobody has") })
	clustertest.Must(t, n.Agent().Resume(ctx))
	leadsAgain := func(e cluster.Event) bool { return e.Leader == n.Name() }
	noted("who leads again", leadsAgain)
	before = len(c.Events())
	for _, server := range c.Store() {
		clustertest.Must(t, server.Pause(ctx))
	}
	noted("the demotion", func(e cluster.Event) bool { return e.Text == n.Name()+", which took writes, is a standby" })
	for _, server := range c.Store() {
		clustertest.Must(t, server.Resume(ctx))
	}
	noted("who leads after a demotion", leadsAgain)
	clustertest.Must(t, other.Resume(ctx))
}
