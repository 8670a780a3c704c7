package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster/kubernetes/kubetest"
	"stroppy/internal/report"
)

// onKubernetes runs a test on a real node with the images of etcd and of this program. The parameter where is the
// cluster of a run, in a new namespace.
func onKubernetes(t *testing.T, test func(t *testing.T, n *kubetest.Node, namespace, where string)) {
	t.Helper()
	stroppy, err := exec.LookPath("stroppy")
	if err != nil {
		t.Fatal(err)
	}
	kubetest.OnNode(t, func(t *testing.T, n *kubetest.Node) {
		namespace := n.Namespace(t)
		test(t, n, namespace, "k8s/etcd:3?kubeconfig="+n.Kubeconfig+"&namespace="+namespace+"&image=stroppy.test/etcd:3.6.8&pull=Never&tool-image=stroppy.test/stroppy:test")
	}, kubetest.Image{Name: "stroppy.test/etcd:3.6.8", Files: map[string]string{"/usr/local/bin/etcd": filepath.Join(os.Getenv("STROPPY_TEST_KUBERNETES"), "bin", "etcd")}},
		kubetest.Image{Name: "stroppy.test/stroppy:test", Files: map[string]string{"/stroppy": stroppy}, Entrypoint: []string{"/stroppy"}})
}

// nothingIn fails the test if a namespace has an object of a run.
func nothingIn(t *testing.T, n *kubetest.Node, namespace string) {
	t.Helper()
	for _, resource := range []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "persistentvolumeclaims"}, {Version: "v1", Resource: "secrets"}, {Group: "batch", Version: "v1", Resource: "jobs"},
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, {Group: "chaos-mesh.org", Version: "v1alpha1", Resource: "networkchaos"},
		{Group: "chaos-mesh.org", Version: "v1alpha1", Resource: "iochaos"}, {Group: "chaos-mesh.org", Version: "v1alpha1", Resource: "stresschaos"},
	} {
		list, err := n.Client.Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) { // the kind is not defined
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			t.Errorf("it is left: %s %s", resource.Resource, list.Items[i].GetName())
		}
	}
}

// TestKubernetesRunIsProved deploys, loads and drives a database on a real node, with faults by Kubernetes and Chaos
// Mesh. Every transfer is proved, and nothing is left.
func TestKubernetesRunIsProved(t *testing.T) {
	onKubernetes(t, func(t *testing.T, n *kubetest.Node, namespace, where string) {
		n.StartChaosMesh(t)
		p := start(t, "run", "bank", "--cluster", where, "--accounts", "1000", "--clients", "8", "--duration", "40s", "--seed", "7", "--out", "run",
			"--nemesis", "kill leader at 5s for 4s", "--nemesis", "partition leader at 16s for 5s", "--nemesis", "replace random at 28s")
		began := time.Now()
		p.drives(t, "run")
		t.Logf("the first transactions came %v after the command", time.Since(began).Round(time.Millisecond))
		code, stdout, stderr := p.wait(t)
		t.Logf("%s\n%s", stdout, stderr)
		if code != 0 || !strings.HasPrefix(stdout, "VALID") {
			t.Errorf("it ended with %d", code)
		}
		faults := read(t, filepath.Join(p.dir, "run", "faults.jsonl"))
		for _, fault := range []string{"kill leader", "partition leader", "replace random"} {
			if !regexp.MustCompile(`"fault":"` + fault + `"[^\n]*"healed_s":[0-9]`).MatchString(faults) {
				t.Errorf("%s was not injected and healed: %s", fault, faults)
			}
		}
		var result report.Result
		if err := json.Unmarshal([]byte(read(t, filepath.Join(p.dir, "run", "result.json"))), &result); err != nil {
			t.Fatal(err)
		}
		much := 0 // servers with traffic; of one whose pods were killed the kubelet may have seen the first packets alone
		for i, s := range result.Servers {
			if s.CPUSeconds == nil || *s.CPUSeconds <= 0 || s.MaxRSSBytes == nil || *s.MaxRSSBytes < 1<<20 {
				t.Errorf("what %s used is not known: %+v", s.Name, s)
			} else {
				t.Logf("%s used %.1f s of processors and %d MB", s.Name, *s.CPUSeconds, *s.MaxRSSBytes>>20)
			}
			if s.ReceivedBytes == nil || s.SentBytes == nil {
				t.Errorf("what %s receives and sends is not known", s.Name)
			} else if t.Logf("%s received %d kB and sent %d kB", s.Name, *s.ReceivedBytes>>10, *s.SentBytes>>10); *s.ReceivedBytes > 1<<20 && *s.SentBytes > 1<<20 {
				much++
			}
			if s.Name != fmt.Sprintf("n%d", i) {
				t.Errorf("server %d is %s", i, s.Name)
			}
		}
		if much < 2 {
			t.Errorf("%d servers have traffic, and two at least were there to the end", much)
		}
		if len(result.Servers) != 3 {
			t.Errorf("there are %d servers", len(result.Servers))
		}
		nothingIn(t, n, namespace)
	})
}

// injects runs the bank on a cluster for a time. Each fault must be injected and healed, and every transfer must be
// proved.
func injects(t *testing.T, where, duration string, faults ...string) {
	t.Helper()
	args := []string{"run", "bank", "--cluster", where, "--accounts", "1000", "--clients", "8", "--duration", duration, "--seed", "7", "--out", "run"}
	for _, fault := range faults {
		args = append(args, "--nemesis", fault)
	}
	p := start(t, args...)
	code, stdout, stderr := p.wait(t)
	record := read(t, filepath.Join(p.dir, "run", "faults.jsonl"))
	t.Logf("%s\n%s\n%s", stdout, stderr, record)
	if code != 0 || !strings.HasPrefix(stdout, "VALID") {
		t.Errorf("it ended with %d", code)
	}
	for _, fault := range faults {
		text, _, _ := strings.Cut(fault, " at ")
		if !regexp.MustCompile(`"fault":"` + text + `[^\n]*"healed_s":[0-9]`).MatchString(record) {
			t.Errorf("%s was not injected and healed: %s", fault, record)
		}
	}
}

// TestKubernetesLimitSlowsTraffic checks with a probe that Chaos Mesh limits the traffic of pods. Every transfer is
// proved, and nothing is left.
func TestKubernetesLimitSlowsTraffic(t *testing.T) {
	onKubernetes(t, func(t *testing.T, n *kubetest.Node, namespace, where string) {
		n.StartChaosMesh(t)
		injects(t, where, "30s", "limit leader to 300kB/s at 3s for 4s", "limit all to 20kB/s at 13s for 4s", "limit n1 to 5MB/s at 22s for 3s")
		nothingIn(t, n, namespace)
	})
}

// TestKubernetesDiskFaultsAreSeen checks that the servers see slow and full volumes by Chaos Mesh. Every transfer is
// proved, and nothing is left.
func TestKubernetesDiskFaultsAreSeen(t *testing.T) {
	onKubernetes(t, func(t *testing.T, n *kubetest.Node, namespace, where string) {
		n.NeedIOChaos(t)
		n.StartChaosMesh(t)
		injects(t, where, "40s", "slow-disk follower by 50ms at 3s for 4s", "slow-disk leader at 12s for 4s", "disk-full random at 22s for 3s")
		nothingIn(t, n, namespace)
	})
}

// TestKubernetesStressIsSeen checks that the kubelet sees processes that compute in a server's container by Chaos
// Mesh. Every transfer is proved, and nothing is left.
func TestKubernetesStressIsSeen(t *testing.T) {
	onKubernetes(t, func(t *testing.T, n *kubetest.Node, namespace, where string) {
		n.NeedStressChaos(t)
		n.StartChaosMesh(t)
		injects(t, where, "35s", "stress leader at 3s for 10s")
		nothingIn(t, n, namespace)
	})
}

// TestKubernetesKeepLeavesTheDatabase checks that a database stays after its run, which prints how it is used and
// removed.
func TestKubernetesKeepLeavesTheDatabase(t *testing.T) {
	onKubernetes(t, func(t *testing.T, n *kubetest.Node, namespace, where string) {
		n.StartChaosMesh(t)
		small := []string{"--accounts", "500", "--clients", "4", "--duration", "8s", "--seed", "7"}
		p := start(t, append([]string{"run", "bank", "--cluster", where, "--keep", "--workers", "2", "--workers-on", "pods", "--nemesis", "partition leader at 3s for 2s"}, small...)...)
		code, stdout, stderr := p.wait(t)
		t.Logf("%s\n%s", stdout, stderr)
		again := regexp.MustCompile(`use it again with: stroppy run --cluster '([^']+)'`).FindStringSubmatch(stderr)
		remove := regexp.MustCompile(`remove it with: stroppy cluster down '([^']+)'`).FindStringSubmatch(stderr)
		if code != 0 || again == nil || remove == nil {
			t.Fatalf("it ended with %d and does not say how to go on", code)
		}
		p = start(t, append([]string{"run", "bank", "--cluster", again[1], "--nemesis", "kill leader at 3s for 1s"}, small...)...)
		code, stdout, stderr = p.wait(t)
		t.Logf("%s\n%s", stdout, stderr)
		if code != 0 || !strings.HasPrefix(stdout, "VALID") {
			t.Errorf("on what was kept it ended with %d", code)
		}
		p = start(t, "cluster", "down", remove[1])
		if code, stdout, stderr = p.wait(t); code != 0 || !strings.Contains(stdout, "removed: all of stroppy-") {
			t.Errorf("its removal ended with %d: %s%s", code, stdout, stderr)
		}
		nothingIn(t, n, namespace)
	})
}

// TestKubernetesMySQLIsProved loads MariaDB with Galera, which a stand-in of its operator makes, from pods and
// through the API server. One server is killed, and one is stopped in a second run. Every transfer is proved on each
// server.
func TestKubernetesMySQLIsProved(t *testing.T) {
	stroppy, err := exec.LookPath("stroppy")
	if err != nil {
		t.Fatal(err)
	}
	kubetest.OnNode(t, func(t *testing.T, n *kubetest.Node) {
		definitions, err := filepath.Abs("../cluster/kubernetes/mysql/testdata/operators.yaml")
		if err != nil {
			t.Fatal(err)
		}
		n.Define(t, definitions)
		namespace := n.Namespace(t)
		go n.OperateMariaDB(t, namespace)
		run := func(args ...string) string {
			p := start(t, append(args, "--accounts", "500", "--clients", "4", "--duration", "12s", "--seed", "7")...)
			code, stdout, stderr := p.wait(t)
			t.Logf("%s\n%s", stdout, stderr)
			if code != 0 || !strings.HasPrefix(stdout, "VALID  bank on MariaDB Galera Cluster") || !strings.Contains(stdout, "3 nodes were read one by one") {
				t.Errorf("it ended with %d", code)
			}
			return stderr
		}
		said := run("run", "bank", "--keep", "--cluster", "k8s/mysql:3?kubeconfig="+n.Kubeconfig+"&namespace="+namespace+"&wait=3m&pull=Never&tool-image=stroppy.test/stroppy:test",
			"--workers", "2", "--workers-on", "pods", "--nemesis", "kill random at 4s")
		again := regexp.MustCompile(`use it again with: stroppy run --cluster '([^']+)'`).FindStringSubmatch(said)
		remove := regexp.MustCompile(`remove it with: stroppy cluster down '([^']+)'`).FindStringSubmatch(said)
		if again == nil || remove == nil {
			t.Fatal("it does not say how to go on")
		}
		run("run", "bank", "--cluster", again[1]+"&reach=forward", "--nemesis", "stop random at 3s for 1s")
		p := start(t, "cluster", "down", remove[1])
		if code, stdout, stderr := p.wait(t); code != 0 {
			t.Errorf("its removal ended with %d: %s%s", code, stdout, stderr)
		}
		nothingIn(t, n, namespace)
	}, kubetest.MariaDB(t), kubetest.Image{Name: "stroppy.test/stroppy:test", Files: map[string]string{"/stroppy": stroppy}, Entrypoint: []string{"/stroppy"}})
}

// TestKubernetesWorkersShareOneHistory checks that the pods of an Indexed Job generate the load, and that every
// transfer is proved in one history.
func TestKubernetesWorkersShareOneHistory(t *testing.T) {
	onKubernetes(t, func(t *testing.T, n *kubetest.Node, namespace, where string) {
		p := start(t, "run", "bank", "--cluster", where, "--accounts", "1000", "--clients", "8", "--workers", "2", "--workers-on", "pods",
			"--duration", "10s", "--seed", "7", "--out", "run", "--nemesis", "kill random at 4s for 2s")
		code, stdout, stderr := p.wait(t)
		t.Logf("%s\n%s", stdout, stderr)
		if code != 0 || !strings.HasPrefix(stdout, "VALID") || !strings.Contains(stdout, "8 clients of 2 workers") {
			t.Errorf("it ended with %d", code)
		}
		nothingIn(t, n, namespace)
	})
}
