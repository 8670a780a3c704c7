package kubetest

import (
	"context"
	_ "embed"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster/host"
)

// Addresses in the node's network namespace.
const (
	nodeAddress = "10.213.255.1"
	podNetwork  = "10.213.0.0/24"
)

// nodeName is the name of the only node.
const nodeName = "node"

// insideName is set in the environment of a test that runs in the node's namespaces.
const insideName = "STROPPY_TEST_KUBERNETES_INSIDE"

//go:embed node.sh
var nodeScript string

// Node is a Kubernetes cluster of one node that runs pods. It has kubelet over containerd and runc, the controllers,
// the scheduler, DNS by CoreDNS, and a storage class. The test can reach the pods' addresses, but pods cannot leave
// the node. There is no kube-proxy: only headless services work, and the service of the API server.
type Node struct {
	*ControlPlane
	hostSystem bool // Chaos Mesh's daemon sees the machine's /sys at the path of its container
}

// OnNode runs a test in namespaces with a node and these images. A pod must not pull its image (imagePullPolicy Never
// or IfNotPresent). t must not be a subtest, because another process of this program runs it. The test is skipped
// unless STROPPY_TEST_KUBERNETES_NODE is on and the user is root.
func OnNode(t *testing.T, test func(t *testing.T, n *Node), images ...Image) {
	t.Helper()
	onNode(t)
	if os.Getenv(insideName) == "" {
		runInside(t)
		return
	}
	n := &Node{ControlPlane: newControlPlane(t, nodeAddress)}
	n.start(t, "--bind-address=0.0.0.0", "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority="+n.authority.path("ca.crt"))
	n.startNode(t, images)
	test(t, n)
}

// onNode skips the test if no node can be started.
func onNode(t testing.TB) {
	t.Helper()
	assets(t)
	if os.Getenv("STROPPY_TEST_KUBERNETES_NODE") != "on" {
		t.Skip("skipped engine: Kubernetes node: make test-kubernetes starts one")
	}
	needAssets(t, "Kubernetes node", "run scripts/kubernetes.sh node", "kubelet", "kube-controller-manager", "kube-scheduler", "coredns", "pause")
	needPackages(t, "Kubernetes node", map[string]string{
		"containerd": "containerd", "runc": "runc", "/usr/lib/cni/bridge": "containernetworking-plugins", "ip": "iproute2",
	})
	if os.Geteuid() != 0 {
		t.Skip("skipped engine: Kubernetes node: run as root")
	}
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err != nil {
		t.Skip("skipped engine: Kubernetes node: this machine has no control groups of version 1")
	}
}

// runInside runs the test in another process and logs its output.
func runInside(t *testing.T) {
	t.Helper()
	script := filepath.Join(folder(t), "node.sh")
	must(t, os.WriteFile(script, []byte(nodeScript), 0o600))
	group := filepath.Base(filepath.Dir(script)) // a unique name
	atEnd(t, removeGroups, group)
	args := []string{script, "outside", group, nodeAddress, os.Args[0], "-test.run=^" + regexp.QuoteMeta(t.Name()) + "$", "-test.v", "-test.count=1"}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(deadline).Round(time.Second).String())
	}
	cmd := exec.Command("sh", args...)
	cmd.Env = append(os.Environ(), insideName+"=yes")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := host.StartProcess(cmd, syscall.SIGKILL)
	must(t, err)
	err = p.Err()
	// The prefix distinguishes these lines from this test's own.
	t.Log("in the node's namespaces:\n| " + strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", "\n| "))
	switch {
	case err != nil:
		t.Fatal(err)
	case strings.Contains(out.String(), "\n--- SKIP: "+t.Name()+" "):
		t.SkipNow()
	}
}

// removeGroups removes the control groups when their processes have ended.
const removeGroups = `until ! ls -d /sys/fs/cgroup/*/"$1" >/dev/null 2>&1; do
	find /sys/fs/cgroup/*/"$1" -depth -type d -exec rmdir {} + 2>/dev/null
	sleep 0.05
done`

// startNode starts all components that run pods, and returns when the node is ready.
func (n *Node) startNode(t testing.TB, images []Image) {
	t.Helper()
	began := time.Now()
	n.startContainerd(t)
	n.Load(t, append(images, Image{Name: pauseImage, Files: map[string]string{"/pause": filepath.Join(n.assets, "bin", "pause")}, Entrypoint: []string{"/pause"}})...)
	a, server := n.authority, n.Config.Host
	as := func(file, user string, groups ...string) string {
		path := filepath.Join(n.Dir, file+".kubeconfig")
		a.writeKubeconfig(t, path, server, user, groups...)
		return "--kubeconfig=" + path
	}
	n.run(t, "kube-controller-manager", as("controllers", "system:kube-controller-manager", "system:masters"), "--leader-elect=false", "--bind-address=127.0.0.1",
		"--service-account-private-key-file="+a.path("accounts.key"), "--root-ca-file="+a.path("ca.crt"), "--pvclaimbinder-sync-period=1s")
	n.run(t, "kube-scheduler", as("scheduler", "system:kube-scheduler"), "--leader-elect=false", "--bind-address=127.0.0.1")
	n.startDNS(t, as("dns", "system:dns", "system:masters"))
	n.startStorage(t)
	config := filepath.Join(n.Dir, "kubelet.yaml")
	must(t, os.WriteFile(config, []byte(n.kubeletConfig()), 0o600))
	kubelet := n.run(t, "kubelet", as("kubelet", "system:node:"+nodeName, "system:nodes"), "--config="+config,
		"--root-dir="+filepath.Join(n.Dir, "kubelet"), "--hostname-override="+nodeName, "--node-ip="+nodeAddress)
	n.await(t, "kubelet", kubelet, n.nodeReady)
	t.Logf("node ready in %v", time.Since(began).Round(time.Millisecond))
}

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

func (n *Node) nodeReady(ctx context.Context) error {
	node, err := n.Client.Resource(nodes).Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !conditionOf(node, "Ready") {
		return errors.New("the node is not ready")
	}
	return nil
}

// kubeletConfig returns a configuration that changes nothing on the machine. kubelet makes no control groups for
// classes of pods, and evicts no pods because of a full disk.
func (n *Node) kubeletConfig() string {
	a := n.authority
	return strings.NewReplacer("ADDRESS", nodeAddress, "AUTHORITY", a.path("ca.crt"), "CERT", a.path("server.crt"), "KEY", a.path("server.key"), "DIR", n.Dir).Replace(`
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: ADDRESS
tlsCertFile: CERT
tlsPrivateKeyFile: KEY
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: AUTHORITY}}
authorization: {mode: Webhook}
clusterDNS: [ADDRESS]
clusterDomain: cluster.local
resolvConf: ""
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "0%", nodefs.available: "0%", imagefs.available: "0%"}
podLogsDir: DIR/pods
volumePluginDir: DIR/plugins
nodeStatusUpdateFrequency: 2s
maxPods: 60
`)
}

func (n *Node) startDNS(t testing.TB, kubeconfig string) {
	t.Helper()
	config := filepath.Join(n.Dir, "Corefile")
	must(t, os.WriteFile(config, []byte(strings.NewReplacer("ADDRESS", nodeAddress, "KUBECONFIG", strings.TrimPrefix(kubeconfig, "--kubeconfig=")).Replace(`
.:53 {
	bind ADDRESS
	ready 127.0.0.1:8181
	errors
	kubernetes cluster.local {
		kubeconfig KUBECONFIG
		ttl 1
	}
}
`)), 0o600))
	p := n.run(t, "coredns", "-conf="+config)
	n.answers(t, "coredns", p, http.DefaultClient, "http://127.0.0.1:8181/ready")
}
