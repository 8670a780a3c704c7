// Package cockroach is the kind k8s/cockroach: CockroachDB without TLS. It uses the installed operator of Cockroach
// Labs: the public one, with the resource version v1alpha1, or the newer one of the Helm charts, v1beta1. Neither
// operator was tested here, but the schemas of both accept the resources.
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
	"stroppy/internal/cluster/wait"
)

const (
	port  = 26257
	group = "crdb.cockroachlabs.com"
	// clusterLabel holds the cluster's name on the pods of the newer operator.
	clusterLabel = group + "/cluster"
	// Parameters of the newer operator: the region for which it was installed, and a service account that may read
	// nodes. Its pods find their locality through this account.
	region, account = "region", "service-account"
)

var (
	public = schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: "CrdbCluster"}
	newer  = schema.GroupVersionKind{Group: group, Version: "v1beta1", Kind: "CrdbCluster"}
)

// Kind returns the kind for package kubernetes.
func Kind() *kubernetes.Kind {
	const install = "https://raw.githubusercontent.com/cockroachdb/cockroach-operator/master/install/"
	return &kubernetes.Kind{
		Name: "cockroach", Port: port, Image: "docker.io/cockroachdb/cockroach", Version: "v25.2.2", Disk: "10Gi",
		Operators: []kubernetes.Operator{{
			Name: "cockroach-operator", Kind: public, Install: "kubectl apply -f " + install + "crds.yaml -f " + install + "operator.yaml",
			Labels: labels.Set{
				"app.kubernetes.io/name": "cockroachdb", "app.kubernetes.io/instance": "NAME", "app.kubernetes.io/component": "database",
				clusterLabel: "",
			},
			PodPrefix: "NAME-", Render: ofPublic, Status: publicStatus,
		}, {
			Name: "the CockroachDB operator of its Helm charts", Kind: newer,
			Install: "helm install crdb-operator oci://registry-1.docker.io/cockroachdb/cockroachdb-operator-chart",
			Labels:  labels.Set{clusterLabel: "NAME"}, Render: ofNewer, Status: newerStatus,
		}},
		Connect: connect, Unconnected: func(*kubernetes.Spec) kubernetes.Database { return new(database) },
		Params:   map[string]string{region: "us-east1", account: ""},
		Settings: kubernetes.PlainSettings("CockroachDB", "._"),
	}
}

// ofPublic returns a CrdbCluster of the public operator (apis/v1alpha1/cluster_types.go).
func ofPublic(s *kubernetes.Spec) []*kubernetes.Object {
	claim := s.ClaimSpec()
	claim["volumeMode"] = "Filesystem"
	return []*kubernetes.Object{s.Resource(map[string]any{
		"nodes": int64(s.Nodes), "tlsEnabled": false, "image": map[string]any{"name": s.Image, "pullPolicy": s.Pull},
		"dataStore": map[string]any{"pvc": map[string]any{"spec": claim}}, "resources": kubernetes.Given(s.Resources()),
		"additionalLabels": map[string]any{kubernetes.RunLabel: s.Name},
	})}
}

// ofNewer returns a CrdbCluster of the newer operator, in one region
// (cockroachdb-parent/charts/cockroachdb/templates/crdb.yaml of cockroachdb/helm-charts).
func ofNewer(s *kubernetes.Spec) []*kubernetes.Object {
	ours := map[string]any{"labels": map[string]any{kubernetes.RunLabel: s.Name}}
	container := map[string]any{"name": "cockroachdb", "imagePullPolicy": s.Pull, "resources": s.Resources()}
	pod := map[string]any{"containers": []any{container}, "serviceAccountName": kubernetes.Given(s.Params[account])}
	return []*kubernetes.Object{s.Resource(map[string]any{
		"tlsEnabled": false, "regions": []any{map[string]any{"code": s.Params[region], "nodes": int64(s.Nodes)}},
		"template": map[string]any{"spec": map[string]any{
			"image":                                s.Image,
			"dataStore":                            map[string]any{"volumeClaimTemplate": map[string]any{"metadata": ours, "spec": s.ClaimSpec()}},
			"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Delete"},
			"podTemplate":                          map[string]any{"metadata": ours, "spec": pod},
		}},
	})}
}

// publicStatus requires the condition Initialized (apis/v1alpha1/condition_types.go).
func publicStatus(o *kubernetes.Object, _ *kubernetes.Spec) error {
	if ready, _ := kubernetes.Condition(o, "Initialized"); !ready {
		return fmt.Errorf("its operator has not initialized it: it reports %q", kubernetes.Text(o.Object, "status", "clusterStatus"))
	}
	return nil
}

// newerStatus requires that all nodes are ready.
func newerStatus(o *kubernetes.Object, s *kubernetes.Spec) error {
	reconciled := kubernetes.Flag(o.Object, "status", "reconciled")
	if ready, _, _ := unstructured.NestedInt64(o.Object, "status", "readyNodes"); !reconciled || ready != int64(s.Nodes) {
		return fmt.Errorf("its operator reports %d of %d nodes as ready, reconciled: %t", ready, s.Nodes, reconciled)
	}
	return nil
}

// database is a connected CockroachDB.
type database struct {
	spec    *kubernetes.Spec
	servers []cockroach.Server
}

func connect(ctx context.Context, a *kubernetes.API, s *kubernetes.Spec, addresses []string) (kubernetes.Database, error) {
	o, err := s.Made(ctx, a)
	if err != nil {
		return nil, err
	}
	if kubernetes.Flag(o.Object, "spec", "tlsEnabled") {
		return nil, fmt.Errorf("the CrdbCluster %s has TLS, and certificates for its clients are not made here: use its address and certificates with --db", s.Name)
	}
	d := &database{spec: s}
	for i, address := range addresses {
		d.servers = append(d.servers, cockroach.Server{Name: fmt.Sprintf("n%d", i), Address: address})
	}
	for _, one := range s.Settings {
		if err := wait.Retry(ctx, func() error { return d.servers[0].Set(ctx, one[0], one[1]) }); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *database) URL() string {
	var all []string
	for _, s := range d.servers {
		all = append(all, s.Address)
	}
	return cockroach.URLOf(strings.Join(all, ","))
}

func (d *database) NodeURL(i int) string { return cockroach.URLOf(d.servers[i].Address) }

// InsideURL implements kubernetes.Inside. Both operators have a headless service with the cluster's name, through
// which pods find each other.
func (d *database) InsideURL() string {
	return cockroach.URLOf(d.spec.Hosts(d.spec.Name, port))
}

// Leader always returns cluster.ErrNoLeader.
func (d *database) Leader(context.Context) (int, error) { return 0, cluster.ErrNoLeader }

// Now implements kubernetes.Clock.
func (d *database) Now(ctx context.Context, node int) (time.Time, error) {
	return d.servers[node].Now(ctx)
}

// Whole asks each server for all servers and all replicas.
func (d *database) Whole(ctx context.Context) error { return cockroach.Healthy(ctx, d.servers) }
