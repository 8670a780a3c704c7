package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes/kubetest"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/fault"
)

// TestObjectsAndFaultsOnRealAPIServer checks the handling of objects and faults with a real API server. It has no
// controllers: no pod runs, and owned objects are not deleted.
func TestObjectsAndFaultsOnRealAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := kubetest.Start(t)
	c.Define(t, kubetest.Faults)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *kubetest.ControlPlane)
	}{
		{"access", testAccess}, {"apply", testApply}, {"rights", testRights}, {"start that fails", testFailedStart},
		{"quota", testQuota}, {"image", testImage}, {"dead runs", testDeadRuns}, {"kept", testKept}, {"adopt", testAdopt}, {"killed run", testKilledRun},
		{"chaos", testChaos}, {"stuck chaos", testStuckChaos}, {"chaos file", testChaosFile}, {"disks", testDisks}, {"processors", testProcessors}, {"pods", testPods}, {"operator", testOperator},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// connect returns a new namespace with all rights.
func connect(t *testing.T, c *kubetest.ControlPlane) *API {
	t.Helper()
	a, err := Connect(t.Context(), Access{Kubeconfig: c.Kubeconfig, Namespace: c.Namespace(t)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// says fails unless an error contains all texts.
func says(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v; it must say %q", err, text)
		}
	}
}

func testAccess(t *testing.T, c *kubetest.ControlPlane) {
	_, err := Connect(t.Context(), Access{Kubeconfig: c.Kubeconfig, Context: "nowhere"})
	says(t, err, `no context "nowhere"`)
	_, err = Connect(t.Context(), Access{Kubeconfig: filepath.Join(t.TempDir(), "none")})
	says(t, err, "there is no kubeconfig")
	text, err := os.ReadFile(c.Kubeconfig)
	must(t, err)
	change := func(old, now string) string {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		changed := strings.ReplaceAll(string(text), old, now)
		if changed == string(text) {
			t.Fatalf("the kubeconfig has no %s", old)
		}
		must(t, os.WriteFile(path, []byte(changed), 0o600))
		return path
	}
	server, err := url.Parse(c.Config.Host)
	must(t, err)
	_, err = Connect(t.Context(), Access{Kubeconfig: change(server.Host, "127.0.0.1:1")})
	says(t, err, "cannot be reached")
	a, err := Connect(t.Context(), Access{Kubeconfig: c.Kubeconfig, Namespace: "nobody-made-it"})
	must(t, err)
	says(t, a.namespaceThere(t.Context()), "the namespace nobody-made-it does not exist", "kubectl create namespace")
}

// service returns an object that needs no controller.
func service(name string) *Object {
	return NewObject("v1", "Service", name, map[string]any{"spec": map[string]any{"clusterIP": "None", "selector": map[string]any{"a": "b"}}})
}

func testApply(t *testing.T, c *kubetest.ControlPlane) {
	a, ctx := connect(t, c), t.Context()
	services, err := a.resource(service("x").GroupVersionKind())
	must(t, err)
	_, err = services.Create(ctx, service("theirs"), metav1.CreateOptions{})
	must(t, err)
	_, err = a.Apply(ctx, "stroppy-1", service("theirs"))
	says(t, err, "service theirs", "another run has made")
	made, err := a.Apply(ctx, "stroppy-1", service("ours"))
	must(t, err)
	if got := made.GetLabels(); got[RunLabel] != "stroppy-1" || got[ManagedByLabel] != manager {
		t.Errorf("its labels are %v", got)
	}
	fields := made.GetManagedFields()
	if len(fields) != 1 || fields[0].Manager != manager || fields[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("its fields are managed by %v", fields)
	}
	_, err = a.Apply(ctx, "stroppy-1", service("ours")) // again
	must(t, err)
	_, err = a.Apply(ctx, "stroppy-2", service("ours"))
	says(t, err, "another run has made")
	must(t, a.removeAll(ctx, "stroppy-1", made1("v1", "Service")))
	if _, err := services.Get(ctx, "ours", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("ours still exists: %v", err)
	}
	if _, err := services.Get(ctx, "theirs", metav1.GetOptions{}); err != nil {
		t.Errorf("theirs is gone: %v", err)
	}
}

// made1 returns a made with objects of one kind.
func made1(apiVersion, kind string) made {
	return made{Kinds: kindsOf([]*Object{NewObject(apiVersion, kind, "x", nil)})}
}

func testRights(t *testing.T, c *kubetest.ControlPlane) {
	namespace := c.Namespace(t)
	as := func(rules ...rbacv1.PolicyRule) *API {
		a, err := Connect(t.Context(), Access{Kubeconfig: c.Account(t, namespace, rules...), Namespace: namespace})
		must(t, err)
		return a
	}
	few := as(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}})
	says(t, few.Require(t.Context(), ownRights()), "may not ", "create leases.coordination.k8s.io", "delete pods", "get pods/log", namespace)
	if err := few.Require(t.Context(), []Right{{Resource: "pods", Verbs: []string{"get"}}}); err != nil {
		t.Error(err)
	}
	if err := few.namespaceThere(t.Context()); err != nil {
		t.Errorf("an account without the right to read namespaces is refused: %v", err)
	}
	var rules []rbacv1.PolicyRule
	for _, r := range ownRights() {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs})
	}
	poor := chosen(t, as(rules...), "stroppy-rights")
	says(t, poor.LinkFaults(fault.BetweenNodes), "may not create networkchaos.chaos-mesh.org, create pods, ")
	poor.database = clocks{}
	says(t, poor.nodes[0].Steered(), "may not create timechaos.chaos-mesh.org, ")
	poor.meter = &meter{}
	says(t, poor.nodes[0].Stressable(), "may not create stresschaos.chaos-mesh.org, ")
	poor.database = writers{}
	says(t, poor.nodes[0].DiskFaults(), "may not create iochaos.chaos-mesh.org, ")
	if err := as(rules...).Require(t.Context(), ownRights()); err != nil {
		t.Error(err)
	}
}

// plain returns a kind without an operator, whose pods nobody makes.
func plain() *Kind {
	return &Kind{
		Name: "plain", Port: 80, Image: "example/plain", Version: "1", Disk: "1Gi", StatefulSet: true,
		Operators: []Operator{{
			Labels: labels.Set{RunLabel: "NAME", "app": "plain"}, PodPrefix: "NAME-",
			Render: func(s *Spec) []*Object { return []*Object{statefulSet(s), service(s.Name)} },
		}},
		Connect: func(context.Context, *API, *Spec, []string) (Database, error) {
			return nil, errors.New("there is no server")
		},
	}
}

func statefulSet(s *Spec) *Object {
	chosen := map[string]any{RunLabel: s.Name, "app": "plain"}
	return NewObject("apps/v1", "StatefulSet", s.Name, map[string]any{"spec": map[string]any{
		"replicas": int64(s.Nodes), "serviceName": s.Name, "selector": map[string]any{"matchLabels": chosen},
		"updateStrategy": map[string]any{"type": "OnDelete"},
		"template": map[string]any{"metadata": map[string]any{"labels": chosen}, "spec": map[string]any{
			"securityContext": RestrictedPod(),
			"containers":      []any{map[string]any{"name": "plain", "image": s.Image, "securityContext": RestrictedContainer()}},
		}},
		"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": DataVolume}, "spec": s.ClaimSpec()}},
	}})
}

// options returns the options of a start in a namespace.
func options(c *kubetest.ControlPlane, namespace, wait string) cluster.Options {
	return cluster.Options{Nodes: 3, Params: url.Values{"kubeconfig": {c.Kubeconfig}, "namespace": {namespace}, "wait": {wait}}}
}

// shortWait is how long to wait for a start that must fail. A busy machine applies the objects in less time.
const shortWait = "15s"

// nothingLeft fails if a namespace has an object of stroppy.
func nothingLeft(t *testing.T, a *API) {
	t.Helper()
	kinds := append(kindsOf([]*Object{statefulSet(&Spec{}), service("x"), NewObject("v1", "Pod", "x", nil)}), claimKind, leaseKind)
	for _, kind := range append(kinds, chaosKind("NetworkChaos"), chaosKind("PodChaos")) {
		list, err := a.list(t.Context(), kind, ManagedByLabel+"="+manager)
		must(t, err)
		for i := range list {
			t.Errorf("it is left: %s", describe(&list[i]))
		}
	}
}

func testFailedStart(t *testing.T, c *kubetest.ControlPlane) {
	a := connect(t, c)
	_, err := Start(t.Context(), plain(), options(c, a.Namespace, shortWait), "v1")
	says(t, err, "start k8s/plain in the namespace "+a.Namespace, "it is not healthy after "+shortWait, "does not exist")
	nothingLeft(t, a)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { cancel(errors.New("somebody has interrupted it")) })
	_, err = Start(ctx, plain(), options(c, a.Namespace, "1m"), "v1")
	says(t, err, "somebody has interrupted it")
	nothingLeft(t, a)
	k := plain()
	k.Operators = []Operator{{Name: "Nobody's", Kind: chaosKind("Nothing"), Install: "helm install nothing"}}
	_, err = Start(t.Context(), k, options(c, a.Namespace, "1m"), "v1")
	says(t, err, "no operator for k8s/plain is installed", "`helm install nothing`")
	nothingLeft(t, a)
}

// testQuota checks two cases. A quota that forbids an object is named. A quota that forbids a pod is found in the
// events of Kubernetes, which a stand-in for the controller reports.
func testQuota(t *testing.T, c *kubetest.ControlPlane) {
	a := connect(t, c)
	quota := NewObject("v1", "ResourceQuota", "none", map[string]any{"spec": map[string]any{"hard": map[string]any{"count/services": "0"}}})
	client, err := a.resource(quota.GroupVersionKind())
	must(t, err)
	_, err = client.Create(t.Context(), quota, metav1.CreateOptions{})
	must(t, err)
	must(t, a.Patch(t.Context(), quota.GroupVersionKind(), "none", map[string]any{"status": map[string]any{
		"hard": map[string]any{"count/services": "0"}, "used": map[string]any{"count/services": "0"}}}, "status"))
	must(t, wait.Retry(t.Context(), func() error { // the API server updates its view of quotas later
		_, err := a.Apply(t.Context(), "stroppy-q", service("probe"))
		if err == nil {
			return errors.Join(errors.New("the quota does not hold"), a.removeAll(t.Context(), "stroppy-q", made1("v1", "Service")))
		}
		return nil
	}))
	_, err = Start(t.Context(), plain(), options(c, a.Namespace, "1m"), "v1")
	says(t, err, "apply service ", "exceeded quota")
	nothingLeft(t, a)

	a = connect(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go report(ctx, a, "FailedCreate", `create Pod failed error: pods "x" is forbidden: exceeded quota: small, requested: cpu=2`)
	_, err = Start(t.Context(), plain(), options(c, a.Namespace, "1m"), "v1")
	says(t, err, "are not allowed", "exceeded quota: small")
	nothingLeft(t, a)
}

// report stands in for a controller that reports a failure of each StatefulSet of a namespace.
func report(ctx context.Context, a *API, reason, message string) {
	for ctx.Err() == nil {
		sets, err := a.list(ctx, statefulSetKind, ManagedByLabel+"="+manager)
		for i := range sets {
			e := NewObject("v1", eventKind.Kind, sets[i].GetName()+".1", map[string]any{
				"type": "Warning", "reason": reason, "message": message, "lastTimestamp": time.Now().UTC().Format(time.RFC3339),
				"involvedObject": map[string]any{"kind": "StatefulSet", "name": sets[i].GetName(), "namespace": a.Namespace},
			})
			if client, errKind := a.resource(eventKind); errKind == nil && err == nil {
				_, err = client.Create(ctx, e, metav1.CreateOptions{})
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// testImage checks that a start does not wait for a missing image, which a stand-in for the kubelet reports.
func testImage(t *testing.T, c *kubetest.ControlPlane) {
	a := connect(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			sets, _ := a.list(ctx, statefulSetKind, ManagedByLabel+"="+manager)
			for i := range sets {
				name := sets[i].GetName()
				if _, err := a.Apply(ctx, name, pod(name+"-0", map[string]any{RunLabel: name, "app": "plain"})); err == nil {
					_ = a.Patch(ctx, podKind, name+"-0", map[string]any{"status": map[string]any{"containerStatuses": []any{map[string]any{
						"name": "plain", "image": "example/plain:1", "imageID": "", "ready": false, "restartCount": 0,
						"state": map[string]any{"waiting": map[string]any{"reason": "ErrImageNeverPull", "message": "it is not on this node"}},
					}}}}, "status")
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	began := time.Now()
	_, err := Start(t.Context(), plain(), options(c, a.Namespace, "5m"), "v1")
	says(t, err, "the image example/plain:1 of the pod", "cannot be pulled", "ErrImageNeverPull")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v to find out", took)
	}
	cancel()
}

func pod(name string, labels map[string]any) *Object {
	o := NewObject("v1", "Pod", name, map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "plain", "image": "example/plain:1"}}}})
	text := map[string]string{}
	for key, value := range labels {
		text[key] = value.(string)
	}
	o.SetLabels(text)
	return o
}

// testDeadRuns checks that the objects of a run are removed when its lease has expired, and no other objects.
func testDeadRuns(t *testing.T, c *kubetest.ControlPlane) {
	a, ctx := connect(t, c), t.Context()
	begin := func(run string) *ownership {
		o, err := a.own(ctx, run, made1("v1", "Service"))
		must(t, err)
		o.end() // as a program that is killed
		o.done.Wait()
		_, err = a.Apply(ctx, run, service(run))
		must(t, err)
		return o
	}
	begin("stroppy-dead")
	now, err := a.now(ctx)
	must(t, err)
	if off := time.Since(now); off < -time.Second || off > 10*time.Second {
		t.Errorf("the API server's clock is %v behind this one, which is its own", off)
	}
	later := now.Add(leaseLasts + time.Minute)
	if lines, err := a.clearDead(ctx, now); err != nil || len(lines) > 0 {
		t.Errorf("a run that lives is cleared: %v, %v", lines, err)
	}
	lines, err := a.clearDead(ctx, later)
	if err != nil || len(lines) != 1 || !strings.Contains(lines[0], "stroppy-dead") {
		t.Errorf("it cleared %v, %v", lines, err)
	}
	nothingLeft(t, a)
	o := begin("stroppy-pods")
	_, err = a.Apply(ctx, "stroppy-pods", pod("stroppy-pods-0", map[string]any{}))
	must(t, err)
	must(t, o.giveUp())
	must(t, o.giveUp())
	nothingLeft(t, a)

	// A database may have a lease with its own name, as CloudNativePG's primary does.
	o = begin("stroppy-named")
	theirs := NewObject("coordination.k8s.io/v1", "Lease", "stroppy-named", map[string]any{"spec": map[string]any{"holderIdentity": "primary"}})
	leases, err := a.resource(leaseKind)
	must(t, err)
	_, err = leases.Create(ctx, theirs, metav1.CreateOptions{})
	must(t, err)
	must(t, o.giveUp())
	if _, err := leases.Get(ctx, "stroppy-named", metav1.GetOptions{}); err != nil {
		t.Errorf("a lease of the database is gone with that of the run: %v", err)
	}
	must(t, leases.Delete(ctx, "stroppy-named", metav1.DeleteOptions{}))

	forged := NewObject("coordination.k8s.io/v1", "Lease", "database-leader", map[string]any{"spec": map[string]any{}})
	mark(forged, map[string]string{ManagedByLabel: manager, RunLabel: "stroppy-x"})
	_, err = leases.Create(ctx, forged, metav1.CreateOptions{})
	must(t, err)
	_, err = a.clearDead(ctx, later)
	says(t, err, "the lease database-leader", "but not its name")
	if _, err := leases.Get(ctx, "database-leader", metav1.GetOptions{}); err != nil {
		t.Errorf("a lease of somebody else is gone: %v", err)
	}
}

// testKilledRun checks that the record of a killed run on this machine is enough to clear it.
func testKilledRun(t *testing.T, c *kubetest.ControlPlane) {
	a, ctx := connect(t, c), t.Context()
	o, err := a.own(ctx, "stroppy-killed", made1("v1", "Service"))
	must(t, err)
	o.end()
	o.done.Wait()
	_, err = a.Apply(ctx, "stroppy-killed", service("stroppy-killed"))
	must(t, err)
	name, err := json.Marshal(leftover{c.Kubeconfig, "", a.Namespace, "stroppy-killed"})
	must(t, err)
	for _, want := range []bool{true, false} {
		if was, err := Clear(ctx, string(name)); err != nil || was != want {
			t.Errorf("it was there: %v, %v; want %v", was, err, want)
		}
	}
	nothingLeft(t, a)
	_, err = Clear(ctx, `{"Run":"postgres"}`)
	says(t, err, "damaged")
}

// testPods checks that changes of pods are seen, and that a pod counts as gone when another one has its name.
func testPods(t *testing.T, c *kubetest.ControlPlane) {
	a, ctx := connect(t, c), t.Context()
	gone := make(chan string, 8)
	w, err := a.watchPods(ctx, RunLabel+"=stroppy-p", func(p *corev1.Pod) { gone <- string(p.UID) })
	must(t, err)
	t.Cleanup(w.stop)
	x := chosen(t, a, "stroppy-p")
	x.pods = w
	x.kind.StatefulSet = false
	for _, name := range []string{"stroppy-p-10", "stroppy-p-0", "stroppy-p-9"} {
		_, err := a.Apply(ctx, "stroppy-p", pod(name, map[string]any{}))
		must(t, err)
	}
	_, err = a.Apply(ctx, "stroppy-other", pod("other", map[string]any{}))
	must(t, err)
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	must(t, w.until(within, func() error {
		if len(w.all()) != 3 {
			return fmt.Errorf("there are %d pods", len(w.all()))
		}
		return nil
	}))
	var names []string
	for _, p := range w.all() {
		names = append(names, p.Name)
	}
	if want := []string{"stroppy-p-0", "stroppy-p-9", "stroppy-p-10"}; !slices.Equal(names, want) {
		t.Errorf("the pods are %v, want %v", names, want)
	}
	if x.nodes[0].Running() || ready(w.get("stroppy-p-0"), "stroppy-p-0") == nil {
		t.Error("a pod that nobody has started is ready")
	}
	before := w.get("stroppy-p-0").UID
	must(t, x.nodes[0].Kill(within))
	if got := <-gone; got != string(before) {
		t.Errorf("%s is gone, want %s", got, before)
	}
	if w.get("stroppy-p-0") != nil {
		t.Error("the pod that was killed is there")
	}
	must(t, x.nodes[0].Kill(within)) // the pod does not exist
	short, end := context.WithTimeout(ctx, 100*time.Millisecond)
	defer end()
	says(t, x.nodes[0].Restart(short), "the pod stroppy-p-0 does not exist")
}

// testOperator checks that the first installed operator makes the database.
func testOperator(t *testing.T, c *kubetest.ControlPlane) {
	a := connect(t, c)
	k := plain()
	k.Operators = []Operator{{Name: "First", Kind: chaosKind("Nothing")}, {Name: "Second", Kind: chaosKind("PodChaos")}}
	if o, err := k.operator(a); err != nil || o == nil || o.Name != "Second" {
		t.Errorf("the operator is %v, %v", o, err)
	}
	k = plain()
	if o, err := k.operator(a); err != nil || o != &k.Operators[0] {
		t.Errorf("the operator is %v, %v", o, err)
	}
}
