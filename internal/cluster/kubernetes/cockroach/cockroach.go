// Package cockroach is the kind k8s/cockroach: CockroachDB without TLS, by either of the
// operators of Cockroach Labs, whichever Kubernetes has: the public one, which has the resource
// in its version v1alpha1, or the newer one of the Helm charts, v1beta1. Neither's program could
// be run where this was written: what is applied was accepted by the schemas of both, and no more
// is known.
package cockroach

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/cockroach"
	"stroppy/internal/cluster/kubernetes"
)

const (
	port  = 26257
	group = "crdb.cockroachlabs.com"
	// clusterLabel has the cluster's name on the pods of the newer operator.
	clusterLabel = group + "/cluster"
	// Parameters of the newer operator: the region that it was installed for, and an account that
	// may read nodes, by which its pods learn where they are.
	region, account = "region", "service-account"
)

var (
	public = schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: "CrdbCluster"}
	newer  = schema.GroupVersionKind{Group: group, Version: "v1beta1", Kind: "CrdbCluster"}
)

// Kind is the kind as package kubernetes knows it.
func Kind() *kubernetes.Kind {
	const install = "https://raw.githubusercontent.com/cockroachdb/cockroach-operator/master/install/"
	return &kubernetes.Kind{
		Name: "cockroach", Port: port, Image: "docker.io/cockroachdb/cockroach", Version: "v25.2.2", Disk: "10Gi",
		Operators: []kubernetes.Operator{
			{Name: "cockroach-operator", Kind: public, Install: "kubectl apply -f " + install + "crds.yaml -f " + install + "operator.yaml", NameOf: nameOfPublic},
			{Name: "the CockroachDB operator of its Helm charts", Kind: newer, Install: "helm install crdb-operator oci://registry-1.docker.io/cockroachdb/cockroachdb-operator-chart",
				NameOf: func(labels map[string]string) string { return labels[clusterLabel] }},
		},
		Render: render, Pods: pods, Pod: pod, Status: status, Connect: connect,
		Unconnected: func(*kubernetes.Spec) kubernetes.Database { return new(database) },
		Params:      map[string]string{region: "us-east1", account: ""},
		Settings: func(name, value string) error {
			return cluster.Settings("CockroachDB", "._", nil, map[string]string{})(name, value)
		},
	}
}

func nameOfPublic(labels map[string]string) string {
	if labels[clusterLabel] != "" || labels["app.kubernetes.io/name"] != "cockroachdb" {
		return ""
	}
	return labels["app.kubernetes.io/instance"]
}

func isNewer(s *kubernetes.Spec) bool { return s.Operator != nil && s.Operator.Kind == newer }

func render(s *kubernetes.Spec) []*kubernetes.Object {
	if isNewer(s) {
		return []*kubernetes.Object{ofNewer(s)}
	}
	return []*kubernetes.Object{ofPublic(s)}
}

// ofPublic is a CrdbCluster of the public operator (apis/v1alpha1/cluster_types.go).
func ofPublic(s *kubernetes.Spec) *kubernetes.Object {
	claim := s.ClaimSpec()
	claim["volumeMode"] = "Filesystem"
	spec := map[string]any{
		"nodes": int64(s.Nodes), "tlsEnabled": false, "image": map[string]any{"name": s.Image, "pullPolicy": s.Pull},
		"dataStore": map[string]any{"pvc": map[string]any{"spec": claim}}, "additionalLabels": map[string]any{kubernetes.RunLabel: s.Name},
	}
	if amounts := s.Resources(); len(amounts) > 0 {
		spec["resources"] = amounts
	}
	return kubernetes.NewObject(public.GroupVersion().String(), public.Kind, s.Name, map[string]any{"spec": spec})
}

// ofNewer is a CrdbCluster of the newer operator, in one region
// (cockroachdb-parent/charts/cockroachdb/templates/crdb.yaml of cockroachdb/helm-charts).
func ofNewer(s *kubernetes.Spec) *kubernetes.Object {
	ours := map[string]any{"labels": map[string]any{kubernetes.RunLabel: s.Name}}
	container := map[string]any{"name": "cockroachdb", "imagePullPolicy": s.Pull, "resources": s.Resources()}
	node := map[string]any{
		"image":                                s.Image,
		"dataStore":                            map[string]any{"volumeClaimTemplate": map[string]any{"metadata": ours, "spec": s.ClaimSpec()}},
		"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Delete"},
		"podTemplate":                          map[string]any{"metadata": ours, "spec": map[string]any{"containers": []any{container}}},
	}
	if name := s.Params[account]; name != "" {
		node["podTemplate"].(map[string]any)["spec"].(map[string]any)["serviceAccountName"] = name
	}
	return kubernetes.NewObject(newer.GroupVersion().String(), newer.Kind, s.Name, map[string]any{"spec": map[string]any{
		"tlsEnabled": false, "regions": []any{map[string]any{"code": s.Params[region], "nodes": int64(s.Nodes)}},
		"template": map[string]any{"spec": node},
	}})
}

// pods are the labels that each operator gives its pods. Those of a StatefulSet are on its volume
// claims too.
func pods(s *kubernetes.Spec) labels.Set {
	if isNewer(s) {
		return labels.Set{clusterLabel: s.Name}
	}
	return labels.Set{"app.kubernetes.io/name": "cockroachdb", "app.kubernetes.io/instance": s.Name, "app.kubernetes.io/component": "database"}
}

// pod counts from 0 with the public operator. The newer one draws names.
func pod(s *kubernetes.Spec, node int) string {
	if isNewer(s) {
		return ""
	}
	return fmt.Sprintf("%s-%d", s.Name, node)
}

// status is the operator's own word: the condition Initialized of the public one
// (apis/v1alpha1/condition_types.go), the number of nodes that are ready of the newer one.
func status(ctx context.Context, a *kubernetes.API, s *kubernetes.Spec) error {
	if isNewer(s) {
		o, err := a.Get(ctx, newer, s.Name)
		if err != nil {
			return err
		}
		reconciled, _, _ := unstructured.NestedBool(o.Object, "status", "reconciled")
		if ready, _, _ := unstructured.NestedInt64(o.Object, "status", "readyNodes"); !reconciled || ready != int64(s.Nodes) {
			return fmt.Errorf("its operator says that %d of %d nodes are ready, reconciled: %t", ready, s.Nodes, reconciled)
		}
		return nil
	}
	o, err := a.Get(ctx, public, s.Name)
	if err != nil {
		return err
	}
	if ready, _ := kubernetes.Condition(o, "Initialized"); !ready {
		said, _, _ := unstructured.NestedString(o.Object, "status", "clusterStatus")
		return fmt.Errorf("its operator has not initialized it: it says %q", said)
	}
	return nil
}

// database is CockroachDB as its clients know it.
type database struct {
	spec    *kubernetes.Spec
	servers []cockroach.Server
}

func connect(ctx context.Context, a *kubernetes.API, s *kubernetes.Spec, addresses []string) (kubernetes.Database, error) {
	kind := public
	if isNewer(s) {
		kind = newer
	}
	o, err := a.Get(ctx, kind, s.Name)
	if err != nil {
		return nil, err
	}
	if secure, _, _ := unstructured.NestedBool(o.Object, "spec", "tlsEnabled"); secure {
		return nil, fmt.Errorf("the CrdbCluster %s has TLS, so that its clients need certificates, which are not made here: give its address and certificates with --db", s.Name)
	}
	d := &database{spec: s}
	for i, address := range addresses {
		d.servers = append(d.servers, cockroach.Server{Name: fmt.Sprintf("n%d", i), Address: address})
	}
	for _, one := range s.Settings {
		if err := cluster.Retry(ctx, func() error { return d.servers[0].Set(ctx, one[0], one[1]) }); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// URL implements kubernetes.Database, as the methods below do.
func (d *database) URL() string {
	var all []string
	for _, s := range d.servers {
		all = append(all, s.Address)
	}
	return cockroach.URLOf(strings.Join(all, ","))
}

func (d *database) NodeURL(i int) string { return cockroach.URLOf(d.servers[i].Address) }

// InsideURL implements kubernetes.Inside: both operators have a headless service of the
// cluster's name, in which pods find each other.
func (d *database) InsideURL() string {
	var all []string
	for _, pod := range d.spec.Pods {
		all = append(all, fmt.Sprintf("%s.%s:%d", pod, d.spec.Name, port))
	}
	return cockroach.URLOf(strings.Join(all, ","))
}

func (d *database) Close() error { return nil }

// Leader is always cluster.ErrNoLeader.
func (d *database) Leader(context.Context) (int, error) { return 0, cluster.ErrNoLeader }

// Now implements kubernetes.Clock.
func (d *database) Now(ctx context.Context, node int) (time.Time, error) {
	return d.servers[node].Now(ctx)
}

// Whole asks each server for all of them and for all replicas.
func (d *database) Whole(ctx context.Context) error { return cockroach.Healthy(ctx, d.servers) }
