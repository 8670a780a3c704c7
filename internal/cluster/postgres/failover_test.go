package postgres

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	driver "stroppy/internal/db/postgres"
)

// TestPair hurts one pair in every way, in its own network where the user may have
// one.
func TestPair(t *testing.T) {
	c := startCluster(t, 2, "")
	kind().Hurt(t, c)
	for name, test := range map[string]func(*testing.T, *Cluster){"fence": testFence, "give up a standby": testGiveUp, "driver": testDriver} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

// testFence kills the primary, which comes back as a standby.
func testFence(t *testing.T, c *Cluster) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	primary, standby := roles(t, c)
	before := len(c.Events())
	clustertest.Must(t, primary.Kill(ctx))
	if clustertest.Succeeds(t, c, primary) != standby {
		t.Error("the standby does not lead")
	}
	noted(t, c, before, primary.Name()+" was fenced")
	if primary.Running() {
		t.Error("the former primary is not fenced")
	}
	// Whoever starts it by hand gets a standby.
	if _, err := os.Stat(primary.Dir() + "/" + signalFile); err != nil {
		t.Error(err)
	}
	clustertest.Must(t, primary.Restart(ctx))
	if recovering, err := primary.recovering(ctx); err != nil || !recovering {
		t.Errorf("the former primary came back as a primary: %v", err)
	}
	clustertest.Must(t, c.WaitHealthy(ctx))
}

// testGiveUp cuts the standby off, for which commits do not wait for ever.
func testGiveUp(t *testing.T, c *Cluster) {
	primary, standby := roles(t, c)
	p := kind().Pay(t, c)
	heal := clustertest.Cut(t, c, primary.Number(), standby.Number())
	noted(t, c, len(c.Events()), standby.Name()+" is not waited for any more")
	p.GoOn(20)
	if c.Leading() != primary {
		t.Error("the cut cost the lead")
	}
	heal()
	p.EndWell("cut the standby off")
}

// testDriver opens the URL of a cluster whose primary is dead.
func testDriver(t *testing.T, c *Cluster) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	primary, _ := roles(t, c)
	clustertest.Must(t, primary.Kill(ctx))
	clustertest.Succeeds(t, c, primary)
	d, err := driver.Open(ctx, c.URL())
	clustertest.Must(t, err)
	clustertest.Must(t, d.Exec(ctx, "CREATE TABLE found (n int)"))
	clustertest.Must(t, d.Close())
	clustertest.Must(t, primary.Restart(ctx))
	clustertest.Must(t, c.WaitHealthy(ctx))
}

// TestStalledStandbyIsNotPromoted does what loses money without synchronous
// replication: the standby receives nothing and the primary is killed.
func TestStalledStandbyIsNotPromoted(t *testing.T) {
	c := startCluster(t, 2, "")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	primary, standby := roles(t, c)
	p := kind().Pay(t, c)
	clustertest.Must(t, c.StopReceiver(ctx, standby.Number()))
	p.GoOn(200)
	clustertest.Must(t, primary.Kill(ctx))
	noted(t, c, 0, "so "+primary.Name()+" is waited for")
	clustertest.Must(t, cluster.Sleep(ctx, 1500*time.Millisecond))
	if c.Leading() != primary {
		t.Fatal("a standby that has not everything was promoted")
	}
	if recovering, err := standby.recovering(ctx); err != nil || !recovering {
		t.Fatalf("the standby is none any more: %v", err)
	}
	if err := primary.Replace(ctx); err == nil || !strings.Contains(err.Error(), "no standby has all") {
		t.Errorf("the only copy was given up: %v", err)
	}
	clustertest.Must(t, primary.Restart(ctx))
	p.GoOn(20)
	clustertest.Must(t, c.StartReceiver(ctx, standby.Number()))
	p.EndWell("stop the receiver and kill the primary")
}

// TestRegistration holds that a standby may be promoted only when commits wait
// for it and it has what was acknowledged before.
func TestRegistration(t *testing.T) {
	c := startCluster(t, 2, "")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	p, n := roles(t, c)
	mustExecute(t, c.URL(), clustertest.PaidTable)
	clustertest.Must(t, c.Roles.Acquire(ctx)) // the supervisor rests
	defer c.Roles.Release()
	c.dismiss(ctx, p, "a test begins")
	clustertest.Must(t, cluster.Retry(ctx, func() error {
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
	if err := n.orders.Ask(ctx, "SELECT pg_wal_replay_pause()"); err != nil {
		t.Fatal(err)
	}
	clustertest.Must(t, cluster.Retry(ctx, func() error {
		state, err := One[string](ctx, n.orders, "SELECT pg_get_wal_replay_pause_state()")
		if err == nil && state != "paused" {
			err = errors.New(state)
		}
		return err
	}))
	mustExecute(t, c.URL(), "INSERT INTO paid VALUES (1)") // acknowledged, and the standby has not replayed it
	c.appoint(ctx, p, n, time.Now())
	for looks := 0; looks < 20; {
		if v, err := c.view(ctx, p); err == nil { // a busy machine may answer too late
			looks++
			c.admit(ctx, p, n, v)
		}
		if len(c.candidates(p)) > 0 {
			t.Fatal("a standby that has not replayed what was acknowledged may be promoted")
		}
		clustertest.Must(t, cluster.Sleep(ctx, 10*time.Millisecond))
	}
	if c.barrier == 0 {
		t.Error("no commit was seen waiting for a standby that replays nothing")
	}
	if err := n.orders.Ask(ctx, "SELECT pg_wal_replay_resume()"); err != nil {
		t.Fatal(err)
	}
	clustertest.Must(t, cluster.Retry(ctx, func() error {
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
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	lose := func(name string, part func(t *testing.T, primary, standby *node) (heal func())) {
		t.Run(name, func(t *testing.T) {
			primary, standby := roles(t, c)
			p := kind().Pay(t, c)
			clustertest.Must(t, c.WaitHealthy(ctx)) // the standby has the table of the payments
			heal := part(t, primary, standby)
			p.GoOn(200)
			clustertest.Must(t, primary.Kill(ctx))
			clustertest.Succeeds(t, c, primary)
			p.GoOn(20)
			heal()
			clustertest.Must(t, primary.Restart(ctx))
			if lost := p.End(name); lost < 100 {
				t.Errorf("only %d acknowledged payments are lost, after 200 that the standby could not have", lost)
			}
		})
	}
	lose("stop the receiver and kill the primary", func(t *testing.T, primary, standby *node) func() {
		clustertest.Must(t, c.StopReceiver(ctx, standby.Number()))
		return func() { clustertest.Must(t, c.StartReceiver(ctx, standby.Number())) }
	})
	lose("partition and kill the primary", func(t *testing.T, primary, standby *node) func() {
		return clustertest.Cut(t, c, primary.Number(), standby.Number())
	})
}

// TestStrict holds commits back while there is no standby.
func TestStrict(t *testing.T) {
	c := startCluster(t, 2, "strict=on")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	_, standby := roles(t, c)
	mustExecute(t, c.URL(), clustertest.PaidTable)
	clustertest.Must(t, standby.Kill(ctx))
	noted(t, c, 0, "lets commits wait")
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := clustertest.Execute(limited, c.URL(), "INSERT INTO paid VALUES (1)"); err == nil {
		t.Error("a commit was acknowledged without a standby")
	}
	clustertest.Must(t, standby.Restart(ctx))
	clustertest.Must(t, c.WaitHealthy(ctx))
	mustExecute(t, c.URL(), "INSERT INTO paid VALUES (2)")
}

// TestTriple has standbys that must follow another primary, and nodes that come
// and go.
func TestTriple(t *testing.T) {
	c := startCluster(t, 3, "")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	p := kind().Pay(t, c)
	primary, _ := roles(t, c)
	clustertest.Must(t, primary.Kill(ctx))
	second := clustertest.Succeeds(t, c, primary)
	p.GoOn(20)
	noted(t, c, 0, second.Name()+" waits for")
	clustertest.Must(t, second.Kill(ctx))
	clustertest.Succeeds(t, c, second)
	p.GoOn(20)
	clustertest.Must(t, primary.Restart(ctx))
	clustertest.Must(t, second.Restart(ctx))
	p.EndWell("kill two primaries of three, one after another")
	kind().Resize(t, c)
}

// TestDivergedStandby gives new data to a standby that has what the primary never
// had.
func TestDivergedStandby(t *testing.T) {
	c := startCluster(t, 2, "sync=off")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	primary, standby := roles(t, c)
	mustExecute(t, c.URL(), clustertest.PaidTable)
	clustertest.Must(t, c.WaitHealthy(ctx)) // the standby has the table
	clustertest.Must(t, c.StopReceiver(ctx, standby.Number()))
	mustExecute(t, c.URL(), "INSERT INTO paid VALUES (1)")
	clustertest.Must(t, primary.Kill(ctx))
	clustertest.Succeeds(t, c, primary)
	// As if nobody knew: it comes back as a standby on the data that it has.
	c.Mu.Lock()
	primary.stale = false
	c.Mu.Unlock()
	clustertest.Must(t, primary.Restart(ctx))
	noted(t, c, 0, "cannot follow it: it gets new data")
	clustertest.Must(t, c.WaitHealthy(ctx))
	if rows := mustExecute(t, c.NodeURL(primary.Number()), "SELECT id FROM paid"); len(rows) != 0 {
		t.Errorf("it holds yet what the primary never had: %s", rows)
	}
}
