// Package patroni starts real PostgreSQL servers under Patroni on this machine. A Cluster is a primary with standbys,
// a Patroni on each node, which fails over, and the etcd servers with Patroni's state, the store.
package patroni

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/cluster/wait"
)

const (
	// scope is the name of the cluster in the store.
	scope = "stroppy"
	// askLimit bounds one query.
	askLimit = time.Second
	// storeLimit bounds the start of the store. storeSilence bounds how long it may not answer until the cluster has
	// started. bootLimit bounds the time until the first node begins the cluster in the store.
	storeLimit, storeSilence, bootLimit = 8 * time.Second, 5 * time.Second, 30 * time.Second
	// startEvery is the interval of checks whether a node has started, which takes seconds. More checks of all nodes
	// would take processor time from Patroni.
	startEvery = 50 * time.Millisecond
)

// Cluster is a running cluster under Patroni. The store has its own hosts in the same network: a node that is cut off
// from all others is cut off from the store as well.
type Cluster struct {
	*cluster.NodeSet[*node]
	cluster.EventLog
	params   params
	programs programs
	data     int // number of nodes with data, which come first; the others are the store
	giveUp   context.CancelCauseFunc
	begun    atomic.Bool          // the first nodes answer
	answered atomic.Int32         // index of the store's server that answered last
	leading  atomic.Pointer[node] // the primary, while it accepts writes with the leader key
	stuckFor time.Duration        // the constant, except in a test
}

type programs struct {
	python, patroni, etcd string
	bin                   string // folder of PostgreSQL's programs
	version               string // of Patroni
}

var (
	_ cluster.Mover     = (*Cluster)(nil)
	_ cluster.LocalNode = (*node)(nil)
)

// Start starts the store and the nodes, and returns when Patroni names a primary and all standbys stream from it. An
// error leaves nothing behind. It is a host.MissingError if a program is not installed, and a *cluster.ParamError
// for a wrong parameter. The parameters are:
//
//	failover=patroni      the only value
//	synchronous=on        off, on and strict are Patroni's synchronous_mode and
//	                      synchronous_mode_strict
//	ttl=3s, loop_wait=1s, retry_timeout=2s, failsafe_mode=off, maximum_lag_on_failover=1048576
//	                      Patroni's settings with these names; from version 3.1 on
//	                      retry_timeout=3s, and ttl=20s or loop_wait and twice retry_timeout
//	store=1               etcd servers with Patroni's state: 1 or 3
//	fsync=off             PostgreSQL's setting with this name
//	set.NAME=VALUE        any other setting of PostgreSQL, on all nodes
func Start(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params)
	if err != nil {
		return nil, err
	}
	found, lacks := find(o)
	if lacks == nil {
		if found.version, err = askVersion(ctx, found.patroni); err == nil {
			params, err = params.fit(found.version, o.Params)
		}
		if err != nil {
			return nil, err
		}
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	kind := cluster.Kind{Name: "postgres", PortTaken: "ddress already in use", Product: server.Product, Users: server.Users, Further: params.store, Lacks: lacks}
	return cluster.Launch(ctx, kind, o, func() *Cluster {
		c := &Cluster{params: params, programs: found, data: o.Nodes, stuckFor: stuckFor}
		c.NodeSet = cluster.NewNodeSet("the PostgreSQL cluster", c.newNode, c.healthy)
		c.LedBy("the primary of the PostgreSQL cluster", c.leads)
		return c
	}, func(c *Cluster, ctx context.Context) error {
		err := c.start(ctx, giveUp)
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent // the nodes' errors follow from it
		} else if ended, ok := errors.AsType[*endedError](err); ok {
			err = ended // the others give up because of it
		}
		return err
	})
}

// install is the advice if a part of Patroni is missing.
const install = "install the Debian packages patroni, python3-etcd and etcd-server"

// find finds all programs, and Patroni's module for its store.
func find(o cluster.Options) (p programs, err error) {
	found, err := o.FindAll([]string{"initdb", "postgres", "pg_basebackup", "pg_ctl", "pg_rewind", "pg_controldata"}, server.DebianPackage, server.Folders...)
	if err != nil {
		return p, err
	}
	p.bin = filepath.Dir(found["postgres"])
	for _, program := range []struct {
		path             *string
		name, debianName string
	}{{&p.patroni, "patroni", "patroni"}, {&p.etcd, "etcd", "etcd-server"}} {
		*program.path, err = host.Find(program.name, program.debianName)
		if missing, ok := errors.AsType[host.MissingError](err); ok {
			missing.Hint = install
			err = missing
		}
		if err != nil {
			return p, err
		}
	}
	if p.python, err = interpreter(p.patroni); err != nil {
		return p, err
	}
	return p, findModule(p.python)
}

// moduleLimit bounds the search for a module, which takes 0.1 s on an idle machine.
const moduleLimit = 10 * time.Second

// findModule looks for Patroni's Python module for etcd, which is not a dependency of Debian's package patroni. It
// imports a name from the module, because Python accepts an empty folder as a module. A search that timed out shows
// nothing.
func findModule(python string) error {
	ctx, cancel := context.WithTimeout(context.Background(), moduleLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-I", "-c", "from etcd import Client").CombinedOutput()
	if err != nil && (bytes.Contains(out, []byte("ImportError")) || bytes.Contains(out, []byte("ModuleNotFoundError"))) {
		return host.MissingError{Hint: "the Python module etcd, which Patroni needs, is not on this machine: " + install}
	}
	return nil // Patroni reports other problems when it starts
}

// interpreter returns the Python of a program's first line, or else the one on PATH.
func interpreter(program string) (string, error) {
	file, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer file.Close()
	line, _ := bufio.NewReader(file).ReadString('\n')
	if words := strings.Fields(strings.TrimPrefix(line, "#!")); len(words) == 1 && filepath.IsAbs(words[0]) {
		return words[0], nil
	}
	return host.Find("python3", "python3")
}

// start starts the store, then the first node, which begins the cluster, and then the others. giveUp ends ctx; the
// store must answer until then.
func (c *Cluster) start(ctx context.Context, giveUp func(error)) error {
	if err := c.startStore(ctx); err != nil {
		return err
	}
	starting := ctx
	c.Tasks.Go(func() { c.guardStore(starting, giveUp) })
	ctx, c.giveUp = context.WithCancelCause(ctx)
	defer c.giveUp(nil)
	first := c.servers()[0]
	begin, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- first.Server.Restart(ctx); cancel(errors.New("the first node has ended")) }()
	limited, stop := context.WithTimeoutCause(begin, bootLimit, fmt.Errorf("the first node had %v to begin the cluster in etcd", bootLimit))
	defer stop()
	err := wait.RetryEvery(limited, startEvery, func() error {
		_, err := c.key(limited, "initialize")
		return err
	})
	if err != nil {
		c.giveUp(err)
		return cmp.Or(<-ended, err) // which has err as its reason, and the end of the log
	}
	err = c.Each(func(n *node) error {
		switch {
		case n.store:
			return nil
		case n == first:
			return <-ended
		}
		return n.Server.Restart(ctx)
	})
	if err != nil {
		return err
	}
	if err := c.checkSettings(ctx, first); err != nil {
		return err
	}
	c.begun.Store(true)
	c.Tasks.Go(c.watch)
	c.Tasks.Go(c.watchDemotion)
	return nil
}

// checkSettings returns an error for a setting of set.NAME that did not reach PostgreSQL. Patroni silently drops
// unknown settings and invalid values.
func (c *Cluster) checkSettings(ctx context.Context, n *node) error {
	for name, value := range c.params.settings {
		came, err := server.One[bool](ctx, n.over, "SELECT EXISTS (SELECT FROM pg_settings WHERE name = "+
			"lower('"+name+"') AND source IN ('configuration file', 'command line'))")
		if err != nil {
			return fmt.Errorf("ask %s for its settings: %w", n.Name(), err)
		}
		if !came {
			return &cluster.ParamError{Param: "set." + name, Reason: fmt.Sprintf("Patroni drops %s = %q, because PostgreSQL has no such setting or value", name, value)}
		}
	}
	return nil
}

// askVersion asks Patroni for its version, on which its times depend.
func askVersion(ctx context.Context, patroni string) (string, error) {
	said, err := host.VersionOf(ctx, patroni, "--version")
	if err != nil {
		return "", fmt.Errorf("%w: repair that Patroni", err)
	}
	return strings.TrimPrefix(said, "patroni "), nil
}

// servers returns the nodes with data.
func (c *Cluster) servers() []*node {
	return slices.DeleteFunc(c.List(), func(n *node) bool { return n.store })
}

// stores returns the etcd servers.
func (c *Cluster) stores() []*node {
	return slices.DeleteFunc(c.List(), func(n *node) bool { return !n.store })
}

// Nodes returns the nodes with data.
func (c *Cluster) Nodes() []cluster.Node { return cluster.NodesOf(c.servers()) }

// Witnesses returns the numbers of the store's hosts.
func (c *Cluster) Witnesses() []int { return cluster.Numbers(c.stores()) }

// URL names all nodes; a client that connects to it finds the primary.
func (c *Cluster) URL() string {
	return server.URL(cluster.Join(c.servers(), func(n *node) string { return n.endpoint.String() }))
}
