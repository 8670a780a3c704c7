// Package clustertest holds the tests that every kind of cluster, and every single server, must pass. The tests of a
// kind call it and add what is particular to the kind.
package clustertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/fault"
)

// WaitLimit bounds one wait of a test on a busy machine.
const WaitLimit = 2 * time.Minute

// Within returns a context that ends after d, or with the test.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Must fails the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Need is like Must for the start of an engine, but skips the test if this machine lacks a program.
func Need(t testing.TB, engine string, err error) {
	t.Helper()
	if missing, ok := errors.AsType[host.MissingError](err); ok {
		t.Skip("skipped engine: " + engine + ": " + missing.Advice())
	}
	Must(t, err)
}

// OpenDir makes a folder that any user can enter.
func OpenDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		Must(t, os.Chmod(d, 0o755))
	}
	return dir
}

// Cut cuts both directions between a place and others until heal is called or the test ends.
func Cut(t testing.TB, c cluster.Local, place int, others ...int) (heal func()) {
	t.Helper()
	if why := c.Network().Loopback(); why != "" {
		t.Skip("skipped engine: network namespaces: run as root: " + why)
	}
	var cuts []fault.Cut
	for _, other := range others {
		cuts = append(cuts, fault.Between(place, other)...)
	}
	undo, err := c.Network().Cut(t.Context(), cuts)
	Must(t, err)
	t.Cleanup(func() { Must(t, undo()) })
	return func() { t.Helper(); Must(t, undo()) }
}

// Launcher returns the start of a kind in the form of Kind.Launch.
func Launcher[C cluster.Local](start func(context.Context, cluster.Options) (C, error)) func(context.Context, cluster.Options) (cluster.Local, error) {
	return func(ctx context.Context, o cluster.Options) (cluster.Local, error) {
		return cluster.AsLocal(start(ctx, o))
	}
}

// Start starts a cluster of a kind, in memory unless it has a folder. Its events are logged after the test.
func (k Kind) Start(t testing.TB, o cluster.Options) cluster.Local {
	t.Helper()
	if o.Dir == "" {
		o.InMemory = true
	}
	if o.Params == nil {
		o.Params = k.Params
	}
	began := time.Now()
	c, err := k.Launch(Within(t, WaitLimit), o)
	Need(t, k.Engine, err)
	t.Logf("%d nodes up in %v (loopback: %q)", o.Nodes, time.Since(began).Round(time.Millisecond), c.Network().Loopback())
	t.Cleanup(func() {
		if supervised, ok := c.(interface{ Events() []cluster.Event }); ok {
			for _, e := range supervised.Events() {
				t.Logf("%8.3fs %s", e.Time.Sub(began).Seconds(), e.Text)
			}
		}
		if t.Failed() {
			logs(t, c)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Leader returns the node that leads and the others. If all are equal, it returns the first as the leader.
func Leader(t testing.TB, c cluster.Local) (leader cluster.LocalNode, others []cluster.LocalNode) {
	t.Helper()
	nodes := cluster.LocalNodes(c)
	number, err := c.Leader(Within(t, WaitLimit))
	if errors.Is(err, cluster.ErrNoLeader) {
		return nodes[0], nodes[1:]
	}
	Must(t, err)
	for _, n := range nodes {
		if n.Number() == number {
			leader = n
		} else {
			others = append(others, n)
		}
	}
	return leader, others
}

// Succeeds waits until another node than n leads, unless all are equal.
func Succeeds(t testing.TB, c cluster.Local, n cluster.LocalNode) cluster.LocalNode {
	t.Helper()
	ctx := Within(t, WaitLimit)
	var leader cluster.LocalNode
	Must(t, wait.Retry(ctx, func() error {
		if _, err := c.Leader(ctx); errors.Is(err, cluster.ErrNoLeader) {
			return nil
		}
		if leader, _ = Leader(t, c); leader == n {
			return errors.New(n.Name() + " still leads")
		}
		return nil
	}))
	return leader
}
