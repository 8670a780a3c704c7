package postgres

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	driver "stroppy/internal/db/postgres"
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

// TestPair hurts one pair in every way, each time with clients that pay.
func TestPair(t *testing.T) {
	c := startCluster(t, 2, "")
	for _, test := range []struct {
		name string
		hurt func(ctx context.Context, t *testing.T, p *payments, primary, standby *node)
	}{
		{"kill the primary", killPrimary},
		{"pause the primary", pausePrimary},
		{"pause the primary for a moment", pausePrimaryBriefly},
		{"pause the standby", pauseStandby},
		{"kill the standby", killStandby},
		{"stop the primary", stopPrimary},
		{"switch over", switchOver},
		{"replace the standby", replaceStandby},
		{"replace the primary", replacePrimary},
		{"kill all and restart", killAll},
		{"cut the standby off", cutStandby},
		{"cut the clients off the primary", cutClients},
	} {
		t.Run(test.name, func(t *testing.T) {
			primary, standby := roles(t, c)
			p := pay(t, c)
			test.hurt(within(t, time.Minute), t, p, primary, standby)
			p.goOn(20)
			p.endWell(test.name)
		})
	}
}

func killPrimary(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	must(t, primary.Kill())
	if succeeds(t, p.c, primary) != standby {
		t.Error("the standby does not lead")
	}
	p.goOn(20)
	if !primary.Fenced() || primary.Running() {
		t.Error("the former primary is not fenced")
	}
	// Whoever starts it by hand gets a standby.
	if _, err := os.Stat(filepath.Join(primary.Dir(), signalFile)); err != nil {
		t.Error(err)
	}
	must(t, primary.Restart(ctx))
	if recovering, err := primary.recovering(ctx); err != nil || !recovering || primary.Fenced() {
		t.Errorf("the former primary came back as a primary: %v", err)
	}
}

func pausePrimary(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	must(t, primary.Pause())
	succeeds(t, p.c, primary)
	p.goOn(20)
	must(t, primary.Resume())
	if !primary.Running() {
		t.Error("a fenced node that was resumed is down")
	}
}

func pausePrimaryBriefly(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	must(t, primary.Pause())
	must(t, pause(ctx, 300*time.Millisecond))
	must(t, primary.Resume())
}

func pauseStandby(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	must(t, standby.Pause())
	p.goOn(20)
	must(t, standby.Resume())
}

func killStandby(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	must(t, standby.Kill())
	p.goOn(20)
	must(t, standby.Restart(ctx))
}

func stopPrimary(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	must(t, primary.Terminate(ctx))
	succeeds(t, p.c, primary)
	p.goOn(20)
	must(t, primary.Restart(ctx))
}

func switchOver(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	must(t, p.c.MoveLeader(ctx, standby.Number()))
	p.goOn(20)
	if p.c.leading() != standby {
		t.Error("the lead did not move")
	}
	must(t, p.c.MoveLeader(ctx, standby.Number()))
}

func replaceStandby(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	mark := filepath.Join(standby.Dir(), "mark")
	must(t, os.WriteFile(mark, nil, 0o600))
	must(t, standby.Replace(ctx))
	if _, err := os.Stat(mark); err == nil {
		t.Error("the old data are there yet")
	}
}

func replacePrimary(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	must(t, primary.Replace(ctx))
	if p.c.leading() != standby {
		t.Error("the standby does not lead")
	}
}

func killAll(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	must(t, p.c.each((*node).Kill))
	must(t, p.c.each(func(n *node) error { return n.Restart(ctx) }))
}

func cutStandby(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	heal := cut(t, p.c, primary.Number(), standby.Number())
	told(t, p.c, len(p.c.Events()), standby.Name()+" is not waited for any more")
	p.goOn(20)
	if p.c.leading() != primary {
		t.Error("the cut cost the lead")
	}
	heal()
}

func cutClients(ctx context.Context, t *testing.T, p *payments, primary, standby *node) {
	heal := cut(t, p.c, cluster.Client, primary.Number())
	succeeds(t, p.c, primary)
	p.goOn(20)
	heal()
}

// TestDriver opens the URL of a cluster whose first node is dead.
func TestDriver(t *testing.T) {
	c := startCluster(t, 2, "")
	ctx := within(t, time.Minute)
	primary, _ := roles(t, c)
	must(t, primary.Kill())
	succeeds(t, c, primary)
	d, err := driver.Open(ctx, c.URL())
	must(t, err)
	must(t, d.Exec(ctx, "CREATE TABLE found (n int)"))
	must(t, d.Close())
	must(t, primary.Restart(ctx))
	must(t, c.Whole(ctx))
}

// TestStalledStandbyIsNotPromoted does what loses money without synchronous
// replication: the standby receives nothing and the primary is killed.
func TestStalledStandbyIsNotPromoted(t *testing.T) {
	c := startCluster(t, 2, "")
	ctx := within(t, time.Minute)
	primary, standby := roles(t, c)
	p := pay(t, c)
	must(t, c.StopReceiver(ctx, standby.Number()))
	p.goOn(200)
	must(t, primary.Kill())
	told(t, c, 0, "so "+primary.Name()+" is waited for")
	must(t, pause(ctx, 1500*time.Millisecond))
	if c.leading() != primary {
		t.Fatal("a standby that has not everything was promoted")
	}
	if recovering, err := standby.recovering(ctx); err != nil || !recovering {
		t.Fatalf("the standby is none any more: %v", err)
	}
	if err := primary.Replace(ctx); err == nil || !strings.Contains(err.Error(), "no standby has all") {
		t.Errorf("the only copy was given up: %v", err)
	}
	must(t, primary.Restart(ctx))
	p.goOn(20)
	must(t, c.StartReceiver(ctx, standby.Number()))
	p.endWell("stop the receiver and kill the primary")
}

// TestRegistration holds that a standby may be promoted only when commits wait
// for it and it has what was acknowledged before.
func TestRegistration(t *testing.T) {
	c := startCluster(t, 2, "")
	ctx := within(t, time.Minute)
	p, n := roles(t, c)
	mustExecute(t, c.URL(), table)
	must(t, c.roles.acquire(ctx)) // the supervisor rests
	defer c.roles.release()
	c.dismiss(ctx, p, "a test begins")
	must(t, persist(ctx, func() error {
		v, err := c.view(ctx, p)
		if err == nil && !c.settled(ctx, p, v) {
			err = errors.New("the primary waits for somebody yet")
		}
		return err
	}))
	if c.commitsWait(ctx, p) {
		t.Error("a commit was seen waiting although it has nobody to wait for")
	}
	if len(c.candidates(p)) > 0 {
		t.Error("a standby that is not waited for may be promoted")
	}
	if _, err := n.orders.ask(ctx, "SELECT pg_wal_replay_pause()"); err != nil {
		t.Fatal(err)
	}
	must(t, persist(ctx, func() error {
		rows, err := n.orders.ask(ctx, "SELECT pg_get_wal_replay_pause_state()")
		if err == nil && rows[0][0] != "paused" {
			err = errors.New(rows[0][0])
		}
		return err
	}))
	mustExecute(t, c.URL(), "INSERT INTO paid VALUES (1)") // acknowledged, and the standby has not replayed it
	c.appoint(ctx, p, n, time.Now())
	for range 20 {
		v, err := c.view(ctx, p)
		must(t, err)
		c.admit(ctx, p, n, v)
		if len(c.candidates(p)) > 0 {
			t.Fatal("a standby that has not replayed what was acknowledged may be promoted")
		}
		must(t, pause(ctx, 10*time.Millisecond))
	}
	if c.barrier == 0 {
		t.Error("no commit was seen waiting for a standby that replays nothing")
	}
	if _, err := n.orders.ask(ctx, "SELECT pg_wal_replay_resume()"); err != nil {
		t.Fatal(err)
	}
	must(t, persist(ctx, func() error {
		v, err := c.view(ctx, p)
		if err == nil {
			c.admit(ctx, p, n, v)
			if len(c.candidates(p)) == 0 {
				err = errors.New("the standby was not registered")
			}
		}
		return err
	}))
}

// TestKnownBad loses acknowledged payments without synchronous replication.
func TestKnownBad(t *testing.T) {
	c := startCluster(t, 2, "sync=off")
	ctx := within(t, time.Minute)
	lose := func(name string, part func(t *testing.T, primary, standby *node) (heal func())) {
		t.Run(name, func(t *testing.T) {
			primary, standby := roles(t, c)
			p := pay(t, c)
			heal := part(t, primary, standby)
			p.goOn(200)
			must(t, primary.Kill())
			succeeds(t, c, primary)
			p.goOn(20)
			heal()
			must(t, primary.Restart(ctx))
			if lost := p.end(name); lost < 100 {
				t.Errorf("only %d acknowledged payments are lost, after 200 that the standby could not have", lost)
			}
		})
	}
	lose("stop the receiver and kill the primary", func(t *testing.T, primary, standby *node) func() {
		must(t, c.StopReceiver(ctx, standby.Number()))
		return func() { must(t, c.StartReceiver(ctx, standby.Number())) }
	})
	lose("partition and kill the primary", func(t *testing.T, primary, standby *node) func() {
		return cut(t, c, primary.Number(), standby.Number())
	})
}

// TestStrict holds commits back while there is no standby.
func TestStrict(t *testing.T) {
	c := startCluster(t, 2, "strict=on")
	ctx := within(t, time.Minute)
	_, standby := roles(t, c)
	mustExecute(t, c.URL(), table)
	must(t, standby.Kill())
	told(t, c, 0, "lets commits wait")
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := execute(limited, c.URL(), "INSERT INTO paid VALUES (1)"); err == nil {
		t.Error("a commit was acknowledged without a standby")
	}
	must(t, standby.Restart(ctx))
	must(t, c.Whole(ctx))
	mustExecute(t, c.URL(), "INSERT INTO paid VALUES (2)")
}

// TestTriple has standbys that must follow another primary, and nodes that come
// and go.
func TestTriple(t *testing.T) {
	c := startCluster(t, 3, "")
	ctx := within(t, 2*time.Minute)
	p := pay(t, c)
	primary, _ := roles(t, c)
	must(t, primary.Kill())
	second := succeeds(t, c, primary)
	p.goOn(20)
	told(t, c, 0, second.Name()+" waits for")
	must(t, second.Kill())
	third := succeeds(t, c, second)
	p.goOn(20)
	must(t, primary.Restart(ctx))
	must(t, second.Restart(ctx))
	p.endWell("kill two primaries of three, one after another")

	p = pay(t, c)
	number, err := c.Add(ctx)
	must(t, err)
	if number != 3 || len(c.Nodes()) != 4 || !strings.Contains(c.URL(), c.list()[3].address()) {
		t.Errorf("after Add: node %d, %s", number, c.URL())
	}
	must(t, c.Whole(ctx))
	must(t, c.MoveLeader(ctx, number))
	p.goOn(20)
	must(t, c.Remove(ctx, third.Number()))
	must(t, c.Remove(ctx, number)) // which leads
	p.goOn(20)
	if leader, err := c.Leader(ctx); err != nil || leader == number || len(c.Nodes()) != 2 {
		t.Errorf("node %d leads %d nodes: %v", leader, len(c.Nodes()), err)
	}
	if _, err := os.Stat(third.folder); err == nil {
		t.Error("the folder of a removed node is there yet")
	}
	if err := third.Restart(ctx); err == nil {
		t.Error("a removed node was restarted")
	}
	number, err = c.Add(ctx)
	must(t, err)
	if number != 4 {
		t.Errorf("the number of a removed node was used again: %d", number)
	}
	p.endWell("add, move the lead, remove")
}

// TestDivergedStandby gives new data to a standby that has what the primary never
// had.
func TestDivergedStandby(t *testing.T) {
	c := startCluster(t, 2, "sync=off")
	ctx := within(t, time.Minute)
	primary, standby := roles(t, c)
	mustExecute(t, c.URL(), table)
	must(t, c.Whole(ctx)) // the standby has the table
	must(t, c.StopReceiver(ctx, standby.Number()))
	mustExecute(t, c.URL(), "INSERT INTO paid VALUES (1)")
	must(t, primary.Kill())
	succeeds(t, c, primary)
	// As if nobody knew: it comes back as a standby on the data that it has.
	c.mu.Lock()
	primary.stale = false
	c.mu.Unlock()
	must(t, primary.Restart(ctx))
	told(t, c, 0, "cannot follow it: it gets new data")
	must(t, c.Whole(ctx))
	if rows := mustExecute(t, c.NodeURL(primary.Number()), "SELECT id FROM paid"); len(rows) != 0 {
		t.Errorf("it holds yet what the primary never had: %s", rows)
	}
}
