package registry

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
	"stroppy/internal/exit"
	"stroppy/internal/scenario"
	"stroppy/internal/spelling"
)

// remover removes a cluster that was kept, and returns a line that says so.
type remover func(ctx context.Context, o cluster.Options) (line string, err error)

// ClusterKind is one kind of database cluster that this program can start.
type ClusterKind struct {
	Name  string
	About string
	nodes int // where no number is given
	most  int // that make sense on one machine
	start func(ctx context.Context, o cluster.Options) (cluster.Cluster, error)
}

// OfOwner reports whether the user started the servers, and an inventory describes them.
func (k *ClusterKind) OfOwner() bool { return k.Name+":" == scenario.OwnServers }

// Elsewhere reports whether the nodes of the cluster are on other machines.
func (k *ClusterKind) Elsewhere() bool { return strings.HasPrefix(k.Name, scenario.InKubernetes) }

func ClusterKinds() (kinds []ClusterKind) {
	for _, d := range Databases() {
		kinds = append(kinds, d.Clusters...)
	}
	return append(kinds, ownKinds()...)
}

// paramInventory is the parameter with the file of an inventory.
const paramInventory = "inventory"

// ParseCluster reads KIND[:N][?PARAMS]. Every kind has the parameters memory, loopback and layer.
// The other parameters belong to the kind.
func ParseCluster(text string) (ClusterKind, cluster.Options, error) {
	var o cluster.Options
	name, query, _ := strings.Cut(text, "?")
	name, number, counted := strings.Cut(name, ":")
	if file, own := strings.CutPrefix(text, scenario.OwnServers); own {
		o.Params, name, query, number, counted = url.Values{paramInventory: {file}}, "own", "", "", false
	}
	var kind ClusterKind
	var names []string
	for _, k := range ClusterKinds() {
		if names = append(names, k.Name); k.Name == name {
			kind = k
		}
	}
	if len(names) == 0 {
		return kind, o, exit.Usagef("this build cannot start the cluster %q, because %s", text, leftOut)
	}
	if kind.Name == "" {
		return kind, o, exit.Usagef("%q is no cluster that stroppy can start; %s",
			name, spelling.Hint(name, names, meanings(), "`stroppy list clusters` shows those that it can"))
	}
	o.Nodes = kind.nodes
	if counted {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > kind.most {
			return kind, o, exit.Usagef("the cluster %s has %q for its number of nodes: it must be from 1 to %d",
				text, number, kind.most)
		}
		o.Nodes = n
	}
	if kind.OfOwner() {
		if o.Params.Get(paramInventory) == "" {
			return kind, o, exit.Usagef("the cluster %s names no inventory: write --cluster own:FILE", text)
		}
		return kind, o, nil
	}
	params, err := url.ParseQuery(query)
	if err != nil {
		return kind, o, exit.Usagef("the cluster %s cannot be read after its question mark: give name=value, "+
			"with & between them", text)
	}
	o.Params = params
	if kind.Elsewhere() { // they have parameters of their own
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
			return kind, o, exit.Usagef("the cluster %s has %s=%s: it must be on or off", text, name, params.Get(name))
		}
		params.Del(name)
	}
	return kind, o, nil
}

// StartCluster starts a cluster, with what variables of the environment say of its kind. An
// unknown parameter is an error of usage.
func StartCluster(ctx context.Context, kind ClusterKind, o cluster.Options, environ []string) (cluster.Cluster, error) {
	if kind.OfOwner() {
		return kind.start(ctx, o)
	}
	if err := system.Supported(); err != nil && !kind.Elsewhere() {
		return nil, err
	}
	for of, variable := range clusterFolders {
		for _, entry := range environ {
			if name, value, _ := strings.Cut(entry, "="); name == variable && of[0] == kind.Name && !o.Params.Has(of[1]) {
				o.Params.Set(of[1], value)
			}
		}
	}
	c, err := kind.start(ctx, o)
	var param *cluster.ParamError
	if errors.As(err, &param) {
		return nil, exit.With(exit.Usage, err)
	}
	if err != nil {
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	return c, nil
}

// SettingsOf are the entries of an environment without those that are of clusters.
func SettingsOf(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(slices.Collect(maps.Values(clusterFolders)), name)
	})
}
