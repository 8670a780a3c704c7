package etcd

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/kubernetes/kubetest"
	"stroppy/internal/nemesis"
)

// TestPodsRecoverFromFaultsOnRealNode checks that a database in pods on a real node recovers when pods are killed,
// stopped or replaced, or the leader moves. In the end nothing is left.
func TestPodsRecoverFromFaultsOnRealNode(t *testing.T) {
	kubetest.OnNode(t, func(t *testing.T, n *kubetest.Node) {
		namespace := n.Namespace(t)
		began := time.Now()
		c, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 3, Params: url.Values{
			"kubeconfig": {n.Kubeconfig}, "namespace": {namespace}, "image": {"stroppy.test/etcd:3.6.8"}, "pull": {"Never"}, "wait": {"2m"},
		}}, "test")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
		t.Logf("three members well after %v, %s", time.Since(began).Round(time.Millisecond), c.(interface{ Deployment() string }).Deployment())
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, end := range map[string]func(nemesis.Killer, nemesis.Terminator) error{
			"kill": func(k nemesis.Killer, _ nemesis.Terminator) error { return k.Kill(ctx) },
			"stop": func(_ nemesis.Killer, s nemesis.Terminator) error { return s.Terminate(ctx) },
		} {
			t.Run(name, func(t *testing.T) {
				leader, err := c.Leader(ctx)
				must(err)
				node := c.Nodes()[leader]
				began := time.Now()
				must(end(node.(nemesis.Killer), node.(nemesis.Terminator)))
				t.Logf("n%d down after %v", leader, time.Since(began).Round(time.Millisecond))
				time.Sleep(3 * time.Second) // longer than its controller needs to make another one
				if node.Running() {
					t.Errorf("n%d does not stay down", leader)
				}
				if now, err := c.Leader(ctx); err != nil || now == leader {
					t.Errorf("n%d leads, %v, and n%d is down", now, err, leader)
				}
				began = time.Now()
				must(node.(nemesis.Restarter).Restart(ctx))
				t.Logf("n%d up again after %v", leader, time.Since(began).Round(time.Millisecond))
				must(c.WaitHealthy(ctx))
			})
		}
		t.Run("replace", func(t *testing.T) {
			began := time.Now()
			must(c.Nodes()[1].(nemesis.Replacer).Replace(ctx))
			must(c.WaitHealthy(ctx))
			t.Logf("n1 replaced by an empty one after %v", time.Since(began).Round(time.Millisecond))
		})
		t.Run("move leader", func(t *testing.T) {
			leader, err := c.Leader(ctx)
			must(err)
			to := (leader + 1) % 3
			must(c.(cluster.Mover).MoveLeader(ctx, to))
			if now, err := c.Leader(ctx); err != nil || now != to {
				t.Errorf("n%d leads, %v, want n%d", now, err, to)
			}
		})
	}, etcdImage())
}

// TestForwardedConnectionsEndWithPod checks that a database is reached through the API server by many connections,
// which end with their pod. It also checks that an existing database is used by its labels.
func TestForwardedConnectionsEndWithPod(t *testing.T) {
	kubetest.OnNode(t, func(t *testing.T, n *kubetest.Node) {
		namespace := n.Namespace(t)
		start := func(more ...string) cluster.Cluster {
			params := url.Values{"kubeconfig": {n.Kubeconfig}, "namespace": {namespace}, "image": {"stroppy.test/etcd:3.6.8"}, "pull": {"Never"}, "wait": {"2m"}, "reach": {"forward"}}
			for i := 0; i < len(more); i += 2 {
				params.Set(more[i], more[i+1])
			}
			c, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 3, Params: params}, "test")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Stop(); err != nil {
					t.Error(err)
				}
			})
			return c
		}
		c := start()
		if way := c.(interface{ Deployment() string }).Deployment(); !strings.Contains(way, "through the API server") {
			t.Errorf("it is %s", way)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		leader, err := c.Leader(ctx)
		if err != nil {
			t.Fatal(err)
		}
		node := c.Nodes()[leader]
		if err := node.(nemesis.Killer).Kill(ctx); err != nil {
			t.Fatal(err)
		}
		if err := node.(nemesis.Restarter).Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.WaitHealthy(ctx); err != nil {
			t.Fatal(err)
		}

		theirs := start("selector", kubernetes.ComponentLabel+"=etcd")
		if len(theirs.Nodes()) != 3 {
			t.Errorf("it has %d nodes", len(theirs.Nodes()))
		}
		if err := theirs.Nodes()[0].(nemesis.Killer).Kill(ctx); err != nil {
			t.Fatal(err)
		}
		if err := theirs.Nodes()[0].(nemesis.Restarter).Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if err := theirs.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := c.WaitHealthy(ctx); err != nil {
			t.Errorf("what was used without being owned is not whole afterwards: %v", err)
		}
	}, etcdImage())
}

// etcdImage returns an image of the etcd that the tests' API server uses.
func etcdImage() kubetest.Image {
	return kubetest.Image{Name: "stroppy.test/etcd:3.6.8", Files: map[string]string{
		"/usr/local/bin/etcd": filepath.Join(os.Getenv("STROPPY_TEST_KUBERNETES"), "bin", "etcd")}}
}
