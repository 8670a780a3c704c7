// Package kubetest runs a real Kubernetes for tests. Start starts kube-apiserver and etcd on loopback without a node.
// Objects, schemas and rights are real, but no pod runs. OnNode adds a node that runs pods, in its own namespaces,
// and Chaos Mesh.
//
// scripts/kubernetes.sh builds the programs. STROPPY_TEST_KUBERNETES names their folder; without it the tests are
// skipped.
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
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/system"
	"stroppy/internal/cluster/wait"
)

// loopback is the address of a control plane without a node.
const loopback = "127.0.0.1"

// startLimit bounds the start of one component of Kubernetes on a busy machine.
const startLimit = 2 * time.Minute

// ControlPlane is etcd and kube-apiserver with RBAC. Both end with the test, even if the test is killed.
type ControlPlane struct {
	Dir        string // folder for files and logs, removed after the test
	Kubeconfig string // path of a kubeconfig with all rights
	Config     *rest.Config
	Client     dynamic.Interface

	assets    string // folder of the programs and definitions
	address   string // of the API server, without a port
	authority *authority
	parts     []*host.Process
}

// Start starts a control plane on 127.0.0.1. It has no controllers, no scheduler and no node.
func Start(t testing.TB) *ControlPlane {
	t.Helper()
	c := newControlPlane(t, loopback)
	c.start(t, "--disable-admission-plugins=ServiceAccount") // there is no controller that makes accounts
	return c
}

// needAssets returns the folder of the programs, or skips the test of an engine if some are missing.
func needAssets(t testing.TB, engine, hint string, programs ...string) string {
	t.Helper()
	folder := os.Getenv("STROPPY_TEST_KUBERNETES")
	if folder == "" {
		t.Skip("skipped engine: Kubernetes: set STROPPY_TEST_KUBERNETES to the folder that scripts/kubernetes.sh prints")
	}
	for _, p := range programs {
		if _, err := os.Stat(filepath.Join(folder, "bin", p)); err != nil {
			t.Skipf("skipped engine: %s: STROPPY_TEST_KUBERNETES has no %s: %s", engine, p, hint)
		}
	}
	return folder
}

// assets returns the folder of the programs, or skips the test if the programs of a control plane are missing.
func assets(t testing.TB) string {
	t.Helper()
	return needAssets(t, "Kubernetes", "build it with scripts/kubernetes.sh", "etcd", "kube-apiserver")
}

// needPackages skips the test of an engine if a file, or a program on PATH, of a Debian package is missing.
func needPackages(t testing.TB, engine string, packages map[string]string) {
	t.Helper()
	for file, of := range packages {
		_, err := os.Stat(file)
		if !filepath.IsAbs(file) {
			_, err = exec.LookPath(file)
		}
		if err != nil {
			t.Skipf("skipped engine: %s: install the Debian package %s", engine, of)
		}
	}
}

// newControlPlane makes the folder and the certificates.
func newControlPlane(t testing.TB, address string) *ControlPlane {
	t.Helper()
	c := &ControlPlane{assets: assets(t), address: address, Dir: folder(t)}
	c.authority = newAuthority(t, c.Dir, address)
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

// start starts etcd and the API server, and returns when the API server is ready.
func (c *ControlPlane) start(t testing.TB, flags ...string) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	etcd, err := host.FreePort(ctx)
	must(t, err)
	c.startEtcd(t, etcd)
	port := 443 // pods use this port, through the service kubernetes
	if c.address == loopback {
		port, err = host.FreePort(ctx)
		must(t, err)
	}
	server := c.startServer(t, etcd, port, flags)

	c.Kubeconfig = filepath.Join(c.Dir, "admin.kubeconfig")
	url := "https://" + net.JoinHostPort(c.address, strconv.Itoa(port))
	c.authority.writeKubeconfig(t, c.Kubeconfig, url, "admin", "system:masters")
	c.Config, err = loadKubeconfig(c.Kubeconfig)
	must(t, err)
	c.Client, err = dynamic.NewForConfig(c.Config)
	must(t, err)
	client, err := rest.HTTPClientFor(c.Config)
	must(t, err)
	c.answers(t, "kube-apiserver", server, client, c.Config.Host+"/readyz")
	t.Logf("kube-apiserver ready in %v", time.Since(began).Round(time.Millisecond))
}

func (c *ControlPlane) startEtcd(t testing.TB, port int) {
	t.Helper()
	url := "https://127.0.0.1:" + strconv.Itoa(port)
	c.run(t, "etcd", "--name=kubetest", "--data-dir="+filepath.Join(c.Dir, "etcd"), "--unsafe-no-fsync",
		"--listen-peer-urls=http://127.0.0.1:0", "--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--client-cert-auth", "--trusted-ca-file="+c.authority.path("ca.crt"),
		"--cert-file="+c.authority.path("server.crt"), "--key-file="+c.authority.path("server.key"))
}

func (c *ControlPlane) startServer(t testing.TB, etcd, port int, flags []string) *host.Process {
	t.Helper()
	a := c.authority
	return c.run(t, "kube-apiserver", append([]string{
		"--etcd-servers=https://127.0.0.1:" + strconv.Itoa(etcd), "--etcd-cafile=" + a.path("ca.crt"),
		"--etcd-certfile=" + a.path("etcd.crt"), "--etcd-keyfile=" + a.path("etcd.key"),
		"--bind-address=" + c.address, "--advertise-address=" + c.address, "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + a.path("server.crt"), "--tls-private-key-file=" + a.path("server.key"), "--client-ca-file=" + a.path("ca.crt"),
		"--authorization-mode=Node,RBAC", "--allow-privileged", "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + a.path("accounts.key"),
		"--service-account-signing-key-file=" + a.path("accounts.key"), "--profiling=false",
		"--kubelet-client-certificate=" + a.path("etcd.crt"), "--kubelet-client-key=" + a.path("etcd.key"),
	}, flags...)...)
}

// run starts a component of Kubernetes with a log of its name. It ends with the control plane.
func (c *ControlPlane) run(t testing.TB, program string, args ...string) *host.Process {
	t.Helper()
	cmd := exec.Command(filepath.Join(c.assets, "bin", program), args...)
	return c.runCommand(t, program, cmd)
}

func (c *ControlPlane) runCommand(t testing.TB, name string, cmd *exec.Cmd) *host.Process {
	t.Helper()
	log, err := os.OpenFile(c.logPath(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(t, err)
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log, log
	p, err := host.StartProcess(cmd, syscall.SIGKILL)
	must(t, err)
	c.parts = append(c.parts, p)
	return p
}

func (c *ControlPlane) logPath(name string) string { return filepath.Join(c.Dir, name+".log") }

// logEnd returns the end of a component's log.
func (c *ControlPlane) logEnd(name string) string {
	text, err := os.ReadFile(c.logPath(name))
	if err != nil {
		return err.Error()
	}
	return host.LastLines(text)
}

// logs logs the ends of all logs.
func (c *ControlPlane) logs(t testing.TB) {
	paths, _ := filepath.Glob(c.logPath("*"))
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), ".log")
		t.Logf("the end of the log of %s: %s", name, c.logEnd(name))
	}
}

// folder makes a folder that is removed after the test, even if the test is killed.
func folder(t testing.TB) string {
	t.Helper()
	path, err := os.MkdirTemp(cluster.TempDir(true), "stroppy-kubernetes-")
	must(t, err)
	if os.Getenv(insideName) != "" {
		return path // it is in memory that ends with the namespaces; containers use it until then
	}
	// The processes that write to the folder are killed at the same time.
	atEnd(t, `until rm -rf "$1" 2>/dev/null; do sleep 0.05; done`, path)
	return path
}

// atEnd runs a shell script with one argument after the test, even if the test is killed. The script's process waits
// for the end of its input, which the kernel closes.
func atEnd(t testing.TB, script, argument string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "trap '' HUP INT QUIT TERM\nread -r end\n"+script, "sh", argument)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	system.OwnGroup(cmd.SysProcAttr) // it must not receive signals of the terminal
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

// answers waits until a component answers a URL with status 200, or has ended.
func (c *ControlPlane) answers(t testing.TB, name string, p *host.Process, client *http.Client, url string) {
	t.Helper()
	c.await(t, name, p, func(ctx context.Context) error {
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
	})
}

// await waits until a component is ready, or has ended.
func (c *ControlPlane) await(t testing.TB, name string, p *host.Process, ready func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	must(t, wait.RetryEvery(ctx, 50*time.Millisecond, func() error {
		select {
		case <-p.Done():
			cancel() // no attempt will succeed
			return fmt.Errorf("%s has ended: %w: %s", name, p.Err(), c.logEnd(name))
		default:
			return ready(ctx)
		}
	}))
}
