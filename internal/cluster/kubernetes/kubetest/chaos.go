package kubetest

import (
	"crypto/x509/pkix"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// ChaosNamespace is the namespace of Chaos Mesh.
const ChaosNamespace = "chaos-mesh"

const (
	daemonPort  = 31767
	webhookPort = 9443
	metricsPort = 10080
)

// StartChaosMesh starts Chaos Mesh as two processes on the node: its controller-manager, with webhooks for the API
// server, and its daemon. Without netem in this kernel, partitions work, and the daemon refuses delays and losses.
// The test is skipped if the programs are missing.
func (n *Node) StartChaosMesh(t testing.TB) {
	t.Helper()
	needAssets(t, "Chaos Mesh", "run scripts/kubernetes.sh node", "chaos-controller-manager", "chaos-daemon")
	needPackages(t, "Chaos Mesh", map[string]string{"ipset": "ipset", "iptables": "iptables"})
	n.Define(t, ChaosMesh)
	n.create(t, "v1", "Namespace", "namespaces", "", map[string]any{"metadata": map[string]any{"name": ChaosNamespace}})
	// The controller finds the daemon of a node through it.
	n.create(t, "discovery.k8s.io/v1", "EndpointSlice", "endpointslices", ChaosNamespace, map[string]any{
		"metadata": map[string]any{"name": "chaos-daemon-node"}, "addressType": "IPv4",
		"endpoints": []any{map[string]any{"addresses": []any{nodeAddress}, "nodeName": nodeName}},
		"ports":     []any{map[string]any{"name": "grpc", "port": int64(daemonPort)}},
	})
	n.runDaemon(t, "--runtime=containerd", "--runtime-socket-path=/run/containerd/containerd.sock",
		"--grpc-port="+strconv.Itoa(daemonPort), "--http-port=31766")

	hooks := filepath.Join(n.Dir, "webhooks")
	n.authority.write(t, filepath.Join(hooks, "tls"), pkix.Name{CommonName: "chaos-mesh"}, loopback)
	config := filepath.Join(n.Dir, "chaos.kubeconfig")
	n.authority.writeKubeconfig(t, config, n.Config.Host, "system:chaos-mesh", "system:masters")
	cmd := exec.Command(filepath.Join(n.assets, "bin", "chaos-controller-manager"))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+config, "NAMESPACE="+ChaosNamespace, "TEMPLATE_NAMESPACE="+ChaosNamespace,
		"CERTS_DIR="+hooks, "WEBHOOK_HOST="+loopback, "WEBHOOK_PORT="+strconv.Itoa(webhookPort),
		"METRICS_HOST="+loopback, "METRICS_PORT="+strconv.Itoa(metricsPort), "ENABLE_LEADER_ELECTION=false",
		"CHAOS_DAEMON_SERVICE_PORT="+strconv.Itoa(daemonPort), "SECURITY_MODE=false", "CHAOSD_SECURITY_MODE=false",
		"POD_FAILURE_PAUSE_IMAGE="+pauseImage)
	p := n.runCommand(t, "chaos-controller-manager", cmd)
	// A request without a review is answered with status 200; only the body reports the refusal.
	n.answers(t, "chaos-controller-manager", p, n.authority.client(), webhook("mutate", "networkchaos"))
	n.registerWebhooks(t)
}

// todaPath is the path at which Chaos Mesh's daemon expects the program that it puts under a volume for an IOChaos.
const todaPath = daemonPrograms + "/toda"

// NeedIOChaos enables IOChaos by toda (github.com/chaos-mesh/toda), which our scripts do not build. The test is
// skipped if toda is missing.
func (n *Node) NeedIOChaos(t testing.TB) {
	t.Helper()
	toda := filepath.Join(needAssets(t, "IOChaos", "build it and put it into bin", "toda"), "bin", "toda")
	if err := os.Symlink(toda, todaPath); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

// NeedStressChaos enables StressChaos in a Chaos Mesh that is started afterwards. Its daemon starts stress-ng through
// a helper program, and expects the machine's control groups in a folder of its container. The test is skipped if a
// program is missing.
func (n *Node) NeedStressChaos(t testing.TB) {
	t.Helper()
	needPackages(t, "StressChaos", map[string]string{"stress-ng": "stress-ng"})
	pause := filepath.Join(needAssets(t, "StressChaos", "run scripts/kubernetes.sh node", "chaos-pause"), "bin", "chaos-pause")
	must(t, os.Symlink(pause, daemonPrograms+"/pause")) // in the node's own mount
	n.hostSystem = true
}

// hostSystem starts a program with the machine's /sys mounted at /host-sys. The root of its mount namespace is an
// overlay over the node's root, which is not changed. Its arguments are a folder for the overlay, the program, and
// the program's arguments.
const hostSystem = `set -eu
layer=$1
shift
mkdir -p "$layer/up" "$layer/work" "$layer/root"
mount -t overlay -o "lowerdir=/,upperdir=$layer/up,workdir=$layer/work" overlay "$layer/root"
for folder in proc sys dev run etc var usr/local; do
	mount --rbind "/$folder" "$layer/root/$folder"
done
mkdir "$layer/root/host-sys"
mount --rbind /sys "$layer/root/host-sys"
exec chroot "$layer/root" "$@"`

// runDaemon starts Chaos Mesh's daemon.
func (n *Node) runDaemon(t testing.TB, args ...string) {
	t.Helper()
	const daemon = "chaos-daemon"
	if !n.hostSystem {
		n.run(t, daemon, args...)
		return
	}
	before := []string{"--mount", "--propagation", "slave", "sh", "-c", hostSystem, "sh", "/dev/shm/over/daemon", filepath.Join(n.assets, "bin", daemon)}
	n.runCommand(t, daemon, exec.Command("unshare", append(before, args...)...))
}

// daemonPrograms is the folder of programs of Chaos Mesh's daemon.
const daemonPrograms = "/usr/local/bin"

// chaosKinds returns the resources whose objects the webhooks complete and validate.
func chaosKinds() []string {
	return []string{"podchaos", "networkchaos", "iochaos", "timechaos", "stresschaos"}
}

func webhook(what, resource string) string {
	return "https://" + loopback + ":" + strconv.Itoa(webhookPort) + "/" + what + "-chaos-mesh-org-v1alpha1-" + resource
}

// registerWebhooks makes the API server ask Chaos Mesh about new objects. The Helm chart also registers changes. Here
// Chaos Mesh then refused changes by its own controller, as changes of a specification.
func (n *Node) registerWebhooks(t testing.TB) {
	t.Helper()
	for what, kind := range map[string]string{"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"} {
		var list []any
		for _, resource := range chaosKinds() {
			list = append(list, map[string]any{
				"name": what + "." + resource + ".chaos-mesh.org", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
				"clientConfig": map[string]any{"url": webhook(what, resource), "caBundle": base64.StdEncoding.EncodeToString(n.authority.pem)},
				"rules": []any{map[string]any{"apiGroups": []any{"chaos-mesh.org"}, "apiVersions": []any{"v1alpha1"},
					"operations": []any{"CREATE"}, "resources": []any{resource}}},
			})
		}
		resource := map[string]string{"mutate": "mutatingwebhookconfigurations", "validate": "validatingwebhookconfigurations"}[what]
		n.create(t, "admissionregistration.k8s.io/v1", kind, resource, "", map[string]any{"metadata": map[string]any{"name": "chaos-mesh"}, "webhooks": list})
	}
}
