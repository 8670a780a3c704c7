// Package foundationdb is the kind k8s/fdb: FoundationDB by its own operator, with one process per pod that takes any
// role, as in fdb:N. The operator's controller was tested with its own mock of FoundationDB. Real servers in pods
// were not tested.
package foundationdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/foundationdb"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/wait"
)

const (
	port = 4501 // of a process without TLS (docs/manual/warnings.md of the operator)
	// clusterLabel holds the cluster's name on all objects of the operator.
	clusterLabel = "foundationdb.org/fdb-cluster-name"
	// fsGroup is the group of the images' user, for volumes that belong to root.
	fsGroup = 4059
)

// Parameters of this kind.
const (
	redundancy = "redundancy" // single, double or triple
	storage    = "storage"    // ssd or memory
	// account is a service account that may read and change its pods. If it is given, the pods use the operator's
	// unified image, which needs one.
	account      = "service-account"
	sidecar      = "sidecar-image"
	coordinators = "coordinators" // form of the coordinators in the cluster file: names or addresses
)

var fdbCluster = schema.GroupVersionKind{Group: "apps.foundationdb.org", Version: "v1beta2", Kind: "FoundationDBCluster"}

// Client is the driver of FoundationDB.
type Client struct {
	Missing func() error // why this program has no driver, nil if it has one
	Open    func(ctx context.Context, url string) (Observer, error)
}

// Observer is a client's view of a cluster. Its methods are called one at a time.
type Observer interface {
	// State returns the driver's extract of the cluster's status as JSON, as in status.jsonl of a run.
	State(ctx context.Context) ([]byte, error)
	Close() error
}

// Kind returns the kind for package kubernetes. It asks for the health through client.
func Kind(client Client) *kubernetes.Kind {
	const config = "https://raw.githubusercontent.com/FoundationDB/fdb-kubernetes-operator/main/config/"
	const definition = " -f " + config + "crd/bases/apps.foundationdb.org_foundationdb"
	return &kubernetes.Kind{
		Name: "fdb", Port: port, Direct: true, Version: "7.3.69", Disk: "10Gi",
		Operators: []kubernetes.Operator{{
			Name: "fdb-kubernetes-operator", Kind: fdbCluster,
			Install: "kubectl apply --server-side" + definition + "clusters.yaml" + definition + "backups.yaml" + definition + "restores.yaml" +
				" && kubectl apply --namespace NAMESPACE -f " + config + "samples/deployment.yaml",
			Labels: labels.Set{clusterLabel: "NAME"}, Render: render, Status: status,
		}},
		Connect: func(ctx context.Context, a *kubernetes.API, s *kubernetes.Spec, _ []string) (kubernetes.Database, error) {
			return connect(ctx, a, s, client)
		},
		Unconnected: func(s *kubernetes.Spec) kubernetes.Database {
			return (&database{spec: s, lock: wait.NewLock()}).withCopies(s.Params[redundancy])
		},
		Params:   map[string]string{redundancy: "", storage: "ssd", account: "", sidecar: "", coordinators: "names"},
		Settings: kubernetes.PlainSettings("FoundationDB", "_"),
		Check: func(s *kubernetes.Spec) error {
			if err := check(s); err != nil {
				return err
			}
			if err := client.Missing(); err != nil {
				return host.MissingError{Hint: err.Error()}
			}
			return nil
		},
	}
}

// check refuses wrong parameters and sets the default redundancy.
func check(s *kubernetes.Spec) error {
	refuse := func(param, reason string) error { return &cluster.ParamError{Param: param, Reason: reason} }
	if s.Params[redundancy] == "" {
		s.Params[redundancy] = foundationdb.Redundancy(s.Nodes)
	}
	if err := foundationdb.CheckRedundancy(s.Params[redundancy], s.Nodes); err != nil {
		return refuse(redundancy, err.Error())
	}
	for param, values := range map[string][]string{storage: {"ssd", "memory"}, coordinators: {"names", "addresses"}} {
		if err := cluster.OneOf(func(string) {}, values...)(s.Params[param]); err != nil {
			return refuse(param, err.Error())
		}
	}
	if s.Params[sidecar] != "" && s.Params[account] != "" {
		return refuse(sidecar, "with a service account there is only one image: use image=")
	}
	for param, image := range map[string]string{"image": s.Image, sidecar: s.Params[sidecar]} {
		if _, tag := splitImage(image); image != "" && (tag == "" || strings.Contains(image, "@")) {
			return refuse(param, "it must be an image with its tag, such as registry.example/foundationdb:7.3.69")
		}
	}
	if strings.Trim(s.Version, "0123456789.") != "" || strings.Count(s.Version, ".") != 2 {
		return refuse("version", "it must be a version of FoundationDB with three numbers, such as 7.3.69")
	}
	return nil
}

// splitImage splits an image into its name and its tag.
func splitImage(image string) (base, tag string) {
	at := strings.LastIndexByte(image, ':')
	if at <= strings.LastIndexByte(image, '/') {
		return image, ""
	}
	return image[:at], image[at+1:]
}

// render returns the operator's resource (docs/cluster_spec.md of the operator). Each pod is its own zone. So N nodes
// may share machines, which the scheduler avoids if it can.
func render(s *kubernetes.Spec) []*kubernetes.Object {
	chosen := map[string]any{clusterLabel: s.Name}
	var knobs []any
	for _, one := range s.Settings {
		knobs = append(knobs, "knob_"+one[0]+"="+one[1])
	}
	imageType := "split"
	if s.Params[account] != "" {
		imageType = "unified"
	}
	return []*kubernetes.Object{s.Resource(map[string]any{
		"version":               s.Version,
		"databaseConfiguration": map[string]any{"redundancy_mode": s.Params[redundancy], "storage_engine": s.Params[storage]},
		"processCounts":         map[string]any{"storage": int64(s.Nodes), "log": int64(-1), "stateless": int64(-1)},
		"faultDomain":           map[string]any{"key": "foundationdb.org/none"},
		"routing":               map[string]any{"useDNSInClusterFile": s.Params[coordinators] == "names"},
		"labels": map[string]any{
			"matchLabels": chosen, "resourceLabels": map[string]any{clusterLabel: s.Name, kubernetes.RunLabel: s.Name},
		},
		"imageType": imageType, "mainContainer": container(s.Image), "sidecarContainer": container(s.Params[sidecar]),
		"processes": map[string]any{"general": map[string]any{
			"podTemplate": podTemplate(s, chosen), "volumeClaimTemplate": map[string]any{"spec": s.ClaimSpec()}, "customParameters": kubernetes.Given(knobs),
		}},
	})}
}

// container returns the settings of a container with an image, or nil for the operator's image.
func container(image string) any {
	if image == "" {
		return nil
	}
	base, tag := splitImage(image)
	return map[string]any{"imageConfigs": []any{map[string]any{"baseImage": base, "tag": tag}}}
}

// podTemplate returns the template that the operator completes.
func podTemplate(s *kubernetes.Spec, chosen map[string]any) map[string]any {
	container := func(name string) map[string]any {
		return map[string]any{"name": name, "imagePullPolicy": s.Pull}
	}
	server := container("foundationdb")
	if server["resources"] = s.Resources(); s.CPU == "" && s.Memory == "" {
		// The operator uses this for a container without limits (docs/manual/warnings.md).
		server["resources"] = map[string]any{"requests": map[string]any{"org.foundationdb/empty": "0"}}
	}
	spec := map[string]any{
		"containers":      []any{server, container("foundationdb-kubernetes-sidecar")},
		"securityContext": map[string]any{"fsGroup": int64(fsGroup)},
		"affinity":        kubernetes.Apart(chosen),
	}
	if name := s.Params[account]; name != "" {
		spec["serviceAccountName"] = name
	} else {
		spec["automountServiceAccountToken"] = false
		spec["initContainers"] = []any{container("foundationdb-kubernetes-init")}
	}
	return map[string]any{"spec": spec}
}

// status returns an error if the operator still has work to do (api/v1beta2/foundationdbcluster_types.go,
// CheckReconciliation). The reached generation does not change when a server fails. Work that has begun since has its
// generation in a field of its own.
func status(o *kubernetes.Object, _ *kubernetes.Spec) error {
	health, _, _ := unstructured.NestedMap(o.Object, "status", "health")
	generations, _, _ := unstructured.NestedMap(o.Object, "status", "generations")
	var left []string
	for name, of := range generations {
		if n, ok := of.(int64); ok && n != 0 && name != "reconciled" && name != "hasPendingRemoval" {
			left = append(left, name)
		}
	}
	reached, _ := generations["reconciled"].(int64)
	switch {
	case health["available"] != true:
		return errors.New("its operator does not report the database as available")
	case health["fullReplication"] != true || health["healthy"] != true:
		return errors.New("its operator reports that the data lack copies")
	case len(left) > 0:
		return fmt.Errorf("its operator has not finished: %s", strings.Join(slices.Sorted(slices.Values(left)), ", "))
	case reached != o.GetGeneration():
		return fmt.Errorf("its operator has reached generation %d of %d", reached, o.GetGeneration())
	}
	return nil
}
