package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/system"
	"stroppy/internal/scenario"
	"stroppy/internal/spelling"
)

// clusterKind is one kind of database cluster that this program can start.
type clusterKind struct {
	name  string
	about string
	nodes int // where no number is given
	most  int // that make sense on one machine
	start func(ctx context.Context, o cluster.Options) (cluster.Cluster, error)
}

// elsewhere says that the cluster's nodes are not on this machine.
func (k *clusterKind) elsewhere() bool { return strings.HasPrefix(k.name, scenario.InKubernetes) }

func clusterKinds() (kinds []clusterKind) {
	for _, d := range databases() {
		kinds = append(kinds, d.clusters...)
	}
	return kinds
}

// parseCluster reads KIND[:N][?PARAMS]. The parameters memory, loopback and layer are
// those of any kind (see clusterLines); the others are the kind's.
func parseCluster(text string) (clusterKind, cluster.Options, error) {
	var o cluster.Options
	name, query, _ := strings.Cut(text, "?")
	name, number, counted := strings.Cut(name, ":")
	var kind clusterKind
	var names []string
	for _, k := range clusterKinds() {
		if names = append(names, k.name); k.name == name {
			kind = k
		}
	}
	if len(names) == 0 {
		return kind, o, usagef("this build cannot start the cluster %q, because %s", text, leftOut)
	}
	if kind.name == "" {
		return kind, o, usagef("%q is no cluster that stroppy can start; %s", name, spelling.Hint(name, names, serverMeanings, "`stroppy list clusters` shows those that it can"))
	}
	o.Nodes = kind.nodes
	if counted {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > kind.most {
			return kind, o, usagef("the cluster %s has %q for its number of nodes: it must be from 1 to %d", text, number, kind.most)
		}
		o.Nodes = n
	}
	params, err := url.ParseQuery(query)
	if err != nil {
		return kind, o, usagef("the cluster %s cannot be read after its question mark: give name=value, with & between them", text)
	}
	o.Params = params
	if kind.elsewhere() { // they have parameters of their own
		return kind, o, nil
	}
	for name, to := range map[string]*bool{"memory": &o.InMemory, "loopback": &o.Loopback, "layer": &o.FaultFS} {
		if !params.Has(name) {
			continue
		}
		switch params.Get(name) {
		case "on", "":
			*to = true
		case "off":
		default:
			return kind, o, usagef("the cluster %s has %s=%s: it must be on or off", text, name, params.Get(name))
		}
		params.Del(name)
	}
	return kind, o, nil
}

// startCluster starts a cluster, with what variables of the environment say of its kind. An
// unknown parameter is an error of usage.
func startCluster(ctx context.Context, kind clusterKind, o cluster.Options, environ []string) (cluster.Cluster, error) {
	if err := system.Supported(); err != nil && !kind.elsewhere() {
		return nil, err
	}
	for of, variable := range clusterFolders {
		for _, entry := range environ {
			if name, value, _ := strings.Cut(entry, "="); name == variable && of[0] == kind.name && !o.Params.Has(of[1]) {
				o.Params.Set(of[1], value)
			}
		}
	}
	c, err := kind.start(ctx, o)
	var param *cluster.ParamError
	if errors.As(err, &param) {
		return nil, &exitError{exitUsage, err}
	}
	if err != nil {
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	return c, nil
}

// settingsOf are the entries of an environment without those that are of clusters.
func settingsOf(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(slices.Collect(maps.Values(clusterFolders)), name)
	})
}

func clusterLines() (lines []listLine) {
	for _, k := range clusterKinds() {
		form, about, _ := strings.Cut(k.about, "  ")
		lines = append(lines, listLine{fmt.Sprintf("%-42s ", form), about})
	}
	return append(lines, listLine{}, listLine{"", "Parameters of any kind but those of Kubernetes, after a question mark:"},
		listLine{"  memory=on    ", "the data in /dev/shm, where fsync costs nothing and means nothing"},
		listLine{"  loopback=on  ", "all nodes on 127.0.0.1, without network namespaces and the faults that need them"},
		listLine{"  layer=on     ", "a file system under every node's data that can fill up, be slow, and lose what was not synced"},
		listLine{"  bin=DIR      ", "the folder of the server's programs; without it those on PATH come before the system's"})
}
