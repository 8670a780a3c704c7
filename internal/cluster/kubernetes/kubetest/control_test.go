package kubetest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"stroppy/internal/cluster/wait"
)

var (
	spaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	cuts   = schema.GroupVersionResource{Group: "chaos-mesh.org", Version: "v1alpha1", Resource: "networkchaos"}
)

// TestControlPlaneAuthorizesAndValidates checks that the API server authorizes and validates like a real cluster.
func TestControlPlaneAuthorizesAndValidates(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := Start(t)
	ctx := t.Context()
	here, there := c.Namespace(t), c.Namespace(t)

	t.Run("rights", func(t *testing.T) {
		client := clientOf(t, c.Account(t, here, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}))
		if _, err := client.Resource(pods).Namespace(here).List(ctx, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := client.Resource(pods).Namespace(there).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("pods of another namespace: %v, want forbidden", err)
		}
		if err := client.Resource(pods).Namespace(here).Delete(ctx, "any", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("deletion: %v, want forbidden", err)
		}
	})
	t.Run("rights over a cluster", func(t *testing.T) {
		client := clientOf(t, c.ClusterAccount(t, here, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}))
		if _, err := client.Resource(spaces).Get(ctx, there, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := client.Resource(spaces).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("all namespaces: %v, want forbidden", err)
		}
	})
	t.Run("definitions", func(t *testing.T) {
		c.Define(t, Faults, MongoDB, CockroachDB)
		cut := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "chaos-mesh.org/v1alpha1", "kind": "NetworkChaos", "metadata": map[string]any{"name": "cut"},
			"spec": map[string]any{"action": "no such action", "mode": "all", "selector": map[string]any{}},
		}}
		_, err := c.Client.Resource(cuts).Namespace(here).Create(ctx, cut, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("an action that is none: %v, want invalid", err)
		}
		must(t, unstructured.SetNestedField(cut.Object, "partition", "spec", "action"))
		_, err = c.Client.Resource(cuts).Namespace(here).Create(ctx, cut, metav1.CreateOptions{})
		must(t, err)
	})
}

// clientOf returns a client with the rights of a kubeconfig.
func clientOf(t *testing.T, kubeconfig string) dynamic.Interface {
	t.Helper()
	config, err := loadKubeconfig(kubeconfig)
	must(t, err)
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return client
}

// TestKilledTestLeavesNoControlPlane checks that a killed test leaves nothing behind.
func TestKilledTestLeavesNoControlPlane(t *testing.T) {
	const name = "KUBETEST_KILLED"
	if os.Getenv(name) != "" {
		os.Stdout.WriteString("folder " + Start(t).Dir + "\n")
		time.Sleep(time.Hour)
	}
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	assets(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledTestLeavesNoControlPlane$")
	cmd.Env = append(os.Environ(), name+"=yes")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	dir := ""
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
		dir, _ = strings.CutPrefix(lines.Text(), "folder ")
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	if dir == "" {
		t.Fatal("the test that is to be killed has not started Kubernetes")
	}
	must(t, wait.Until(t.Context(), startLimit, func() error {
		if users := processesOf(t, dir); len(users) > 0 {
			return fmt.Errorf("%s use %s yet", strings.Join(users, ", "), dir)
		}
		if _, err := os.Stat(dir); err == nil {
			return fmt.Errorf("%s still exists", dir)
		}
		return nil
	}))
}

// processesOf lists the processes whose command names a folder.
func processesOf(t *testing.T, dir string) (list []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, p := range paths {
		if text, err := os.ReadFile(p); err == nil && bytes.Contains(text, []byte(dir)) {
			list = append(list, filepath.Dir(p))
		}
	}
	return list
}
