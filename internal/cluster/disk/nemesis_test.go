//go:build linux

package disk

import (
	"context"
	"errors"
	"net/url"
	"os"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/patroni"
	postgres "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/fault"
	"stroppy/internal/nemesis"
)

// TestDiskAndClockFaultsAreSeenAndHealed checks that each disk and clock fault of a real server is seen, and that
// its heal is seen. Each fault begins when the server is healthy after the previous fault.
func TestDiskAndClockFaultsAreSeenAndHealed(t *testing.T) {
	c, n := startKind(t, "postgres", postgres.StartCluster, cluster.Options{FaultFS: true, InMemory: true, Clock: true, Params: url.Values{"fsync": {"off"}}})
	if err := n.Sync(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"lose-unsynced n0 at 10ms for 300ms", "disk-full n0 at 10ms for 300ms", "slow-disk n0 by 30ms at 10ms for 300ms",
		"clock n0 by -5m at 10ms for 300ms", "clock n0 at rate 1.5 at 10ms for 300ms",
	} {
		fault, err := nemesis.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		hurt, err := nemesis.New(c, c.Network(), nemesis.Script{fault}, 1)
		var missing host.MissingError
		if errors.As(err, &missing) {
			t.Skipf("skipped engine: faketime: install the Debian package %s", missing.Package)
		}
		if err != nil {
			t.Fatal(err)
		}
		injectOnce(t, hurt)
	}
}

// injectOnce runs a script of one fault until it is healed, and waits for the server.
func injectOnce(t *testing.T, hurt *nemesis.Nemesis) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began, over := time.Now(), false
	hurt.Run(ctx, func() time.Duration { return time.Since(began) }, func(i fault.Injection) {
		if !i.Over {
			return
		}
		over = true
		t.Logf("%s: %s", i.Fault, i.Verified)
		if i.Failed() || i.Skipped != "" || i.Healed == nil || i.Verified == "" {
			t.Errorf("%+v", i)
		}
		cancel()
	})
	if !over {
		t.Error("no injection is over after a minute")
	}
	if err := hurt.Whole(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestReplacedNodeHasDiskWithoutFaults checks that a replaced node has a disk without faults, and keeps the node's
// initial data. Clusters that can change their size also add and remove a node.
func TestReplacedNodeHasDiskWithoutFaults(t *testing.T) {
	for name, start := range map[string]func(context.Context, cluster.Options) (cluster.Local, error){
		"postgres": func(ctx context.Context, o cluster.Options) (cluster.Local, error) {
			return patroni.Start(ctx, o)
		},
		"etcd": func(ctx context.Context, o cluster.Options) (cluster.Local, error) { return etcd.Start(ctx, o) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits
			c, n := startKind(t, name, start, cluster.Options{Nodes: 3, FaultFS: true, InMemory: true})
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			leader, err := c.Leader(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range c.Nodes() {
				if other.Number() != leader {
					n = other.(weak)
				}
			}
			if _, err := n.Fill(ctx); err != nil { // if the fault stayed, the node could not join
				t.Fatal(err)
			}
			if err := errors.Join(n.Replace(ctx), c.WaitHealthy(ctx)); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(n.Kill(ctx), n.LoseUnsynced(), n.Restart(ctx), c.WaitHealthy(ctx)); err != nil {
				t.Errorf("a loss after it was replaced: %v", err)
			}
			resizer, ok := c.(cluster.Resizer)
			if !ok {
				return
			}
			added, err := resizer.Add(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.WaitHealthy(ctx), resizer.Remove(ctx, n.Number()), c.WaitHealthy(ctx)); err != nil {
				t.Error(err)
			}
			for _, other := range c.Nodes() {
				if layered := other.(nemesis.Disk).DiskFaults(); layered != nil {
					t.Errorf("%s, after n%d was added: %v", other.Name(), added, layered)
				}
			}
			if _, err := os.Stat(n.Dir()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the data of a node that was removed: %v", err)
			}
		})
	}
}
