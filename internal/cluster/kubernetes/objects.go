package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"stroppy/internal/cluster/wait"
)

// manager names this program as the field manager of its objects, and in the recommended label managed-by.
const manager = "stroppy"

// Labels of all objects of this program.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// RunLabel holds the name of the run of an object. Only objects with this label are changed or deleted.
	RunLabel = "stroppy.io/run"
)

// Object is a rendered object of any type.
type Object = unstructured.Unstructured

// NewObject returns an object with a content, such as its spec.
func NewObject(apiVersion, kind, name string, content map[string]any) *Object {
	o := &Object{Object: map[string]any{}}
	for key, value := range content {
		o.Object[key] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

func describe(o *Object) string { return strings.ToLower(o.GetKind()) + " " + o.GetName() }

// Apart returns an affinity for pods with these labels. The scheduler prefers machines without such a pod, but uses
// others if there are none.
func Apart(labels map[string]any) map[string]any {
	term := map[string]any{"topologyKey": "kubernetes.io/hostname", "labelSelector": map[string]any{"matchLabels": labels}}
	return map[string]any{"podAntiAffinity": map[string]any{
		"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"weight": int64(100), "podAffinityTerm": term}},
	}}
}

// mark adds labels to an object.
func mark(o *Object, more map[string]string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, more)
	o.SetLabels(labels)
}

// Apply makes an object of the run, or updates it, and returns the API server's result. An object of this name that
// does not belong to the run is not changed, and is an error.
func (a *API) Apply(ctx context.Context, run string, o *Object) (*Object, error) {
	fail := func(err error) error {
		return fmt.Errorf("apply %s in the namespace %s: %w", describe(o), a.Namespace, a.explain(err))
	}
	client, err := a.resource(o.GroupVersionKind())
	if err != nil {
		return nil, fail(err)
	}
	there, err := client.Get(ctx, o.GetName(), metav1.GetOptions{})
	switch {
	case err == nil && there.GetLabels()[RunLabel] != run:
		return nil, fail(errors.New("another run has made an object of this name: it was not changed"))
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fail(err)
	}
	mark(o, map[string]string{ManagedByLabel: manager, RunLabel: run})
	applied, err := client.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager})
	if err != nil {
		return nil, fail(err)
	}
	return applied, nil
}

// Get returns an object of the namespace.
func (a *API) Get(ctx context.Context, kind schema.GroupVersionKind, name string) (*Object, error) {
	client, err := a.resource(kind)
	if err == nil {
		var o *Object
		if o, err = client.Get(ctx, name, metav1.GetOptions{}); err == nil {
			return o, nil
		}
	}
	return nil, fmt.Errorf("read %s %s: %w", strings.ToLower(kind.Kind), name, a.explain(err))
}

// Patch merges a change into an object, or into a subresource such as its status.
func (a *API) Patch(ctx context.Context, kind schema.GroupVersionKind, name string, change map[string]any, subresource ...string) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	client, err := a.resource(kind)
	if err == nil {
		_, err = client.Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: manager}, subresource...)
	}
	if err != nil {
		return fmt.Errorf("change %s %s: %w", strings.ToLower(kind.Kind), name, a.explain(err))
	}
	return nil
}

// list returns the objects of a kind with these labels.
func (a *API) list(ctx context.Context, kind schema.GroupVersionKind, selector string) ([]Object, error) {
	client, err := a.resource(kind)
	if err != nil {
		return nil, err
	}
	all, err := client.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}

// remove deletes an object, at once if atOnce is set, and does not wait. A missing object is no error. A newer object
// with the same name is left alone.
func (a *API) remove(ctx context.Context, o *Object, atOnce bool) error {
	client, err := a.resource(o.GroupVersionKind())
	if err != nil {
		return err
	}
	id := o.GetUID()
	options := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	if id != "" {
		options.Preconditions = &metav1.Preconditions{UID: &id}
	}
	if atOnce {
		options.GracePeriodSeconds = new(int64)
	}
	err = client.Delete(ctx, o.GetName(), options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

var (
	podKind   = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	claimKind = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	eventKind = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
)

// eventResource returns the resource name of events.
func eventResource() string { return strings.ToLower(eventKind.Kind) + "s" }

// removeAll deletes all objects of a run. It begins with the applied objects, because their controllers would make
// others again. Then it deletes pods, at once, and volume claims. It returns when none is left. A kind that the API
// server does not know has no objects.
func (a *API) removeAll(ctx context.Context, run string, what made) error {
	var all []group
	for _, kind := range append(slices.Clone(what.Kinds), podKind, claimKind) {
		all = append(all, group{kind, RunLabel + "=" + run})
	}
	if what.Selector != "" {
		all = append(all, group{podKind, what.Selector}, group{claimKind, what.Selector})
	}
	if what.Secrets == "" {
		return a.removeGroups(ctx, run, all)
	}
	secrets := group{SecretKind, what.Secrets}
	if err := a.removeGroups(ctx, run, append(all, secrets)); err != nil {
		return err
	}
	if err := wait.Sleep(ctx, stale); err != nil {
		return fmt.Errorf("wait for secrets that the operator of %s may make again: %w", run, err)
	}
	return a.removeGroups(ctx, run, []group{secrets})
}

// stale bounds how long an operator may act on its outdated view after a resource was deleted.
const stale = 2 * time.Second

// group is the objects of a kind with certain labels.
type group struct {
	kind     schema.GroupVersionKind
	selector string
}

// removeGroups deletes the objects of groups and returns when none is left.
func (a *API) removeGroups(ctx context.Context, run string, all []group) error {
	err := wait.RetryEvery(ctx, removeEvery, func() error {
		var left []string
		for _, g := range all {
			kind := g.kind
			objects, err := a.list(ctx, kind, g.selector)
			if isNoKind(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("list each %s of %s: %w", strings.ToLower(kind.Kind), run, a.explain(err))
			}
			for i := range objects {
				o := &objects[i]
				left = append(left, describe(o))
				if err := a.release(ctx, o); err != nil {
					return err
				}
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("they still exist: %s", strings.Join(left, ", "))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove stroppy's objects in the namespace %s: %w", a.Namespace, err)
	}
	return nil
}

// removeEvery is the interval of checks whether objects are gone.
const removeEvery = 200 * time.Millisecond

// release deletes an object. It forces a Chaos Mesh object whose finalizer holds it for too long.
func (a *API) release(ctx context.Context, o *Object) error {
	var err error
	switch at := o.GetDeletionTimestamp(); {
	case at == nil || o.GetKind() == podKind.Kind && at.After(time.Now()): // a pod may be in its grace period
		err = a.remove(ctx, o, o.GetKind() == podKind.Kind)
	case isChaos(o) && time.Since(at.Time) > stuckAfter:
		err = a.forceFinalizers(ctx, o)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", describe(o), a.explain(err))
	}
	return nil
}

// Each calls f for all elements at once, with their indexes, and joins the errors.
func Each[T any](list []T, f func(i int, one T) error) error {
	var group sync.WaitGroup
	failed := make([]error, len(list))
	for i, one := range list {
		group.Go(func() { failed[i] = f(i, one) })
	}
	group.Wait()
	return errors.Join(failed...)
}

// Now returns the time in the notation of objects: RFC 3339 with microseconds.
func Now() string { return time.Now().UTC().Format(metav1.RFC3339Micro) }
