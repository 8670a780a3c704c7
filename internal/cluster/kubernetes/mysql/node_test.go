package mysql

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/kubernetes/kubetest"
	driver "stroppy/internal/db/mysql"
	"stroppy/internal/nemesis"
)

// image is Debian's MariaDB.
const image = "stroppy.test/mariadb:debian"

// serve starts a server of Galera on the volume of a pod: the first one of a new cluster where
// it is to be that, else one that gets what it lacks from the others.
const serve = `set -eu
texts=/usr/share/mysql
flags="--no-defaults --datadir=/data/db --socket=/tmp/s --pid-file=/tmp/p --tmpdir=/tmp --lc-messages-dir=$texts --bind-address=0.0.0.0 --skip-name-resolve
 --innodb-buffer-pool-size=32M --performance-schema=OFF --binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=ON --wsrep-provider=/usr/lib/libgalera_smm.so
 --wsrep-cluster-name=test --wsrep-node-name=$POD --wsrep-node-address=$ADDRESS --wsrep-sst-method=rsync --wsrep-cluster-address=gcomm://$MEMBERS"
if [ ! -e /data/db ]; then
	mkdir /data/db
	{
		printf 'CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n'
		cat $texts/mysql_system_tables.sql $texts/mysql_performance_tables.sql $texts/mysql_system_tables_data.sql
		printf "CREATE DATABASE stroppy;\nREPLACE INTO mysql.global_priv VALUES ('%%', 'root', JSON_OBJECT('access', 18446744073709551615, 'plugin', 'mysql_native_password', 'authentication_string', PASSWORD('$PASSWORD')));\n"
	} | mariadbd --no-defaults --bootstrap --datadir=/data/db --tmpdir=/tmp --lc-messages-dir=$texts
	[ "${POD##*-}" != 0 ] || flags="$flags --wsrep-new-cluster"
else
	flags="$flags --wsrep-start-position=$(mariadbd $flags --wsrep-recover 2>&1 | sed -n 's/.*Recovered position: *//p')"
fi
exec mariadbd $flags --wsrep-provider-options="gcache.size=32M;pc.recovery=FALSE"
`

var (
	sets     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	services = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// operate stands in for the operator: it makes what that makes of the first MariaDB in a
// namespace, as far as clients see it, and says in its status how it is, until the test ends.
func operate(t *testing.T, n *kubetest.Node, space string) {
	ctx := t.Context()
	var o *unstructured.Unstructured
	select {
	case o = <-n.First(t, space, mariadbs):
	case <-ctx.Done():
		return
	}
	try := func(err error) {
		if err != nil && ctx.Err() == nil {
			t.Error("the stand-in of the operator:", err)
		}
	}
	name, owner := o.GetName(), metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID()}
	create := func(resource schema.GroupVersionResource, kind, name string, spec map[string]any) {
		object := kubernetes.NewObject(resource.GroupVersion().String(), kind, name, map[string]any{"spec": spec})
		object.SetOwnerReferences([]metav1.OwnerReference{owner})
		_, err := n.Client.Resource(resource).Namespace(space).Create(ctx, object, metav1.CreateOptions{})
		try(err)
	}
	chosen := map[string]any{"app.kubernetes.io/name": "mariadb", "app.kubernetes.io/instance": name}
	inside := name + "-internal"
	create(services, "Service", inside, map[string]any{"clusterIP": "None", "publishNotReadyAddresses": true, "selector": chosen,
		"ports": []any{map[string]any{"port": int64(port)}}})
	create(sets, "StatefulSet", name, setOf(o, inside, chosen))
	for ctx.Err() == nil {
		ready, message := "False", "Not ready"
		if set, err := n.Client.Resource(sets).Namespace(space).Get(ctx, name, metav1.GetOptions{}); err == nil {
			if now, _, _ := unstructured.NestedInt64(set.Object, "status", "readyReplicas"); now == 3 {
				ready, message = "True", "Running"
			}
		}
		if now, err := n.Client.Resource(mariadbs).Namespace(space).Get(ctx, name, metav1.GetOptions{}); err == nil {
			now.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready, "message": message}}}
			_, _ = n.Client.Resource(mariadbs).Namespace(space).UpdateStatus(ctx, now, metav1.UpdateOptions{}) // the next one is soon
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// setOf is the StatefulSet of a MariaDB.
func setOf(o *unstructured.Unstructured, service string, chosen map[string]any) map[string]any {
	name := o.GetName()
	secret, _, _ := unstructured.NestedMap(o.Object, "spec", "rootPasswordSecretKeyRef")
	members := ""
	for i := range 3 {
		members += fmt.Sprintf(",%s-%d.%s", name, i, service)
	}
	field := func(path string) map[string]any {
		return map[string]any{"fieldRef": map[string]any{"fieldPath": path}}
	}
	storage := map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
	return map[string]any{
		"serviceName": service, "replicas": int64(3), "selector": map[string]any{"matchLabels": chosen},
		"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Delete", "whenScaled": "Delete"},
		"volumeClaimTemplates":                 []any{map[string]any{"metadata": map[string]any{"name": "storage"}, "spec": storage}},
		"template": map[string]any{"metadata": map[string]any{"labels": chosen}, "spec": map[string]any{
			"terminationGracePeriodSeconds": int64(10), "securityContext": map[string]any{"fsGroup": int64(65532)},
			"containers": []any{map[string]any{
				"name": "mariadb", "image": image, "imagePullPolicy": "Never", "command": []any{"sh", "-c", serve},
				"env": []any{
					map[string]any{"name": "POD", "valueFrom": field("metadata.name")}, map[string]any{"name": "ADDRESS", "valueFrom": field("status.podIP")},
					map[string]any{"name": "MEMBERS", "value": members[1:]},
					map[string]any{"name": "PASSWORD", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": secret["name"], "key": secret["key"]}}},
				},
				"readinessProbe": map[string]any{"tcpSocket": map[string]any{"port": int64(port)}, "periodSeconds": int64(1)},
				"volumeMounts":   []any{map[string]any{"name": "storage", "mountPath": "/data"}},
			}},
		}},
	}
}

// TestOnNode holds on real servers in pods that they are reached, seen to be well, ended, and
// waited for until they are well again, and that all of it goes. Their operator is a stand-in.
func TestOnNode(t *testing.T) {
	kubetest.OnNode(t, func(t *testing.T, n *kubetest.Node) {
		n.Define(t, definitionsPath(t))
		space := n.Namespace(t)
		go operate(t, n, space)
		began := time.Now()
		c, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 3, Params: url.Values{
			"kubeconfig": {n.Kubeconfig}, "namespace": {space}, "wait": {"90s"},
		}}, "test")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("three servers well after %v, %s", time.Since(began).Round(time.Millisecond), c.(interface{ Deployment() string }).Deployment())
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		d, err := driver.Open(ctx, c.URL())
		if err != nil {
			t.Fatal(err)
		}
		info, err := d.Info(ctx)
		if err := errors.Join(err, d.Close()); err != nil || !strings.Contains(info.Name, "Galera") {
			t.Errorf("the clients see %s %s, %v", info.Name, info.Version, err)
		}
		if _, err := c.Leader(ctx); !errors.Is(err, cluster.ErrNoLeader) {
			t.Errorf("one leads: %v", err)
		}
		node := c.Nodes()[1]
		for name, end := range map[string]func(context.Context) error{"kill": node.(nemesis.Killer).Kill, "stop": node.(nemesis.Terminator).Terminate} {
			began := time.Now()
			if err := end(ctx); err != nil {
				t.Fatal(name, err)
			}
			if err := node.(nemesis.Restarter).Restart(ctx); err != nil {
				t.Fatal(name, err)
			}
			if err := c.WaitHealthy(ctx); err != nil {
				t.Fatal(name, err)
			}
			t.Logf("%s: well again after %v", name, time.Since(began).Round(time.Millisecond))
		}
		if _, empty := node.(nemesis.Replacer); empty {
			t.Error("a node that the operator makes is replaced")
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		n.Left(t, space, mariadbs, secrets, schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	}, kubetest.MariaDB(t, image))
}
