package kubetest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster/wait"
)

var kills = schema.GroupVersionResource{Group: "chaos-mesh.org", Version: "v1alpha1", Resource: "podchaos"}

// TestChaosMeshKillsAndCutsOffPods checks that Chaos Mesh kills a pod and cuts a pod off, that the servers in the
// pods notice, and that the cut ends.
func TestChaosMeshKillsAndCutsOffPods(t *testing.T) {
	OnNode(t, func(t *testing.T, n *Node) {
		n.StartChaosMesh(t)
		space := n.Namespace(t)
		startEtcd(t, n, space)
		n.waitFor(t, space, "db", 3)
		t.Run("kill", func(t *testing.T) {
			was := n.uid(t, space, "db-1")
			n.chaos(t, kills, "PodChaos", space, map[string]any{"action": "pod-kill", "mode": "all", "selector": onePod(space, "db-1")})
			must(t, wait.Until(t.Context(), startLimit, func() error {
				if now := n.uid(t, space, "db-1"); now == was || now == "" {
					return fmt.Errorf("the pod is %q yet", now)
				}
				return nil
			}))
			n.waitFor(t, space, "db", 3)
		})
		t.Run("partition", func(t *testing.T) {
			heal := n.chaos(t, cuts, "NetworkChaos", space, map[string]any{
				"action": "partition", "mode": "all", "direction": "both", "selector": onePod(space, "db-0"),
				"target": map[string]any{"mode": "all", "selector": map[string]any{"pods": map[string]any{space: []any{"db-1", "db-2"}}}},
			})
			n.healthy(t, space, "db-0", false)
			n.healthy(t, space, "db-1", true)
			heal()
			n.healthy(t, space, "db-0", true)
		})
		t.Run("refused", func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "chaos-mesh.org/v1alpha1", "kind": "NetworkChaos", "metadata": map[string]any{"name": "wrong"},
				"spec": map[string]any{"action": "delay", "mode": "all", "delay": map[string]any{"latency": "soon"}, "selector": onePod(space, "db-0")},
			}}
			_, err := n.Client.Resource(cuts).Namespace(space).Create(t.Context(), object, metav1.CreateOptions{})
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
				t.Errorf("a delay of no length: %v, want that the webhook refuses it", err)
			}
		})
	}, etcdImage(t))
}

func onePod(space, name string) map[string]any {
	return map[string]any{"pods": map[string]any{space: []any{name}}}
}

// chaos makes a Chaos Mesh object; heal deletes it and waits until it is gone.
func (n *Node) chaos(t *testing.T, resource schema.GroupVersionResource, kind, space string, spec map[string]any) (heal func()) {
	t.Helper()
	name := n.create(t, "chaos-mesh.org/v1alpha1", kind, resource.Resource, space, map[string]any{
		"metadata": map[string]any{"generateName": "chaos-"}, "spec": spec,
	})
	return func() {
		t.Helper()
		objects := n.Client.Resource(resource).Namespace(space)
		must(t, objects.Delete(t.Context(), name, metav1.DeleteOptions{}))
		must(t, wait.Until(t.Context(), startLimit, func() error {
			object, err := objects.Get(t.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil {
				err = fmt.Errorf("%s still exists: %v", name, object.Object["status"])
			}
			return err
		}))
	}
}

func (n *Node) uid(t *testing.T, space, name string) string {
	t.Helper()
	pod, err := n.Client.Resource(pods).Namespace(space).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	must(t, err)
	return string(pod.GetUID())
}

// healthy waits until a member of etcd reports that it is in a majority, or that it is not.
func (n *Node) healthy(t *testing.T, space, name string, want bool) {
	t.Helper()
	address := n.podAddress(t, space, name)
	client := &http.Client{Timeout: 10 * time.Second}
	must(t, wait.Until(t.Context(), startLimit, func() error {
		answer, err := client.Get("http://" + net.JoinHostPort(address, "2379") + "/health")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && strings.Contains(string(text), `"health":"true"`) != want {
			err = fmt.Errorf("%s says %s", name, text)
		}
		return err
	}))
}
