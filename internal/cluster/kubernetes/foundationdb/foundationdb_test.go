package foundationdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/kubernetes/kubetest"
	"stroppy/internal/cluster/wait"
)

// spec returns a checked cluster of nodes.
func spec(t *testing.T, nodes int, params map[string]string, change func(*kubernetes.Spec)) *kubernetes.Spec {
	t.Helper()
	s := &kubernetes.Spec{Name: "bank", Operator: &Kind(Client{}).Operators[0], Nodes: nodes, Version: "7.3.69", Disk: "100G", Pull: "Never", Params: map[string]string{}}
	for name, value := range Kind(Client{}).Params {
		s.Params[name] = value
	}
	for name, value := range params {
		s.Params[name] = value
	}
	change(s)
	if err := check(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRenderedResourceHasRequestedProperties checks that the resource contains the requested properties.
func TestRenderedResourceHasRequestedProperties(t *testing.T) {
	object := func(s *kubernetes.Spec) func(path ...string) any {
		objects := render(s)
		if len(objects) != 1 {
			t.Fatalf("it renders %v", objects)
		}
		return func(path ...string) any {
			value, _, _ := unstructured.NestedFieldNoCopy(objects[0].Object, append([]string{"spec"}, path...)...)
			return value
		}
	}
	for nodes, want := range map[int]string{1: "single", 2: "single", 3: "double", 4: "double", 5: "double"} {
		if got := object(spec(t, nodes, nil, func(*kubernetes.Spec) {}))("databaseConfiguration", "redundancy_mode"); got != want {
			t.Errorf("%d nodes have the redundancy %v, want %s", nodes, got, want)
		}
	}
	at := object(spec(t, 5, map[string]string{redundancy: "triple", storage: "memory", coordinators: "addresses", account: "fdb"}, func(s *kubernetes.Spec) {
		s.CPU, s.Memory, s.StorageClass, s.Image = "1", "8G", "fast", "here:5000/fdb:7.3.69-a"
		s.Settings = [][2]string{{"min_trace_severity", "20"}}
	}))
	general := func(path ...string) any { return at(append([]string{"processes", "general"}, path...)...) }
	pod, _ := general("podTemplate", "spec").(map[string]any)
	server, _ := pod["containers"].([]any)[0].(map[string]any)
	amounts := map[string]any{"cpu": "1", "memory": "8G"}
	for name, c := range map[string]struct{ got, want any }{
		"redundancy": {at("databaseConfiguration", "redundancy_mode"), "triple"},
		"storage":    {at("databaseConfiguration", "storage_engine"), "memory"},
		"nodes":      {at("processCounts", "storage"), int64(5)},
		"logs":       {at("processCounts", "log"), int64(-1)},
		"names":      {at("routing", "useDNSInClusterFile"), false},
		"image type": {at("imageType"), "unified"},
		"run":        {at("labels", "resourceLabels").(map[string]any)[kubernetes.RunLabel], "bank"},
		"labels":     {at("labels", "resourceLabels").(map[string]any)[clusterLabel], "bank"},
		"image":      {at("mainContainer", "imageConfigs").([]any)[0].(map[string]any)["baseImage"], "here:5000/fdb"},
		"tag":        {at("mainContainer", "imageConfigs").([]any)[0].(map[string]any)["tag"], "7.3.69-a"},
		"knob":       {general("customParameters").([]any)[0], "knob_min_trace_severity=20"},
		"disk":       {general("volumeClaimTemplate", "spec", "resources", "requests", "storage"), "100G"},
		"class":      {general("volumeClaimTemplate", "spec", "storageClassName"), "fast"},
		"account":    {pod["serviceAccountName"], "fdb"},
		"init":       {pod["initContainers"], nil},
		"server":     {server["name"], "foundationdb"},
		"pull":       {server["imagePullPolicy"], "Never"},
		"cpu":        {server["resources"].(map[string]any)["limits"].(map[string]any)["cpu"], amounts["cpu"]},
		"memory":     {server["resources"].(map[string]any)["requests"].(map[string]any)["memory"], amounts["memory"]},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, want %v", name, c.got, c.want)
		}
	}
	at = object(spec(t, 3, nil, func(*kubernetes.Spec) {}))
	pod, _ = general("podTemplate", "spec").(map[string]any)
	server, _ = pod["containers"].([]any)[0].(map[string]any)
	if at("imageType") != "split" || at("routing", "useDNSInClusterFile") != true || at("mainContainer") != nil || pod["automountServiceAccountToken"] != false || len(pod["initContainers"].([]any)) != 1 {
		t.Errorf("without parameters it is %v", render(spec(t, 3, nil, func(*kubernetes.Spec) {}))[0].Object)
	}
	if _, bound := server["resources"].(map[string]any)["limits"]; bound {
		t.Errorf("without an amount its server has %v", server["resources"])
	}
}

// TestInvalidRequestsAreRejectedAtOnce checks that impossible requests are refused before anything is asked, even
// in a program without a driver of FoundationDB.
func TestInvalidRequestsAreRejectedAtOnce(t *testing.T) {
	missing := errors.New("it was built without FoundationDB")
	k := Kind(Client{Missing: func() error { return missing }})
	for query, says := range map[string]string{
		"": missing.Error(), "redundancy=triple": "parameter redundancy: triple needs at least 5 nodes, but there are 3", "redundancy=two": "not single, double or triple",
		"storage=redwood": "parameter storage: ", "coordinators=some": "parameter coordinators: ", "version=latest": "parameter version: ", "version=7.3": "parameter version: ",
		"image=foundationdb": "parameter image: it must be an image with its tag", "image=here:5000/fdb": "parameter image: ", "sidecar-image=a@sha256:1": "parameter sidecar-image: ",
		"sidecar-image=a:1&service-account=b": "with a service account", "reach=forward": "parameter reach: ", "disk=much": "parameter disk: ", "exclude=on": "no such parameter",
		"set.a b=1": "not the name of a setting", "set.a=1%0A2": "must be one line",
	} {
		params, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		params.Set("kubeconfig", "/none")
		_, err = kubernetes.Start(t.Context(), k, cluster.Options{Nodes: 3, Params: params}, "v1")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", query, err, says)
		}
		if _, param := errors.AsType[*cluster.ParamError](err); param != (query != "") {
			t.Errorf("%s: it is an error of a parameter: %v", query, param)
		}
	}
}

// TestUnreconciledStatusIsUnhealthy checks which states of the operator's status are not healthy.
func TestUnreconciledStatusIsUnhealthy(t *testing.T) {
	for change, says := range map[string]string{
		"": "", "available": "as available", "healthy": "lack copies", "fullReplication": "lack copies", "reconciled": "generation 1 of 2",
		"hasUnhealthyProcess": "its operator has not finished: hasUnhealthyProcess", "hasPendingRemoval": "",
	} {
		health := map[string]any{"available": true, "healthy": true, "fullReplication": true}
		generations := map[string]any{"reconciled": int64(2)}
		switch {
		case change == "reconciled":
			generations[change] = int64(1)
		case health[change] != nil:
			health[change] = false
		case change != "":
			generations[change] = int64(2)
		}
		o := &kubernetes.Object{Object: map[string]any{"status": map[string]any{"health": health, "generations": generations}}}
		o.SetGeneration(2)
		if err := status(o, nil); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", change, err, says)
		}
	}
	if err := status(&kubernetes.Object{Object: map[string]any{}}, nil); err == nil {
		t.Error("an operator that has said nothing counts")
	}
}

// TestUnhealthyStatusIsRejectedWithCause checks that each status of a cluster that cannot lose a node now is
// rejected with its cause.
func TestUnhealthyStatusIsRejectedWithCause(t *testing.T) {
	for says, change := range map[string]func(*state){
		"not available": func(s *state) { s.Available = false }, `is at "recruiting"`: func(s *state) { s.Recovery = "recruiting" }, "in the state": func(s *state) { s.Healthy = false },
		"loss of 1 nodes": func(s *state) { s.Spare = 0 }, "coordinators at a:1": func(s *state) { s.Unreachable = []string{"a:1"} },
	} {
		s := state{Available: true, Recovery: "fully_recovered", Healthy: true, Spare: 1}
		if err := s.whole(1); err != nil {
			t.Fatal(err)
		}
		change(&s)
		if err := s.whole(1); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

// failing is an observer of which only the second answers.
type failing struct{ opened int }

func (f failing) State(ctx context.Context) ([]byte, error) {
	if f.opened < 2 {
		return nil, errors.New("its coordinators have moved")
	}
	if limit, ok := ctx.Deadline(); ok && time.Until(limit) < askLimit/2 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []byte(`{"roles":{"a:4501":["storage"]}}`), nil
}

func (failing) Close() error { return nil }

// TestSilentClientIsReplaced checks that a client without an answer is replaced, because the next one uses the
// coordinators of that time. It must not be replaced if the caller gave up.
func TestSilentClientIsReplaced(t *testing.T) {
	opened := 0
	d := &database{lock: wait.NewLock(), file: "x", client: Client{Open: func(_ context.Context, url string) (Observer, error) {
		if opened++; url != "fdb:x" {
			t.Errorf("it opens %s", url)
		}
		return failing{opened}, nil
	}}}
	if _, err := d.ask(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "have moved") {
		t.Errorf("the first answer: %v", err)
	}
	for _, waits := range []time.Duration{time.Minute, askEvery + 100*time.Millisecond, time.Minute} {
		ctx, cancel := context.WithTimeout(t.Context(), waits)
		defer cancel()
		s, err := d.ask(ctx, nil)
		if short := waits < time.Minute; short != errors.Is(err, context.DeadlineExceeded) || !short && (err != nil || len(s.Roles) != 1) || opened != 2 {
			t.Errorf("of %d clients after %v: %v, %v", opened, waits, s, err)
		}
	}
	must(t, d.Close())
}

// TestClusterIsCreatedFollowedAndRemoved checks that a cluster is created, followed when its coordinators move,
// hurt, and removed. It uses a real API server with stand-ins for the operator and FoundationDB. The operator's
// definition is minimal (testdata). So the test does not show that its own schema accepts the resource.
func TestClusterIsCreatedFollowedAndRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := kubetest.Start(t)
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	t.Cleanup(func() {
		if left, err := filepath.Glob(filepath.Join(folder, "stroppy-*", "fdb.cluster*")); err != nil || len(left) > 0 {
			t.Errorf("it is left: %v, %v", left, err)
		}
	})
	options := func(namespace string, nodes int, more url.Values) cluster.Options {
		params := url.Values{"kubeconfig": {c.Kubeconfig}, "namespace": {namespace}, "wait": {"1m"}, "cpu": {"1"}, "memory": {"8G"}, "disk": {"100G"}, "storage-class": {"fast"}}
		for name, values := range more {
			params[name] = values
		}
		return cluster.Options{Nodes: nodes, Params: params}
	}
	driver := Client{Missing: func() error { return nil }}
	if _, err := kubernetes.Start(t.Context(), Kind(driver), options(c.Namespace(t), 3, nil), "v1"); err == nil || !strings.Contains(err.Error(), "install fdb-kubernetes-operator (`kubectl apply --server-side -f https") {
		t.Errorf("without an operator: %v", err)
	}
	definitions, err := filepath.Abs("testdata/operators.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.Define(t, definitions)
	for name, test := range map[string]func(t *testing.T, s *standIn, options func(int, url.Values) cluster.Options){
		"well": testWell, "one node": testOne, "kept": testKept, "not reached": testUnreached, "never well": testNeverWell, "cancelled": testCancelled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStandIn(t, c)
			test(t, s, func(nodes int, more url.Values) cluster.Options { return options(s.namespace, nodes, more) })
			c.Left(t, s.namespace, clusters, podsOf, claimsOf, leases)
		})
	}
}

// hurt is a node with the faults of these tests.
type hurt interface {
	cluster.Node
	Kill(ctx context.Context) error
	Terminate(ctx context.Context) error
	Replace(ctx context.Context) error
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// identities returns the UIDs of a pod and of its claim.
func (s *standIn) identities(pod string) (podID, claimID string) {
	s.Helper()
	p, err := s.in(podsOf).Get(s.Context(), pod, metav1.GetOptions{})
	must(s.T, err)
	claim, err := s.in(claimsOf).Get(s.Context(), pod+"-data", metav1.GetOptions{})
	must(s.T, err)
	return string(p.GetUID()), string(claim.GetUID())
}

func testWell(t *testing.T, s *standIn, options func(int, url.Values) cluster.Options) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := kubernetes.Start(ctx, Kind(s.driver()), options(3, nil), "v1")
	must(t, err)
	defer func() { must(t, c.Stop()) }()
	file := strings.TrimPrefix(c.URL(), "fdb:")
	info, err := os.Stat(file)
	must(t, err)
	text, err := os.ReadFile(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 || !strings.HasSuffix(string(text), ":x@"+s.coordinator+"\n") || c.NodeURL(2) != c.URL() {
		t.Errorf("the cluster file %s has the mode %v: %s", file, info.Mode(), text)
	}
	inside, err := c.(*kubernetes.Cluster).InsideURL()
	if want := "fdb:?connection=" + url.QueryEscape(strings.TrimSpace(string(text))); err != nil || inside != want {
		t.Errorf("pods reach it at %s, %v, want %s", inside, err, want)
	}
	if how := c.(*kubernetes.Cluster).Deployment(); !strings.Contains(how, "the operator fdb-kubernetes-operator; the pods are reached at their own addresses") || strings.Contains(how, "relay") {
		t.Errorf("it says %q", how)
	}
	if _, moves := c.(cluster.Mover); moves {
		t.Error("it can move its cluster controller")
	}
	leader, err := c.Leader(ctx)
	if err != nil || leader != 0 || len(c.Nodes()) != 3 {
		t.Errorf("of %d nodes %d leads, %v", len(c.Nodes()), leader, err)
	}

	// The coordinators move.
	other, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer other.Close()
	s.set(func() { s.coordinator = other.Addr().String() })
	must(t, wait.RetryEvery(ctx, 100*time.Millisecond, func() error {
		must(t, c.WaitHealthy(ctx))
		text, err := os.ReadFile(file)
		if err == nil && !strings.HasSuffix(string(text), ":x@"+other.Addr().String()+"\n") {
			err = errors.New(string(text))
		}
		return err
	}))

	n := c.Nodes()[1].(hurt)
	pods, err := s.in(podsOf).List(ctx, metav1.ListOptions{})
	must(t, err)
	slices.SortFunc(pods.Items, func(a, b unstructured.Unstructured) int { return len(a.GetName()) - len(b.GetName()) })
	var names []string // by node
	for i := range pods.Items {
		names = append(names, pods.Items[i].GetName())
	}
	pod := names[1]
	podBefore, claimBefore := s.identities(pod)
	for name, end := range map[string]func(context.Context) error{"kill": n.Kill, "stop": n.Terminate} {
		must(t, end(ctx))
		must(t, c.WaitHealthy(ctx))
		podNow, claimNow := s.identities(pod)
		if podNow == podBefore || claimNow != claimBefore {
			t.Errorf("after %s the pod is another one: %v, its claim: %v", name, podNow != podBefore, claimNow != claimBefore)
		}
		podBefore = podNow
	}
	testReplaced(ctx, t, s, c, names)
	s.set(func() { s.generations = map[string]any{"needsCoordinatorChange": int64(1)} })
	must(t, wait.RetryEvery(ctx, 100*time.Millisecond, func() error {
		short, end := context.WithTimeout(ctx, time.Second)
		defer end()
		if err := c.WaitHealthy(short); err == nil || !strings.Contains(err.Error(), "needsCoordinatorChange") {
			return fmt.Errorf("while the operator changes coordinators: %w", err)
		}
		return nil
	}))
	must(t, c.Stop())
	if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of its cluster file is there: %v", err)
	}
}

// testReplaced checks that a node is not emptied in two cases: the others may lack its data, as seen by the client, or another node is being made again.
func testReplaced(ctx context.Context, t *testing.T, s *standIn, c cluster.Cluster, pods []string) {
	n, pod := c.Nodes()[1].(hurt), pods[1]
	podBefore, claimBefore := s.identities(pod)
	must(t, n.Kill(ctx)) // as the fault replace does first
	must(t, c.WaitHealthy(ctx))
	for name, wrong := range map[string]func(*state){
		"data that are not whole":              func(now *state) { now.Healthy, now.Data = false, "healing" },
		"a loss that would be one of data":     func(now *state) { now.Spare = 0 },
		"a process whose pod has gone already": func(now *state) { now.Roles["127.0.77.250:4501"] = []string{"storage"} },
	} {
		s.set(func() { s.change = wrong })
		short, end := context.WithTimeout(ctx, 1500*time.Millisecond)
		if err := n.Replace(short); err == nil || !strings.Contains(err.Error(), "wait until the other nodes have the data of n1") {
			t.Errorf("with %s: %v", name, err)
		}
		end()
		if _, claimNow := s.identities(pod); claimNow != claimBefore {
			t.Errorf("with %s the claim was taken", name)
		}
	}
	s.set(func() { s.change = nil })
	testOneAtATime(ctx, t, s, c, pods)
	if podNow, claimNow := s.identities(pods[1]); podNow == podBefore || claimNow == claimBefore {
		t.Errorf("a node that was replaced has another pod: %v, another claim: %v", podNow != podBefore, claimNow != claimBefore)
	}
}

// testOneAtATime replaces two nodes at once. The second keeps its data until the process of the first has joined.
func testOneAtATime(ctx context.Context, t *testing.T, s *standIn, c cluster.Cluster, pods []string) {
	var before [3]string
	for i, pod := range pods {
		_, before[i] = s.identities(pod)
	}
	emptied := func() (n int) {
		for i, pod := range pods {
			if claim, err := s.in(claimsOf).Get(ctx, pod+"-data", metav1.GetOptions{}); err != nil || string(claim.GetUID()) != before[i] {
				n++
			}
		}
		return n
	}
	s.set(func() {
		known := s.made
		s.change = func(now *state) {
			for i := known + 1; i <= s.made; i++ {
				delete(now.Roles, fmt.Sprintf("127.0.77.%d:4501", i))
			}
		}
	})
	var group sync.WaitGroup
	for _, i := range []int{1, 2} {
		group.Go(func() {
			if err := c.Nodes()[i].(hurt).Replace(ctx); err != nil {
				t.Errorf("replace n%d: %v", i, err)
			}
		})
	}
	must(t, wait.RetryEvery(ctx, 100*time.Millisecond, func() error {
		if emptied() == 0 {
			return errors.New("no node was emptied")
		}
		return nil
	}))
	must(t, wait.Sleep(ctx, 4*time.Second))
	if n := emptied(); n != 1 {
		t.Errorf("%d nodes were emptied before the first had joined", n)
	}
	s.set(func() { s.change = nil })
	group.Wait()
	must(t, c.WaitHealthy(ctx))
	if n := emptied(); n != 2 {
		t.Errorf("%d of two nodes were emptied", n)
	}
}

// testOne checks that the only copy of the data is not removed.
func testOne(t *testing.T, s *standIn, options func(int, url.Values) cluster.Options) {
	c, err := kubernetes.Start(t.Context(), Kind(s.driver()), options(1, nil), "v1")
	must(t, err)
	if _, ok := c.Nodes()[0].(hurt); ok {
		t.Error("the only node can be replaced")
	}
	must(t, c.Stop())
}

// testKept checks that an existing cluster is used and not changed.
func testKept(t *testing.T, s *standIn, options func(int, url.Values) cluster.Options) {
	first, err := kubernetes.Start(t.Context(), Kind(s.driver()), options(3, nil), "v1")
	must(t, err)
	name, _, selector, err := first.(*kubernetes.Cluster).Keep()
	must(t, err)
	must(t, first.Stop())
	second, err := kubernetes.Start(t.Context(), Kind(s.driver()), options(3, url.Values{"selector": {selector}}), "v1")
	must(t, err)
	if _, ok := second.Nodes()[0].(hurt); ok || len(second.Nodes()) != 3 {
		t.Errorf("a node of %d that this run has not made can be replaced: %v", len(second.Nodes()), ok)
	}
	must(t, second.Stop())
	if list, err := s.in(podsOf).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 3 {
		t.Errorf("of what was there stay %d pods, %v", len(list.Items), err)
	}
	must(t, s.patch(t.Context(), clusters, name, map[string]any{"spec": map[string]any{"mainContainer": map[string]any{"enableTls": true}}}))
	if _, err := kubernetes.Start(t.Context(), Kind(s.driver()), options(3, url.Values{"selector": {selector}}), "v1"); err == nil || !strings.Contains(err.Error(), "has TLS, and its certificates are not read here") {
		t.Errorf("a cluster with TLS: %v", err)
	}
	params := options(3, nil).Params
	for param := range params {
		if param != "kubeconfig" && param != "namespace" {
			params.Del(param)
		}
	}
	params.Set("name", name)
	if _, err := kubernetes.Down(t.Context(), cluster.Options{Params: params}); err != nil {
		t.Error(err)
	}
}

// testUnreached checks the error if the coordinators cannot be reached from here.
func testUnreached(t *testing.T, s *standIn, options func(int, url.Values) cluster.Options) {
	s.set(func() { s.coordinator = "127.0.0.1:1" })
	_, err := kubernetes.Start(t.Context(), Kind(s.driver()), options(3, nil), "v1")
	if err == nil || !strings.Contains(err.Error(), "no coordinator of 127.0.0.1:1 can be reached: run stroppy in a pod") {
		t.Errorf("its coordinators are not reached: %v", err)
	}
}

func testNeverWell(t *testing.T, s *standIn, options func(int, url.Values) cluster.Options) {
	s.set(func() { s.generations = map[string]any{"needsGrow": int64(1)} })
	_, err := kubernetes.Start(t.Context(), Kind(s.driver()), options(3, url.Values{"wait": {"3s"}}), "v1")
	if err == nil || !strings.Contains(err.Error(), "not healthy after 3s") || !strings.Contains(err.Error(), "needsGrow") {
		t.Errorf("it is never well: %v", err)
	}
}

func testCancelled(t *testing.T, s *standIn, options func(int, url.Values) cluster.Options) {
	s.set(func() { s.generations = map[string]any{"needsGrow": int64(1)} })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(2*time.Second, cancel)
	if _, err := kubernetes.Start(ctx, Kind(s.driver()), options(3, nil), "v1"); !errors.Is(err, context.Canceled) {
		t.Errorf("it was cancelled: %v", err)
	}
}
