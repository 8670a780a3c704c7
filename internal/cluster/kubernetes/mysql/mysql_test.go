package mysql

import (
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/kubernetes/kubetest"
)

var (
	mariadbs = schema.GroupVersionResource{Group: mariaDB.Group, Version: mariaDB.Version, Resource: "mariadbs"}
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// TestOperatorResourceIsAppliedAndRemoved checks that the operator's resource is applied with a password, and is
// removed. There is no operator, and its definition is minimal (testdata). So the test does not show that the
// operator's own schema accepts the resource.
func TestOperatorResourceIsAppliedAndRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := kubetest.Start(t)
	start := func(namespace string, nodes int) error {
		_, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: nodes, Params: url.Values{
			"kubeconfig": {c.Kubeconfig}, "namespace": {namespace}, "wait": {"15s"}, "cpu": {"2"}, "memory": {"4Gi"},
			"storage-class": {"fast"}, "version": {"11.8"}, "set.sync_binlog": {"1"},
		}}, "v1")
		return err
	}
	if err := start(c.Namespace(t), 3); err == nil || !strings.Contains(err.Error(), "install mariadb-operator (`helm install") {
		t.Errorf("without an operator: %v", err)
	}
	c.Define(t, definitionsPath(t))
	for nodes, want := range map[int]struct{ galera, even bool }{1: {}, 3: {galera: true}, 4: {galera: true, even: true}} {
		t.Run(strconv.Itoa(nodes), func(t *testing.T) {
			t.Parallel()
			namespace := c.Namespace(t)
			made, secret := c.First(t, namespace, mariadbs), c.First(t, namespace, secrets)
			if err := start(namespace, nodes); err == nil || !strings.Contains(err.Error(), "-0 does not exist") {
				t.Errorf("an operator that makes no pods: %v", err)
			}
			select {
			case o := <-made:
				spec, _, _ := unstructured.NestedMap(o.Object, "spec")
				enabled, _, _ := unstructured.NestedBool(spec, "galera", "enabled")
				even, _, _ := unstructured.NestedBool(spec, "replicasAllowEvenNumber")
				if withPassword, _, _ := unstructured.NestedBool(spec, "galera", "agent", "basicAuth", "enabled"); withPassword != want.galera {
					t.Errorf("of %d nodes the agents' clients have a password: %v, without which a ClusterRoleBinding stays", nodes, withPassword)
				}
				if spec["replicas"] != int64(nodes) || spec["image"] != "docker.io/library/mariadb:11.8" || enabled != want.galera || even != want.even {
					t.Errorf("of %d nodes it is %v", nodes, spec)
				}
				if tries, _, _ := unstructured.NestedInt64(spec, "startupProbe", "failureThreshold"); tries < 30 {
					t.Errorf("a server that copies what the others have is started anew after %d looks at it", tries)
				}
				if spec["myCnf"] != "[mariadb]\nsync_binlog=1\n" {
					t.Errorf("its settings are %q", spec["myCnf"])
				}
				of, _, _ := unstructured.NestedString(spec, "rootPasswordSecretKeyRef", "name")
				if s := <-secret; s.GetName() != of {
					t.Errorf("the password is in the secret %s, and it looks for %s", s.GetName(), of)
				} else if text, _, _ := unstructured.NestedString(s.Object, "data", password); len(text) < 26 {
					t.Errorf("the password has %d characters", len(text))
				}
			default:
				t.Error("no resource of the operator was applied")
			}
			c.Left(t, namespace, mariadbs, secrets)
		})
	}
}

func definitionsPath(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("testdata/operators.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestConnectionSettingsAreRejected checks that settings which connect the servers are refused, and values of
// several lines too.
func TestConnectionSettingsAreRejected(t *testing.T) {
	for setting, refused := range map[[2]string]bool{
		{"sync-binlog", "1"}: false, {"innodb_flush_log_at_trx_commit", "2"}: false,
		{"wsrep_cluster_address", "gcomm://"}: true, {"sync-binlog", "1\nport=1"}: true, {"port", "1"}: true,
	} {
		if err := Kind().Settings(setting[0], setting[1]); (err != nil) != refused {
			t.Errorf("%q: %v", setting, err)
		}
	}
}

// TestServerAddressesInsideAndOutsidePods checks the servers' addresses for clients outside and inside pods.
func TestServerAddressesInsideAndOutsidePods(t *testing.T) {
	d := &database{spec: &kubernetes.Spec{Name: "bank", Pods: []string{"bank-0", "bank-1"}}, name: "ledger", password: "p@ss", servers: []string{"127.0.0.1:1", "127.0.0.1:2"}}
	for got, want := range map[string]string{
		d.URL():       "mysql://root:p%40ss@127.0.0.1:1,127.0.0.1:2/ledger?tls=preferred&spread=true",
		d.NodeURL(1):  "mysql://root:p%40ss@127.0.0.1:2/ledger?tls=preferred",
		d.InsideURL(): "mysql://root:p%40ss@bank-0.bank-internal:3306,bank-1.bank-internal:3306/ledger?tls=preferred&spread=true",
	} {
		if got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
	if _, err := d.Leader(t.Context()); !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("with Galera one leads: %v", err)
	}
}
