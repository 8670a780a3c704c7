package etcd

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/kubernetes/kubetest"
)

// TestAPIServerAcceptsRenderedObjects checks that a real API server accepts the rendered objects, even if it
// enforces the restricted level of the Pod Security Standards.
func TestAPIServerAcceptsRenderedObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pods := c.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	sets := c.Client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}).Namespace(namespace)
	spaces := c.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	space, err := spaces.Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	space.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	if _, err := spaces.Update(ctx, space, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	made := make(chan error, 1)
	go func() { // a pod from the template, as the StatefulSet controller makes it
		for ctx.Err() == nil {
			list, err := sets.List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) == 0 {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			template, _, _ := unstructured.NestedMap(list.Items[0].Object, "spec", "template")
			pod := kubernetes.NewObject("v1", "Pod", list.Items[0].GetName()+"-0", template)
			pod.SetName(list.Items[0].GetName() + "-0")
			pod.SetLabels(list.Items[0].GetLabels())
			spec, _, _ := unstructured.NestedMap(pod.Object, "spec")
			spec["volumes"] = []any{map[string]any{"name": kubernetes.DataVolume, "emptyDir": map[string]any{}}}
			pod.Object["spec"] = spec
			_, err = pods.Create(ctx, pod, metav1.CreateOptions{})
			made <- err
			return
		}
	}()
	_, err = kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 3, Params: url.Values{
		"kubeconfig": {c.Kubeconfig}, "namespace": {namespace}, "wait": {"15s"}, "cpu": {"500m"}, "memory": {"1Gi"}, "set.snapshot-count": {"1000"},
	}}, "v1")
	if err == nil || !strings.Contains(err.Error(), "is not healthy after 15s") {
		t.Errorf("without a controller: %v", err)
	}
	if err := <-made; err != nil {
		t.Errorf("the API server does not take its pod: %v", err)
	}
	if list, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("pods are left: %v, %v", list, err)
	}
}

// TestEtcdFlagsConnectMembers checks that the members find each other, and that a later member joins them.
func TestEtcdFlagsConnectMembers(t *testing.T) {
	s := &kubernetes.Spec{Name: "stroppy-1", Nodes: 3, Settings: [][2]string{{"snapshot-count", "1000"}}}
	list := flags(s)
	for _, want := range []string{
		"--initial-cluster=stroppy-1-0=http://stroppy-1-0.stroppy-1:2380,stroppy-1-1=http://stroppy-1-1.stroppy-1:2380,stroppy-1-2=http://stroppy-1-2.stroppy-1:2380",
		"--initial-cluster-state=new", "--snapshot-count=1000", "--name=$(POD)",
	} {
		if !slices.Contains(list, any(want)) {
			t.Errorf("there is no %s in %v", want, list)
		}
	}
	s.Formed = true
	if list := flags(s); !slices.Contains(list, any("--initial-cluster-state=existing")) {
		t.Errorf("a later member makes a cluster of its own: %v", list)
	}
	for name, refused := range map[string]bool{"data-dir": true, "initial-cluster": true, "snapshot-count": false} {
		if err := Kind().Settings(name, "x"); (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
