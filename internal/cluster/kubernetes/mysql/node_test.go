package mysql

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/kubernetes/kubetest"
	driver "stroppy/internal/db/mysql"
	"stroppy/internal/nemesis"
)

// TestKilledServersBecomeHealthyOnRealNode checks that killed servers in pods are seen to become healthy again.
// The servers are real, and their operator is a stand-in. In the end nothing is left.
func TestKilledServersBecomeHealthyOnRealNode(t *testing.T) {
	kubetest.OnNode(t, func(t *testing.T, n *kubetest.Node) {
		n.Define(t, definitionsPath(t))
		n.StartChaosMesh(t)
		space := n.Namespace(t)
		go n.OperateMariaDB(t, space)
		began := time.Now()
		c, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 3, Params: url.Values{
			"kubeconfig": {n.Kubeconfig}, "namespace": {space}, "wait": {"4m"},
		}}, "test")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("three servers well after %v, %s", time.Since(began).Round(time.Millisecond), c.(interface{ Deployment() string }).Deployment())
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		d, err := driver.Open(ctx, c.URL())
		if err != nil {
			t.Fatal(err)
		}
		info, err := d.Info(ctx)
		if err := errors.Join(err, d.Close()); err != nil || !strings.Contains(info.Name, "Galera") {
			t.Errorf("the clients see %s %s, %v", info.Name, info.Version, err)
		}
		if _, err := c.Leader(ctx); !errors.Is(err, cluster.ErrNoLeader) {
			t.Errorf("one leads: %v", err)
		}
		node := c.Nodes()[1]
		putClocks(ctx, t, node)
		for name, end := range map[string]func(context.Context) error{"kill": node.(nemesis.Killer).Kill, "stop": node.(nemesis.Terminator).Terminate} {
			began := time.Now()
			if err := end(ctx); err != nil {
				t.Fatal(name, err)
			}
			if err := node.(nemesis.Restarter).Restart(ctx); err != nil {
				t.Fatal(name, err)
			}
			if err := c.WaitHealthy(ctx); err != nil {
				t.Fatal(name, err)
			}
			t.Logf("%s: well again after %v", name, time.Since(began).Round(time.Millisecond))
		}
		if _, empty := node.(nemesis.Replacer); empty {
			t.Error("a node that the operator makes is replaced")
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		n.Left(t, space, mariadbs, secrets, schema.GroupVersionResource{Version: "v1", Resource: "pods"})
		bindings, err := n.Client.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}).
			List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range bindings.Items {
			if name := bindings.Items[i].GetName(); strings.HasPrefix(name, "stroppy-") {
				t.Error("it is left, in no namespace:", name)
			}
		}
	}, kubetest.MariaDB(t))
}
