package mongodb

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
)

// percona is the resource of Percona's operator (pkg/apis/psmdb/v1/psmdb_types.go of version 1.20.1, also for the
// names below).
var percona = schema.GroupVersionKind{Group: "psmdb.percona.com", Version: "v1", Kind: "PerconaServerMongoDB"}

const (
	replicaSet = "rs0" // the only replica set of the resource
	// perconaVersion is the newest server of the operator's version 1.20.1.
	perconaVersion = "8.0.8-3"
	perconaImage   = "docker.io/percona/percona-server-mongodb:"
	// defaultSuffix ends the members' names (pkg/apis/psmdb/v1, DefaultDNSSuffix).
	defaultSuffix = "svc.cluster.local"
)

// perconaLabels are the labels of mongod's pods, which their StatefulSet also puts on the volume claims
// (pkg/naming/labels.go). perconaSecrets are the labels of the secrets of a resource, which have no owner. The
// operator's finalizer removes these secrets, but the operator makes them again after that.
var (
	perconaLabels = labels.Set{
		"app.kubernetes.io/name": "percona-server-mongodb", "app.kubernetes.io/instance": "NAME", "app.kubernetes.io/component": "mongod",
	}
	perconaSecrets = labels.Set{"app.kubernetes.io/managed-by": "percona-server-mongodb-operator", "app.kubernetes.io/instance": "NAME"}
)

// ofPercona returns a replica set without sharding. It may have fewer than three members, an even number of members,
// and no TLS, which the operator regards as unsafe. Members may share a machine, but the scheduler avoids this.
func ofPercona(s *kubernetes.Spec) []*kubernetes.Object {
	chosen := map[string]any{}
	for name, value := range s.Labels() {
		chosen[name] = value
	}
	members := map[string]any{
		"name": replicaSet, "size": int64(s.Nodes), "resources": s.Resources(), "labels": map[string]any{kubernetes.RunLabel: s.Name},
		"volumeSpec": map[string]any{"persistentVolumeClaim": s.ClaimSpec()},
		"affinity":   map[string]any{"advanced": kubernetes.Apart(chosen)},
	}
	if len(s.Settings) > 0 {
		file, _ := configuration(s.Settings) // verified by check
		text, _ := json.Marshal(file)        // it contains only texts, numbers and booleans
		members["configuration"] = string(text)
	}
	return []*kubernetes.Object{userSecret(s), s.Resource(map[string]any{
		"image": cmp.Or(s.Image, perconaImage+cmp.Or(s.Version, perconaVersion)), "imagePullPolicy": s.Pull,
		"replsets": []any{members}, "sharding": map[string]any{"enabled": false},
		"secrets": map[string]any{"users": s.Name + "-system-users"}, "tls": map[string]any{"mode": "disabled"},
		"unsafeFlags":    map[string]any{"tls": true, "replsetSize": true},
		"upgradeOptions": map[string]any{"apply": "disabled"},
		"users": []any{map[string]any{
			"name": user, "db": "admin", "passwordSecretRef": map[string]any{"name": secretName(s), "key": password},
			"roles": []any{map[string]any{"name": "root", "db": "admin"}},
		}},
	})}
}

// configuration returns mongod's configuration file, which may be JSON, with settings whose names have dots. It
// refuses a setting that is a section of another.
func configuration(settings [][2]string) (file map[string]any, err error) {
	file = map[string]any{}
	for _, one := range settings {
		path := strings.Split(one[0], ".")
		_, there, err := unstructured.NestedFieldNoCopy(file, path...)
		if err == nil && !there {
			err = unstructured.SetNestedField(file, scalar(one[1]), path...)
		}
		if err != nil || there {
			return nil, &cluster.ParamError{Param: "set." + one[0], Reason: "it conflicts with another setting: one is a section that contains the other; leave one of them out"}
		}
	}
	return file, nil
}

// check refuses settings that contradict each other.
func check(s *kubernetes.Spec) error {
	_, err := configuration(s.Settings)
	return err
}

// perconaMembers returns the name of the pods' replica set, and the members' names for each other by node
// (pkg/psmdb/service.go, GetAddr).
func perconaMembers(o *kubernetes.Object, pods []string) (set string, hosts []string, err error) {
	fail := func(what string) (string, []string, error) {
		return "", nil, unusable(fmt.Sprintf("the PerconaServerMongoDB %s %s: use the database's address with --db", o.GetName(), what))
	}
	if kubernetes.Flag(o.Object, "spec", "sharding", "enabled") {
		return fail("is sharded, and its clients need mongos")
	}
	if mode := kubernetes.Text(o.Object, "spec", "clusterServiceDNSMode"); mode != "" && mode != "Internal" {
		return fail("has members with names of the mode " + mode)
	}
	sets, _, _ := unstructured.NestedSlice(o.Object, "spec", "replsets")
	if len(sets) != 1 {
		return fail(fmt.Sprintf("has %d replica sets", len(sets)))
	}
	if only, _ := sets[0].(map[string]any); only["replsetOverrides"] != nil {
		return fail("has members with names of their own")
	}
	suffix := cmp.Or(kubernetes.Text(o.Object, "spec", "clusterServiceDNSSuffix"), defaultSuffix)
	for _, pod := range pods {
		service := pod[:max(0, strings.LastIndex(pod, "-"))] // name of the StatefulSet and of its service
		name, is := strings.CutPrefix(service, o.GetName()+"-")
		if !is || set != "" && set != name {
			return fail(fmt.Sprintf("has the pod %s, which is not in the same replica set", pod))
		}
		set = name
		hosts = append(hosts, fmt.Sprintf("%s.%s.%s.%s:%d", pod, service, o.GetNamespace(), suffix, port))
	}
	return set, hosts, nil
}

// perconaStatus requires AppStateReady.
func perconaStatus(o *kubernetes.Object, _ *kubernetes.Spec) error {
	return reports(o, "state", "ready")
}
