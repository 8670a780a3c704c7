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
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/netem"
	"stroppy/internal/cluster/wait"
)

// Database is the database in the cluster's URL, which StartCluster and StartGalera make.
const Database = "stroppy"

// Cluster is one running MariaDB server, or several with Galera, all of which accept writes. Restart of a Galera node
// returns when it is synchronized. If no node is left in a primary component, the node with the newest data must run
// or be restarted. So after all nodes were killed, restart them at the same time, not one after another.
type Cluster struct {
	*cluster.NodeSet[*node]
	cluster.EventLog
	params   params
	programs programs

	forming    wait.Lock // held while the founder of a group is chosen
	restarting sync.Map  // nodes that are being restarted after a crash

	// Guarded by Mu, like the nodes' reported state.
	formed  bool  // the first nodes have formed a group
	founder *node // node that is just starting as the first of a group; nil if none is
}

var (
	_ cluster.LocalNode = (*node)(nil)
)

// StartCluster starts one MariaDB server as a cluster of one node. An error leaves nothing behind. It is a
// host.MissingError if MariaDB is not installed, and a *cluster.ParamError for a wrong parameter. The parameters
// are:
//
//	snapshot=on      a write fails if another transaction has changed the row since the
//	                 writer's snapshot (innodb_snapshot_isolation)
//	flush=0|1|2      MariaDB's innodb_flush_log_at_trx_commit
//	set.NAME=VALUE   any other setting
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

// StartGalera starts MariaDB servers with Galera, and returns when every node is synchronized and accepts writes. It
// has the errors and parameters of StartCluster, on all nodes, and one more parameter:
//
//	timeout=2s       time until the others suspect a silent node, in which nobody commits;
//	                 Galera's default is 5s
func StartGalera(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, err := parseParams(o.Params, "galera")
	switch {
	case err != nil:
		return nil, err
	case o.FaultFS:
		return nil, &cluster.ParamError{Param: "layer", Reason: "disk faults are only possible with mariadb:1, because a node that a full disk has expelled from a Galera cluster does not return by itself"}
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
			c := &Cluster{params: params, programs: programs, forming: wait.NewLock()}
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

// initialize makes the data of the first node, with the database and a superuser. The superuser may connect from the
// cluster's own network, which nobody else can reach. The other nodes get their data when they join.
func (c *Cluster) initialize(ctx context.Context, n *node) error {
	statements := firstStatements(c.Network())
	if c.programs.install == "" { // MySQL makes its data itself
		return initializeMySQL(ctx, c.User, c.programs, n.Dir(), n.scratch, statements)
	}
	file := filepath.Join(n.scratch, "first.sql")
	if err := os.WriteFile(file, []byte(strings.Join(statements, ";\n")+";\n"), 0o644); err != nil {
		return err
	}
	usual := append([]string{"--no-defaults", "--datadir=" + n.Dir(), "--tmpdir=" + n.scratch}, c.programs.basedir()...)
	// The script passes unknown options to the server, which then does not start.
	script, err := os.ReadFile(c.programs.install)
	if err != nil {
		return err
	}
	bootstraps := !bytes.Contains(script, []byte("--extra-file")) // MariaDB 10.4 and older
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

// bootstrap makes a server without clients execute statements, one per line.
func (c *Cluster) bootstrap(ctx context.Context, flags, statements []string) error {
	cmd := c.User.Command(ctx, c.Dir, c.programs.server, append(flags, "--bootstrap")...)
	cmd.Stdin = strings.NewReader(strings.Join(statements, ";\n") + ";\n")
	return run(cmd)
}

// run runs a program that makes data.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		said := strings.Join(complaint.FindAllString(string(out), 10), " | ")
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, cmp.Or(said, host.LastLines(out)))
	}
	return nil
}

// firstStatements returns the statements that make the database and the superuser. In this mode MariaDB expects one
// statement per line. It executes statements about users only after it has read their tables.
func firstStatements(network *netem.Network) []string {
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

// complaint matches a line of mariadb-install-db's output with the reason of a failure. Its last lines only recommend
// where to ask.
var complaint = regexp.MustCompile(`(?im)^.*(?:error|fail|cannot).*$`)

// URL returns the address of all nodes; a client's sessions start with different ones.
func (c *Cluster) URL() string {
	u := urlOf(c.Addresses(func(n *node) string { return n.address.String() }))
	if len(c.List()) > 1 {
		u.RawQuery = "spread=true"
	}
	return u.String()
}

// URL returns the address of the node alone.
func (n *node) URL() string { return urlOf(n.address.String()).String() }

func urlOf(host string) *url.URL {
	return &url.URL{Scheme: "mysql", User: url.User(Superuser), Host: host, Path: "/" + Database}
}

// Leader always returns cluster.ErrNoLeader.
func (c *Cluster) Leader(context.Context) (int, error) { return 0, cluster.ErrNoLeader }
