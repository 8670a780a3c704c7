package kubernetes

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"stroppy/internal/cluster"
)

const (
	// partLabel marks the objects of a run beside its database: probes, faults and workers.
	partLabel = "stroppy.io/part"
	// keptLabel on a lease marks a run whose database stays.
	keptLabel = "stroppy.io/kept"
)

// asPart marks an object that does not belong to the database.
func asPart(o *Object, what string) { mark(o, map[string]string{partLabel: what}) }

// Keep makes Stop leave the database. It returns the name and namespace of the database and the labels of its
// servers' pods, by which another run uses it. The error is the reason why there is nothing to keep.
func (c *Cluster) Keep() (name, namespace, selector string, err error) {
	if c.spec.Name != c.run {
		return "", "", "", errors.New("the database was there before and stays anyway")
	}
	c.kept = true
	return c.run, c.api.Namespace, c.spec.Labels().String(), nil
}

// keep records that the database stays, and removes all other objects of the run. It may be called again.
func (o *ownership) keep() error {
	return o.finish(func(ctx context.Context) error {
		kept := map[string]any{"metadata": map[string]any{"labels": map[string]any{keptLabel: "true"}}}
		if err := o.api.Patch(ctx, leaseKind, leaseName(o.run), kept); err != nil {
			return err
		}
		var all []group
		for _, kind := range append(o.made.Kinds, podKind) {
			all = append(all, group{kind, RunLabel + "=" + o.run + "," + partLabel})
		}
		return o.api.removeGroups(ctx, o.run, all)
	})
}

// Down removes a kept database and returns a line that reports this. Its parameters are name, namespace, context and
// kubeconfig. The error is a *cluster.ParamError if a parameter is wrong.
func Down(ctx context.Context, o cluster.Options) (line string, err error) {
	var access Access
	var name string
	text := func(to *string) func(string) error {
		return func(value string) error {
			*to = value
			return nil
		}
	}
	err = cluster.Params{Unknown: "to remove a cluster, give its name, and optionally namespace, context and kubeconfig", Known: map[string]func(string) error{
		"name": text(&name), "namespace": text(&access.Namespace), "context": text(&access.Context), "kubeconfig": text(&access.Kubeconfig),
	}}.Read(o.Params)
	if err == nil && name == "" {
		err = &cluster.ParamError{Param: "name", Reason: "it must be the name that the run printed when it kept the cluster"}
	}
	if err != nil {
		return "", err
	}
	api, err := Connect(ctx, access)
	if err != nil {
		return "", err
	}
	lease, err := api.Get(ctx, leaseKind, leaseName(name))
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("no cluster %s was kept in the namespace %s of %s", name, api.Namespace, api.Host())
	}
	if err != nil {
		return "", err
	}
	now, err := api.now(ctx)
	if err != nil {
		return "", err
	}
	if !isKept(lease) && now.Sub(lastApplied(lease)) < leaseLasts {
		return "", fmt.Errorf("the run of %s in the namespace %s is still running: end it first", name, api.Namespace)
	}
	return api.clearLease(ctx, lease)
}

func isKept(lease *Object) bool { return lease.GetLabels()[keptLabel] != "" }
