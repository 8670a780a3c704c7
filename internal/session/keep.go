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

// ClearLeftovers removes the leftovers of killed stroppy processes. It only prints an error if Kubernetes cannot be
// reached, because other clusters can still be used.
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

// objectsLimit bounds the time for the removal of leftovers in Kubernetes.
const objectsLimit = time.Minute

// keeper is a cluster that can outlive its run. Keep returns its name, its namespace and its label selector.
type keeper interface {
	Keep() (name, namespace, selector string, err error)
}

// Keepable returns an error if the cluster cannot outlive its run.
func Keepable(text string) error {
	kind, options, err := registry.ParseCluster(text)
	switch {
	case err != nil:
		return err
	case kind.OfOwner():
		return exit.Usagef("--keep is not needed, because your servers stay after the run: leave --keep out")
	case !kind.Elsewhere():
		return exit.Usagef("--keep leaves a cluster in Kubernetes, and %s is on this machine: start one that stays with `stroppy cluster up %s`, and give its URL to --db", text, scenario.Quote(text))
	case options.Params.Has("selector"):
		return exit.Usagef("--keep is not needed, because the database that selector= chooses stays after the run: leave --keep out")
	}
	return nil
}

// keep makes a cluster outlive its run. It returns notes on how the cluster is used and removed.
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

// queryOf returns parameters in the form of --cluster. It escapes only the characters that need it.
func queryOf(params map[string]string) string {
	escape := strings.NewReplacer("%", "%25", "&", "%26", "+", "%2B", ";", "%3B", "#", "%23")
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		pairs = append(pairs, name+"="+escape.Replace(params[name]))
	}
	return strings.Join(pairs, "&")
}
