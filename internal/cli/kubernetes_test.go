package cli_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster/kubernetes/kubetest"
)

// TestKubernetesAPI checks the behaviour that needs only an API server.
func TestKubernetesAPI(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	control := kubetest.Start(t)
	t.Run("left", func(t *testing.T) {
		t.Parallel()
		testKubernetesLeft(t, control)
	})
	t.Run("chart", func(t *testing.T) {
		t.Parallel()
		testChart(t, control)
	})
}

// testKubernetesLeft checks that a run leaves nothing in Kubernetes if it fails or is interrupted, or if it is killed
// and another command follows. The API server is real. Without a controller no pod is created, so that the run waits
// for pods.
func testKubernetesLeft(t *testing.T, control *kubetest.ControlPlane) {
	for _, c := range []struct {
		name, wait string
		signal     os.Signal
		code       int
		says       string
	}{
		{"fails", "15s", nil, 3, "it is not healthy after 15s"},
		{"interrupted", "5m", os.Interrupt, 3, ""},
		{"terminated", "5m", syscall.SIGTERM, 3, ""},
		{"killed", "5m", os.Kill, -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			state, namespace := t.TempDir(), control.Namespace(t)
			left := func() (names []string) {
				for _, resource := range []schema.GroupVersionResource{
					{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Version: "v1", Resource: "services"}, {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
				} {
					list, err := control.Client.Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for i := range list.Items {
						names = append(names, resource.Resource+" "+list.Items[i].GetName())
					}
				}
				return names
			}
			p := startIn(t, state, "run", "bank", "--cluster", "k8s/etcd:3?kubeconfig="+control.Kubeconfig+"&namespace="+namespace+"&wait="+c.wait)
			if c.signal != nil {
				p.goesOn(t, func() bool { return len(left()) == 3 })
				p.signal(t, c.signal)
			}
			code, _, stderr := p.wait(t)
			if code != c.code || !strings.Contains(stderr, c.says) {
				t.Errorf("it ended with %d, want %d: %s", code, c.code, stderr)
			}
			if c.signal == os.Kill {
				if len(left()) == 0 {
					t.Error("a run that is killed has cleared itself")
				}
				began := time.Now()
				if _, out := called(t, state, "run", "bank", "--db", "memory:", "--count", "10", "--accounts", "10"); !strings.Contains(out, "cleared: objects in Kubernetes") {
					t.Errorf("the next command says: %s", out)
				}
				t.Logf("the next command took %v", time.Since(began).Round(time.Millisecond))
			}
			if names := left(); len(names) > 0 {
				t.Errorf("it is left: %s", strings.Join(names, ", "))
			}
		})
	}
}
