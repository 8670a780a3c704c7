package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/exit"
	"stroppy/internal/registry"
	"stroppy/internal/scenario"
)

// ClearLeftovers takes away what an earlier stroppy that was killed has left. That a Kubernetes
// cluster cannot be reached now keeps nobody from using something else.
func (a *App) ClearLeftovers(ctx context.Context) error {
	cleared, err := host.Clear(ctx, registry.Releasers()...)
	if remove := registry.ObjectsClearer(); remove != nil {
		limited, cancel := context.WithTimeout(ctx, objectsLimit)
		defer cancel()
		lines, errObjects := host.ClearObjects(limited, remove)
		cleared = append(cleared, lines...)
		if errObjects != nil {
			fmt.Fprintln(a.Stderr, "not cleared:", errObjects)
		}
	}
	for _, line := range cleared {
		fmt.Fprintln(a.Stderr, "cleared:", line)
	}
	return err
}

// objectsLimit bounds how long what an earlier run has left in Kubernetes may take to go.
const objectsLimit = time.Minute

// keeper is a cluster that can stay when its run has ended. Keep returns its name, its namespace,
// and the labels by which it is found.
type keeper interface {
	Keep() (name, namespace, selector string, err error)
}

// Keepable says why the cluster of --cluster cannot be left, nil if it can.
func Keepable(text string) error {
	kind, options, err := registry.ParseCluster(text)
	switch {
	case err != nil:
		return err
	case !kind.Elsewhere():
		return exit.Usagef("--keep leaves a cluster in Kubernetes, and %s is on this machine: start one that stays with `stroppy cluster up %s`, and give its URL to --db", text, scenario.Quote(text))
	case options.Params.Has("selector"):
		return exit.Usagef("--keep leaves what the run has made, and the database that selector= chooses stays anyway: leave --keep out")
	}
	return nil
}

// keep makes a cluster stay. It returns the lines that show how the cluster is used again and
// removed.
func keep(c cluster.Cluster, text string) ([]string, error) {
	k, ok := c.(keeper)
	if !ok {
		return nil, errors.New("this cluster cannot be left after the run: leave --keep out")
	}
	name, namespace, selector, err := k.Keep()
	if err != nil {
		return nil, err
	}
	kind, options, err := registry.ParseCluster(text)
	if err != nil {
		return nil, err
	}
	with := func(params map[string]string, also ...string) string {
		for _, p := range append(also, "kubeconfig", "context") {
			if options.Params.Has(p) {
				params[p] = options.Params.Get(p)
			}
		}
		return scenario.Quote(kind.Name + "?" + queryOf(params))
	}
	return []string{
		fmt.Sprintf("%s stays in the namespace %s, as %s", text, namespace, name),
		ToPaste("use it again", "stroppy run --cluster "+with(map[string]string{"namespace": namespace, "selector": selector}, "reach", "tool-image", "pull")),
		ToPaste("remove it", "stroppy cluster down "+with(map[string]string{"namespace": namespace, "name": name})),
	}, nil
}

// queryOf writes parameters as --cluster takes them, with what a person can read left as it is.
func queryOf(params map[string]string) string {
	escape := strings.NewReplacer("%", "%25", "&", "%26", "+", "%2B", ";", "%3B", "#", "%23")
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		pairs = append(pairs, name+"="+escape.Replace(params[name]))
	}
	return strings.Join(pairs, "&")
}
