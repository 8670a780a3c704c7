package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
)

// Kind describes a kind of database cluster. Each folder below defines one.
type Kind struct {
	Name    string // as in --cluster k8s/NAME:N
	Port    int    // of each server, for clients
	Image   string // of the servers, without a version; empty: the operator decides
	Version string // default version
	Disk    string // default size of each server's disk, as a quantity
	// Operators of which one must be installed; of several, the first is used.
	Operators []Operator
	// Rights are needed in addition to the rights for the rendered objects.
	Rights []Right
	// Connect returns the database for the addresses (HOST:PORT) of its servers, by node.
	Connect func(ctx context.Context, a *API, s *Spec, addresses []string) (Database, error)
	// Unconnected returns a database with the capabilities of Connect's result, for a dry run. Only its leader is
	// asked for, with a context that has ended.
	Unconnected func(s *Spec) Database
	// StatefulSet is set if a rendered StatefulSet, with the cluster's name, makes the pods and never replaces them by
	// itself (updateStrategy OnDelete). Then a node can stay down during a fault and can be replaced by an empty one.
	StatefulSet bool
	// Direct is set if clients use the pods' own addresses, which Connect checks. Then there are no relays.
	Direct bool
	// Params are the kind's own parameters with their default values.
	Params map[string]string
	// Settings returns why a setting of the server cannot be given; nil: none can.
	Settings func(name, value string) error
	// Check returns why a cluster with this Spec is not possible, before anything is made or asked. It returns a
	// *cluster.ParamError for a wrong parameter. It returns a host.MissingError last, if this build lacks
	// something.
	Check func(s *Spec) error
}

// Operator makes a database from its own kind of resource. If it has no Kind, Kubernetes itself is enough.
type Operator struct {
	Name    string // its usual name
	Kind    schema.GroupVersionKind
	Install string // the command that installs it
	// Labels are the labels of the servers' pods and volume claims. NAME in a value stands for the database's
	// name. An empty value is a label that the pods of another operator have.
	Labels labels.Set
	// Secrets are the labels of secrets that the operator makes and leaves behind, in the same form; nil: none.
	Secrets labels.Set
	// PodPrefix, with NAME, begins the name of a node's pod. A number follows, which is FirstPod for the first
	// node. If the prefix is empty, the operator draws names, and the pods with the labels are the nodes in the order
	// of their names.
	PodPrefix string
	FirstPod  int
	// Render returns the objects to apply, in this order. They are deleted in the same order. They have no run label
	// yet.
	Render func(s *Spec) []*Object
	// Status returns why the operator does not regard the database as healthy, by its resource, or nil.
	Status func(o *Object, s *Spec) error
}

// nameMark stands for the name of a database in the labels and names that an operator gives its objects.
const nameMark = "NAME"

// named returns labels of the objects of a database.
func named(forms labels.Set, name string) labels.Set {
	set := labels.Set{}
	for label, form := range forms {
		if form != "" {
			set[label] = strings.Replace(form, nameMark, name, 1)
		}
	}
	return set
}

// NameOf returns the name of an existing database from the labels of its pods, or "" if another operator made them.
func (o *Operator) NameOf(pod map[string]string) (name string) {
	for label, form := range o.Labels {
		before, after, has := strings.Cut(form, nameMark)
		rest, begins := strings.CutPrefix(pod[label], before)
		rest, ends := strings.CutSuffix(rest, after)
		if !begins || !ends || !has && rest != "" {
			return ""
		}
		if has {
			name = rest
		}
	}
	return name
}

// Database is a connected database. It may be an io.Closer of what Connect has opened.
type Database interface {
	URL() string          // of all servers, in the form that --db takes
	NodeURL(i int) string // of one server alone
	// Whole returns an error unless all nodes are members, have caught up and answer.
	Whole(ctx context.Context) error
	// Leader returns the node that accepts writes, or cluster.ErrNoLeader.
	Leader(ctx context.Context) (int, error)
}

// Mover is a database that can hand leadership over in an orderly way.
type Mover interface {
	MoveLeader(ctx context.Context, to int) error
}

// Rejoiner is a database with a list of members. Rejoin removes an empty node from the list and adds it again. It is
// called while the node is down.
type Rejoiner interface {
	Rejoin(ctx context.Context, node int) error
}

// Remade is a database whose operator makes a server again, empty, after its pod and its volume claims were deleted.
type Remade interface {
	// Expendable returns an error while the data of a node are needed; nil if the other nodes have all of them.
	Expendable(ctx context.Context, node int) error
	// Joined returns why a node that answers is not a member yet.
	Joined(ctx context.Context, node int) error
}

// Spec describes the requested database.
type Spec struct {
	Name     string // name of its objects, random for this run
	Nodes    int
	Operator *Operator // the operator that makes it; nil in a dry run

	Image, Pull  string // image with its version, and when to pull it
	Version      string
	CPU, Memory  string // of each server, as quantities; empty: no limit
	Disk         string // of each server, as a quantity
	StorageClass string // empty: the default class
	ToolImage    string // image of stroppy, for the probe
	Settings     [][2]string
	Params       map[string]string // the kind's own
	Pods         []string          // names of the nodes' pods, by node, when they are known
	Formed       bool              // the first nodes have formed a cluster

	Address func(node int) string  // address of a node's present pod; empty: it has none
	Folder  func() (string, error) // makes a folder on this machine that is removed with the cluster
}

// namePrefix begins the name of each cluster of this program.
const namePrefix = "stroppy-"

// startLimit is the default of wait=, the time until a cluster must be healthy.
const startLimit = 5 * time.Minute

// asked holds the parameters of --cluster.
type asked struct {
	Spec
	Access
	wait     time.Duration
	forward  bool   // reach pods through the API server even if they answer at their addresses
	selector string // labels of the pods of an existing database; empty: make one
}

// read reads the parameters. The error is a *cluster.ParamError, or the error of Check together with the result.
func (k *Kind) read(o cluster.Options, toolVersion string) (*asked, error) {
	a := &asked{Spec: Spec{Nodes: o.Nodes, Disk: k.Disk, Version: k.Version, Pull: "IfNotPresent", ToolImage: "stroppy:" + toolVersion, Params: map[string]string{}}, wait: startLimit}
	text := func(to *string) func(string) error {
		return func(value string) error {
			if *to = value; value == "" {
				return errors.New("it is empty: leave it out or give it a value")
			}
			return nil
		}
	}
	known := map[string]func(string) error{
		"kubeconfig": text(&a.Kubeconfig), "context": text(&a.Context), "namespace": text(&a.Namespace),
		"cpu": quantity(&a.CPU), "memory": quantity(&a.Memory), "disk": quantity(&a.Disk), "storage-class": text(&a.StorageClass),
		"version": text(&a.Version), "image": text(&a.Image), "tool-image": text(&a.ToolImage),
		"reach": cluster.OneOf(func(v string) { a.forward = v == "forward" }, "auto", "forward"),
		"selector": func(value string) error {
			parsed, err := labels.Parse(value)
			if err != nil || parsed.Empty() {
				return errors.New("it must be labels in the notation of kubectl, such as app=ledger-db")
			}
			a.selector = parsed.String()
			return nil
		},
		"pull": cluster.OneOf(func(v string) { a.Pull = v }, "Always", "IfNotPresent", "Never"),
		"wait": cluster.Between(&a.wait, time.Second, 24*time.Hour, "10m"),
	}
	if o.Params.Has("bin") {
		return nil, &cluster.ParamError{Param: "bin", Reason: "the programs are in the image: name another image by version= or image="}
	}
	for name, value := range k.Params {
		known[name] = func(value string) error {
			a.Params[name] = value
			return nil
		}
		a.Params[name] = value
	}
	if err := (cluster.Params{Kind: "a cluster in Kubernetes", Known: known, Set: k.set(a)}).Read(o.Params); err != nil {
		return nil, err
	}
	if a.Image == "" && k.Image != "" {
		a.Image = k.Image + ":" + a.Version
	}
	if k.Direct && a.forward {
		return nil, &cluster.ParamError{Param: "reach", Reason: "clients of this database need the pods' own addresses, so they cannot connect through the API server: leave it out"}
	}
	if k.Check != nil {
		return a, k.Check(&a.Spec)
	}
	return a, nil
}

// set stores settings of the server.
func (k *Kind) set(a *asked) func(name, value string) error {
	return func(name, value string) error {
		if k.Settings == nil {
			return fmt.Errorf("k8s/%s has no settings of the server", k.Name)
		}
		if err := k.Settings(name, value); err != nil {
			return err
		}
		a.Settings = append(a.Settings, [2]string{name, value})
		return nil
	}
}

// PlainSettings returns a check of settings whose names have only letters, digits and marks.
func PlainSettings(product, marks string) func(name, value string) error {
	return func(name, value string) error {
		return cluster.Settings(product, marks, nil, map[string]string{})(name, value)
	}
}

// quantity accepts an amount in the notation of Kubernetes.
func quantity(to *string) func(string) error {
	return func(value string) error {
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Sign() <= 0 {
			return errors.New("it must be an amount in the notation of Kubernetes, such as 2, 500m or 4Gi")
		}
		*to = value
		return nil
	}
}

// kindsOf returns the kinds of objects, each once and in their order.
func kindsOf(objects []*Object) (kinds []schema.GroupVersionKind) {
	for _, o := range objects {
		if kind := o.GroupVersionKind(); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// operator returns the first of the kind's operators that Kubernetes has.
func (k *Kind) operator(a *API) (*Operator, error) {
	var install []string
	for i := range k.Operators {
		o := &k.Operators[i]
		if o.Kind.Empty() {
			return o, nil
		}
		there, err := a.has(o.Kind)
		if err != nil {
			return nil, fmt.Errorf("look for the operator %s: %w", o.Name, err)
		}
		if there {
			return o, nil
		}
		install = append(install, fmt.Sprintf("%s (`%s`)", o.Name, o.Install))
	}
	return nil, fmt.Errorf("no operator for k8s/%s is installed: install %s", k.Name, strings.Join(install, ", or "))
}

// Labels returns the labels of the servers' pods and volume claims.
func (s *Spec) Labels() labels.Set { return named(s.Operator.Labels, s.Name) }

// Pod returns the name of a node's pod, unless the operator draws names.
func (s *Spec) Pod(node int) string {
	return strings.Replace(s.Operator.PodPrefix, nameMark, s.Name, 1) + strconv.Itoa(s.Operator.FirstPod+node)
}

// Hosts returns the HOST:PORT of each pod, by its name in a service, for pods of the namespace.
func (s *Spec) Hosts(service string, port int) string {
	var hosts []string
	for _, pod := range s.Pods {
		hosts = append(hosts, fmt.Sprintf("%s.%s:%d", pod, service, port))
	}
	return strings.Join(hosts, ",")
}

// Resource returns the operator's resource with a specification. Fields whose value is nil are left out.
func (s *Spec) Resource(spec map[string]any) *Object {
	prune(spec)
	return NewObject(s.Operator.Kind.GroupVersion().String(), s.Operator.Kind.Kind, s.Name, map[string]any{"spec": spec})
}

func prune(value any) {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, field any) bool { return field == nil })
		for _, field := range v {
			prune(field)
		}
	case []any:
		for _, element := range v {
			prune(element)
		}
	}
}

// Given returns a value for Resource, or nil if it is empty.
func Given[T string | map[string]any | []any](value T) any {
	if len(value) == 0 {
		return nil
	}
	return value
}

// Made returns the operator's resource from the API server.
func (s *Spec) Made(ctx context.Context, a *API) (*Object, error) {
	return a.Get(ctx, s.Operator.Kind, s.Name)
}

// Healthy returns why the operator does not regard the database as healthy, or nil.
func (s *Spec) Healthy(ctx context.Context, a *API) error {
	if s.Operator.Status == nil {
		return nil
	}
	o, err := s.Made(ctx, a)
	if err != nil {
		return err
	}
	return s.Operator.Status(o, s)
}

// Resources returns the resource limits of a container, as in its specification.
func (s *Spec) Resources() map[string]any {
	amounts := map[string]any{"cpu": Given(s.CPU), "memory": Given(s.Memory)}
	if prune(amounts); len(amounts) == 0 {
		return map[string]any{}
	}
	return map[string]any{"requests": amounts, "limits": amounts}
}

// ClaimSpec returns the specification of a volume claim.
func (s *Spec) ClaimSpec() map[string]any {
	claim := map[string]any{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": Given(s.StorageClass),
		"resources": map[string]any{"requests": map[string]any{"storage": s.Disk}}}
	prune(claim)
	return claim
}
