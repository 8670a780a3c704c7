package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/netem"
)

// Cluster is a running server, as a cluster of one node. A server that ends by itself is restarted on its own data.
type Cluster struct {
	*cluster.NodeSet[*node]
	cluster.EventLog
	params   params
	programs map[string]string // by name
}

var _ cluster.LocalNode = (*node)(nil)

// programs are PostgreSQL's programs that a server needs. Debian has wrappers on PATH for only some of them, so they
// must come from one folder.
var programs = []string{"initdb", "postgres"}

// StartCluster starts one server and returns when it answers. An error leaves nothing behind. It is a
// host.MissingError if PostgreSQL is not installed, and a *cluster.ParamError for a wrong parameter. The
// parameters are:
//
//	fsync=off        PostgreSQL's setting with this name
//	set.NAME=VALUE   any other setting
func StartCluster(ctx context.Context, o cluster.Options) (*Cluster, error) {
	if o.Nodes != 1 {
		return nil, fmt.Errorf("start a PostgreSQL server: %d nodes requested, but it has one node", o.Nodes)
	}
	params, err := parseParams(o.Params)
	if err != nil {
		return nil, err
	}
	found, lacks := o.FindAll(programs, DebianPackage, Folders...)
	kind := cluster.Kind{Name: "postgres", PortTaken: "could not create any TCP/IP sockets", Product: Product, Users: Users, Lacks: lacks}
	return cluster.Launch(ctx, kind, o, func() *Cluster {
		c := &Cluster{params: params, programs: found}
		c.NodeSet = cluster.NewNodeSet("the PostgreSQL server", c.newNode, func() func(context.Context) error { return c.check })
		return c
	}, (*Cluster).start)
}

// sockets makes the folder for the Unix socket of a node: the node's own folder, unless its path is too long for a
// socket.
func (c *Cluster) sockets(number int) (string, error) {
	own := c.Folder(number)
	if len(own) <= maxSocketPath {
		return own, nil
	}
	parent, err := c.TempFolder(os.TempDir())
	if err != nil {
		return "", err
	}
	dir := filepath.Join(parent, filepath.Base(own))
	return dir, c.MakeFolder(dir, number, 0o755)
}

// start makes the data and starts the server.
func (c *Cluster) start(ctx context.Context) error {
	n := c.List()[0]
	initdb := c.User.Command(ctx, n.folder, c.programs["initdb"], "-D", n.Dir(), "-U", Superuser, "-A", "trust",
		"--no-sync", "--data-checksums", "--locale=C", "--encoding=UTF8")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, host.LastLines(out))
	}
	if err := n.Restart(ctx); err != nil {
		return err
	}
	c.RestartEnded(&c.EventLog)
	return nil
}

// check returns an error if the server does not answer over the network.
func (c *Cluster) check(ctx context.Context) error { return c.List()[0].over.Ask(ctx, "SELECT") }

// Leader returns 0 when the server answers.
func (c *Cluster) Leader(ctx context.Context) (int, error) { return 0, c.WaitHealthy(ctx) }

// Trust returns the lines of pg_hba.conf that trust the cluster's own network, which nobody else can reach.
func Trust(network *netem.Network) (lines []string) {
	from := "samenet"
	if network.Loopback() != "" {
		from = "127.0.0.1/32"
	}
	for _, database := range []string{"all", "replication"} {
		lines = append(lines, fmt.Sprintf("local %s all trust", database), fmt.Sprintf("host %s all %s trust", database, from))
	}
	return lines
}

// URL returns the server's address.
func (c *Cluster) URL() string {
	return URL(c.Addresses(func(n *node) string { return n.endpoint.String() }))
}

// URL returns the address of a cluster whose nodes have these addresses, separated by commas. A client finds the node
// that accepts writes.
func URL(addresses string) string {
	return address(addresses, "target_session_attrs=read-write&connect_timeout=1&sslmode=disable")
}

// NodeURL returns the address of one node in any role.
func NodeURL(of string) string { return address(of, "sslmode=disable&connect_timeout=1") }

func address(hosts, query string) string {
	u := url.URL{Scheme: "postgres", User: url.User(Superuser), Host: hosts, Path: "/" + Superuser, RawQuery: query}
	return u.String()
}

// Erase ends the node for good and removes all that was made for it.
func (n *node) Erase() error {
	err := n.Close()
	n.orders.Close()
	n.over.Close()
	return errors.Join(err, ReleaseMemory(n.Dir()), os.RemoveAll(n.folder), os.RemoveAll(n.sockets))
}
