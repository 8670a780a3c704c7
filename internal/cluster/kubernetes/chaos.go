package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"stroppy/internal/cluster/wait"
	"stroppy/internal/fault"
)

// Chaos Mesh's API version v1alpha1 (github.com/chaos-mesh/chaos-mesh, api/v1alpha1).
const (
	chaosGroup   = "chaos-mesh.org"
	chaosVersion = chaosGroup + "/v1alpha1"
)

const (
	// cleanAnnotation with the value "forced" makes Chaos Mesh release an object whose faults it cannot heal.
	cleanAnnotation = "chaos-mesh.chaos-mesh.org/cleanFinalizer"
	// stuckAfter bounds the time in which Chaos Mesh heals a deleted object.
	stuckAfter = 20 * time.Second
	// injectLimit bounds the time of an injection.
	injectLimit  = 30 * time.Second
	installChaos = "helm install chaos-mesh chaos-mesh/chaos-mesh --namespace chaos-mesh --create-namespace"
)

func chaosKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: chaosGroup, Version: "v1alpha1", Kind: kind}
}

func isChaos(o *Object) bool { return o.GroupVersionKind().Group == chaosGroup }

// faults counts the objects to give them different names.
var faults atomic.Int64

// chaos is an injected fault of Chaos Mesh.
type chaos struct {
	cluster *Cluster
	objects []*Object
}

// inject makes Chaos Mesh objects with these specifications, see injectAll.
func (c *Cluster) inject(ctx context.Context, kind string, specs ...map[string]any) (*chaos, error) {
	var objects []*Object
	for _, spec := range specs {
		objects = append(objects, NewObject(chaosVersion, kind, "", map[string]any{"spec": spec}))
	}
	return c.injectAll(ctx, objects)
}

// injectAll makes Chaos Mesh objects, gives them names, and returns when Chaos Mesh reports that all are injected.
// After an error none of them is left, or the error says so.
func (c *Cluster) injectAll(ctx context.Context, objects []*Object) (*chaos, error) {
	for _, kind := range kindsOf(objects) {
		if err := c.owner.willMake(ctx, kind); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, injectLimit, fmt.Errorf("not injected by Chaos Mesh within %v", injectLimit))
	defer cancel()
	x := &chaos{cluster: c}
	var err error
	for _, o := range objects {
		o.SetName(fmt.Sprintf("%s-%d", c.run, faults.Add(1)))
		o.SetNamespace(c.api.Namespace)
		asPart(o, "fault")
		if _, err = c.api.Apply(ctx, c.run, o); err != nil {
			break
		}
		x.objects = append(x.objects, o)
	}
	if err == nil {
		err = Each(x.objects, func(_ int, o *Object) error { return c.api.injected(ctx, o) })
	}
	if err != nil {
		healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*stuckAfter)
		defer cancel()
		if errHeal := x.heal(healing); errHeal != nil {
			err = fmt.Errorf("%w; and it could not be undone: %w", err, errHeal)
		}
		return nil, err
	}
	return x, nil
}

// injected waits until Chaos Mesh reports that a fault is injected into all its pods.
func (a *API) injected(ctx context.Context, o *Object) error {
	err := wait.RetryEvery(ctx, removeEvery, func() error {
		now, err := a.Get(ctx, o.GroupVersionKind(), o.GetName())
		if err != nil {
			return err
		}
		if o.GetKind() == workflow && condition(now, "Scheduled") || condition(now, "AllInjected") && condition(now, "Selected") {
			return nil
		}
		return fmt.Errorf("%s is not injected%s", describe(o), records(now))
	})
	if err == nil {
		return nil
	}
	for _, w := range a.warnings(context.WithoutCancel(ctx), o.GetName()) {
		err = fmt.Errorf("%w; %s: %s", err, w.reason, strings.TrimSpace(w.message))
	}
	return err
}

// condition reports whether a condition of an object is true.
func condition(o *Object, name string) bool {
	holds, _ := Condition(o, name)
	return holds
}

// records returns Chaos Mesh's report about the pods of a fault.
func records(o *Object) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "experiment", "containerRecords")
	var said []string
	for _, one := range all {
		r, _ := one.(map[string]any)
		log, _, _ := unstructured.NestedSlice(r, eventResource())
		last := ""
		if len(log) > 0 {
			e, _ := log[len(log)-1].(map[string]any)
			if text, _ := e["message"].(string); text != "" {
				last = ": " + strings.TrimSpace(text)
			}
		}
		said = append(said, fmt.Sprintf("%v is %v%s", r["id"], r["phase"], last))
	}
	if len(said) == 0 {
		return ", and Chaos Mesh has chosen no pod for it"
	}
	return " (" + strings.Join(said, "; ") + ")"
}

// heal deletes the objects and returns when they are gone, which is after their faults are healed. An object that
// does not disappear is released by force. This is an error, because nobody has seen its fault end.
func (x *chaos) heal(ctx context.Context) error {
	return Each(x.objects, func(_ int, o *Object) error {
		forced := false
		err := wait.RetryEvery(ctx, removeEvery, func() error {
			there, err := x.cluster.api.list(ctx, o.GroupVersionKind(), RunLabel+"="+x.cluster.run)
			if err != nil {
				return x.cluster.api.explain(err)
			}
			for i := range there {
				now := &there[i]
				if now.GetName() != o.GetName() {
					continue
				}
				at := now.GetDeletionTimestamp()
				forced = forced || at != nil && time.Since(at.Time) > stuckAfter
				if err := x.cluster.api.release(ctx, now); err != nil {
					return err
				}
				return fmt.Errorf("%s still exists%s", describe(o), records(now))
			}
			return nil
		})
		switch {
		case err != nil:
			return fmt.Errorf("heal a fault by Chaos Mesh: %w", err)
		case forced:
			return fmt.Errorf("%s was not healed by Chaos Mesh within %v, so it was released by its annotation %s", describe(o), stuckAfter, cleanAnnotation)
		}
		return nil
	})
}

// sight is how the effect of a fault by Chaos Mesh, and the end of this effect, are seen.
type sight struct {
	into, healed string                                // the target, and the report of its heal, for errors
	seen, ended  func(context.Context) (string, error) // wait until it is so
	gone         func() string                         // returns why the end cannot be seen, or "" if it must be; nil: it must be
}

// effect verifies the effect of the fault, and after its heal the end of the effect.
func (x *chaos) effect(ctx context.Context, s sight) (e fault.Effect, err error) {
	e.Heal = func(ctx context.Context) (string, error) {
		if err := x.heal(ctx); err != nil {
			return "", err
		}
		if s.gone != nil {
			if why := s.gone(); why != "" {
				return why, nil
			}
		}
		text, err := s.ended(ctx)
		if err != nil {
			return "", fmt.Errorf("Chaos Mesh reports %s, but this was not seen: %w", s.healed, err)
		}
		return text, nil
	}
	if e.Seen, err = s.seen(ctx); err != nil {
		return e, fmt.Errorf("the fault that Chaos Mesh has injected into %s was not seen: %w", s.into, err)
	}
	e.Seen += ", by Chaos Mesh"
	return e, nil
}

// seenWithin bounds the time until an effect is seen after Chaos Mesh has reported it.
const seenWithin = 10 * time.Second

// observe repeats see until it succeeds.
func observe(ctx context.Context, within time.Duration, see func(context.Context) (string, error)) (text string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it was not seen within %v", within))
	defer cancel()
	err = wait.RetryEvery(ctx, removeEvery, func() (err error) { text, err = see(ctx); return err })
	return text, err
}

// observing returns a function that repeats see until it succeeds.
func observing(within time.Duration, see func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return observe(ctx, within, see) }
}

// server is a node's server, in one container of one pod, which has a fault.
type server struct {
	node  *node
	pod   types.UID
	id    string // of the container
	fault *chaos
}

// server returns the server that is running, and its pod.
func (n *node) server() (s server, pod *corev1.Pod, err error) {
	if pod = n.current(); pod == nil || !n.Running() {
		return s, nil, errors.New("its server is not running")
	}
	return server{node: n, pod: pod.UID, id: serverOf(pod).ContainerID}, pod, nil
}

// here reports whether the node's server is the one that has the fault.
func (s *server) here() bool {
	pod := s.node.current()
	return pod != nil && pod.UID == s.pod && serverOf(pod).ContainerID == s.id
}

// still returns why the fault has ended although nobody has healed it.
func (s *server) still(context.Context) error {
	if !s.here() {
		return fmt.Errorf("the server of %s was restarted, without the fault", s.node.Name())
	}
	return nil
}

// workflow is the kind of a Workflow, which injects several faults one after the other.
const workflow = "Workflow"

// Chaos makes Chaos Mesh inject the objects of a YAML file, in the namespace of the cluster and with names of this
// run. The effect is only what Chaos Mesh reports.
func (c *Cluster) Chaos(ctx context.Context, file string) (fault.Effect, error) {
	objects, err := readChaos(file)
	if err != nil {
		return fault.Effect{}, err
	}
	x, err := c.injectAll(ctx, objects)
	if err != nil {
		return fault.Effect{}, err
	}
	return fault.Effect{Seen: "injected, according to Chaos Mesh", Heal: func(ctx context.Context) (string, error) {
		return "gone, according to Chaos Mesh", x.heal(ctx)
	}}, nil
}

// ChaosFile returns why the objects of a file can never be made, or nil.
func (c *Cluster) ChaosFile(file string) error {
	objects, err := readChaos(file)
	if err != nil {
		return err
	}
	return c.chaosAllowed(kindsOf(objects), nil)
}

// chaosAllowed returns why objects of Chaos Mesh cannot be made: it is not installed, or this account lacks a right.
//
// A positive answer is remembered, because it is needed again when a fault is due, and nothing there may wait for the
// API server.
func (c *Cluster) chaosAllowed(kinds []schema.GroupVersionKind, rights []Right) error {
	if c.api == nil {
		return nil
	}
	asked := fmt.Sprint(kinds, rights)
	if _, known := c.granted.Load(asked); known {
		return nil
	}
	err := c.askChaos(kinds, rights)
	if err == nil {
		c.granted.Store(asked, true)
	}
	return err
}

func (c *Cluster) askChaos(kinds []schema.GroupVersionKind, rights []Right) error {
	for _, kind := range kinds {
		there, err := c.api.has(kind)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("Chaos Mesh is not installed in Kubernetes, or has no %s: `%s`", kind.Kind, installChaos)
		}
		resource, err := c.api.lookUp(kind)
		if err != nil {
			return err
		}
		rights = append(rights, Right{Group: kind.Group, Resource: resource.Name, Verbs: managed()})
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	return c.api.Require(ctx, rights)
}

// readChaos reads Chaos Mesh objects from a file.
func readChaos(file string) (objects []*Object, err error) {
	fail := func(err error) error { return fmt.Errorf("read the Chaos Mesh objects in %s: %w", file, err) }
	text, err := os.Open(file)
	if err != nil {
		return nil, fail(err)
	}
	defer text.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(text, 4096)
	for {
		o := new(Object)
		err := decoder.Decode(&o.Object)
		switch {
		case errors.Is(err, io.EOF) && len(objects) == 0:
			return nil, fail(errors.New("there is none"))
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fail(err)
		case len(o.Object) == 0: // an empty document
		case !isChaos(o):
			return nil, fail(fmt.Errorf("there is a %s of %q, which does not belong to Chaos Mesh", o.GetKind(), o.GetAPIVersion()))
		case o.GetKind() == "Schedule":
			return nil, fail(errors.New("a Schedule does not report its injections: use its object, and `every` in the script"))
		default:
			objects = append(objects, NewObject(o.GetAPIVersion(), o.GetKind(), "", map[string]any{"spec": o.Object["spec"]}))
		}
	}
}

// forceFinalizers makes Chaos Mesh release an object that it has not healed.
func (a *API) forceFinalizers(ctx context.Context, o *Object) error {
	return a.Patch(ctx, o.GroupVersionKind(), o.GetName(), map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{cleanAnnotation: "forced"}}})
}
