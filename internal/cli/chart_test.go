package cli_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
	foundationdbkubernetes "stroppy/internal/cluster/kubernetes/foundationdb"
	"stroppy/internal/cluster/kubernetes/kubetest"
)

// chartFolder is the folder of the Helm chart.
const chartFolder = "../../deploy/helm"

// rendererPath builds the program that renders a chart by Helm's engine.
func rendererPath(t *testing.T) string {
	t.Helper()
	const module = "../../tools/chart"
	if said, err := exec.Command("go", "-C", module, "mod", "download").CombinedOutput(); err != nil {
		t.Skipf("skipped engine: Helm: the modules of tools/chart could not be had: %s", said)
	}
	path := filepath.Join(t.TempDir(), "chart")
	if said, err := exec.Command("go", "-C", module, "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build tools/chart: %v: %s", err, said)
	}
	return path
}

// rendered returns the objects of the chart with these values, or Helm's error.
func rendered(t *testing.T, renderer, namespace, values string) ([]byte, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command(renderer, chartFolder, "some", namespace, file).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, errors.New(string(failed.Stderr))
	}
	return text, err
}

// kindsInKubernetes returns the kinds of clusters in Kubernetes.
func kindsInKubernetes(t *testing.T) (kinds []string) {
	t.Helper()
	text, err := exec.Command("stroppy", "list", "clusters").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`k8s/([a-z]+):N`).FindAllStringSubmatch(string(text), -1) {
		kinds = append(kinds, m[1])
	}
	if len(kinds) < 2 {
		t.Fatalf("the program has only %q in Kubernetes: %s", kinds, text)
	}
	return kinds
}

// testChart installs the chart on a real API server. The chart's account must have exactly the rights that the program
// needs for each kind of database.
func testChart(t *testing.T, control *kubetest.ControlPlane) {
	control.Define(t, kubetest.Faults)
	operators, err := filepath.Glob("../cluster/kubernetes/*/testdata/operators.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range operators {
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		control.Define(t, path)
	}
	renderer := rendererPath(t)
	for _, kind := range kindsInKubernetes(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			testChartKind(t, control, renderer, kind)
		})
	}
	t.Run("values", func(t *testing.T) { testChartValues(t, renderer) })
}

var lacks = regexp.MustCompile(`this account may not (.*) in the namespace`)

// testChartKind compares the role of the chart with the rights that one kind needs.
func testChartKind(t *testing.T, control *kubetest.ControlPlane, renderer, kind string) {
	namespace := control.Namespace(t)
	tried := func(kubeconfig string) string {
		if kind == "fdb" {
			return triedFoundationDB(t, namespace, kubeconfig)
		}
		p := start(t, "run", "bank", "--cluster", "k8s/"+kind+":3?wait=1s&namespace="+namespace+"&kubeconfig="+kubeconfig)
		code, _, stderr := p.wait(t)
		if code != 3 {
			t.Errorf("it ended with %d: %s", code, stderr)
		}
		return stderr
	}
	said := tried(control.Account(t, namespace))
	needed := lacks.FindStringSubmatch(said)
	if needed == nil {
		t.Fatalf("an account without rights does not see what it lacks: %s", said)
	}
	objects, err := rendered(t, renderer, namespace, "rights: {networkFaults: false, databases: ["+kind+"]}")
	if err != nil {
		t.Fatal(err)
	}
	control.Create(t, namespace, objects)
	account := control.AccountConfig(t, namespace, "some-stroppy")
	if said := tried(account); strings.Contains(said, "may not") || !strings.Contains(said, "not healthy after 1s") {
		t.Errorf("with the chart's account it says: %s", said)
	}
	given := rulesOf(t, control, namespace)
	for _, one := range strings.Split(needed[1], ", ") {
		if i := slices.Index(given, one); i >= 0 {
			given = slices.Delete(given, i, i+1)
		} else {
			t.Errorf("the chart does not give the right to %s", one)
		}
	}
	for _, one := range given { // the kind's other operators, of which the program takes the first
		if !regexp.MustCompile(` [a-z]+\.([a-z0-9-]+\.)+[a-z]+$`).MatchString(one) || strings.HasSuffix(one, ".k8s.io") {
			t.Errorf("the chart gives the right to %s, which is not asked for", one)
		}
	}
	mayNoMore(t, account, namespace)
}

// triedFoundationDB starts k8s/fdb with a stand-in for the driver, because a build without its tag lacks the driver.
// It returns the reason why there is no cluster.
func triedFoundationDB(t *testing.T, namespace, kubeconfig string) string {
	t.Helper()
	k := foundationdbkubernetes.Kind(foundationdbkubernetes.Client{Missing: func() error { return nil }})
	_, err := kubernetes.Start(t.Context(), k, cluster.Options{Nodes: 3, Params: url.Values{"wait": {"1s"}, "namespace": {namespace}, "kubeconfig": {kubeconfig}}}, "v1")
	if err == nil {
		t.Fatal("a cluster without an operator is well")
	}
	return err.Error()
}

// rulesOf returns the rights of the chart's role. Each verb precedes its resource, as in the errors of the program.
func rulesOf(t *testing.T, control *kubetest.ControlPlane, namespace string) (list []string) {
	t.Helper()
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	role, err := control.Client.Resource(roles).Namespace(namespace).Get(t.Context(), "some-stroppy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rules, _, err := unstructured.NestedSlice(role.Object, "rules")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range rules {
		rule, _ := one.(map[string]any)
		groups, _, errGroups := unstructured.NestedStringSlice(rule, "apiGroups")
		resources, _, errResources := unstructured.NestedStringSlice(rule, "resources")
		verbs, _, errVerbs := unstructured.NestedStringSlice(rule, "verbs")
		if err := errors.Join(errGroups, errResources, errVerbs); err != nil {
			t.Fatal(err)
		}
		for _, group := range groups {
			for _, resource := range resources {
				for _, verb := range verbs {
					list = append(list, strings.TrimSuffix(fmt.Sprintf("%s %s.%s", verb, resource, group), "."))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// mayNoMore fails the test if an account has a right that no run needs.
func mayNoMore(t *testing.T, kubeconfig, namespace string) {
	t.Helper()
	api, err := kubernetes.Connect(t.Context(), kubernetes.Access{Kubeconfig: kubeconfig, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range []kubernetes.Right{
		{Resource: "secrets", Verbs: []string{"deletecollection"}}, {Resource: "pods/exec", Verbs: []string{"create"}},
		{Resource: "nodes", Verbs: []string{"list"}}, {Group: "rbac.authorization.k8s.io", Resource: "roles", Verbs: []string{"create"}},
		{Group: "chaos-mesh.org", Resource: "networkchaos", Verbs: []string{"create"}}, {Group: "batch", Resource: "jobs", Verbs: []string{"create"}},
	} {
		if err := api.Require(t.Context(), []kubernetes.Right{right}); err == nil || !strings.Contains(err.Error(), "may not") {
			t.Errorf("%v: %v", right, err)
		}
	}
	api.Namespace = "default"
	if err := api.Require(t.Context(), []kubernetes.Right{{Resource: "pods", Verbs: []string{"list"}}}); err == nil || !strings.Contains(err.Error(), "may not") {
		t.Errorf("in another namespace: %v", err)
	}
}

// testChartValues renders the chart with different values.
func testChartValues(t *testing.T, renderer string) {
	for _, c := range []struct{ values, has, refused string }{
		{values: "{}", has: "kind: ServiceAccount"},
		{values: `serviceAccount: {existingName: mine}`, has: "name: mine"},
		{values: `run: {cluster: "k8s/etcd:3"}`, has: `"k8s/etcd:3?tool-image=stroppy%3A0.0.0&pull=IfNotPresent"`},
		{values: `run: {cluster: "k8s/etcd:3?cpu=2&tool-image=a&pull=Never"}`, has: `"k8s/etcd:3?cpu=2&tool-image=a&pull=Never"`},
		{values: `run: {cluster: "k8s/etcd:3", workers: 2}`, has: "- jobs"},
		{values: `{run: {arguments: [--db, "etcd://a"]}, live: {enabled: true}}`, has: `- "0.0.0.0:8080"`},
		{values: `rights: {chaosResources: [iochaos]}`, has: "- iochaos"},
		{values: `rights: {nodeStatistics: true}`, has: "name: here-some-stroppy"},
		{values: `run: {cluster: "k8s/nothing:3"}`, refused: `"nothing" is no kind of database that stroppy makes in Kubernetes: take some of cockroach, etcd, `},
		{values: `run: {cluster: "postgres:3"}`, refused: "/run/cluster"},
		{values: `run: {clusters: "k8s/etcd:3"}`, refused: "'clusters' not allowed"},
		{values: `run: {workers: -1}`, refused: "/run/workers"},
		{values: `image: {pullPolicy: Sometimes}`, refused: "/image/pullPolicy"},
	} {
		text, err := rendered(t, renderer, "here", c.values)
		switch {
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: %v, want %s", c.values, err, c.refused)
		case c.refused == "" && (err != nil || !strings.Contains(string(text), c.has)):
			t.Errorf("%s: without %s, %v: %s", c.values, c.has, err, text)
		}
	}
}

// TestKubernetesChartRunsItsJob runs the chart's job on a real node with its own account and image. The job makes the
// database, drives it from pods, injects faults into both, and leaves only its results.
func TestKubernetesChartRunsItsJob(t *testing.T) {
	onKubernetes(t, func(t *testing.T, n *kubetest.Node, namespace, _ string) {
		n.StartChaosMesh(t)
		objects, err := rendered(t, rendererPath(t), namespace, `
run:
  cluster: k8s/etcd:3?image=stroppy.test/etcd:3.6.8
  workers: 2
  arguments: [--accounts, "1000", --clients, "8", --duration, 20s, --seed, "7", --nemesis, kill leader at 4s for 3s, --nemesis, partition leader at 11s for 4s]
image: {repository: stroppy.test/stroppy, tag: test, pullPolicy: Never}
live: {enabled: true}
`)
		if err != nil {
			t.Fatal(err)
		}
		n.Create(t, namespace, objects)
		text, ended := jobLog(t, n, namespace, "some-stroppy-1")
		t.Log(text)
		if !ended || !strings.Contains(text, "VALID  bank on") || !strings.Contains(text, "8 clients of 2 workers") {
			t.Errorf("the job succeeded: %v", ended)
		}
		jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
		background := metav1.DeletePropagationBackground
		if err := n.Client.Resource(jobs).Namespace(namespace).Delete(t.Context(), "some-stroppy-1", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Fatal(err)
		}
		list, err := n.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "some-stroppy-results" {
			t.Errorf("volume claims are left beside that of the results: %v, %v", list, err)
		}
		for _, resource := range []schema.GroupVersionResource{
			{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Version: "v1", Resource: "secrets"},
			{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, {Group: "chaos-mesh.org", Version: "v1alpha1", Resource: "networkchaos"},
		} {
			list, err := n.Client.Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) > 0 {
				t.Errorf("it is left: %s %v, %v", resource.Resource, list, err)
			}
		}
	})
}

// jobLog waits until the pod of a job has ended. It returns the output and whether the job succeeded.
func jobLog(t *testing.T, n *kubetest.Node, namespace, job string) (text string, succeeded bool) {
	t.Helper()
	pods := n.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=" + job})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			phase, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase")
			if phase == "Succeeded" || phase == "Failed" {
				return podLog(t, n, namespace, list.Items[i].GetName()), phase == "Succeeded"
			}
			text = fmt.Sprint(list.Items[i].Object["status"])
		}
	}
	t.Fatalf("the job %s has not ended: %s", job, text)
	return "", false
}

func podLog(t *testing.T, n *kubetest.Node, namespace, pod string) string {
	t.Helper()
	client, err := rest.HTTPClientFor(n.Config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(n.Config.Host + "/api/v1/namespaces/" + namespace + "/pods/" + pod + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("read the log of %s: %s, %v: %s", pod, response.Status, err, text)
	}
	return string(text)
}
