package redis

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
)

// cut cuts all ways between two places until the test heals it.
func cut(t *testing.T, c *Cluster, a, b int) (heal func()) {
	t.Helper()
	if why := c.Network().Loopback(); why != "" {
		t.Skip("skipped engine: network namespaces: run as root: " + why)
	}
	undo, err := c.Network().Cut(t.Context(), []cluster.Cut{{From: a, To: b}, {From: b, To: a}})
	must(t, err)
	t.Cleanup(func() { must(t, undo()) })
	return func() { t.Helper(); must(t, undo()) }
}

// TestPair hurts one pair in every way, each time with clients that pay. What an
// asynchronous replica may have missed when the primary goes without a warning is
// told, and no error.
func TestPair(t *testing.T) {
	c := startCluster(t, 2, "")
	for _, test := range []struct {
		name  string
		may   bool // lose what was acknowledged
		moves bool // the lead
		hurt  func(ctx context.Context, t *testing.T, p *payments, primary, replica *member)
	}{
		{"kill the primary", true, true, killPrimary},
		{"pause the primary", true, true, pausePrimary},
		{"pause the primary for a moment", false, false, pausePrimaryBriefly},
		{"stop the primary", false, true, stopPrimary},
		{"kill the replica", false, false, killReplica},
		{"pause the replica", false, false, pauseReplica},
		{"the replica crashes", false, false, crashReplica},
		{"move the lead", false, true, moveLead},
		{"replace the replica", false, false, replaceReplica},
		{"replace the primary", false, true, replacePrimary},
		{"kill the primary and replace it", true, true, replaceDead},
		{"kill all and restart", false, false, killAll},
		{"cut the replica off", false, false, cutReplica},
		{"cut the clients off the primary", true, true, cutClients},
	} {
		t.Run(test.name, func(t *testing.T) {
			primary, replica := roles(t, c)
			p := pay(t, c)
			test.hurt(within(t, time.Minute), t, p, primary, replica)
			p.goOn(20)
			if lost := p.end(test.name); lost > 0 && !test.may {
				t.Errorf("%d acknowledged payments are lost", lost)
			}
			if moved := c.leader() == replica; moved != test.moves {
				t.Errorf("%s leads, which %s did before", c.leader().Name(), primary.Name())
			}
		})
	}
}

func killPrimary(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	must(t, primary.Kill())
	succeeds(t, p.c, primary)
	p.goOn(20)
	if primary.Running() {
		t.Error("a node that was killed on purpose was started")
	}
	must(t, primary.Restart(ctx))
	if v, err := look(ctx, primary.orders); err != nil || v.primary {
		t.Errorf("the former primary came back as a primary: %v", err)
	}
}

func pausePrimary(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	must(t, primary.Pause())
	succeeds(t, p.c, primary)
	p.goOn(20)
	must(t, pause(ctx, retryAfter+100*time.Millisecond))
	if primary.Running() {
		t.Error("a paused node that was ended was started before its resume")
	}
	must(t, primary.Resume())
	if !primary.Running() {
		t.Error("a node that was ended and resumed is down")
	}
}

func pausePrimaryBriefly(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	must(t, primary.Pause())
	must(t, pause(ctx, 300*time.Millisecond))
	must(t, primary.Resume())
}

func stopPrimary(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	must(t, primary.Terminate(ctx))
	succeeds(t, p.c, primary)
	p.goOn(20)
	must(t, primary.Restart(ctx))
}

func killReplica(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	must(t, replica.Kill())
	p.goOn(20)
	must(t, replica.Restart(ctx))
}

func pauseReplica(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	must(t, replica.Pause())
	must(t, pause(ctx, 1200*time.Millisecond))
	p.goOn(20)
	must(t, replica.Resume())
}

func crashReplica(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	must(t, replica.Server.Kill()) // the supervisor brings it back
	p.goOn(20)
}

func moveLead(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	before := primary.PIDs()
	must(t, p.c.MoveLeader(ctx, replica.Number()))
	p.goOn(20)
	must(t, p.c.MoveLeader(ctx, replica.Number()))
	if after := primary.PIDs(); len(after) != 1 || after[0] != before[0] {
		t.Errorf("a move in good order ended the process %v: %v", before, after)
	}
	if err := p.c.MoveLeader(ctx, 9); err == nil {
		t.Error("the lead was moved to a node that is not there")
	}
}

func replaceReplica(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	mark := filepath.Join(replica.Dir(), "mark")
	must(t, os.WriteFile(mark, nil, 0o600))
	must(t, replica.Replace(ctx))
	if _, err := os.Stat(mark); err == nil {
		t.Error("the old data are there yet")
	}
}

func replacePrimary(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	must(t, primary.Replace(ctx))
}

func replaceDead(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	must(t, primary.Kill())
	must(t, primary.Replace(ctx))
}

func killAll(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	// Both at once: neither may lead on what the other never sent.
	must(t, replica.Kill())
	must(t, primary.Kill())
	must(t, replica.Restart(ctx))
	must(t, pause(ctx, 300*time.Millisecond))
	must(t, primary.Restart(ctx))
}

func cutReplica(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	heal := cut(t, p.c, primary.Number(), replica.Number())
	p.goOn(200)
	heal()
}

func cutClients(ctx context.Context, t *testing.T, p *payments, primary, replica *member) {
	heal := cut(t, p.c, cluster.Client, primary.Number())
	succeeds(t, p.c, primary)
	p.goOn(20)
	heal()
}

// TestKnownBad loses acknowledged payments, and the total stays right: a replica
// that is cut off from the primary is promoted when that is killed.
func TestKnownBad(t *testing.T) {
	c := startCluster(t, 2, "")
	ctx := within(t, time.Minute)
	primary, replica := roles(t, c)
	p := pay(t, c)
	heal := cut(t, c, primary.Number(), replica.Number())
	p.goOn(200)
	must(t, primary.Kill())
	if succeeds(t, c, primary) != replica {
		t.Error("the replica does not lead")
	}
	p.goOn(20)
	heal()
	must(t, primary.Restart(ctx))
	if lost := p.end("cut the replica off and kill the primary"); lost < 100 {
		t.Errorf("only %d acknowledged payments are lost, after 200 that the replica could not have", lost)
	}
}

// TestWaitLosesNothing does the same with a driver that waits for the replica.
func TestWaitLosesNothing(t *testing.T) {
	c := startCluster(t, 2, "wait=1")
	ctx := within(t, time.Minute)
	primary, replica := roles(t, c)
	p := pay(t, c)
	heal := cut(t, c, primary.Number(), replica.Number())
	must(t, pause(ctx, time.Second))
	must(t, primary.Kill())
	succeeds(t, c, primary)
	heal()
	must(t, primary.Restart(ctx))
	p.goOn(20)
	p.endWell("cut the replica off and kill the primary, with wait=1")
}

// TestWithoutFailOver waits for a lost primary.
func TestWithoutFailOver(t *testing.T) {
	c := startCluster(t, 2, "failover=off")
	ctx := within(t, time.Minute)
	primary, replica := roles(t, c)
	p := pay(t, c)
	must(t, primary.Kill())
	must(t, pause(ctx, time.Second))
	if v, err := look(ctx, replica.orders); err != nil || v.primary || c.leader() != primary {
		t.Errorf("the replica was promoted: %v", err)
	}
	if err := primary.Replace(ctx); err == nil || !strings.Contains(err.Error(), "failover=off") {
		t.Errorf("the data that lead were taken away: %v", err)
	}
	must(t, primary.Restart(ctx))
	p.goOn(20)
	must(t, primary.Replace(ctx)) // which moves the lead first
	p.goOn(20)
	p.endWell("without fail-over")
}

// TestTriple has a replica that must follow another primary, and nodes that come
// and go.
func TestTriple(t *testing.T) {
	c := startCluster(t, 3, "")
	ctx := within(t, 2*time.Minute)
	primary, behind := roles(t, c)
	p := pay(t, c)
	// Of two replicas the one that has more is promoted.
	heal := cut(t, c, primary.Number(), behind.Number())
	p.goOn(50)
	must(t, primary.Kill())
	second := succeeds(t, c, primary)
	if second == behind {
		t.Error("the replica that had less was promoted")
	}
	p.goOn(20)
	heal()
	must(t, persist(ctx, func() error { return c.follows(behind, second) }))
	must(t, second.Kill())
	if succeeds(t, c, second) != behind {
		t.Error("the last node does not lead")
	}
	p.goOn(20)
	must(t, errors.Join(primary.Restart(ctx), second.Restart(ctx)))
	p.end("kill two primaries of three, one after another")

	p = pay(t, c)
	number, err := c.Add(ctx)
	must(t, err)
	if number != 3 || len(c.Nodes()) != 4 || !strings.Contains(c.URL(), c.list()[3].address()) {
		t.Errorf("after Add: node %d, %s", number, c.URL())
	}
	must(t, c.Whole(ctx))
	must(t, p.d.Close())
	p.end("add a node")

	p = pay(t, c) // whose clients know the new node
	must(t, c.MoveLeader(ctx, number))
	p.goOn(20)
	must(t, c.Remove(ctx, second.Number()))
	must(t, c.Remove(ctx, number)) // which leads
	p.goOn(20)
	if leader, err := c.Leader(ctx); err != nil || leader == number || len(c.Nodes()) != 2 {
		t.Errorf("node %d leads %d nodes: %v", leader, len(c.Nodes()), err)
	}
	if _, err := os.Stat(second.folder); err == nil {
		t.Error("the folder of a removed node is there yet")
	}
	if err := second.Restart(ctx); !errors.Is(err, errRemoved) {
		t.Errorf("a removed node was restarted: %v", err)
	}
	p.endWell("move the lead, remove")
}

// follows says why a node does not follow another yet.
func (c *Cluster) follows(m, p *member) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.following != p {
		return errors.New(m.Name() + " does not follow " + p.Name() + " yet")
	}
	return nil
}
