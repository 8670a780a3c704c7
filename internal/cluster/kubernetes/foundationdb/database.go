package foundationdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
)

const (
	// askEvery is the least time between two questions for the status, which the cluster collects
	// from all its processes.
	askEvery = 500 * time.Millisecond
	// askLimit bounds one question. The status waits up to five seconds for each thing that does
	// not answer (fdbserver/Status.actor.cpp, 7.3).
	askLimit = 15 * time.Second
	// dialLimit bounds the look whether a coordinator is reached, and reachLimit that whether any
	// is: the names of pods are known some time after the pods.
	dialLimit, reachLimit = 2 * time.Second, 10 * time.Second
)

// state is what is read of what the driver keeps of the status.
type state struct {
	Available   bool                `json:"database_available"`
	Recovery    string              `json:"recovery_state"`
	Data        string              `json:"data_state"`
	Healthy     bool                `json:"data_healthy"`
	Spare       int                 `json:"max_zone_failures_without_losing_data"`
	Roles       map[string][]string `json:"roles"` // by the address of the process
	Excluded    []string            `json:"excluded"`
	Unreachable []string            `json:"unreachable_coordinators"`
}

// database is FoundationDB as its clients know it.
type database struct {
	api    *kubernetes.API
	spec   *kubernetes.Spec
	client Client
	file   string // the cluster file of the clients on this machine
	single bool   // the data have one copy

	connection atomic.Pointer[string] // that the file has
	lock       cluster.Lock           // of what follows, and of writing the file
	observer   Observer               // nil until it is opened
	asked      time.Time
}

// replicated is a database whose data have several copies, so that a server can be replaced.
type replicated struct{ *database }

// connect waits until the operator counts the cluster as well, which is when its coordinators are
// known, and sees that one of them is reached.
func connect(ctx context.Context, a *kubernetes.API, s *kubernetes.Spec, client Client) (kubernetes.Database, error) {
	folder, err := s.Folder()
	if err != nil {
		return nil, err
	}
	d := &database{api: a, spec: s, client: client, file: filepath.Join(folder, "fdb.cluster"), lock: cluster.NewLock()}
	var o *kubernetes.Object
	err = cluster.RetryEvery(ctx, askEvery, func() (err error) {
		if o, err = a.Get(ctx, fdbCluster, s.Name); err == nil {
			err = reconciled(o)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if secure, _, _ := unstructured.NestedBool(o.Object, "spec", "mainContainer", "enableTls"); secure {
		return nil, kubernetes.Hopeless(fmt.Sprintf("the FoundationDBCluster %s has TLS, whose certificates are not read here: give its cluster file with --db", s.Name))
	}
	if err := d.follow(o); err != nil {
		return nil, err
	}
	if err := d.reached(ctx); err != nil {
		return nil, err
	}
	mode, _, _ := unstructured.NestedString(o.Object, "spec", "databaseConfiguration", "redundancy_mode")
	return d.withCopies(mode), nil
}

// withCopies is the database with what can be done to one of this redundancy.
func (d *database) withCopies(mode string) kubernetes.Database {
	if d.single = mode == "single"; d.single {
		return d
	}
	return replicated{d}
}

// follow writes the connection string that the operator has now into the clients' file.
func (d *database) follow(o *kubernetes.Object) error {
	connection, _, _ := unstructured.NestedString(o.Object, "status", "connectionString")
	switch before := d.connection.Load(); {
	case connection == "":
		return errors.New("its operator does not say how it is reached")
	case before != nil && *before == connection:
		return nil
	}
	next := d.file + ".next"
	err := os.WriteFile(next, []byte(connection+"\n"), 0o600)
	if err == nil {
		err = os.Rename(next, d.file)
	}
	if err != nil {
		return fmt.Errorf("write the cluster file: %w", err)
	}
	d.connection.Store(&connection)
	return nil
}

// reached says that no coordinator is, to which and to all servers a client connects by itself.
func (d *database) reached(ctx context.Context) error {
	_, list, _ := strings.Cut(*d.connection.Load(), "@")
	limited, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	err := cluster.RetryEvery(limited, askEvery, func() (err error) {
		for coordinator := range strings.SplitSeq(list, ",") {
			var conn net.Conn
			if conn, err = (&net.Dialer{Timeout: dialLimit}).DialContext(limited, "tcp", coordinator); err == nil {
				return conn.Close()
			}
		}
		return err
	})
	if err == nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return kubernetes.Hopeless(fmt.Sprintf("a client of FoundationDB goes to the servers by their own names and addresses, and from here no coordinator of %s is reached: run stroppy in a pod, as the job of its Helm chart does, or on a machine of the pods' network with coordinators=addresses", list))
}

// URL implements kubernetes.Database, as the methods below do.
func (d *database) URL() string { return "fdb:" + d.file }

// NodeURL is the URL of all: a client of FoundationDB reads from whichever server it likes.
func (d *database) NodeURL(int) string { return d.URL() }

// InsideURL implements kubernetes.Inside: pods do not have the file.
func (d *database) InsideURL() string {
	return "fdb:?" + url.Values{"connection": {*d.connection.Load()}}.Encode()
}

func (d *database) Close() error {
	if err := d.lock.Acquire(context.Background()); err != nil { // a question ends within askLimit
		return err
	}
	defer d.lock.Release()
	if d.observer == nil {
		return nil
	}
	return d.observer.Close()
}

// Whole is nil when the data and the logs have all their copies, all coordinators answer, and the
// process of each node has joined.
func (d *database) Whole(ctx context.Context) error {
	o, err := d.api.Get(ctx, fdbCluster, d.spec.Name)
	if err != nil {
		return err
	}
	s, err := d.ask(ctx, o)
	if err == nil {
		err = s.whole(d.spares())
	}
	for i := range d.spec.Nodes {
		if err == nil {
			err = d.joined(s, i)
		}
	}
	return err
}

// spares is how many nodes may be lost of a cluster that is whole.
func (d *database) spares() int {
	if d.single {
		return 0
	}
	return 1
}

// ask asks the cluster for its state, by the connection string of o, if that is given.
func (d *database) ask(ctx context.Context, o *kubernetes.Object) (s state, err error) {
	if err := d.lock.Acquire(ctx); err != nil {
		return s, err
	}
	defer d.lock.Release()
	if o != nil {
		if err := d.follow(o); err != nil {
			return s, err
		}
	}
	if err := cluster.Sleep(ctx, time.Until(d.asked.Add(askEvery))); err != nil {
		return s, err
	}
	defer func() { d.asked = time.Now() }()
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if d.observer == nil {
		if d.observer, err = d.client.Open(limited, d.URL()); err != nil {
			d.observer = nil
			return s, err
		}
	}
	text, err := d.observer.State(limited)
	if err != nil {
		if ctx.Err() == nil { // else who asked did not wait; the next question goes by the coordinators of then
			err = errors.Join(err, d.observer.Close())
			d.observer = nil
		}
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read the state of FoundationDB: %w", err)
	}
	return s, nil
}

// whole says what is wrong with the data and the logs, of which so many nodes may be lost. The
// state of the data alone is called healthy before the logs have been recruited anew.
func (s *state) whole(spare int) error {
	switch {
	case !s.Available:
		return fmt.Errorf("the database is not available, its recovery is at %q", s.Recovery)
	case s.Recovery != "fully_recovered":
		return fmt.Errorf("its recovery is at %q", s.Recovery)
	case !s.Healthy:
		return fmt.Errorf("its data are in the state %q", s.Data)
	case s.Spare < spare:
		return fmt.Errorf("the loss of %d nodes would now be a loss of data", spare)
	case len(s.Unreachable) > 0:
		return fmt.Errorf("the coordinators at %s do not answer", strings.Join(s.Unreachable, ", "))
	}
	return nil
}

// address is where a node's process is; empty while its pod has none.
func (d *database) address(node int) string {
	host := d.spec.Address(node)
	if host == "" {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// joined says why the process of a node is not one of the cluster's.
func (d *database) joined(s state, node int) error {
	address := d.address(node)
	if _, found := s.Roles[address]; !found {
		return fmt.Errorf("the process of n%d has not joined", node)
	}
	if slices.Contains(s.Excluded, address) {
		return fmt.Errorf("the process of n%d is excluded", node)
	}
	return nil
}

// Leader is the node with the cluster controller.
func (d *database) Leader(ctx context.Context) (leader int, err error) {
	err = cluster.RetryEvery(ctx, askEvery, func() error {
		s, err := d.ask(ctx, nil)
		if err != nil {
			return err
		}
		for i := range d.spec.Nodes {
			if slices.Contains(s.Roles[d.address(i)], "cluster_controller") {
				leader = i
				return nil
			}
		}
		return errors.New("no node has the cluster controller")
	})
	if err != nil {
		return 0, fmt.Errorf("find the cluster controller of FoundationDB: %w", err)
	}
	return leader, nil
}

// Expendable implements kubernetes.Remade, as Joined does: the data are of no need on a node when
// the others have all their copies, without it, if it is down, or with one more.
func (d replicated) Expendable(ctx context.Context, node int) error {
	s, err := d.ask(ctx, nil)
	if err != nil {
		return err
	}
	own := map[string]bool{}
	for i := range d.spec.Nodes {
		own[d.address(i)] = true
	}
	for address := range s.Roles {
		if !own[address] {
			// The process of a pod that has gone: what is said of the data counts it yet.
			return fmt.Errorf("the process at %s, whose pod has gone, is listed yet", address)
		}
	}
	spare := 0
	if d.joined(s, node) == nil {
		spare = 1 // while it is down, its loss is counted already
	}
	return s.whole(spare)
}

func (d replicated) Joined(ctx context.Context, node int) error {
	o, err := d.api.Get(ctx, fdbCluster, d.spec.Name)
	if err != nil {
		return err
	}
	s, err := d.ask(ctx, o)
	if err != nil {
		return err
	}
	return d.joined(s, node)
}
