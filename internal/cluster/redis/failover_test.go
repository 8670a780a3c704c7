package redis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
)

// TestPair hurts one pair in every way, in its own network where the user may have
// one.
func TestPair(t *testing.T) {
	c := startCluster(t, 2, "")
	kind().Hurt(t, c)
	t.Run("crash", func(t *testing.T) { testCrash(t, c) })
	t.Run("resume late", func(t *testing.T) { testResumeLate(t, c) })
	t.Run("replace dead", func(t *testing.T) { testReplaceDead(t, c) })
	t.Run("move", func(t *testing.T) { testMove(t, c) })
}

// testCrash ends a replica without a word, which the supervisor brings back.
func testCrash(t *testing.T, c *Cluster) {
	_, replica := roles(t, c)
	p := kind().Pay(t, c)
	clustertest.Must(t, replica.Server.Kill(t.Context()))
	p.GoOn(20)
	p.EndWell("the replica crashes")
}

// testResumeLate holds that a paused primary that was ended stays down until its
// resume, and one that was killed until its restart, as a replica.
func testResumeLate(t *testing.T, c *Cluster) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	for _, by := range []struct {
		end, bring func(*member, context.Context) error
	}{
		{(*member).Pause, (*member).Resume},
		{(*member).Kill, (*member).Restart},
	} {
		primary, _ := roles(t, c)
		clustertest.Must(t, by.end(primary, ctx))
		clustertest.Succeeds(t, c, primary)
		clustertest.Must(t, cluster.Sleep(ctx, 1100*time.Millisecond)) // in which the supervisor would have tried
		if primary.Running() {
			t.Error("a node that somebody holds down was started")
		}
		clustertest.Must(t, by.bring(primary, ctx))
		if v, err := look(ctx, primary.orders); err != nil || v.primary {
			t.Errorf("the former primary came back as a primary: %v", err)
		}
		clustertest.Must(t, c.WaitHealthy(ctx))
	}
}

// testReplaceDead replaces a primary that was killed.
func testReplaceDead(t *testing.T, c *Cluster) {
	primary, _ := roles(t, c)
	p := kind().Pay(t, c)
	clustertest.Must(t, primary.Kill(t.Context()))
	clustertest.Must(t, primary.Replace(clustertest.Within(t, clustertest.WaitLimit)))
	p.GoOn(20)
	p.End("kill the primary and replace it")
}

// testMove holds that a move in good order ends no process.
func testMove(t *testing.T, c *Cluster) {
	primary, replica := roles(t, c)
	before := primary.PIDs()
	clustertest.Must(t, c.MoveLeader(clustertest.Within(t, clustertest.WaitLimit), replica.Number()))
	if after := primary.PIDs(); len(after) == 0 || !slices.Contains(before, after[0]) {
		t.Errorf("a move in good order ended the process %v: %v", before, after)
	}
}

// TestCutAndKill cuts a replica off from the primary, which is then killed, so that
// the replica is promoted: that loses acknowledged payments, and the total stays
// right, unless the driver waits for the replica.
func TestCutAndKill(t *testing.T) {
	for query, loses := range map[string]bool{"": true, "wait=1": false} {
		t.Run(query, func(t *testing.T) {
			c := startCluster(t, 2, query)
			primary, replica := roles(t, c)
			p := kind().Pay(t, c)
			heal := clustertest.Cut(t, c, primary.Number(), replica.Number())
			if loses {
				p.GoOn(200)
			} else {
				clustertest.Must(t, cluster.Sleep(t.Context(), time.Second))
			}
			clustertest.Must(t, primary.Kill(t.Context()))
			if clustertest.Succeeds(t, c, primary) != replica {
				t.Error("the replica does not lead")
			}
			if loses {
				p.GoOn(20)
			}
			heal()
			clustertest.Must(t, primary.Restart(t.Context()))
			p.GoOn(20)
			if lost := p.End("cut the replica off and kill the primary"); loses && lost < 100 || !loses && lost > 0 {
				t.Errorf("%d acknowledged payments are lost", lost)
			}
		})
	}
}

// TestWithoutFailOver waits for a lost primary.
func TestWithoutFailOver(t *testing.T) {
	c := startCluster(t, 2, "failover=off")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	primary, replica := roles(t, c)
	p := kind().Pay(t, c)
	clustertest.Must(t, primary.Kill(ctx))
	clustertest.Must(t, cluster.Sleep(ctx, time.Second))
	if v, err := look(ctx, replica.orders); err != nil || v.primary || c.Leading() != primary {
		t.Errorf("the replica was promoted: %v", err)
	}
	if err := primary.Replace(ctx); err == nil || !strings.Contains(err.Error(), "failover=off") {
		t.Errorf("the data that lead were taken away: %v", err)
	}
	clustertest.Must(t, primary.Restart(ctx))
	p.GoOn(20)
	clustertest.Must(t, primary.Replace(ctx)) // which moves the lead first
	p.GoOn(20)
	p.EndWell("without fail-over")
}

// TestTriple has a replica that must follow another primary, and nodes that come
// and go.
func TestTriple(t *testing.T) {
	c := startCluster(t, 3, "")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	primary, behind := roles(t, c)
	p := kind().Pay(t, c)
	// Of two replicas the one that has more is promoted.
	heal := clustertest.Cut(t, c, primary.Number(), behind.Number())
	p.GoOn(50)
	clustertest.Must(t, primary.Kill(ctx))
	second := clustertest.Succeeds(t, c, primary).(*member)
	if second == behind {
		t.Error("the replica that had less was promoted")
	}
	p.GoOn(20)
	heal()
	clustertest.Must(t, cluster.Retry(ctx, func() error { return c.follows(behind, second) }))
	clustertest.Must(t, second.Kill(ctx))
	if clustertest.Succeeds(t, c, second) != behind {
		t.Error("the last node does not lead")
	}
	p.GoOn(20)
	clustertest.Must(t, errors.Join(primary.Restart(ctx), second.Restart(ctx)))
	p.End("kill two primaries of three, one after another")
	kind().Resize(t, c)
}

// follows says why a node does not follow another yet.
func (c *Cluster) follows(m, p *member) error {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if m.following != p {
		return errors.New(m.Name() + " does not follow " + p.Name() + " yet")
	}
	return nil
}
