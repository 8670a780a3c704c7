package cockroach

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/cockroach"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/kubernetes/kubetest"
)

// applied starts a database whose operator makes no pods. It returns the applied resource after its removal.
func applied(t *testing.T, c *kubetest.ControlPlane, version, says string) (o *unstructured.Unstructured) {
	t.Helper()
	namespace := c.Namespace(t)
	resource := schema.GroupVersionResource{Group: group, Version: version, Resource: "crdbclusters"}
	made := c.First(t, namespace, resource)
	_, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 5, Params: url.Values{
		"kubeconfig": {c.Kubeconfig}, "namespace": {namespace}, "wait": {"15s"}, "cpu": {"2"}, "memory": {"4Gi"},
		"storage-class": {"fast"}, "region": {"eu-west1"}, "service-account": {"reader"}, "set.kv.range_merge.queue_enabled": {"false"},
	}}, "v1")
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("an operator that makes no pods: %v", err)
	}
	select {
	case o = <-made:
	default:
		t.Fatal("no resource of the operator was applied")
	}
	c.Left(t, namespace, resource)
	return o
}

// holds fails the test unless a field of an object has a value.
func holds(t *testing.T, o *unstructured.Unstructured, want any, path ...string) {
	t.Helper()
	if got, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...); got != want {
		t.Errorf("%s is %v, want %v", strings.Join(path, "."), got, want)
	}
}

// TestPublicOperatorResourceIsAppliedAndRemoved checks that the resource of the public operator is applied and
// removed. There is no operator, and its definition is minimal (testdata). So the test does not show that the
// operator's own schema accepts the resource.
func TestPublicOperatorResourceIsAppliedAndRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := kubetest.Start(t)
	_, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 3, Params: url.Values{"kubeconfig": {c.Kubeconfig}, "namespace": {c.Namespace(t)}}}, "v1")
	if err == nil || !strings.Contains(err.Error(), "install cockroach-operator (`kubectl apply") || !strings.Contains(err.Error(), "`helm install crdb-operator") {
		t.Errorf("without an operator: %v", err)
	}
	definitions, err := filepath.Abs("testdata/operators.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.Define(t, definitions)
	o := applied(t, c, "v1alpha1", "-0 does not exist")
	holds(t, o, int64(5), "spec", "nodes")
	holds(t, o, false, "spec", "tlsEnabled")
	holds(t, o, "docker.io/cockroachdb/cockroach:v25.2.2", "spec", "image", "name")
	holds(t, o, "fast", "spec", "dataStore", "pvc", "spec", "storageClassName")
	holds(t, o, "10Gi", "spec", "dataStore", "pvc", "spec", "resources", "requests", "storage")
	holds(t, o, "4Gi", "spec", "resources", "limits", "memory")
}

// TestNewerOperatorAcceptsResource checks that the newer operator's own schema accepts its resource.
func TestNewerOperatorAcceptsResource(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := kubetest.Start(t)
	c.Define(t, kubetest.CockroachDB)
	o := applied(t, c, "v1beta1", "the operator has made 0 of 5 pods")
	holds(t, o, false, "spec", "tlsEnabled")
	node := []string{"spec", "template", "spec"}
	holds(t, o, "docker.io/cockroachdb/cockroach:v25.2.2", append(node, "image")...)
	holds(t, o, "fast", append(node, "dataStore", "volumeClaimTemplate", "spec", "storageClassName")...)
	holds(t, o, "reader", append(node, "podTemplate", "spec", "serviceAccountName")...)
	holds(t, o, o.GetName(), append(node, "podTemplate", "metadata", "labels", kubernetes.RunLabel)...)
	holds(t, o, o.GetName(), append(node, "dataStore", "volumeClaimTemplate", "metadata", "labels", kubernetes.RunLabel)...)
	regions, _, _ := unstructured.NestedSlice(o.Object, "spec", "regions")
	if len(regions) != 1 || regions[0].(map[string]any)["code"] != "eu-west1" || regions[0].(map[string]any)["nodes"] != int64(5) {
		t.Errorf("its regions are %v", regions)
	}
}

// TestServersAreFoundByLabelsAndAddresses checks how the pods are found, and the addresses of the servers for clients
// outside and inside pods.
func TestServersAreFoundByLabelsAndAddresses(t *testing.T) {
	k := Kind()
	for i, want := range []string{
		"app.kubernetes.io/component=database,app.kubernetes.io/instance=bank,app.kubernetes.io/name=cockroachdb", "crdb.cockroachlabs.com/cluster=bank",
	} {
		s := &kubernetes.Spec{Name: "bank", Operator: &k.Operators[i]}
		if got := s.Labels().String(); got != want {
			t.Errorf("the labels are %s, want %s", got, want)
		}
		for j := range k.Operators { // which may both be there
			if got := k.Operators[j].NameOf(s.Labels()); (got == "bank") != (i == j) {
				t.Errorf("by the pods of the operator %d it is called %q by the operator %d", i, got, j)
			}
		}
	}
	d := &database{spec: &kubernetes.Spec{Name: "bank", Pods: []string{"bank-0", "bank-x"}},
		servers: []cockroach.Server{{Name: "n0", Address: "127.0.0.1:1"}, {Name: "n1", Address: "127.0.0.1:2"}}}
	for got, want := range map[string]string{
		d.URL():       "cockroach://root@127.0.0.1:1,127.0.0.1:2/defaultdb?sslmode=disable",
		d.NodeURL(1):  "cockroach://root@127.0.0.1:2/defaultdb?sslmode=disable",
		d.InsideURL(): "cockroach://root@bank-0.bank:26257,bank-x.bank:26257/defaultdb?sslmode=disable",
	} {
		if got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
	for setting, refused := range map[[2]string]bool{{"kv.range_merge.queue_enabled", "false"}: false, {"kv.x = '1'; DROP", "1"}: true} {
		if err := k.Settings(setting[0], setting[1]); (err != nil) != refused {
			t.Errorf("%q: %v", setting, err)
		}
	}
}
