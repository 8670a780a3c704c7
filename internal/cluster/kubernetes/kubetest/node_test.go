package kubetest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"stroppy/internal/cluster/wait"
)

// TestPodsRunOnNode checks that pods of a StatefulSet run, find each other by name, have volumes, and can be
// reached from here.
func TestPodsRunOnNode(t *testing.T) {
	OnNode(t, func(t *testing.T, n *Node) {
		space := n.Namespace(t)
		began := time.Now()
		startEtcd(t, n, space)
		n.waitFor(t, space, "db", 3)
		t.Logf("three members of etcd ready in %v", time.Since(began).Round(time.Millisecond))
		for i := range 3 {
			address := n.podAddress(t, space, fmt.Sprintf("db-%d", i))
			conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "2379"), time.Second)
			must(t, err)
			must(t, conn.Close())
		}
	}, etcdImage(t))
}

// etcdImage returns an image of the etcd that the API server uses.
func etcdImage(t *testing.T) Image {
	t.Helper()
	return Image{Name: "stroppy.test/etcd:3.6.8", Files: map[string]string{"/usr/local/bin/etcd": filepath.Join(assets(t), "bin", "etcd")}}
}

// startEtcd makes a cluster of three by the names of its pods. It is ready when each member answers.
func startEtcd(t *testing.T, n *Node, space string) {
	t.Helper()
	labels := map[string]any{"app": "db"}
	n.create(t, "v1", "Service", "services", space, map[string]any{
		"metadata": map[string]any{"name": "db"},
		"spec": map[string]any{"clusterIP": "None", "selector": labels, "publishNotReadyAddresses": true,
			"ports": []any{map[string]any{"port": int64(2379)}}},
	})
	n.create(t, "apps/v1", "StatefulSet", "statefulsets", space, map[string]any{
		"metadata": map[string]any{"name": "db"},
		"spec": map[string]any{
			"serviceName": "db", "replicas": int64(3), "podManagementPolicy": "Parallel", "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
				"terminationGracePeriodSeconds": int64(1),
				"securityContext": map[string]any{"runAsNonRoot": true, "runAsUser": int64(65532), "fsGroup": int64(65532),
					"seccompProfile": map[string]any{"type": "RuntimeDefault"}},
				"containers": []any{map[string]any{
					"name": "etcd", "image": "stroppy.test/etcd:3.6.8", "imagePullPolicy": "Never", "command": []any{"/usr/local/bin/etcd"},
					"args": []any{"--name=$(POD)", "--data-dir=/data/member", "--listen-client-urls=http://0.0.0.0:2379", "--listen-peer-urls=http://0.0.0.0:2380",
						"--advertise-client-urls=http://$(POD).db:2379", "--initial-advertise-peer-urls=http://$(POD).db:2380",
						"--initial-cluster=db-0=http://db-0.db:2380,db-1=http://db-1.db:2380,db-2=http://db-2.db:2380"},
					"env":            []any{map[string]any{"name": "POD", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}}},
					"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/health", "port": int64(2379)}, "periodSeconds": int64(1)},
					"volumeMounts":   []any{map[string]any{"name": "data", "mountPath": "/data"}},
				}},
			}},
			"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"},
				"spec": map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}}},
		},
	})
}

// waitFor waits until a number of pods of a StatefulSet are ready.
func (n *Node) waitFor(t *testing.T, space, name string, ready int64) {
	t.Helper()
	must(t, wait.Until(t.Context(), startLimit, func() error {
		set, err := n.Client.Resource(sets).Namespace(space).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now, _, _ := unstructured.NestedInt64(set.Object, "status", "readyReplicas"); now != ready {
			return fmt.Errorf("%d of %d pods are ready", now, ready)
		}
		return nil
	}))
}

// podAddress returns a pod's own address.
func (n *Node) podAddress(t *testing.T, space, name string) (address string) {
	t.Helper()
	must(t, wait.Until(t.Context(), startLimit, func() error {
		pod, err := n.Client.Resource(pods).Namespace(space).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if address, _, _ = unstructured.NestedString(pod.Object, "status", "podIP"); address == "" {
			return errors.New(name + " has no address")
		}
		return nil
	}))
	return address
}

// TestPostgreSQLImageRuns checks that an image of this machine's programs runs with their libraries.
func TestPostgreSQLImageRuns(t *testing.T) {
	const name = "stroppy.test/postgres:debian"
	OnNode(t, func(t *testing.T, n *Node) {
		space := n.Namespace(t)
		n.create(t, "v1", "Pod", "pods", space, map[string]any{
			"metadata": map[string]any{"name": "db"},
			"spec": map[string]any{"terminationGracePeriodSeconds": int64(1), "containers": []any{map[string]any{
				"name": "postgres", "image": name, "imagePullPolicy": "Never",
				"command": []any{"sh", "-c", "initdb -D /tmp/data -U postgres --auth=trust --locale=C -E UTF8 &&" +
					" echo 'host all all all trust' >>/tmp/data/pg_hba.conf && exec postgres -D /tmp/data -k /tmp -h 0.0.0.0"},
			}}},
		})
		address := n.podAddress(t, space, "db")
		must(t, wait.Until(t.Context(), startLimit, func() error {
			conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+address+"/postgres?sslmode=disable&connect_timeout=2")
			if err != nil {
				return err
			}
			defer conn.Close(t.Context())
			var version string
			if err := conn.QueryRow(t.Context(), "SELECT version()").Scan(&version); err != nil {
				return err
			}
			t.Log(version)
			return nil
		}))
	}, PostgreSQL(t, name))
}

// TestKilledTestLeavesNoNode checks that a killed test on a node leaves nothing behind. Control groups disappear
// when they have no processes.
func TestKilledTestLeavesNoNode(t *testing.T) {
	const name = "KUBETEST_NODE_KILLED"
	if os.Getenv(name) != "" {
		OnNode(t, func(t *testing.T, n *Node) {
			startEtcd(t, n, n.Namespace(t))
			time.Sleep(time.Hour)
		}, etcdImage(t))
		return
	}
	onNode(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledTestLeavesNoNode$")
	cmd.Env = append(os.Environ(), name+"=yes")
	must(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	folder := ""
	must(t, wait.Until(t.Context(), startLimit, func() error {
		scripts, err := filepath.Glob("/dev/shm/stroppy-kubernetes-*/node.sh")
		if err != nil {
			return err
		}
		for _, script := range scripts {
			if owned(t, cmd.Process.Pid, script) {
				folder = filepath.Dir(script)
			}
		}
		running, err := filepath.Glob("/sys/fs/cgroup/memory/" + filepath.Base(folder) + "/k8s.io/*")
		if err == nil && (folder == "" || len(running) < 4) {
			err = fmt.Errorf("%d containers run", len(running))
		}
		return err
	}))
	must(t, cmd.Process.Kill())
	must(t, wait.Until(t.Context(), startLimit, func() error {
		left, err := filepath.Glob("/sys/fs/cgroup/*/" + filepath.Base(folder))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%s still exists", left[0])
		}
		if _, errStat := os.Stat(folder); err == nil && errStat == nil {
			err = fmt.Errorf("%s still exists", folder)
		}
		return err
	}))
}

// owned reports whether a process has a child whose command names a file.
func owned(t *testing.T, parent int, file string) bool {
	t.Helper()
	for _, p := range processesOf(t, file) {
		if text, err := os.ReadFile(filepath.Join(p, "stat")); err == nil && strings.Contains(string(text), fmt.Sprintf(") S %d ", parent)) {
			return true
		}
	}
	return false
}
