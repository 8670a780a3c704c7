package scenario

import (
	"strings"
	"testing"
)

// TestKubernetesSettingsBecomeClusterURL checks that --kubernetes and --node-resources become part of the
// cluster's URL. The written scenario is equivalent without the two settings.
func TestKubernetesSettingsBecomeClusterURL(t *testing.T) {
	for _, c := range []struct{ file, flags, cluster, resources string }{
		{"cluster=fdb:5 node-resources=cpu=1,memory=8G", "kubernetes=true", "k8s/fdb:5?cpu=1&memory=8G", ""},
		{"cluster=fdb:5 node-resources=cpu=1,memory=8G", "", "fdb:5", "cpu=1,memory=8G"},
		{"cluster=fdb:5 node-resources=cpu=1,memory=8G", "kubernetes=true node-resources=disk=5G", "k8s/fdb:5?disk=5G", ""},
		{"cluster=etcd", "kubernetes=true", "k8s/etcd", ""},
		{"cluster=k8s/etcd:3?cpu=2 node-resources=cpu=1,memory=8G", "", "k8s/etcd:3?cpu=2&memory=8G", ""},
		{"cluster=k8s/etcd:3", "kubernetes=true", "k8s/etcd:3", ""},
		{"cluster=fdb:5 node-resources=cpu=4 clients=4", "kubernetes=true scale-down=2", "k8s/fdb:5?cpu=2", ""},
	} {
		s, _, err := all().Merge(layer("file", c.file), layer("flag", c.flags))
		if err != nil || s.Cluster != c.cluster || s.Resources != c.resources || s.Kubernetes {
			t.Errorf("%+v: %v: %s, %s, %v", c, err, s.Cluster, s.Resources, s.Kubernetes)
			continue
		}
		written, err := all().File("scenario.yaml", s.YAML())
		if err != nil {
			t.Fatal(err)
		}
		if again, _, err := all().Merge(written); err != nil || again.Cluster != s.Cluster || again.Resources != s.Resources {
			t.Errorf("%+v: read again: %v: %s, %s", c, err, again.Cluster, again.Resources)
		}
	}
	for given, want := range map[string]string{
		"kubernetes=true":                               "no cluster to start",
		"node-resources=cpu=1":                          "--node-resources sets the resources of nodes",
		"cluster=etcd:3 node-resources=cpu=1":           "the run has no cluster there: name one with --cluster k8s/KIND:N, or add --kubernetes",
		"cluster=etcd:3 node-resources=cores=3":         `"cores" is none of cpu, disk, memory`,
		"cluster=etcd:3 node-resources=cpu=1,cpu=2":     "names cpu twice",
		"cluster=etcd:3 node-resources=cpu=lots":        `cpu is "lots": it must be an amount`,
		"cluster=etcd:3 node-resources=cpu=1,":          "is none of",
		"cluster=etcd:3 node-resources=cpu=1;memory=8G": "it must be an amount",
	} {
		if _, _, err := all().Merge(layer("flag", given)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}
