package kubernetes

import (
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes/kubetest"
)

// testKept checks that a kept database stays, and that all other objects of its run disappear. Clearing other runs
// must not remove it, but an explicit request must.
func testKept(t *testing.T, c *kubetest.ControlPlane) {
	a, ctx := connect(t, c), t.Context()
	const run = "stroppy-kept"
	o, err := a.own(ctx, run, made1("v1", "Service"))
	must(t, err)
	probe := pod("stroppy-kept-probe", map[string]any{})
	asPart(probe, "probe")
	token := NewSecret("stroppy-kept-workers", map[string]string{"token": "secret"})
	asPart(token, workerComponent)
	must(t, o.willMake(ctx, SecretKind))
	for _, object := range []*Object{service(run), pod("stroppy-kept-0", map[string]any{}), NewSecret("stroppy-kept-superuser", nil), probe, token} {
		_, err := a.Apply(ctx, run, object)
		must(t, err)
	}
	there := func() (names []string) {
		for _, kind := range []schema.GroupVersionKind{service("x").GroupVersionKind(), podKind, SecretKind, leaseKind} {
			list, err := a.list(ctx, kind, RunLabel+"="+run)
			must(t, err)
			for i := range list {
				names = append(names, list[i].GetName())
			}
		}
		return names
	}
	down := func(name string) error {
		_, err := Down(ctx, cluster.Options{Params: url.Values{"kubeconfig": {c.Kubeconfig}, "namespace": {a.Namespace}, "name": {name}}})
		return err
	}
	says(t, down(run), "the run of stroppy-kept", "is still running")
	must(t, o.keep())
	must(t, o.giveUp()) // after keep
	if names := there(); len(names) != 4 {
		t.Errorf("of what was kept there is %v", names)
	}
	now, err := a.now(ctx)
	must(t, err)
	if lines, err := a.clearDead(ctx, now.Add(2*leaseLasts)); err != nil || len(lines) > 0 {
		t.Errorf("what was kept is cleared: %v, %v", lines, err)
	}
	must(t, down(run))
	if names := there(); len(names) > 0 {
		t.Errorf("it is left: %v", names)
	}
	says(t, down(run), "no cluster stroppy-kept was kept in the namespace "+a.Namespace)
}

// testAdopt checks that the pods with given labels become the nodes, except completed pods.
func testAdopt(t *testing.T, c *kubetest.ControlPlane) {
	a, ctx := connect(t, c), t.Context()
	const labelled = "app=theirs"
	for _, name := range []string{"db-0", "db-1", "db-check"} {
		_, err := a.Apply(ctx, "stroppy-theirs", pod(name, map[string]any{"app": "theirs"}))
		must(t, err)
	}
	must(t, a.Patch(ctx, podKind, "db-check", map[string]any{"status": map[string]any{"phase": "Succeeded"}}, "status"))
	w, err := a.watchPods(ctx, labelled, func(*corev1.Pod) {})
	must(t, err)
	t.Cleanup(w.stop)
	x := chosen(t, a, "stroppy-theirs")
	x.pods = w
	must(t, x.adopt(labelled))
	if x.spec.Nodes != 2 || x.spec.Pods[1] != "db-1" {
		t.Errorf("there are %d nodes", x.spec.Nodes)
	}
	kind := *x.kind
	kind.Operators = []Operator{
		{Name: "another", Kind: chaosKind("Another"), Labels: labels.Set{"another": "NAME"}},
		{Name: "theirs", Kind: chaosKind("Theirs"), Labels: labels.Set{"app": "NAME"}},
	}
	x.spec.Operator = &kind.Operators[0]
	x.kind = &kind
	must(t, x.adopt(labelled))
	if x.spec.Name != "theirs" || x.spec.Operator == nil || x.spec.Operator.Name != "theirs" {
		t.Errorf("of two operators %v has made %s", x.spec.Operator, x.spec.Name)
	}
	x.kind.Operators = x.kind.Operators[:1]
	says(t, x.adopt(labelled), "db-0 lacks the label", "selector=")
}
