// Package etcd starts real etcd clusters on this machine.
//
// It needs the etcd server (3.4 or later), for example of the Debian package etcd-server.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"stroppy/internal/cluster"
)

// Cluster is a running etcd cluster. Restart of a node returns when the node answers a linearizable read, which needs
// a majority of nodes. After the loss of a majority, restart the nodes at the same time, not one after another.
type Cluster struct {
	*cluster.NodeSet[*node]
	binary string
	flags  []string // additional flags of every node
	token  string
	formed atomic.Bool // the first nodes have formed a cluster
}

var (
	_ cluster.Mover   = (*Cluster)(nil)
	_ cluster.Resizer = (*Cluster)(nil)
)

// Start starts a cluster and returns when every node answers a linearizable read. The parameter set.FLAG=VALUE starts
// every node with --FLAG=VALUE. An error leaves nothing behind. It is a host.MissingError if etcd is not
// installed.
func Start(ctx context.Context, o cluster.Options) (*Cluster, error) {
	flags, err := flagsOf(o.Params)
	if err != nil {
		return nil, err
	}
	binary, lacks := o.Find("etcd", "etcd-server")
	return cluster.Launch(ctx, cluster.Kind{Name: "etcd", PortTaken: "address already in use", Lacks: lacks}, o, func() *Cluster {
		c := &Cluster{binary: binary, flags: flags}
		c.NodeSet = cluster.NewNodeSet("the etcd cluster", c.newNode, func() func(context.Context) error { return c.checkHealthy })
		c.LedBy("the leader of the etcd cluster", c.named)
		return c
	}, (*Cluster).start)
}

// decided are prefixes of the flags that Start sets. Through them the nodes find each other and their data.
var decided = []string{"name", "data-dir", "wal-dir", "config-file", "listen-", "advertise-", "initial-", "log-outputs"}

// CheckFlag returns why a flag of a node cannot be given, or nil.
func CheckFlag(name string) error {
	if slices.ContainsFunc(decided, func(own string) bool { return strings.HasPrefix(name, own) }) {
		return errors.New("the cluster sets this flag itself, to find its nodes and their data")
	}
	return nil
}

// flagsOf converts the parameters into flags of etcd. The error is a *cluster.ParamError.
func flagsOf(params url.Values) (flags []string, err error) {
	err = cluster.Params{
		Unknown: "etcd has no such parameter: use set.FLAG=VALUE for a flag of etcd, such as set.snapshot-count=1000, or bin",
		Set: func(flag, value string) error {
			if err := CheckFlag(flag); err != nil {
				return err
			}
			flags = append(flags, "--"+flag+"="+value)
			return nil
		},
	}.Read(params)
	return flags, err
}

// start starts all nodes at once, because none answers before a majority runs. It returns the error of the first node
// that failed.
func (c *Cluster) start(ctx context.Context) error {
	c.token = fmt.Sprintf("stroppy-%d-%s", os.Getpid(), c.List()[0].peer)
	err := cluster.RestartAll(ctx, c.List())
	c.formed.Store(err == nil)
	return err
}

// Endpoints returns the client addresses, host:port, in the order of Nodes.
func (c *Cluster) Endpoints() []string {
	return strings.Split(c.Addresses(func(n *node) string { return n.client.String() }), ",")
}

// URL returns the cluster in the form that --db takes: etcd://h1:p1,h2:p2. A client does not know nodes that were
// added after it was opened.
func (c *Cluster) URL() string { return "etcd://" + strings.Join(c.Endpoints(), ",") }

// URL returns the address of the node alone.
func (n *node) URL() string { return "etcd://" + n.client.String() }
