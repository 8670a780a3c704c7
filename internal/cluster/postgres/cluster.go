package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"stroppy/internal/cluster"
)

// Cluster is a running primary with its standbys and their supervisor. Whoever
// holds its Roles decides also on which standby the primary waits.
type Cluster struct {
	*cluster.Failover[*node]
	params    params
	programs  map[string]string // their paths
	socketDir string            // the cluster's folder, unless its path is too long for sockets

	// Guarded by Mu, as is each node's state.
	standby    *node // on which the primary has to wait; nil: on nobody
	registered bool  // the standby has all that was acknowledged and that will be
	barrier    int64 // what the standby has to replay to be registered; 0 before that is known

	// The supervisor's own.
	reviewed time.Time // when the last review ended
}

var (
	_ cluster.Mover     = (*Cluster)(nil)
	_ cluster.Resizer   = (*Cluster)(nil)
	_ cluster.LocalNode = (*node)(nil)
)

// programs are PostgreSQL's programs that a server alone needs, and forStandbys those that
// a cluster needs too. Debian has wrappers of some on PATH and not of all, so that they have
// to come from one folder.
var (
	programs    = []string{"initdb", "postgres"}
	forStandbys = []string{"pg_basebackup", "pg_isready", "pg_controldata"}
)

// findPrograms finds the programs. Those for standbys may be missing where there is one
// node, as archives of servers alone lack them; a node that is added then cannot join.
func findPrograms(o cluster.Options) (map[string]string, error) {
	needed := programs
	if o.Nodes > 1 {
		needed = slices.Concat(programs, forStandbys)
	}
	found, err := o.FindAll(needed, DebianPackage, Folders...)
	if err != nil {
		return nil, err
	}
	for _, name := range forStandbys {
		found[name] = filepath.Join(filepath.Dir(found["postgres"]), name)
	}
	return found, nil
}

// StartCluster starts a primary, node 0, and its standbys, and returns when all
// have the same data and, unless sync=off is given, the primary waits for a
// standby at every commit. An error leaves nothing behind; it is a
// cluster.MissingError where PostgreSQL is not installed, and a
// *cluster.ParamError for a parameter. The parameters are:
//
//	sync=off         commits wait for no standby, and any standby may be
//	                 promoted: a fail-over can lose what was acknowledged
//	strict=on        a primary whose standby is lost lets commits wait until
//	                 there is another; without it, it goes on alone
//	timeout=1s       how long a server that does not answer is waited for
//	fsync=off        PostgreSQL's own setting of that name
//	set.NAME=VALUE   any other of its settings, on all nodes; one that weakens
//	                 synchronous_commit takes the meaning from sync=on
func StartCluster(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params)
	if err != nil {
		return nil, err
	}
	found, lacks := findPrograms(o)
	kind := cluster.Kind{Name: "postgres", PortTaken: "could not create any TCP/IP sockets", Product: Product, Users: Users, Lacks: lacks}
	return cluster.Launch(ctx, kind, o,
		func() *Cluster {
			c := &Cluster{params: params, programs: found}
			c.Failover = cluster.NewFailover("the PostgreSQL cluster", cluster.FailoverKind[*node]{
				Replica: "standby", Timeout: params.timeout, Every: glance,
				Candidates: c.candidates, Farthest: c.farthest, Promote: c.replace, WhyWaiting: c.whyWaiting, Review: c.review,
				NeedsRestart: func(n *node) bool { return n.stale || !n.Running() },
				Next:         c.next, HandOver: c.handOver, Discard: c.discard,
			}, c.newNode, c.healthy)
			return c
		},
		func(c *Cluster) error { return c.start(ctx) })
}

// sockets makes the folder for the Unix socket of a node, which is its own one
// unless its path is too long.
func (c *Cluster) sockets(number int) (string, error) {
	own := c.Folder(number)
	if c.socketDir == "" && len(own) <= maxSocketPath {
		return own, nil
	}
	if c.socketDir == "" {
		var err error
		if c.socketDir, err = c.TempFolder(os.TempDir()); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(c.socketDir, filepath.Base(own))
	return dir, c.MakeFolder(dir, number, 0o755)
}

// start makes the data of all nodes from those of the first, and starts them and the
// supervisor.
func (c *Cluster) start(ctx context.Context) error {
	first := c.List()[0]
	c.Primary = first
	initdb := c.User.Command(ctx, first.folder, c.programs["initdb"], "-D", first.Dir(), "-U", Superuser, "-A", "trust",
		"--no-sync", "--data-checksums", "--locale=C", "--encoding=UTF8")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, cluster.LastLines(out))
	}
	err := c.Each(func(n *node) error {
		if n == first {
			return nil
		}
		if out, err := exec.CommandContext(ctx, "cp", "-a", first.Dir(), n.Dir()).CombinedOutput(); err != nil {
			return fmt.Errorf("copy the first data to %s: %w: %s", n.Name(), err, cluster.LastLines(out))
		}
		return nil
	})
	if err == nil {
		err = c.Each(func(n *node) error {
			if n == first {
				return n.StartPrimary(ctx)
			}
			return n.follow(ctx)
		})
	}
	if err == nil {
		c.Supervise()
	}
	return err
}

// Trust are the lines of pg_hba.conf that trust a cluster's own network, in which there is
// nobody else.
func Trust(network *cluster.Network) (lines []string) {
	from := "samenet"
	if network.Loopback() != "" {
		from = "127.0.0.1/32"
	}
	for _, database := range []string{"all", "replication"} {
		lines = append(lines, fmt.Sprintf("local %s all trust", database), fmt.Sprintf("host %s all %s trust", database, from))
	}
	return lines
}

// URL names all nodes; a client that connects to it finds the primary. One that
// was opened before a node was added does not know that node.
func (c *Cluster) URL() string { return URL(c.Addresses((*node).address)) }

// URL is the address of a cluster whose nodes are at these addresses, with commas between:
// a client finds the one that takes writes.
func URL(addresses string) string {
	return address(addresses, "target_session_attrs=read-write&connect_timeout=1&sslmode=disable")
}

// NodeURL is the address of one node, whatever its role is.
func NodeURL(of string) string { return address(of, "sslmode=disable&connect_timeout=1") }

func address(hosts, query string) string {
	u := url.URL{Scheme: "postgres", User: url.User(Superuser), Host: hosts, Path: "/" + Superuser, RawQuery: query}
	return u.String()
}

// Erase ends the node for good and removes what was made for it.
func (n *node) Erase() error {
	err := n.Close()
	n.orders.Close()
	n.waiter.Close()
	n.over.Close()
	return errors.Join(err, ReleaseMemory(n.Dir()), os.RemoveAll(n.folder), os.RemoveAll(n.sockets))
}
