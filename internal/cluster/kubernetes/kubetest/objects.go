package kubetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd/api"

	"stroppy/internal/cluster/wait"
)

// Custom resource definitions that scripts/kubernetes.sh has copied, as arguments of Define: a folder, or a pattern
// of files in a folder. An API server needs seconds for a definition of a megabyte, as some are. So tests without
// controllers should define only the kinds that they use.
const (
	ChaosMesh   = "chaos-mesh"                // all; its controllers need them to start
	Faults      = "chaos-mesh/*chaos"         // Chaos Mesh's kinds of faults: NetworkChaos and others
	MongoDB     = "mongodb"                   // the community operator: mongodbcommunity.mongodb.com/v1
	Percona     = "percona"                   // Percona's operator for MongoDB: psmdb.percona.com/v1
	CockroachDB = "cockroachdb/*crdbclusters" // the operator's clusters: crdb.cockroachlabs.com
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Define installs custom resource definitions and returns when the API server serves them. An argument is one of the
// constants above or the path of a YAML file. The test is skipped if the constant's files are missing.
func (c *ControlPlane) Define(t testing.TB, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	var made []string
	for _, name := range names {
		files := []string{name}
		if !filepath.IsAbs(name) && filepath.Ext(name) == "" {
			folder, pattern, some := strings.Cut(name, "/")
			if !some {
				pattern = "*"
			}
			files, _ = filepath.Glob(filepath.Join(c.assets, "crds", folder, pattern+".yaml"))
			if len(files) == 0 {
				t.Skipf("skipped engine: Kubernetes: STROPPY_TEST_KUBERNETES has no definitions of %s: run scripts/kubernetes.sh", name)
			}
		}
		for _, file := range files {
			objects, err := readYAML(file)
			must(t, err)
			for _, object := range objects {
				_, err := c.Client.Resource(definitions).Create(ctx, object, metav1.CreateOptions{})
				if err != nil && !apierrors.IsAlreadyExists(err) {
					t.Fatalf("define the contents of %s: %v", file, err)
				}
				made = append(made, object.GetName())
			}
		}
	}
	for _, name := range made {
		must(t, wait.RetryEvery(ctx, 200*time.Millisecond, func() error { return c.served(ctx, name) }))
	}
}

// served returns why the API server does not serve a definition yet.
func (c *ControlPlane) served(ctx context.Context, name string) error {
	object, err := c.Client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !conditionOf(object, "Established") {
		return fmt.Errorf("the definition %s is not established", name)
	}
	return c.listed(ctx, object)
}

// conditionOf reports whether a condition of an object is true.
func conditionOf(object *unstructured.Unstructured, name string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		if condition, ok := entry.(map[string]any); ok && condition["type"] == name {
			return condition["status"] == "True"
		}
	}
	return false
}

// listed lists objects of a definition. The API server serves them only some time after it reports so.
func (c *ControlPlane) listed(ctx context.Context, definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return err
	}
	for _, entry := range versions {
		version, ok := entry.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		resource := schema.GroupVersionResource{Group: group, Version: fmt.Sprint(version["name"]), Resource: plural}
		if _, err := c.Client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
	}
	return nil
}

// Create makes the objects of a YAML text in a namespace.
func (c *ControlPlane) Create(t testing.TB, namespace string, text []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "objects.yaml")
	must(t, os.WriteFile(path, text, 0o644))
	objects, err := readYAML(path)
	must(t, err)
	for _, o := range objects {
		c.create(t, o.GetAPIVersion(), o.GetKind(), strings.ToLower(o.GetKind())+"s", namespace, o.Object)
	}
}

// First sends the first object of a resource in a namespace as soon as it exists.
func (c *ControlPlane) First(t testing.TB, namespace string, resource schema.GroupVersionResource) <-chan *unstructured.Unstructured {
	seen := make(chan *unstructured.Unstructured, 1)
	ctx := t.Context()
	go func() {
		for ctx.Err() == nil {
			if list, err := c.Client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{}); err == nil && len(list.Items) > 0 {
				seen <- &list.Items[0]
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return seen
}

// Left fails the test if a namespace has objects of these resources.
func (c *ControlPlane) Left(t testing.TB, namespace string, resources ...schema.GroupVersionResource) {
	t.Helper()
	for _, r := range resources {
		list, err := c.Client.Resource(r).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for i := range list.Items {
			t.Errorf("an object is left: %s %s", r.Resource, list.Items[i].GetName())
		}
	}
}

// readYAML reads the documents of a YAML file.
func readYAML(path string) (list []*unstructured.Unstructured, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", path, err)
		case len(object.Object) > 0:
			list = append(list, object)
		}
	}
}

// Namespace makes a namespace with a new name. It is not removed, because without a controller a deleted namespace
// stays in deletion for ever.
func (c *ControlPlane) Namespace(t testing.TB) string {
	t.Helper()
	return c.create(t, "v1", "Namespace", "namespaces", "", map[string]any{"metadata": map[string]any{"generateName": "test-"}})
}

// Account makes a service account with only these rights in its namespace. It returns the path of a kubeconfig with a
// token of the account.
func (c *ControlPlane) Account(t testing.TB, namespace string, rules ...rbacv1.PolicyRule) (kubeconfig string) {
	t.Helper()
	return c.account(t, namespace, "Role", namespace, rules)
}

// ClusterAccount is like Account, with rights in all namespaces and on objects without a namespace.
func (c *ControlPlane) ClusterAccount(t testing.TB, namespace string, rules ...rbacv1.PolicyRule) (kubeconfig string) {
	t.Helper()
	return c.account(t, namespace, "ClusterRole", "", rules)
}

// account makes a service account, a role, which is in a namespace or in none, and its binding.
func (c *ControlPlane) account(t testing.TB, namespace, role, within string, rules []rbacv1.PolicyRule) (kubeconfig string) {
	t.Helper()
	name := c.create(t, "v1", "ServiceAccount", "serviceaccounts", namespace, map[string]any{"metadata": map[string]any{"generateName": "account-"}})
	list := make([]any, len(rules))
	for i := range rules {
		rule, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules[i])
		must(t, err)
		list[i] = rule
	}
	named := map[string]any{"name": name}
	c.create(t, authorization, role, strings.ToLower(role)+"s", within, map[string]any{"metadata": named, "rules": list})
	c.create(t, authorization, role+"Binding", strings.ToLower(role)+"bindings", within, map[string]any{
		"metadata": named,
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": name, "namespace": namespace}},
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": role, "name": name},
	})
	return c.AccountConfig(t, namespace, name)
}

const authorization = rbacv1.GroupName + "/v1"

// AccountConfig returns the path of a kubeconfig with a token of an existing service account.
func (c *ControlPlane) AccountConfig(t testing.TB, namespace, account string) (kubeconfig string) {
	t.Helper()
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": account},
		"spec": map[string]any{"expirationSeconds": int64((4 * time.Hour).Seconds())},
	}}
	accounts := c.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(namespace)
	request, err := accounts.Create(t.Context(), request, metav1.CreateOptions{}, "token")
	must(t, err)
	token, found, err := unstructured.NestedString(request.Object, "status", "token")
	if err != nil || !found {
		t.Fatalf("the API server gave no token for the service account %s: %v", account, err)
	}
	path := filepath.Join(c.Dir, namespace+"-"+account+".kubeconfig")
	c.authority.writeConfig(t, path, c.Config.Host, account, &api.AuthInfo{Token: token}, namespace)
	return path
}

// create makes an object, in a namespace if one is named, and returns its name.
func (c *ControlPlane) create(t testing.TB, version, kind, resource, namespace string, object map[string]any) (name string) {
	t.Helper()
	object["apiVersion"], object["kind"] = version, kind
	group, err := schema.ParseGroupVersion(version)
	must(t, err)
	made, err := c.Client.Resource(group.WithResource(resource)).Namespace(namespace).
		Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	must(t, err)
	return made.GetName()
}
