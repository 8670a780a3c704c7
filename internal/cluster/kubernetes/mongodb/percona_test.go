package mongodb

import (
	"encoding/json"
	"errors"
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
)

var perconaSets = schema.GroupVersionResource{Group: percona.Group, Version: percona.Version, Resource: "perconaservermongodbs"}

// leave makes a secret of the first resource in a namespace, with the operator's labels and without an owner. It
// makes the secret again when the resource is gone, as the operator does. The channel receives the error of each.
func leave(t *testing.T, c *kubetest.ControlPlane, namespace string) <-chan error {
	resources, made := c.Client.Resource(perconaSets).Namespace(namespace), c.Client.Resource(secrets).Namespace(namespace)
	ctx, said := t.Context(), make(chan error, 2)
	secret := func(of string) {
		o := kubernetes.NewSecret("internal-"+of+"-users", map[string]string{"x": "y"})
		o.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "percona-server-mongodb-operator", "app.kubernetes.io/instance": of})
		_, err := made.Create(ctx, o, metav1.CreateOptions{})
		said <- err
	}
	go func() {
		there := ""
		for ctx.Err() == nil {
			list, err := resources.List(ctx, metav1.ListOptions{})
			switch {
			case err == nil && len(list.Items) > 0 && there == "":
				there = list.Items[0].GetName()
				secret(there)
			case err == nil && len(list.Items) == 0 && there != "":
				time.Sleep(500 * time.Millisecond)
				secret(there)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return said
}

// testPercona checks the resources for Percona's operator and their use.
func testPercona(t *testing.T, c *kubetest.ControlPlane) {
	c.Define(t, kubetest.Percona)
	for name, test := range map[string]func(*testing.T, *kubetest.ControlPlane){"made": isMade, "strict": isKnown, "connect": connects} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

// isMade checks that the schema accepts the resource, and that the resource is removed with all that the operator
// leaves.
func isMade(t *testing.T, c *kubetest.ControlPlane) {
	namespace := c.Namespace(t)
	left := leave(t, c, namespace)
	made := c.First(t, namespace, perconaSets)
	_, err := kubernetes.Start(t.Context(), Kind(), cluster.Options{Nodes: 2, Params: url.Values{
		"kubeconfig": {c.Kubeconfig}, "namespace": {namespace}, "wait": {"8s"}, "cpu": {"2"}, "memory": {"4Gi"}, "storage-class": {"fast"},
		"set.storage.wiredTiger.engineConfig.cacheSizeGB": {"2"}, "set.net.compression.compressors": {"zstd"},
	}}, "v1")
	if err == nil || !strings.Contains(err.Error(), "-rs0-0 does not exist") {
		t.Errorf("an operator that makes no pods: %v", err)
	}
	select {
	case o := <-made:
		sets, _, _ := unstructured.NestedSlice(o.Object, "spec", "replsets")
		set, _ := sets[0].(map[string]any)
		class, _, _ := unstructured.NestedString(set, "volumeSpec", "persistentVolumeClaim", "storageClassName")
		text, _ := set["configuration"].(string)
		var file map[string]any
		if err := json.Unmarshal([]byte(text), &file); err != nil {
			t.Fatalf("its configuration is %q: %v", text, err)
		}
		compressors, _, _ := unstructured.NestedString(file, "net", "compression", "compressors")
		cache, _, _ := unstructured.NestedFloat64(file, "storage", "wiredTiger", "engineConfig", "cacheSizeGB")
		image, _, _ := unstructured.NestedString(o.Object, "spec", "image")
		if len(sets) != 1 || set["size"] != int64(2) || class != "fast" || compressors != "zstd" || cache != 2 || image != perconaImage+perconaVersion {
			t.Errorf("it is %v", o.Object["spec"])
		}
	default:
		t.Error("no resource of the operator was applied")
	}
	for range cap(left) {
		select {
		case err := <-left:
			if err != nil {
				t.Errorf("its stand-in made no secret: %v", err)
			}
		default:
			t.Error("its stand-in made no secret")
		}
	}
	c.Left(t, namespace, perconaSets, secrets)
}

// isKnown checks that the schema knows each rendered field, because unknown fields would be dropped silently.
func isKnown(t *testing.T, c *kubetest.ControlPlane) {
	namespace := c.Namespace(t)
	s := &kubernetes.Spec{Name: "bank", Nodes: 3, Disk: "1Gi", StorageClass: "fast", CPU: "1", Memory: "1Gi", Version: "7.0.18-11", Pull: "Never",
		Settings: [][2]string{{"net.maxIncomingConnections", "100"}}, Operator: &Kind().Operators[1]}
	client := c.Client.Resource(perconaSets).Namespace(namespace)
	strict := metav1.CreateOptions{FieldValidation: "Strict", DryRun: []string{"All"}}
	o := s.Operator.Render(s)[1]
	if _, err := client.Create(t.Context(), o, strict); err != nil {
		t.Errorf("its schema refuses it: %v", err)
	}
	if err := unstructured.SetNestedField(o.Object, true, "spec", "unsafeFlags", "everything"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), o, strict); err == nil {
		t.Error("a field that it does not know is taken")
	}
}

// connects checks the connection to a replica set that the operator has made, or that existed before. The test writes
// the operator's status.
func connects(t *testing.T, c *kubetest.ControlPlane) {
	namespace, ctx := c.Namespace(t), t.Context()
	api, err := kubernetes.Connect(ctx, kubernetes.Access{Kubeconfig: c.Kubeconfig, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	s := &kubernetes.Spec{Name: "stroppy-1", Nodes: 2, Disk: "1Gi", Version: communityVersion, Pull: "Never", Operator: &Kind().Operators[1]}
	for i := range s.Nodes {
		s.Pods = append(s.Pods, s.Pod(i))
	}
	for _, o := range s.Operator.Render(s) {
		if _, err := api.Apply(ctx, s.Name, o); err != nil {
			t.Fatal(err)
		}
	}
	client := c.Client.Resource(perconaSets).Namespace(namespace)
	say := func(state string) {
		t.Helper()
		o, err := client.Get(ctx, s.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o.Object["status"] = map[string]any{"state": state, "message": "rs0: waiting", "ready": int64(2), "size": int64(2)}
		if _, err := client.UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	say("initializing")
	if err := s.Healthy(ctx, api); err == nil || !strings.Contains(err.Error(), `"initializing" rs0: waiting`) {
		t.Errorf("it is being made, and its status is %v", err)
	}
	say("ready")
	if err := s.Healthy(ctx, api); err != nil {
		t.Errorf("it is ready, and %v", err)
	}
	secret, err := api.Secret(ctx, secretName(s))
	if err != nil {
		t.Fatal(err)
	}
	host := func(i int) string {
		return s.Pod(i) + ".stroppy-1-rs0." + namespace + ".svc.cluster.local:27017"
	}
	want := "mongodb://" + user + ":" + secret[password] + "@" + host(0) + "," + host(1) + "/" + name + "?authSource=admin&replicaSet=rs0"
	d, err := connect(ctx, api, s, []string{"127.0.0.1:1", "127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.(kubernetes.Inside).InsideURL(); got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
	if got := d.URL(); !strings.Contains(got, url.QueryEscape(host(0)+"=127.0.0.1:1,"+host(1)+"=127.0.0.1:2")) {
		t.Errorf("from outside it is %s", got)
	}
	change := func(value any, path ...string) {
		t.Helper()
		o, err := client.Get(ctx, s.Name, metav1.GetOptions{})
		if err == nil {
			err = unstructured.SetNestedField(o.Object, value, path...)
		}
		if err == nil {
			_, err = client.Update(ctx, o, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(has string) {
		t.Helper()
		if _, err := connect(ctx, api, s, nil); err == nil || !strings.Contains(err.Error(), has) {
			t.Errorf("connects: %v, and is to be refused: %s", err, has)
		}
	}
	s.Pods[1] = "stroppy-1-rs1-0"
	refused("not in the same replica set")
	set := func(overrides map[string]any) map[string]any {
		return map[string]any{"name": replicaSet, "size": int64(2), "replsetOverrides": overrides}
	}
	change([]any{set(map[string]any{s.Pod(0): map[string]any{"host": "elsewhere.test"}})}, "spec", "replsets")
	refused("members with names of their own")
	change([]any{set(nil), map[string]any{"name": "rs1", "size": int64(2)}}, "spec", "replsets")
	refused("has 2 replica sets")
	change("ServiceMesh", "spec", "clusterServiceDNSMode")
	refused("names of the mode ServiceMesh")
	change(true, "spec", "sharding", "enabled")
	refused("is sharded")
	change([]any{map[string]any{"name": user, "db": "bank", "passwordSecretRef": map[string]any{"name": secretName(s)}, "roles": []any{}}}, "spec", "users")
	refused("belongs to the database bank")
	change([]any{map[string]any{"name": user, "db": "bank", "roles": []any{}}}, "spec", "users")
	refused("has no passwordSecretRef")
	change([]any{}, "spec", "users")
	refused("has no user in spec.users")
	change("requireTLS", "spec", "tls", "mode")
	refused("has TLS")
	if err := client.Delete(ctx, s.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// TestParsePerconaSettings checks the parsing of names and settings.
func TestParsePerconaSettings(t *testing.T) {
	for text, want := range map[string]any{"2": int64(2), "0.25": 0.25, "8.0": "8.0", "true": true, "t": "t", "NaN": "NaN", "+Inf": "+Inf", "1e3": "1e3", "zstd": "zstd"} {
		if got := scalar(text); got != want {
			t.Errorf("the value of %s is %v (%T)", text, got, got)
		}
	}
	for _, c := range []struct {
		settings [][2]string
		param    string
	}{
		{[][2]string{{"net.port", "1"}, {"net.compression.compressors", "zstd"}}, ""},
		{[][2]string{{"net", "1"}, {"net.port", "1"}}, "set.net.port"},
		{[][2]string{{"net.port", "1"}, {"net", "1"}}, "set.net"},
	} {
		var refused *cluster.ParamError
		err := check(&kubernetes.Spec{Settings: c.settings})
		if (err != nil) != (c.param != "") || err != nil && (!errors.As(err, &refused) || refused.Param != c.param) {
			t.Errorf("%v: %v", c.settings, err)
		}
	}
}
