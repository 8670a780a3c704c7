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

	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/wait"
)

const (
	// askEvery is the shortest interval between two queries of the status, which the cluster collects from all its
	// processes.
	askEvery = 500 * time.Millisecond
	// askLimit bounds one query. The status waits up to five seconds for each component that does not answer
	// (fdbserver/Status.actor.cpp, 7.3).
	askLimit = 15 * time.Second
	// dialLimit bounds a connection to one coordinator, and reachLimit the wait for any coordinator. The names of
	// pods are known only some time after the pods.
	dialLimit, reachLimit = 2 * time.Second, 10 * time.Second
)

// state is the part of the driver's status that is used here.
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

// database is a connected FoundationDB.
type database struct {
	api    *kubernetes.API
	spec   *kubernetes.Spec
	client Client
	file   string // cluster file of the clients on this machine
	single bool   // the data have one copy

	connection atomic.Pointer[string] // content of the file
	lock       wait.Lock              // guards the fields below and the writing of the file
	observer   Observer               // nil until it is opened
	asked      time.Time
}

// replicated is a database with several copies of the data, so that a server can be replaced.
type replicated struct{ *database }

// connect waits until the operator reports the cluster as healthy, because the coordinators are known then. It
// verifies that one of them can be reached.
func connect(ctx context.Context, a *kubernetes.API, s *kubernetes.Spec, client Client) (kubernetes.Database, error) {
	folder, err := s.Folder()
	if err != nil {
		return nil, err
	}
	d := &database{api: a, spec: s, client: client, file: filepath.Join(folder, "fdb.cluster"), lock: wait.NewLock()}
	var o *kubernetes.Object
	err = wait.RetryEvery(ctx, askEvery, func() (err error) {
		if o, err = s.Made(ctx, a); err == nil {
			err = status(o, s)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if kubernetes.Flag(o.Object, "spec", "mainContainer", "enableTls") {
		return nil, kubernetes.Hopeless(fmt.Sprintf("the FoundationDBCluster %s has TLS, and its certificates are not read here: use its cluster file with --db", s.Name))
	}
	if err := d.follow(o); err != nil {
		return nil, err
	}
	if err := d.reached(ctx); err != nil {
		return nil, err
	}
	return d.withCopies(kubernetes.Text(o.Object, "spec", "databaseConfiguration", "redundancy_mode")), nil
}

// withCopies returns the database with the capabilities of a redundancy mode.
func (d *database) withCopies(mode string) kubernetes.Database {
	if d.single = mode == "single"; d.single {
		return d
	}
	return replicated{d}
}

// follow writes the operator's current connection string into the clients' file.
func (d *database) follow(o *kubernetes.Object) error {
	connection := kubernetes.Text(o.Object, "status", "connectionString")
	switch before := d.connection.Load(); {
	case connection == "":
		return errors.New("its operator does not report a connection string")
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

// reached returns an error if no coordinator can be reached. A client connects to coordinators and servers directly.
func (d *database) reached(ctx context.Context) error {
	_, list, _ := strings.Cut(*d.connection.Load(), "@")
	limited, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	err := wait.RetryEvery(limited, askEvery, func() (err error) {
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
	return kubernetes.Hopeless(fmt.Sprintf("a client of FoundationDB connects to the servers directly, but no coordinator of %s can be reached: run stroppy in a pod, as the job of its Helm chart does, or on a machine of the pods' network with coordinators=addresses", list))
}

func (d *database) URL() string { return "fdb:" + d.file }

// NodeURL returns the URL of the whole cluster, because a client of FoundationDB reads from any server.
func (d *database) NodeURL(int) string { return d.URL() }

// InsideURL implements kubernetes.Inside: pods do not have the file.
func (d *database) InsideURL() string {
	return "fdb:?" + url.Values{"connection": {*d.connection.Load()}}.Encode()
}

func (d *database) Close() error {
	if err := d.lock.Acquire(context.Background()); err != nil { // a query ends within askLimit
		return err
	}
	defer d.lock.Release()
	if d.observer == nil {
		return nil
	}
	return d.observer.Close()
}

// Whole returns nil if the data and the logs have all their copies, all coordinators answer, and the process of each
// node has joined.
func (d *database) Whole(ctx context.Context) error {
	s, err := d.now(ctx)
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

// now asks the cluster for its state through the operator's current connection string.
func (d *database) now(ctx context.Context) (s state, err error) {
	o, err := d.spec.Made(ctx, d.api)
	if err != nil {
		return s, err
	}
	return d.ask(ctx, o)
}

// spares returns how many nodes of a healthy cluster may be lost.
func (d *database) spares() int {
	if d.single {
		return 0
	}
	return 1
}

// ask asks the cluster for its state, through the connection string of o if that is not nil.
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
	if err := wait.Sleep(ctx, time.Until(d.asked.Add(askEvery))); err != nil {
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
		if ctx.Err() == nil { // otherwise the caller gave up; the next query uses the coordinators of that time
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

// whole returns an error unless the data and the logs survive the loss of spare nodes. The data alone count as
// healthy before the logs have been recruited again.
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

// address returns the address of a node's process, or "" if its pod has none.
func (d *database) address(node int) string {
	host := d.spec.Address(node)
	if host == "" {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// joined returns why the process of a node is not part of the cluster, or nil.
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

// Leader returns the node with the cluster controller.
func (d *database) Leader(ctx context.Context) (leader int, err error) {
	err = wait.RetryEvery(ctx, askEvery, func() error {
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

// Expendable implements kubernetes.Remade. The data of a node are not needed if the others have all copies. If the
// node is up, they must have one more.
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
			// The process of a pod that has gone is still counted in the state of the data.
			return fmt.Errorf("the process at %s is still listed, although its pod is gone", address)
		}
	}
	spare := 0
	if d.joined(s, node) == nil {
		spare = 1 // the loss of a node that is down is counted already
	}
	return s.whole(spare)
}

func (d replicated) Joined(ctx context.Context, node int) error {
	s, err := d.now(ctx)
	if err != nil {
		return err
	}
	return d.joined(s, node)
}
