package kubetest

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MariaDBImage is the name of MariaDB's image.
const MariaDBImage = "stroppy.test/mariadb:debian"

// transferTools are the programs that Galera's scripts for a state transfer by rsync call, if installed.
var transferTools = []string{
	"awk", "basename", "bash", "cat", "cksum", "cut", "date", "dirname", "env", "find", "getent", "grep", "head", "hostname", "id", "kill", "ls", "lsof", "mkdir",
	"mktemp", "mv", "my_print_defaults", "nproc", "printf", "ps", "readlink", "rm", "rsync", "sed", "sh", "sleep", "ss", "stat", "sync", "tail", "timeout", "touch",
	"tr", "uname", "wc", "xargs",
}

// MariaDB returns an image MariaDBImage with Debian's MariaDB and Galera of this machine, for the user 65532. The
// test is skipped if they are missing.
func MariaDB(t testing.TB) Image {
	t.Helper()
	programs := []string{"/usr/sbin/mariadbd", "/usr/lib/libgalera_smm.so"}
	scripts := []string{"/usr/bin/wsrep_sst_rsync", "/usr/bin/wsrep_sst_common"}
	needPackages(t, "mariadb", map[string]string{programs[0]: "mariadb-server", programs[1]: "galera-4", "/usr/bin/rsync": "rsync"})
	for _, tool := range transferTools {
		if path, err := exec.LookPath(tool); err == nil {
			programs = append(programs, path)
		}
	}
	return imageOf(t, MariaDBImage, "mysql", "/usr/sbin:/usr/bin:/sbin:/bin", programs, append(scripts, "/usr/share/mysql"))
}

// serveMariaDB starts a Galera server on the volume of a pod. The first server of a new cluster creates it. Every
// other server gets its data from the cluster.
const serveMariaDB = `set -eu
texts=/usr/share/mysql
flags="--no-defaults --datadir=/data/db --socket=/tmp/s --pid-file=/tmp/p --tmpdir=/tmp --lc-messages-dir=$texts --bind-address=0.0.0.0 --skip-name-resolve
 --innodb-buffer-pool-size=32M --performance-schema=OFF --binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=ON --wsrep-provider=/usr/lib/libgalera_smm.so
 --wsrep-cluster-name=test --wsrep-node-name=$POD --wsrep-node-address=$ADDRESS --wsrep-sst-method=rsync --wsrep-cluster-address=gcomm://$MEMBERS"
if [ ! -e /data/db ]; then
	mkdir /data/db
	{
		printf 'CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n'
		cat $texts/mysql_system_tables.sql $texts/mysql_performance_tables.sql $texts/mysql_system_tables_data.sql
		printf "DELETE FROM mysql.global_priv WHERE User = 'root';\nREPLACE INTO mysql.global_priv VALUES ('%%', 'root', JSON_OBJECT('access', 18446744073709551615, 'plugin', 'mysql_native_password', 'authentication_string', PASSWORD('$PASSWORD')));\n"
	} | mariadbd --no-defaults --bootstrap --datadir=/data/db --tmpdir=/tmp --lc-messages-dir=$texts
	[ "${POD##*-}" != 0 ] || flags="$flags --wsrep-new-cluster"
else
	flags="$flags --wsrep-start-position=$(mariadbd $flags --wsrep-recover 2>&1 | sed -n 's/.*Recovered position: *//p')"
fi
exec mariadbd $flags --wsrep-provider-options="gcache.size=32M;pc.recovery=FALSE"
`

var (
	mariadbs = schema.GroupVersionResource{Group: "k8s.mariadb.com", Version: "v1alpha1", Resource: "mariadbs"}
	bindings = schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: "clusterrolebindings"}
	pods     = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	sets     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	services = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// OperateMariaDB stands in for mariadb-operator until the test ends. It makes the objects of the first MariaDB in a
// namespace, as far as clients see them or removal leaves them behind. It reports the status. As with the operator,
// the database for tables is made when all servers are ready.
func (n *Node) OperateMariaDB(t *testing.T, space string) {
	ctx := t.Context()
	var o *unstructured.Unstructured
	select {
	case o = <-n.First(t, space, mariadbs):
	case <-ctx.Done():
		return
	}
	try := func(err error) {
		if err != nil && ctx.Err() == nil {
			t.Error("the stand-in for the operator:", err)
		}
	}
	name, owner := o.GetName(), metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID()}
	create := func(resource schema.GroupVersionResource, space, kind, name string, content map[string]any) {
		object := &unstructured.Unstructured{Object: content}
		object.SetAPIVersion(resource.GroupVersion().String())
		object.SetKind(kind)
		object.SetName(name)
		object.SetOwnerReferences([]metav1.OwnerReference{owner})
		_, err := n.Client.Resource(resource).Namespace(space).Create(ctx, object, metav1.CreateOptions{})
		try(err)
	}
	chosen := map[string]any{"app.kubernetes.io/name": "mariadb", "app.kubernetes.io/instance": name}
	inside := name + "-internal"
	if byPassword, _, _ := unstructured.NestedBool(o.Object, "spec", "galera", "agent", "basicAuth", "enabled"); byPassword {
		// It has no owner, so it is removed by its inherited labels.
		inherited, _, _ := unstructured.NestedStringMap(o.Object, "spec", "inheritMetadata", "labels")
		secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
		secret.SetName(name + "-agent-auth")
		secret.SetLabels(inherited)
		_, err := n.Client.Resource(secrets).Namespace(space).Create(ctx, secret, metav1.CreateOptions{})
		try(err)
	} else {
		// It belongs to no namespace, so it is not removed with its owner.
		create(bindings, "", "ClusterRoleBinding", name+":auth-delegator", map[string]any{
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": name, "namespace": space}},
			"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "system:auth-delegator"},
		})
	}
	create(services, space, "Service", inside, map[string]any{"spec": map[string]any{"clusterIP": "None", "publishNotReadyAddresses": true,
		"selector": chosen, "ports": []any{map[string]any{"port": int64(3306)}}}})
	create(sets, space, "StatefulSet", name, map[string]any{"spec": setOfMariaDB(o, inside, chosen)})
	for whole := false; ctx.Err() == nil; {
		ready, message := "False", "Not ready"
		if set, err := n.Client.Resource(sets).Namespace(space).Get(ctx, name, metav1.GetOptions{}); err == nil {
			if now, _, _ := unstructured.NestedInt64(set.Object, "status", "readyReplicas"); now == 3 {
				ready, message = "True", "Running"
			}
		}
		if now, err := n.Client.Resource(mariadbs).Namespace(space).Get(ctx, name, metav1.GetOptions{}); err == nil {
			now.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready, "message": message}}}
			_, _ = n.Client.Resource(mariadbs).Namespace(space).UpdateStatus(ctx, now, metav1.UpdateOptions{}) // it is repeated soon
		}
		if ready == "True" && !whole {
			err := n.makeDatabase(ctx, o, space)
			try(err)
			whole = err == nil
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// makeDatabase makes the database of a MariaDB through its first server.
func (n *Node) makeDatabase(ctx context.Context, o *unstructured.Unstructured, space string) error {
	pod, err := n.Client.Resource(pods).Namespace(space).Get(ctx, o.GetName()+"-0", metav1.GetOptions{})
	if err != nil {
		return err
	}
	of, _, _ := unstructured.NestedStringMap(o.Object, "spec", "rootPasswordSecretKeyRef")
	secret, err := n.Client.Resource(secrets).Namespace(space).Get(ctx, of["name"], metav1.GetOptions{})
	if err != nil {
		return err
	}
	text, _, _ := unstructured.NestedString(secret.Object, "data", of["key"])
	password, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net = "root", string(password), "tcp"
	config.Addr, _, _ = unstructured.NestedString(pod.Object, "status", "podIP")
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	name, _, _ := unstructured.NestedString(o.Object, "spec", "database")
	_, err = db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS `"+name+"`")
	return err
}

// setOfMariaDB returns the StatefulSet of a MariaDB.
func setOfMariaDB(o *unstructured.Unstructured, service string, chosen map[string]any) map[string]any {
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
				"name": "mariadb", "image": MariaDBImage, "imagePullPolicy": "Never", "command": []any{"sh", "-c", serveMariaDB},
				"env": []any{
					map[string]any{"name": "POD", "valueFrom": field("metadata.name")}, map[string]any{"name": "ADDRESS", "valueFrom": field("status.podIP")},
					map[string]any{"name": "MEMBERS", "value": members[1:]},
					map[string]any{"name": "PASSWORD", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": secret["name"], "key": secret["key"]}}},
				},
				"readinessProbe": map[string]any{"tcpSocket": map[string]any{"port": int64(3306)}, "periodSeconds": int64(1)},
				"volumeMounts":   []any{map[string]any{"name": "storage", "mountPath": "/data"}},
			}},
		}},
	}
}
