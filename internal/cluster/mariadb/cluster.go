package mariadb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"stroppy/internal/cluster"
)

// Database is the database that StartCluster and StartGalera make, which the cluster's URL names.
const Database = "stroppy"

// Cluster is one running MariaDB server, or several with Galera, all of which take writes. A Restart of a Galera node
// returns when it is synchronized. Where no node is left in a primary component, the one with the newest data has to
// be among those that run or are being restarted: after all were killed, restart them at once, not one after another.
type Cluster struct {
	*cluster.NodeSet[*node]
	cluster.EventLog
	params   params
	programs programs

	forming    cluster.Lock // held while it is decided who forms a group
	restarting sync.Map     // the nodes that are started anew after a crash

	// Guarded by Mu, as is what the nodes say.
	formed  bool  // the first nodes have become a group
	founder *node // that is just being started as the first of a group; nil if none is
}

var (
	_ cluster.LocalNode = (*node)(nil)
)

// StartCluster starts one MariaDB server as a cluster of one node. An error leaves nothing behind; it is a
// cluster.MissingError where MariaDB is not installed, and a *cluster.ParamError for a parameter. The parameters are:
//
//	snapshot=on      a transaction that writes a row which another one has
//	                 changed since its snapshot fails (innodb_snapshot_isolation)
//	flush=0|1|2      MariaDB's innodb_flush_log_at_trx_commit
//	set.NAME=VALUE   any other of its settings
func StartCluster(ctx context.Context, o cluster.Options) (*Cluster, error) {
	if o.Nodes != 1 {
		return nil, fmt.Errorf("start a MariaDB server: %d nodes requested, but it has one node: use galera:%d for more", o.Nodes, max(o.Nodes, 3))
	}
	params, err := parseParams(o.Params, "mariadb")
	if err != nil {
		return nil, err
	}
	return launchMariaDB(ctx, o, "mariadb", params)
}

// StartGalera starts MariaDB servers with Galera and returns when every node is synchronized and takes writes. Errors
// and parameters are those of StartCluster, on all nodes, and one more:
//
//	timeout=2s       how long a silent node is waited for until the others
//	                 suspect it; Galera's own is 5s, in which nobody commits
func StartGalera(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params, "galera")
	switch {
	case err != nil:
		return nil, err
	case o.FaultFS:
		return nil, &cluster.ParamError{Param: "layer", Reason: "the disk faults are for mariadb:1, because a node that a full disk has thrown out of a Galera cluster does not come back by itself"}
	}
	return launchMariaDB(ctx, o, "galera", params)
}

func launchMariaDB(ctx context.Context, o cluster.Options, kind string, params params) (*Cluster, error) {
	programs, lacks := findPrograms(o, kind == "galera")
	return launch(ctx, o, kind, params, programs, lacks)
}

func launch(ctx context.Context, o cluster.Options, kind string, params params, programs programs, lacks error) (*Cluster, error) {
	return cluster.Launch(ctx, cluster.Kind{Name: kind, PortTaken: "Address already in use", Product: product, Users: users, Lacks: lacks}, o,
		func() *Cluster {
			c := &Cluster{params: params, programs: programs, forming: cluster.NewLock()}
			c.NodeSet = cluster.NewNodeSet(fmt.Sprintf("%s:%d", kind, o.Nodes), c.newNode, func() func(context.Context) error { return c.checkHealthy })
			return c
		},
		func(c *Cluster) error { return c.start(ctx) })
}

func (c *Cluster) galera() bool { return c.programs.provider != "" }

func (c *Cluster) start(ctx context.Context) error {
	nodes := c.List()
	if err := c.initialize(ctx, nodes[0]); err != nil {
		return err
	}
	// One after another: a node that gives its data away does nothing else meanwhile.
	for _, n := range nodes {
		if err := n.Restart(ctx); err != nil {
			return err
		}
	}
	c.Mu.Lock()
	c.formed = true
	c.Mu.Unlock()
	if c.galera() {
		c.Tasks.Go(c.restartCrashed)
	}
	return nil
}

// initialize makes the data of the first node, with the database and a superuser who can come from the cluster's own
// network, in which there is nobody else. The others get theirs when they join.
func (c *Cluster) initialize(ctx context.Context, n *node) error {
	statements := firstStatements(c.Network())
	if c.programs.install == "" { // of MySQL, which makes its data itself
		return initializeMySQL(ctx, c.User, c.programs, n.Dir(), n.scratch, statements)
	}
	file := filepath.Join(n.scratch, "first.sql")
	if err := os.WriteFile(file, []byte(strings.Join(statements, ";\n")+";\n"), 0o644); err != nil {
		return err
	}
	usual := append([]string{"--no-defaults", "--datadir=" + n.Dir(), "--tmpdir=" + n.scratch}, c.programs.basedir()...)
	// What the script does not know it hands to the server, which then does not start.
	script, err := os.ReadFile(c.programs.install)
	if err != nil {
		return err
	}
	bootstraps := !bytes.Contains(script, []byte("--extra-file")) // as it did before MariaDB 10.5
	install := []string{"--auth-root-authentication-method=normal", "--skip-name-resolve"}
	if !bootstraps {
		install = append(install, "--skip-test-db", "--extra-file="+file)
	}
	err = run(c.User.Command(ctx, c.Dir, c.programs.install, slices.Concat(usual, install)...))
	if err == nil && bootstraps {
		err = c.bootstrap(ctx, usual, append(statements, "DROP DATABASE IF EXISTS test"))
	}
	return errors.Join(err, os.Remove(file))
}

// bootstrap has a server that takes no clients carry statements out, one a line.
func (c *Cluster) bootstrap(ctx context.Context, flags, statements []string) error {
	cmd := c.User.Command(ctx, c.Dir, c.programs.server, append(flags, "--bootstrap")...)
	cmd.Stdin = strings.NewReader(strings.Join(statements, ";\n") + ";\n")
	return run(cmd)
}

// run runs a program that makes data.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		said := strings.Join(complaint.FindAllString(string(out), 10), " | ")
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, cmp.Or(said, cluster.LastLines(out)))
	}
	return nil
}

// firstStatements make the database and the superuser. MariaDB takes one statement a line here, and none about users
// before it has read their tables.
func firstStatements(network *cluster.Network) []string {
	from := "127.0.0.1"
	if network.Loopback() == "" {
		from = "%"
	}
	return []string{
		"FLUSH PRIVILEGES",
		"CREATE USER IF NOT EXISTS " + Superuser + "@'" + from + "'",
		"GRANT ALL PRIVILEGES ON *.* TO " + Superuser + "@'" + from + "' WITH GRANT OPTION",
		"CREATE DATABASE " + Database,
	}
}

// complaint is a line of mariadb-install-db's output that says why it failed; the last lines only say where to ask.
var complaint = regexp.MustCompile(`(?im)^.*(?:error|fail|cannot).*$`)

// URL is the address of all nodes; a client's sessions begin with different ones.
func (c *Cluster) URL() string {
	u := urlOf(c.Addresses(func(n *node) string { return n.address.String() }))
	if len(c.List()) > 1 {
		u.RawQuery = "spread=true"
	}
	return u.String()
}

// URL is the address of the node alone.
func (n *node) URL() string { return urlOf(n.address.String()).String() }

func urlOf(host string) *url.URL {
	return &url.URL{Scheme: "mysql", User: url.User(Superuser), Host: host, Path: "/" + Database}
}

// Leader is always cluster.ErrNoLeader.
func (c *Cluster) Leader(context.Context) (int, error) { return 0, cluster.ErrNoLeader }
