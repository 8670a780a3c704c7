package postgres

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/kubernetes/kubetest"
)

// TestOperatorResourceIsAppliedAndRemoved checks that the resource of the installed operator is applied and
// removed. There are no operators, and their definitions are minimal (testdata). So the test does not show that
// the operators' own schemas accept the resources.
func TestOperatorResourceIsAppliedAndRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := kubetest.Start(t)
	start := func(namespace string) error {
		_, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 3, Params: url.Values{
			"kubeconfig": {c.Kubeconfig}, "namespace": {namespace}, "wait": {"15s"}, "cpu": {"2"}, "memory": {"4Gi"},
			"storage-class": {"fast"}, "set.shared_buffers": {"1GB"},
		}}, "v1")
		return err
	}
	if err := start(c.Namespace(t)); err == nil || !strings.Contains(err.Error(), "install CloudNativePG (`helm install") || !strings.Contains(err.Error(), "Zalando") {
		t.Errorf("without an operator: %v", err)
	}
	definitions, err := filepath.Abs("testdata/operators.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.Define(t, definitions)
	namespace := c.Namespace(t)
	clusters := schema.GroupVersionResource{Group: cnpgKind.Group, Version: "v1", Resource: "clusters"}
	seen := c.First(t, namespace, clusters)
	if err := start(namespace); err == nil || !strings.Contains(err.Error(), "-1 does not exist") {
		t.Errorf("an operator that makes no pods: %v", err)
	}
	select {
	case o := <-seen:
		if n, _, _ := unstructured.NestedInt64(o.Object, "spec", "postgresql", "synchronous", "number"); n != 1 {
			t.Errorf("%d of 3 servers acknowledge with the primary", n)
		}
		if v, _, _ := unstructured.NestedString(o.Object, "spec", "postgresql", "parameters", "shared_buffers"); v != "1GB" {
			t.Errorf("its shared_buffers are %q", v)
		}
	default:
		t.Error("no resource of the operator was applied")
	}
	c.Left(t, namespace, clusters)
}

// TestResourceNamesDifferByOperator checks the differences between the operators in names, labels and resources.
func TestResourceNamesDifferByOperator(t *testing.T) {
	k := Kind()
	for i, want := range []struct{ pod, secret, labels, path string }{
		{"stroppy-1-1", "stroppy-1-app", "cnpg.io/cluster=stroppy-1", "instances"},
		{"stroppy-1-0", "stroppy.stroppy-1.credentials.postgresql.acid.zalan.do", "cluster-name=stroppy-1", "numberOfInstances"},
	} {
		s := &kubernetes.Spec{Name: "stroppy-1", Nodes: 3, Disk: "1Gi", Version: "17", Operator: &k.Operators[i]}
		if got := s.Pod(0); got != want.pod {
			t.Errorf("the first pod is %s, want %s", got, want.pod)
		}
		if got := secretName(s); got != want.secret {
			t.Errorf("the secret is %s, want %s", got, want.secret)
		}
		if got := s.Labels().String(); got != want.labels {
			t.Errorf("the labels are %s, want %s", got, want.labels)
		}
		objects := s.Operator.Render(s)
		if n, _, _ := unstructured.NestedInt64(objects[0].Object, "spec", want.path); len(objects) != 1 || n != 3 {
			t.Errorf("it renders %v", objects)
		}
		for j := range k.Operators { // both may be installed
			if got := k.Operators[j].NameOf(s.Labels()); (got == "stroppy-1") != (s.Operator == &k.Operators[j]) {
				t.Errorf("by its pods it is called %q by %s", got, k.Operators[j].Name)
			}
		}
	}
}
