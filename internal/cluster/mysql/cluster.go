package mysql

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
	kind     *kind
	params   params
	programs programs

	forming wait.Lock // held while the founder of a group is chosen

	// Guarded by Mu, like the nodes' reported state.
	formed  bool  // the first nodes have formed a group
	founder *node // node that is just starting as the first of a group; nil if none is
}

var (
	_ cluster.LocalNode = (*node)(nil)
)

func (c *Cluster) galera() bool { return c.kind == &galera }

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
		for _, n := range nodes {
			c.Tasks.Go(func() { c.restartCrashed(n) })
		}
	}
	return nil
}

// initialize makes the data of the first node, with the database and a superuser. The superuser may connect from the
// cluster's own network, which nobody else can reach. The other nodes get their data when they join.
func (c *Cluster) initialize(ctx context.Context, n *node) error {
	statements := firstStatements(c.Network())
	if c.kind == &mySQL { // it makes its data itself
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
