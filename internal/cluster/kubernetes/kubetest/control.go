// Package kubetest is a real Kubernetes for tests: kube-apiserver and etcd on loopback, without
// a node, so that objects, their schemas and rights are what a cluster has and no pod ever runs
// (Start); or with a node that runs pods, in namespaces of its own (OnNode), and Chaos Mesh.
//
// The programs are what scripts/kubernetes.sh builds; the tests have their folder from
// STROPPY_TEST_KUBERNETES, without which they skip.
package kubetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/system"
)

// loopback is the address of a control plane without a node.
const loopback = "127.0.0.1"

// startLimit bounds the start of one part of Kubernetes, on a machine that is busy with others.
const startLimit = 2 * time.Minute

// ControlPlane is etcd and kube-apiserver, which authorizes by RBAC. Both end with the test,
// and when the test is killed.
type ControlPlane struct {
	Dir        string // a folder for files that end with the test; the logs are in it
	Kubeconfig string // path of the file by which one has all rights
	Config     *rest.Config
	Client     dynamic.Interface

	assets    string // where the programs and definitions are
	address   string // of the API server, without a port
	authority *authority
	parts     []*cluster.Process
}

// Start starts a control plane on 127.0.0.1. Nothing reconciles objects: there is no controller,
// no scheduler and no node.
func Start(t testing.TB) *ControlPlane {
	t.Helper()
	c := newControlPlane(t, loopback)
	c.start(t, "--disable-admission-plugins=ServiceAccount") // nobody makes the accounts by which pods would run
	return c
}

// assets returns the folder of the programs, or skips the test.
func assets(t testing.TB, programs ...string) string {
	t.Helper()
	folder := os.Getenv("STROPPY_TEST_KUBERNETES")
	if folder == "" {
		t.Skip("skipped engine: Kubernetes: set STROPPY_TEST_KUBERNETES to the folder that scripts/kubernetes.sh prints")
	}
	for _, p := range programs {
		if _, err := os.Stat(filepath.Join(folder, "bin", p)); err != nil {
			t.Skipf("skipped engine: Kubernetes: STROPPY_TEST_KUBERNETES has no %s: build it with scripts/kubernetes.sh", p)
		}
	}
	return folder
}

// newControlPlane makes the folder and the certificates.
func newControlPlane(t testing.TB, address string) *ControlPlane {
	t.Helper()
	c := &ControlPlane{assets: assets(t, "etcd", "kube-apiserver"), address: address, Dir: folder(t)}
	var err error
	c.authority, err = newAuthority(c.Dir, address)
	must(t, err)
	t.Cleanup(func() {
		for i := len(c.parts) - 1; i >= 0; i-- {
			if err := c.parts[i].Kill(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			c.logs(t)
		}
	})
	return c
}

// start starts etcd and the API server and returns when that is ready.
func (c *ControlPlane) start(t testing.TB, flags ...string) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	etcd, err := cluster.FreePort(ctx)
	must(t, err)
	c.startEtcd(t, etcd)
	port := 443 // where pods ask, by the service kubernetes
	if c.address == loopback {
		port, err = cluster.FreePort(ctx)
		must(t, err)
	}
	server := c.startServer(t, etcd, port, flags)

	c.Kubeconfig = filepath.Join(c.Dir, "admin.kubeconfig")
	must(t, c.authority.writeKubeconfig(c.Kubeconfig, c.url(port), "admin", "system:masters"))
	c.Config, err = loadKubeconfig(c.Kubeconfig)
	must(t, err)
	c.Client, err = dynamic.NewForConfig(c.Config)
	must(t, err)
	client, err := rest.HTTPClientFor(c.Config)
	must(t, err)
	c.answers(t, "kube-apiserver", server, client, c.Config.Host+"/readyz")
	t.Logf("kube-apiserver ready in %v", time.Since(began).Round(time.Millisecond))
}

func (c *ControlPlane) url(port int) string {
	return "https://" + net.JoinHostPort(c.address, strconv.Itoa(port))
}

func (c *ControlPlane) startEtcd(t testing.TB, port int) {
	t.Helper()
	url := "https://127.0.0.1:" + strconv.Itoa(port)
	c.run(t, "etcd", "--name=kubetest", "--data-dir="+filepath.Join(c.Dir, "etcd"), "--unsafe-no-fsync",
		"--listen-peer-urls=http://127.0.0.1:0", "--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--client-cert-auth", "--trusted-ca-file="+c.authority.path("ca.crt"),
		"--cert-file="+c.authority.path("server.crt"), "--key-file="+c.authority.path("server.key"))
}

func (c *ControlPlane) startServer(t testing.TB, etcd, port int, flags []string) *cluster.Process {
	t.Helper()
	a := c.authority
	return c.run(t, "kube-apiserver", append([]string{
		"--etcd-servers=https://127.0.0.1:" + strconv.Itoa(etcd), "--etcd-cafile=" + a.path("ca.crt"),
		"--etcd-certfile=" + a.path("etcd.crt"), "--etcd-keyfile=" + a.path("etcd.key"),
		"--bind-address=" + c.address, "--advertise-address=" + c.address, "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + a.path("server.crt"), "--tls-private-key-file=" + a.path("server.key"), "--client-ca-file=" + a.path("ca.crt"),
		"--authorization-mode=Node,RBAC", "--allow-privileged", "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + a.path("accounts.pub"),
		"--service-account-signing-key-file=" + a.path("accounts.key"), "--profiling=false",
		"--kubelet-client-certificate=" + a.path("etcd.crt"), "--kubelet-client-key=" + a.path("etcd.key"),
	}, flags...)...)
}

// run starts a part of Kubernetes, whose output goes to the log of its name. It ends with the
// control plane.
func (c *ControlPlane) run(t testing.TB, program string, args ...string) *cluster.Process {
	t.Helper()
	cmd := exec.Command(filepath.Join(c.assets, "bin", program), args...)
	return c.runCommand(t, program, cmd)
}

func (c *ControlPlane) runCommand(t testing.TB, name string, cmd *exec.Cmd) *cluster.Process {
	t.Helper()
	log, err := os.OpenFile(c.logPath(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(t, err)
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log, log
	p, err := cluster.StartProcess(cmd, syscall.SIGKILL)
	must(t, err)
	c.parts = append(c.parts, p)
	return p
}

func (c *ControlPlane) logPath(name string) string { return filepath.Join(c.Dir, name+".log") }

// logEnd is the end of what a part has written.
func (c *ControlPlane) logEnd(name string) string {
	text, err := os.ReadFile(c.logPath(name))
	if err != nil {
		return err.Error()
	}
	return cluster.LastLines(text)
}

// logs shows the ends of all logs.
func (c *ControlPlane) logs(t testing.TB) {
	paths, _ := filepath.Glob(c.logPath("*"))
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), ".log")
		t.Logf("the end of the log of %s: %s", name, c.logEnd(name))
	}
}

// folder makes a folder that ends with the test, also when that is killed.
func folder(t testing.TB) string {
	t.Helper()
	path, err := os.MkdirTemp(cluster.TempDir(true), "stroppy-kubernetes-")
	must(t, err)
	if os.Getenv(insideName) != "" {
		return path // in memory that ends with the namespaces; containers use it for as long
	}
	// Those who write to the folder are killed at the same time.
	atEnd(t, `until rm -rf "$1" 2>/dev/null; do sleep 0.05; done`, path)
	return path
}

// atEnd runs a shell script with one argument when the test has ended, also when it is killed:
// the script's process waits for the end of its input, which the kernel sees to.
func atEnd(t testing.TB, script, argument string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "trap '' HUP INT QUIT TERM\nread -r end\n"+script, "sh", argument)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	system.OwnGroup(cmd.SysProcAttr) // no signal of a terminal is for it
	pipe, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		if err := errors.Join(pipe.Close(), cmd.Wait()); err != nil {
			t.Errorf("remove %s: %v", argument, err)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answers waits until a part of Kubernetes answers a URL with 200, or has ended.
func (c *ControlPlane) answers(t testing.TB, name string, p *cluster.Process, client *http.Client, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	must(t, cluster.RetryEvery(ctx, 50*time.Millisecond, func() error {
		select {
		case <-p.Done():
			cancel() // no try will succeed
			return fmt.Errorf("%s has ended: %w: %s", name, p.Err(), c.logEnd(name))
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answers %s: %s", url, answer.Status, text)
		}
		return err
	}))
}
