package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	etcdcluster "stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/kubernetes/cockroach"
	"stroppy/internal/cluster/kubernetes/etcd"
	"stroppy/internal/cluster/kubernetes/foundationdb"
	"stroppy/internal/cluster/kubernetes/kubetest"
	"stroppy/internal/cluster/kubernetes/mongodb"
	"stroppy/internal/cluster/kubernetes/mysql"
	"stroppy/internal/cluster/kubernetes/postgres"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/nemesis"
)

// faults returns faults of each kind on targets of every kind. file contains an object of Chaos Mesh.
func faults(t *testing.T, file string) (scripts []nemesis.Script) {
	t.Helper()
	texts := []string{
		"partition halves", "partition ring", "partition bridge", "partition client from n0", "slow n0 by 50ms", "lossy n0 by 5%", "limit n0 to 1MB/s",
		"clock n0 by 5s", "clock leader by 5s", "clock n0 at rate 1.05", "stress n0 by 2", "slow-disk n0 by 1s", "add node", "move leader", "move leader to n1",
		"rolling-restart", "exec 'true'", "chaos '" + file + "'", "chaos '" + file + ".none'", "kill-store", "pause-store",
	}
	for _, word := range nemesis.Continuations("") {
		for _, target := range []string{"n0", "n9", "random", "leader", "follower", "followers", "majority", "minority", "all"} {
			texts = append(texts, word+" "+target)
		}
	}
	words := map[string]bool{}
	for _, text := range texts {
		if f, err := nemesis.Parse(text); err == nil {
			scripts = append(scripts, nemesis.Script{f})
			words[strings.Fields(text)[0]] = true
		}
	}
	for _, word := range nemesis.Continuations("") {
		if !words[word] && !slices.Contains([]string{"mix", "cycle"}, word) {
			t.Errorf("no fault of the sort %s is written here", word)
		}
	}
	return scripts
}

// chaosFile writes a file with an object of Chaos Mesh.
func chaosFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "chaos.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: chaos-mesh.org/v1alpha1\nkind: IOChaos\nspec: {mode: all}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// alike reports whether two errors have the same text, or both are nil.
func alike(a, b error) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
}

// TestDryRunRejectsFaultsLikeStart checks that a dry run without an API server refuses the same faults as a real
// start, with the same errors. In the real start all faults of Chaos Mesh are allowed.
func TestDryRunRejectsFaultsLikeStart(t *testing.T) {
	file := chaosFile(t)
	scripts := faults(t, file)
	client := foundationdb.Client{Missing: func() error { return nil }}
	plans := map[*kubernetes.Kind]*cluster.PlannedError{}
	for _, k := range []*kubernetes.Kind{cockroach.Kind(), etcd.Kind(), foundationdb.Kind(client), mongodb.Kind(), mysql.Kind(), postgres.Kind()} {
		_, err := kubernetes.Start(t.Context(), k, cluster.Options{Nodes: 3, DryRun: true}, "v1")
		plan, ok := errors.AsType[*cluster.PlannedError](err)
		if !ok {
			t.Fatalf("a dry run of k8s/%s gives %v", k.Name, err)
		}
		plans[k] = plan
		for text, refused := range map[string]bool{"kill n0": false, "kill n9": true, "pause n0": true, "chaos '" + file + "'": false} {
			if err := possible(plan, script(t, text)); (err != nil) != refused {
				t.Errorf("k8s/%s: %s: %v", k.Name, text, err)
			}
		}
	}
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := kubetest.Start(t)
	c.Define(t, kubetest.Faults)
	where := kubernetes.Access{Kubeconfig: c.Kubeconfig, Namespace: c.Namespace(t)}
	for k, plan := range plans {
		up, err := kubernetes.Allowed(t.Context(), k, where)
		if err != nil {
			t.Fatal(err)
		}
		same, refused := 0, 0
		for _, s := range scripts {
			planned, really := possible(plan, s), possible(&cluster.PlannedError{Cluster: up}, s)
			if really != nil {
				refused++
			}
			if alike(planned, really) {
				same++
				continue
			}
			t.Errorf("k8s/%s: %s: a dry run says %v, and with the API server it is %v", k.Name, s[0], planned, really)
		}
		t.Logf("k8s/%s: %d of %d faults alike, %d of them refused", k.Name, same, len(scripts), refused)
	}
}

// TestDryRunOfEtcdRejectsFaultsLikeRun checks that a dry run of k8s/etcd refuses the same faults, with the same
// errors, as a run with real members. No pods run: the members' pods are only marked as ready.
func TestDryRunOfEtcdRejectsFaultsLikeRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := kubetest.Start(t)
	c.Define(t, kubetest.Faults)
	members, err := etcdcluster.Start(t.Context(), cluster.Options{Nodes: 3, InMemory: true, Loopback: true, Params: url.Values{"bin": {filepath.Join(os.Getenv("STROPPY_TEST_KUBERNETES"), "bin")}}})
	if err != nil {
		t.Fatal(err)
	}
	stopped(t, members)
	var addresses []string
	for i := range members.Nodes() {
		addresses = append(addresses, strings.TrimPrefix(members.NodeURL(i), "etcd://"))
	}
	k := etcd.Kind()
	connect := k.Connect
	k.Connect = func(ctx context.Context, a *kubernetes.API, s *kubernetes.Spec, _ []string) (kubernetes.Database, error) {
		return connect(ctx, a, s, addresses)
	}
	namespace := c.Namespace(t)
	o := cluster.Options{Nodes: 3, Params: url.Values{"kubeconfig": {c.Kubeconfig}, "namespace": {namespace}, "wait": {"1m"}}}
	made := make(chan error, 1)
	go func() { made <- makePods(t.Context(), c, namespace, o.Nodes) }()
	up, err := kubernetes.Start(t.Context(), k, o, "v1")
	if err != nil {
		t.Fatal(err, <-made)
	}
	stopped(t, up)
	o.DryRun = true
	_, err = kubernetes.Start(t.Context(), k, o, "v1")
	plan, ok := errors.AsType[*cluster.PlannedError](err)
	if !ok {
		t.Fatal(err)
	}
	same, scripts := 0, faults(t, chaosFile(t))
	for _, s := range scripts {
		_, really := nemesis.New(up, up.(nemesis.Network), s, 1)
		if planned := possible(plan, s); !alike(planned, really) {
			t.Errorf("%s: a dry run says %v, and the run %v", s[0], planned, really)
			continue
		}
		same++
	}
	t.Logf("%d of %d faults alike", same, len(scripts))
}

// makePods makes the pods of a StatefulSet, as its controller does, and marks them as ready.
func makePods(ctx context.Context, c *kubetest.ControlPlane, namespace string, count int) error {
	sets := c.Client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}).Namespace(namespace)
	pods := c.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	var set *unstructured.Unstructured
	err := wait.Retry(ctx, func() error {
		list, err := sets.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("there is no StatefulSet")
		}
		if err == nil {
			set = &list.Items[0]
		}
		return err
	})
	if err != nil {
		return err
	}
	template, _, _ := unstructured.NestedMap(set.Object, "spec", "template")
	for i := range count {
		pod := kubernetes.NewObject("v1", "Pod", "", runtime.DeepCopyJSON(template))
		pod.SetName(fmt.Sprintf("%s-%d", set.GetName(), i))
		spec, _, _ := unstructured.NestedMap(pod.Object, "spec")
		spec["volumes"] = []any{map[string]any{"name": kubernetes.DataVolume, "emptyDir": map[string]any{}}}
		pod.Object["spec"] = spec
		there, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		there.Object["status"] = map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		if _, err := pods.UpdateStatus(ctx, there, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// stopped stops a cluster at the end of the test.
func stopped(t *testing.T, c cluster.Cluster) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func script(t *testing.T, text string) nemesis.Script {
	t.Helper()
	f, err := nemesis.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return nemesis.Script{f}
}

func possible(p *cluster.PlannedError, s nemesis.Script) error {
	return nemesis.Possible(p, p.Cluster.(nemesis.Network), s)
}
