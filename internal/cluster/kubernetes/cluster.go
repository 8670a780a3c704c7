package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/system"
)

// Cluster is a database that this program uses in Kubernetes. Its methods may be called from several goroutines.
type Cluster struct {
	kind     *Kind
	api      *API // nil in a dry run, which does not know what the API server allows
	spec     *Spec
	run      string       // names the objects of this run: the database, or only the faults and the probe
	record   *host.Record // nil if this machine keeps none
	owner    *ownership
	pods     *podWatch // nil in a dry run
	nodes    []*node
	database Database
	*network // links of the pods; a nemesis.Network

	meter     *meter // nil if nothing can be read
	unmetered string // why there is no meter

	folders []string   // to be removed by Stop if there is no record
	kept    bool       // Stop leaves the database
	holding sync.Mutex // held while the pods' template is changed
	// replacing is held while an operator makes a node anew. The data of another node must not be removed before the
	// new node has its copies.
	replacing sync.Mutex
	granted   sync.Map // faults of Chaos Mesh that this account may make, as keys
	stop      sync.Once
	stopErr   error
}

// leftover identifies the objects of a run. As JSON it is the name of a cluster.LeftObjects.
type leftover struct{ Kubeconfig, Context, Namespace, Run string }

// Start makes a database of the kind and returns when all its nodes answer. Kind.read documents the parameters;
// version is this program's version, for its image. An error leaves nothing behind. It is a *cluster.ParamError if a
// parameter is wrong. The cluster is a cluster.Mover if the database is a Mover.
func Start(ctx context.Context, k *Kind, o cluster.Options, version string) (cluster.Cluster, error) {
	c, err := start(ctx, k, o, version)
	if err != nil && ctx.Err() != nil { // the interrupted step is not the cause
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if err != nil {
		return nil, err
	}
	return c.capable(), nil
}

// movable is a cluster that can hand leadership over.
type movable struct {
	*Cluster
	Mover
}

func start(ctx context.Context, k *Kind, o cluster.Options, version string) (_ *Cluster, err error) {
	asked, err := k.read(o, version)
	if o.DryRun && (err == nil || errors.As(err, new(host.MissingError))) {
		return nil, k.plan(asked, err)
	}
	if err != nil {
		return nil, err
	}
	api, err := Connect(ctx, asked.Access)
	if err != nil {
		return nil, err
	}
	c := &Cluster{kind: k, api: api, spec: &asked.Spec, run: drawName()}
	c.network = &network{cluster: c}
	c.spec.Address, c.spec.Folder = c.address, c.folder
	if c.spec.Operator, err = k.operator(api); err != nil {
		return nil, err
	}
	var objects []*Object
	if asked.selector == "" {
		c.spec.Name = c.run
		objects = c.spec.Operator.Render(c.spec)
	}
	if err := c.allowed(ctx, objects); err != nil {
		return nil, err
	}
	now, err := api.now(ctx)
	if err == nil {
		_, err = api.clearDead(ctx, now)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	limited, cancel := context.WithTimeoutCause(ctx, asked.wait, fmt.Errorf("it is not healthy after %v", asked.wait))
	defer cancel()
	if err = c.begin(ctx, asked, objects); err == nil {
		err = c.startUp(limited, asked, objects)
	}
	if err != nil {
		return nil, fmt.Errorf("start k8s/%s in the namespace %s: %w", k.Name, api.Namespace, c.diagnose(err))
	}
	return c, nil
}

// drawName returns a random name for a run.
func drawName() string {
	var name [4]byte
	_, _ = rand.Read(name[:]) // never fails (crypto/rand)
	return namePrefix + hex.EncodeToString(name[:])
}

// allowed returns an error if the start would fail half way.
func (c *Cluster) allowed(ctx context.Context, objects []*Object) error {
	if err := c.api.namespaceThere(ctx); err != nil {
		return err
	}
	rights := append(ownRights(), c.kind.Rights...)
	for _, kind := range kindsOf(objects) {
		r, err := c.api.lookUp(kind)
		if err != nil {
			return err
		}
		rights = append(rights, Right{Group: kind.Group, Resource: r.Name, Verbs: managed()})
	}
	return c.api.Require(ctx, rights)
}

// begin records, here and in Kubernetes, what is about to be made.
func (c *Cluster) begin(ctx context.Context, a *asked, objects []*Object) (err error) {
	if system.Supported() == nil { // on other systems only the lease finds the objects again
		if c.record, err = host.NewRecord(fmt.Sprintf("k8s/%s:%d", c.kind.Name, c.spec.Nodes)); err != nil {
			return err
		}
		text, err := json.Marshal(leftover{a.Kubeconfig, a.Context, c.api.Namespace, c.run})
		if err != nil {
			return err
		}
		if err := c.record.Add(host.Leftover{Kind: host.LeftObjects, Name: string(text)}); err != nil {
			return err
		}
	}
	what := made{Kinds: kindsOf(objects)}
	if a.selector == "" {
		what.Selector = c.spec.Labels().String()
		what.Secrets = named(c.spec.Operator.Secrets, c.spec.Name).String()
	}
	c.owner, err = c.api.own(ctx, c.run, what)
	return err
}

// startUp applies the objects, if the database does not exist yet, and waits until it is healthy.
func (c *Cluster) startUp(ctx context.Context, a *asked, objects []*Object) (err error) {
	selector := a.selector
	if selector == "" {
		selector = c.spec.Labels().String()
	}
	if c.pods, err = c.api.watchPods(ctx, selector, c.podGone); err != nil {
		return err
	}
	if a.selector != "" {
		if err := c.adopt(selector); err != nil {
			return err
		}
	}
	for _, o := range objects {
		if _, err := c.api.Apply(ctx, c.run, o); err != nil {
			return err
		}
	}
	if err := c.namePods(ctx); err != nil {
		return err
	}
	for i, name := range c.spec.Pods {
		c.nodes = append(c.nodes, &node{cluster: c, number: i, pod: name})
	}
	if err := c.waitPods(ctx); err != nil {
		return err
	}
	if err := c.reach(ctx, a.forward); err != nil {
		return err
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	if err := c.WaitHealthy(ctx); err != nil {
		return err
	}
	if err := c.startMeter(ctx); err != nil && ctx.Err() == nil {
		c.unmetered = err.Error()
	}
	return ctx.Err()
}

// namePods finds the nodes' pods, unless they are known. If the operator draws their names, it waits until all pods
// exist.
func (c *Cluster) namePods(ctx context.Context) error {
	switch {
	case len(c.spec.Pods) > 0:
		return nil
	case c.spec.Operator.PodPrefix != "":
		for i := range c.spec.Nodes {
			c.spec.Pods = append(c.spec.Pods, c.spec.Pod(i))
		}
		return nil
	}
	return c.pods.until(ctx, func() error {
		all := c.serverPods()
		if len(all) != c.spec.Nodes {
			return fmt.Errorf("the operator has made %d of %d pods", len(all), c.spec.Nodes)
		}
		c.use(all)
		return nil
	})
}

// serverPods returns the pods with the servers' labels, except completed ones: operators have jobs whose pods have
// the servers' labels.
func (c *Cluster) serverPods() []*corev1.Pod {
	return slices.DeleteFunc(c.pods.all(), func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
}

// adopt makes the existing pods the nodes of the database. Their controller restarts them.
func (c *Cluster) adopt(selector string) error {
	pods := c.serverPods()
	if len(pods) == 0 {
		return errHopeless(fmt.Sprintf("no pod in the namespace %s has the labels %s: `kubectl get pods --show-labels` shows their labels", c.api.Namespace, selector))
	}
	kind := *c.kind
	kind.StatefulSet = false
	c.kind = &kind
	c.use(pods)
	if c.spec.Operator.Kind.Empty() {
		return nil
	}
	for i := range kind.Operators { // several may be installed
		if c.spec.Name = kind.Operators[i].NameOf(pods[0].Labels); c.spec.Name != "" {
			c.spec.Operator = &kind.Operators[i]
			return nil
		}
	}
	return errHopeless(fmt.Sprintf("the pod %s lacks the label with the name of its database that operators of k8s/%s set: select other pods by selector=, or use the database's address with --db", pods[0].Name, kind.Name))
}

// use makes pods the nodes.
func (c *Cluster) use(pods []*corev1.Pod) {
	c.spec.Nodes, c.spec.Pods = len(pods), nil
	for _, p := range pods {
		c.spec.Pods = append(c.spec.Pods, p.Name)
	}
}

// settle makes later pods join the existing cluster, and not form a new one.
func (c *Cluster) settle(ctx context.Context) error {
	if !c.kind.StatefulSet {
		return nil
	}
	c.spec.Formed = true
	for _, o := range c.spec.Operator.Render(c.spec) {
		if o.GetKind() != statefulSetKind.Kind {
			continue
		}
		if _, err := c.api.Apply(ctx, c.run, o); err != nil {
			return err
		}
	}
	return nil
}

var statefulSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}

// errHopeless is an error that waiting does not change.
type errHopeless string

func (e errHopeless) Error() string { return string(e) }

// Hopeless returns an error that waiting does not change.
func Hopeless(why string) error { return errHopeless(why) }

// waitPods waits until all pods are ready, unless a pod will never be.
func (c *Cluster) waitPods(ctx context.Context) error {
	asked := 0
	return c.pods.until(ctx, func() (err error) {
		for _, n := range c.nodes {
			pod := n.current()
			if pod != nil {
				if hopeless := hopelessPod(pod, "image= or version="); hopeless != nil {
					return hopeless
				}
			}
			err = cmp.Or(err, ready(pod, n.pod))
		}
		if asked++; err != nil && asked%askQuota == 0 {
			err = cmp.Or(c.api.quota(ctx, c.run), err)
		}
		return err
	})
}

// askQuota is the number of checks of the pods after which Kubernetes is asked for exceeded quotas.
const askQuota = 3

// diagnose adds to an error of the start what to do about it.
func (c *Cluster) diagnose(err error) error {
	if errors.As(err, new(errHopeless)) {
		return err
	}
	for _, n := range c.nodes {
		if n.relay == nil {
			continue
		}
		if why := n.relay.failure(); why != nil {
			err = fmt.Errorf("%w; the connection to %s failed: %w", err, n.Name(), why)
			break
		}
	}
	return c.api.diagnose(err, c.run, c.pods.all())
}

// podGone ends the connections to a pod that no longer exists.
func (c *Cluster) podGone(pod *corev1.Pod) {
	for _, n := range c.nodes {
		if n.pod == pod.Name && n.relay != nil {
			n.relay.cut()
		}
	}
}

func (c *Cluster) URL() string { return c.database.URL() }

func (c *Cluster) NodeURL(i int) string {
	if i < 0 || i >= len(c.nodes) {
		return ""
	}
	return c.database.NodeURL(i)
}

func (c *Cluster) Nodes() (list []cluster.Node) {
	for _, n := range c.nodes {
		list = append(list, n.capable())
	}
	return list
}

func (c *Cluster) Leader(ctx context.Context) (int, error) { return c.database.Leader(ctx) }

func (c *Cluster) WaitHealthy(ctx context.Context) error {
	return c.pods.until(ctx, func() error {
		for _, n := range c.nodes {
			if err := ready(n.current(), n.pod); err != nil {
				return err
			}
		}
		if err := c.spec.Healthy(ctx, c.api); err != nil {
			return err
		}
		return c.database.Whole(ctx)
	})
}

// Deployment describes how the database was made and is reached, for the report.
func (c *Cluster) Deployment() string {
	by := "a StatefulSet of stroppy's own"
	if c.spec.Name != c.run {
		by = "somebody else"
	}
	if c.spec.Operator.Name != "" {
		by = "the operator " + c.spec.Operator.Name
	}
	way := "through the API server"
	switch {
	case c.kind.Direct:
		way = "at their own addresses"
	case len(c.nodes) > 0 && c.nodes[0].direct():
		way = "at their own addresses, over a relay in this process"
	}
	return strings.TrimSpace(fmt.Sprintf("Kubernetes, by %s; the pods are reached %s", by, way))
}

// Stop removes all that was made, except the database after Keep. It may be called again.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		var errs []error
		if c.meter != nil {
			c.meter.end()
		}
		if closer, ok := c.database.(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
		for _, n := range c.nodes {
			if n.relay != nil {
				n.relay.stop()
			}
		}
		c.network.close()
		switch {
		case c.owner == nil:
		case c.kept:
			errs = append(errs, c.owner.keep())
		default:
			errs = append(errs, c.owner.giveUp())
		}
		if c.pods != nil {
			c.pods.stop()
		}
		for _, folder := range c.folders {
			errs = append(errs, os.RemoveAll(folder))
		}
		if c.record != nil && errors.Join(errs...) == nil {
			errs = append(errs, c.record.Close())
		}
		c.stopErr = errors.Join(errs...)
	})
	return c.stopErr
}

// Clear removes what a killed run of this machine left behind, by the name in its record. It reports whether anything
// was left.
func Clear(ctx context.Context, name string) (bool, error) {
	var l leftover
	if err := json.Unmarshal([]byte(name), &l); err != nil || !strings.HasPrefix(l.Run, namePrefix) {
		return false, fmt.Errorf("clear the objects of a run in Kubernetes: its record is damaged")
	}
	api, err := Connect(ctx, Access{Kubeconfig: l.Kubeconfig, Context: l.Context, Namespace: l.Namespace})
	if err != nil {
		return false, err
	}
	lease, err := api.Get(ctx, leaseKind, leaseName(l.Run))
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for objects of %s: %w", l.Run, err)
	case isKept(lease): // and its run was killed while it removed the rest
		return false, nil
	}
	_, err = api.clearLease(ctx, lease)
	return err == nil, err
}
