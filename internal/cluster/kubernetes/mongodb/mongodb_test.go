package mongodb

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/kubernetes/kubetest"
)

var (
	sets    = schema.GroupVersionResource{Group: community.Group, Version: community.Version, Resource: "mongodbcommunity"}
	secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// TestResourceFitsInstalledOperator checks, on a real API server with the operators' own schemas, which resources
// are made and how they are used. If both operators are installed, the community operator is used.
func TestResourceFitsInstalledOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	c := kubetest.Start(t)
	_, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 3, Params: url.Values{"kubeconfig": {c.Kubeconfig}, "namespace": {c.Namespace(t)}}}, "v1")
	if err == nil || !strings.Contains(err.Error(), "install MongoDB's community operator (`helm install") {
		t.Errorf("without an operator: %v", err)
	}
	t.Run("Percona", func(t *testing.T) { testPercona(t, c) })
	t.Run("community", func(t *testing.T) {
		c.Define(t, kubetest.MongoDB)
		t.Run("made", func(t *testing.T) { testMade(t, c) })
		t.Run("connect", func(t *testing.T) { testConnect(t, c) })
	})
}

// testMade checks that the community operator's schema accepts the resource, and that the resource is removed.
func testMade(t *testing.T, c *kubetest.ControlPlane) {
	start := func(namespace string) error {
		_, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 3, Params: url.Values{
			"kubeconfig": {c.Kubeconfig}, "namespace": {namespace}, "wait": {"15s"}, "cpu": {"2"}, "memory": {"4Gi"}, "storage-class": {"fast"},
			"set.storage.wiredTiger.engineConfig.cacheSizeGB": {"2"}, "set.net.compression.compressors": {"zstd"},
		}}, "v1")
		return err
	}
	namespace := c.Namespace(t)
	made := c.First(t, namespace, sets)
	if err := start(namespace); err == nil || !strings.Contains(err.Error(), "-0 does not exist") {
		t.Errorf("an operator that makes no pods: %v", err)
	}
	select {
	case o := <-made:
		settings, _, _ := unstructured.NestedMap(o.Object, "spec", "additionalMongodConfig")
		if settings["storage.wiredTiger.engineConfig.cacheSizeGB"] != int64(2) || settings["net.compression.compressors"] != "zstd" {
			t.Errorf("its settings are %v", settings)
		}
		claims, _, _ := unstructured.NestedSlice(o.Object, "spec", "statefulSet", "spec", "volumeClaimTemplates")
		if n, _, _ := unstructured.NestedInt64(o.Object, "spec", "members"); n != 3 || len(claims) != 2 {
			t.Errorf("it has %d members, and volumes %v", n, claims)
		}
		for _, one := range claims {
			if class, _, _ := unstructured.NestedString(one.(map[string]any), "spec", "storageClassName"); class != "fast" {
				t.Errorf("a volume of the class %q: %v", class, one)
			}
		}
	default:
		t.Error("no resource of the operator was applied")
	}
	c.Left(t, namespace, sets, secrets)
}

// testConnect checks that the members have the operator's names and are reached through the relays. It also checks
// that settings which clients cannot use are refused. The test writes the operator's status.
func testConnect(t *testing.T, c *kubetest.ControlPlane) {
	namespace, ctx := c.Namespace(t), t.Context()
	api, err := kubernetes.Connect(ctx, kubernetes.Access{Kubeconfig: c.Kubeconfig, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	s := &kubernetes.Spec{Name: "stroppy-1", Nodes: 2, Disk: "1Gi", Version: "8.0.4", Pull: "Never", Pods: []string{"stroppy-1-0", "stroppy-1-1"}, Operator: &Kind().Operators[0]}
	for _, o := range s.Operator.Render(s) {
		if _, err := api.Apply(ctx, s.Name, o); err != nil {
			t.Fatal(err)
		}
	}
	client := c.Client.Resource(sets).Namespace(namespace)
	o, err := client.Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.Object["status"] = map[string]any{"phase": "Running", "currentMongoDBMembers": int64(2), "currentStatefulSetReplicas": int64(2),
		"mongoUri": "mongodb://stroppy-1-1.stroppy-1-svc.x.svc.test:27017,stroppy-1-0.stroppy-1-svc.x.svc.test:27017/?replicaSet=stroppy-1"}
	if _, err := client.UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Healthy(ctx, api); err != nil {
		t.Errorf("it runs, and %v", err)
	}
	d, err := connect(ctx, api, s, []string{"127.0.0.1:1", "127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := api.Secret(ctx, secretName(s))
	if err != nil {
		t.Fatal(err)
	}
	const first, second = "stroppy-1-0.stroppy-1-svc.x.svc.test:27017", "stroppy-1-1.stroppy-1-svc.x.svc.test:27017"
	for what, c := range map[string]struct {
		url, host string
		query     url.Values
	}{
		"all":    {d.URL(), first + "," + second, url.Values{"replicaSet": {"stroppy-1"}, "authSource": {"admin"}, "via": {first + "=127.0.0.1:1," + second + "=127.0.0.1:2"}}},
		"alone":  {d.NodeURL(1), second, url.Values{"directConnection": {"true"}, "authSource": {"admin"}, "via": {first + "=127.0.0.1:1," + second + "=127.0.0.1:2"}}},
		"inside": {d.(kubernetes.Inside).InsideURL(), first + "," + second, url.Values{"replicaSet": {"stroppy-1"}, "authSource": {"admin"}}},
	} {
		_, rest, _ := strings.Cut(c.url, "://")
		account, rest, _ := strings.Cut(rest, "@")
		host, rest, _ := strings.Cut(rest, "/")
		database, query, _ := strings.Cut(rest, "?")
		values, err := url.ParseQuery(query)
		if err != nil || account != user+":"+secret[password] || host != c.host || database != name || values.Encode() != c.query.Encode() {
			t.Errorf("%s: it is %s", what, c.url)
		}
	}
	secure, err := client.Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(secure.Object, map[string]any{"enabled": true}, "spec", "security", "tls"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Update(ctx, secure, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(ctx, api, s, nil); err == nil || !strings.Contains(err.Error(), "has TLS") {
		t.Errorf("one with TLS: %v", err)
	}
}

// TestMembersAreFoundByTheirPods checks that all members are found by their pods.
func TestMembersAreFoundByTheirPods(t *testing.T) {
	const uri = "mongodb://a-1.a-svc:27017,a-10.a-svc:27017,a-0.a-svc:27017/?replicaSet=a"
	got, err := hostsOf(uri, []string{"a-0", "a-1", "a-10"})
	if want := []string{"a-0.a-svc:27017", "a-1.a-svc:27017", "a-10.a-svc:27017"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the hosts are %v, %v, want %v", got, err, want)
	}
	if _, err := hostsOf(uri, []string{"a-2"}); err == nil || !strings.Contains(err.Error(), "a-2") {
		t.Errorf("of a member that is not there: %v", err)
	}
	k := Kind()
	for i := range k.Operators {
		for j := range k.Operators { // both may be installed
			pods := (&kubernetes.Spec{Name: "bank", Operator: &k.Operators[i]}).Labels()
			if got := k.Operators[j].NameOf(pods); (got == "bank") != (i == j) {
				t.Errorf("by the pods of the operator %d it is called %q by the operator %d", i, got, j)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&database{}).Leader(ctx); err == nil {
		t.Error("of no members one leads")
	}
}
