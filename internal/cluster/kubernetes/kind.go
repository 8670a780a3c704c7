package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
)

// Kind is a kind of database cluster as this package knows it. A folder below has one.
type Kind struct {
	Name    string // as in --cluster k8s/NAME:N
	Port    int    // of each server, for clients
	Image   string // of the servers, without its version; empty: the operator decides
	Version string // where none is asked for
	Disk    string // of each server, as a quantity, where none is asked for
	// Operators of which one has to be there, the first of them if several are; none: Kubernetes
	// itself is enough.
	Operators []Operator
	// Rights that the kind needs beside those for what Render returns.
	Rights []Right
	// Render returns what is applied, in this order, and deleted, in this order too. The run's
	// label is not on it yet.
	Render func(s *Spec) []*Object
	// Pods are the labels of the servers' pods and of their volume claims.
	Pods func(s *Spec) labels.Set
	// Secrets are the labels of secrets that the operator makes and leaves when its resource has
	// gone; nil: there are none.
	Secrets func(s *Spec) labels.Set
	// Pod is the name of a node's pod. Empty: the operator alone knows, and the pods that have the
	// labels are the nodes, in the order of their names.
	Pod func(s *Spec, node int) string
	// Status says why the operator does not count the database as well, nil if it does. Nil:
	// there is no operator.
	Status func(ctx context.Context, a *API, s *Spec) error
	// Connect returns the database, whose servers have these addresses (HOST:PORT), by node.
	Connect func(ctx context.Context, a *API, s *Spec, addresses []string) (Database, error)
	// Unconnected returns a database with the capabilities of the one that Connect returns, for a dry
	// run: it is asked for nothing but its leader, by a context that has ended.
	Unconnected func(s *Spec) Database
	// StatefulSet is set where Render's StatefulSet of the cluster's name makes the pods, and
	// changes none of them by itself (updateStrategy OnDelete): then a node stays down for as
	// long as a fault lasts, and can be replaced by an empty one.
	StatefulSet bool
	// Direct is set where clients go to the addresses of the pods' own, which Connect sees to be
	// reached: then there are no relays.
	Direct bool
	// Params are parameters of the kind's own: name → value where none is given.
	Params map[string]string
	// Settings says why a setting of the server's own cannot be given; nil: none can.
	Settings func(name, value string) error
	// Check says why what is asked for cannot be had, before anything is made or asked; an error
	// of a parameter is a *cluster.ParamError, and a cluster.MissingError, which comes last, one of
	// this program's build. Nil: nothing more is looked at.
	Check func(s *Spec) error
}

// Operator is one that makes a database of a resource of its own.
type Operator struct {
	Name    string // as people know it
	Kind    schema.GroupVersionKind
	Install string // the command
	// NameOf is the name of the database whose pods have labels, for one that is there already;
	// empty: another one has made them.
	NameOf func(labels map[string]string) string
}

// Database is a database as its own servers and clients know it.
type Database interface {
	URL() string          // of all servers, as --db takes it
	NodeURL(i int) string // of one server alone
	Close() error         // of what Connect has opened
	// Whole says why not all nodes are members, have caught up and answer.
	Whole(ctx context.Context) error
	// Leader returns the node that takes the writes, or cluster.ErrNoLeader.
	Leader(ctx context.Context) (int, error)
}

// Mover is a database that can hand the lead over in good order.
type Mover interface {
	MoveLeader(ctx context.Context, to int) error
}

// Rejoiner is a database with a list of members: one that comes back empty has to be taken
// off it, and put on it again. It is called while the node is down.
type Rejoiner interface {
	Rejoin(ctx context.Context, node int) error
}

// Remade is a database whose operator makes a server anew, and empty, when its pod and its volume
// claims were deleted.
type Remade interface {
	// Expendable says why the data of a node are needed now, nil if the others have all of them.
	Expendable(ctx context.Context, node int) error
	// Joined says why a node is no member yet that answers.
	Joined(ctx context.Context, node int) error
}

// Spec is a database that is asked for.
type Spec struct {
	Name     string // of its objects; drawn for this run
	Nodes    int
	Operator *Operator // that makes it; nil where none does

	Image, Pull  string // with its version; when it is pulled
	Version      string
	CPU, Memory  string // of each server, as quantities; empty: not bounded
	Disk         string // of each server, as a quantity
	StorageClass string // empty: the default one
	ToolImage    string // of stroppy, for the probe
	Settings     [][2]string
	Params       map[string]string // of the kind's own
	Pods         []string          // names of the nodes' pods, by node, once they are known
	Formed       bool              // the first nodes have become a cluster

	Address func(node int) string  // of a node's pod now; empty: it has none
	Folder  func() (string, error) // makes a folder on this machine that goes with the cluster
}

// namePrefix begins the name of each cluster that this program makes.
const namePrefix = "stroppy-"

// startLimit bounds how long a cluster may take until it is well, where wait= does not say.
const startLimit = 5 * time.Minute

// asked is what the parameters of --cluster say.
type asked struct {
	Spec
	Access
	wait     time.Duration
	forward  bool   // pods are reached through the API server, whether or not they answer at their addresses
	selector string // labels of the pods of a database that is there already; empty: make one
}

// read reads the parameters. The error is that of Check, beside what was read, or a
// *cluster.ParamError.
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
				return errors.New("it must be labels as kubectl takes them, such as app=ledger-db")
			}
			a.selector = parsed.String()
			return nil
		},
		"pull": cluster.OneOf(func(v string) { a.Pull = v }, "Always", "IfNotPresent", "Never"),
		"wait": cluster.Between(&a.wait, time.Second, 24*time.Hour, "10m"),
	}
	if o.Params.Has("bin") {
		return nil, &cluster.ParamError{Param: "bin", Reason: "the programs are in the image: name another by version= or image="}
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
		return nil, &cluster.ParamError{Param: "reach", Reason: "clients of this database go to the pods' own addresses, which the API server does not hand on: leave it out"}
	}
	if k.Check != nil {
		return a, k.Check(&a.Spec)
	}
	return a, nil
}

// set takes settings of the server's own.
func (k *Kind) set(a *asked) func(name, value string) error {
	return func(name, value string) error {
		if k.Settings == nil {
			return fmt.Errorf("k8s/%s takes no settings of the server's", k.Name)
		}
		if err := k.Settings(name, value); err != nil {
			return err
		}
		a.Settings = append(a.Settings, [2]string{name, value})
		return nil
	}
}

// quantity takes an amount as Kubernetes writes it.
func quantity(to *string) func(string) error {
	return func(value string) error {
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Sign() <= 0 {
			return errors.New("it must be an amount as Kubernetes writes it, such as 2, 500m or 4Gi")
		}
		*to = value
		return nil
	}
}

// kindsOf are the kinds of objects, each once and in their order.
func kindsOf(objects []*Object) (kinds []schema.GroupVersionKind) {
	for _, o := range objects {
		if kind := o.GroupVersionKind(); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// operator returns the first of the kind's operators whose resource the API server knows.
func (k *Kind) operator(a *API) (*Operator, error) {
	var install []string
	for i := range k.Operators {
		o := &k.Operators[i]
		there, err := a.has(o.Kind)
		if err != nil {
			return nil, fmt.Errorf("look for the operator %s: %w", o.Name, err)
		}
		if there {
			return o, nil
		}
		install = append(install, fmt.Sprintf("%s (`%s`)", o.Name, o.Install))
	}
	if len(install) == 0 {
		return nil, nil
	}
	return nil, fmt.Errorf("no operator for k8s/%s is installed: install %s", k.Name, strings.Join(install, ", or "))
}

// Resources are the bounds of a container as its specification has them.
func (s *Spec) Resources() map[string]any {
	amounts := map[string]any{}
	if s.CPU != "" {
		amounts["cpu"] = s.CPU
	}
	if s.Memory != "" {
		amounts["memory"] = s.Memory
	}
	if len(amounts) == 0 {
		return map[string]any{}
	}
	return map[string]any{"requests": amounts, "limits": amounts}
}

// ClaimSpec is what a volume claim asks for.
func (s *Spec) ClaimSpec() map[string]any {
	claim := map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": s.Disk}}}
	if s.StorageClass != "" {
		claim["storageClassName"] = s.StorageClass
	}
	return claim
}
