package foundationdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"stroppy/internal/cluster/kubernetes/kubetest"
)

var (
	clusters = schema.GroupVersionResource{Group: fdbCluster.Group, Version: fdbCluster.Version, Resource: "foundationdbclusters"}
	podsOf   = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	claimsOf = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	leases   = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

// standIn stands in for the components that a test's API server lacks. The operator makes a pod and a volume claim
// for each process and writes the status as the real one does. The kubelet runs the pods. A controller releases a
// deleted claim when no pod uses it. A client of FoundationDB sees each running pod as a process that has joined.
type standIn struct {
	*testing.T
	client    dynamic.Interface
	namespace string

	mu          sync.Mutex
	coordinator string         // in the cluster file
	generations map[string]any // of the status, except the reached one
	made        int            // number of pods so far: each has its own address
	change      func(*state)   // changes the state that the client sees; nil: no change
}

// newStandIn starts a stand-in that works until the test ends. Its coordinator accepts connections.
func newStandIn(t *testing.T, c *kubetest.ControlPlane) *standIn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &standIn{T: t, client: c.Client, namespace: c.Namespace(t), coordinator: listener.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			s.mu.Lock()
			if err := s.reconcile(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
				t.Errorf("the stand-in for the operator: %v", err)
			}
			s.mu.Unlock()
			time.Sleep(50 * time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); working.Wait(); _ = listener.Close() })
	return s
}

func (s *standIn) in(r schema.GroupVersionResource) dynamic.ResourceInterface {
	return s.client.Resource(r).Namespace(s.namespace)
}

// set changes the status.
func (s *standIn) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// reconcile makes missing objects.
func (s *standIn) reconcile(ctx context.Context) error {
	list, err := s.in(clusters).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := s.reconcileOne(ctx, &list.Items[i]); err != nil {
			return err
		}
	}
	return s.letClaimsGo(ctx)
}

func (s *standIn) reconcileOne(ctx context.Context, o *unstructured.Unstructured) error {
	count, _, _ := unstructured.NestedInt64(o.Object, "spec", "processCounts", "storage")
	made := false
	for i := range count {
		name := fmt.Sprintf("%s-storage-%d", o.GetName(), 10007*(i+1)) // the numbers of process groups are not consecutive
		claim, new1, err := s.have(ctx, claimsOf, s.claim(o, name))
		if err != nil {
			return err
		}
		pod, new2, err := s.have(ctx, podsOf, s.pod(o, name))
		if err != nil {
			return err
		}
		made = made || new1 || new2
		// The scheduler does not schedule a pod whose claim is being deleted.
		if !runs(pod) && claim.GetDeletionTimestamp() == nil {
			if err := s.run(ctx, name); err != nil {
				return err
			}
		}
	}
	generations := map[string]any{"reconciled": o.GetGeneration()}
	for key, value := range s.generations {
		generations[key] = value
	}
	return s.patch(ctx, clusters, o.GetName(), map[string]any{"status": map[string]any{
		"connectionString": o.GetName() + ":x@" + s.coordinator,
		"health":           map[string]any{"available": true, "healthy": !made, "fullReplication": !made},
		"generations":      generations,
	}}, "status")
}

// have makes an object unless it exists.
func (s *standIn) have(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (is *unstructured.Unstructured, made bool, err error) {
	is, err = s.in(r).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		is, err = s.in(r).Create(ctx, o, metav1.CreateOptions{})
		return is, true, err
	}
	return is, false, err
}

func runs(pod *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	return phase == "Running"
}

func (s *standIn) patch(ctx context.Context, r schema.GroupVersionResource, name string, change map[string]any, part ...string) error {
	text, err := json.Marshal(change)
	if err == nil {
		_, err = s.in(r).Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{}, part...)
	}
	return err
}

// labelled returns an object with the labels of the cluster.
func (s *standIn) labelled(o *unstructured.Unstructured, version, kind, name string, spec map[string]any) *unstructured.Unstructured {
	labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "labels", "resourceLabels")
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetName(name)
	object.SetLabels(labels)
	return object
}

func (s *standIn) claim(o *unstructured.Unstructured, pod string) *unstructured.Unstructured {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec", "processes", "general", "volumeClaimTemplate", "spec")
	return s.labelled(o, "v1", "PersistentVolumeClaim", pod+"-data", spec)
}

func (s *standIn) pod(o *unstructured.Unstructured, name string) *unstructured.Unstructured {
	return s.labelled(o, "v1", "Pod", name, map[string]any{
		"containers": []any{map[string]any{"name": "foundationdb", "image": "foundationdb/foundationdb:7.3.69"}},
		"volumes":    []any{map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": name + "-data"}}},
	})
}

// run makes a pod run at an address that no pod had before.
func (s *standIn) run(ctx context.Context, name string) error {
	s.made++
	address := fmt.Sprintf("127.0.77.%d", s.made)
	return s.patch(ctx, podsOf, name, map[string]any{"status": map[string]any{
		"phase": "Running", "podIP": address, "podIPs": []any{map[string]any{"ip": address}},
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		"containerStatuses": []any{map[string]any{
			"name": "foundationdb", "image": "x", "imageID": "", "ready": true, "restartCount": 0,
			"state": map[string]any{"running": map[string]any{"startedAt": "2026-01-01T00:00:00Z"}},
		}},
	}}, "status")
}

// letClaimsGo releases deleted claims that no scheduled pod uses.
func (s *standIn) letClaimsGo(ctx context.Context) error {
	claims, err := s.in(claimsOf).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := s.in(podsOf).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for i := range pods.Items {
		used[pods.Items[i].GetName()+"-data"] = runs(&pods.Items[i])
	}
	for i := range claims.Items {
		if claim := &claims.Items[i]; claim.GetDeletionTimestamp() != nil && !used[claim.GetName()] {
			if err := s.patch(ctx, claimsOf, claim.GetName(), map[string]any{"metadata": map[string]any{"finalizers": nil}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// driver is the client's side of the stand-in.
func (s *standIn) driver() Client {
	return Client{Missing: func() error { return nil }, Open: func(context.Context, string) (Observer, error) { return seen{s}, nil }}
}

type seen struct{ *standIn }

func (seen) Close() error { return nil }

// State returns a state with the process of each running pod. The first is the cluster controller.
func (s seen) State(ctx context.Context) ([]byte, error) {
	pods, err := s.in(podsOf).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	now := state{Available: true, Recovery: "fully_recovered", Data: "healthy", Healthy: true, Spare: 1, Roles: map[string][]string{}}
	for i := range pods.Items {
		if !runs(&pods.Items[i]) {
			continue
		}
		address, _, _ := unstructured.NestedString(pods.Items[i].Object, "status", "podIP")
		roles := []string{"storage", "log"}
		if len(now.Roles) == 0 {
			roles = append(roles, "cluster_controller")
		}
		now.Roles[address+":4501"] = roles
	}
	if len(now.Roles) == 0 {
		return nil, errors.New("no process answers")
	}
	s.set(func() {
		if s.change != nil {
			s.change(&now)
		}
	})
	return json.Marshal(now)
}
