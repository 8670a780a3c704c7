package mariadb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"stroppy/internal/cluster"
)

// Database is the database that StartCluster and StartGalera make, which the
// cluster's URL names.
const Database = "bank"

// Cluster is one running MariaDB server, or several with Galera, all of which
// take writes.
type Cluster struct {
	kind      string // as in galera:3
	params    params
	programs  programs
	attr      *syscall.Credential // whom the servers run as; nil for the caller
	dir       string
	temporary bool            // start made dir
	record    *cluster.Record // of what a later start clears if this program is killed
	network   *cluster.Network
	nodes     []*node // never changed once start has returned

	life   context.Context // ends with the cluster
	retire context.CancelCauseFunc

	changing chan struct{} // is full while one node is replaced, and once stopped
	forming  chan struct{} // is full while it is decided who forms a group

	mu      sync.Mutex // guards what follows, and what the nodes say it does
	formed  bool       // the first nodes have become a group
	founder *node      // that is just being started as the first of a group; nil if none is

	stop    sync.Once
	stopErr error
}

var (
	_ cluster.Cluster = (*Cluster)(nil)
	_ cluster.Node    = (*node)(nil)
)

// programs are the paths of what the servers need.
type programs struct {
	install, server string
	provider        string // Galera's library; empty for a server without it
}

func findPrograms(galera bool) (p programs, err error) {
	if p.install, err = Bin("mariadb-install-db"); err != nil {
		return p, err
	}
	if p.server, err = Bin("mariadbd"); err != nil || !galera {
		return p, err
	}
	const library = "libgalera_smm.so"
	for _, pattern := range []string{"/usr/lib/galera", "/usr/lib64/galera*", "/usr/lib/*/galera", "/usr/local/lib/galera"} {
		found, err := filepath.Glob(filepath.Join(pattern, library))
		if err != nil {
			return p, fmt.Errorf("look for %s: %w", library, err)
		}
		if len(found) > 0 {
			p.provider = found[0]
		}
	}
	if p.provider == "" {
		return p, cluster.MissingError{Program: library, Package: "galera-4"}
	}
	// Galera's script hands the data to a node that joins by rsync, and sees by
	// one of the others whether rsync listens.
	if _, err = Bin("wsrep_sst_rsync"); err != nil {
		return p, err
	}
	if _, err = cluster.Find("rsync", "rsync"); err != nil {
		return p, err
	}
	if _, err = cluster.Find("ss", "iproute2"); err != nil {
		_, err = cluster.Find("lsof", "lsof")
	}
	return p, err
}

// startAttempts bounds the tries to start all nodes: on loopback, a port that
// was free when it was chosen may be taken when MariaDB binds it.
const startAttempts = 3

// StartCluster starts one MariaDB server as a cluster of one node. An error
// leaves nothing behind; it is a cluster.MissingError where MariaDB is not
// installed, and a *cluster.ParamError for a parameter. The parameters are:
//
//	snapshot=on      a transaction that writes a row which another one has
//	                 changed since its snapshot fails (innodb_snapshot_isolation)
//	flush=0|1|2      MariaDB's innodb_flush_log_at_trx_commit
//	set.NAME=VALUE   any other of its settings
func StartCluster(ctx context.Context, o cluster.Options) (*Cluster, error) {
	if o.Nodes != 1 {
		return nil, fmt.Errorf("start a MariaDB server: %d nodes asked for, and it is always 1: take galera:%d for more", o.Nodes, max(o.Nodes, 3))
	}
	return launch(ctx, o, "mariadb")
}

// StartGalera starts MariaDB servers with Galera and returns when every node is
// synchronized and takes writes. Errors and parameters are those of
// StartCluster, on all nodes, and one more:
//
//	timeout=2s       how long a silent node is waited for until the others
//	                 suspect it; Galera's own is 5s, in which nobody commits
func StartGalera(ctx context.Context, o cluster.Options) (*Cluster, error) {
	if o.Nodes < 1 {
		return nil, fmt.Errorf("start a Galera cluster: %d nodes asked for, at least 1 is needed", o.Nodes)
	}
	return launch(ctx, o, "galera")
}

func launch(ctx context.Context, o cluster.Options, kind string) (*Cluster, error) {
	kind = fmt.Sprintf("%s:%d", kind, o.Nodes)
	galera := strings.HasPrefix(kind, "galera")
	params, err := parseParams(o.Params, galera)
	switch {
	case err != nil:
		return nil, err
	case o.Layer:
		return nil, fmt.Errorf("start %s: no file system can be put under the data of its nodes: leave the disk faults out", kind)
	}
	programs, err := findPrograms(galera)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c := &Cluster{kind: kind, params: params, programs: programs, changing: make(chan struct{}, 1), forming: make(chan struct{}, 1)}
		c.life, c.retire = context.WithCancelCause(context.Background())
		err := c.start(ctx, o)
		if err == nil {
			return c, nil
		}
		again := attempt < startAttempts && ctx.Err() == nil && c.portTaken()
		err = fmt.Errorf("start %s: %w", kind, errors.Join(err, c.Stop()))
		if !again {
			return nil, err
		}
	}
}

func (c *Cluster) galera() bool { return c.programs.provider != "" }

func (c *Cluster) start(ctx context.Context, o cluster.Options) (err error) {
	if c.attr, err = cluster.Credential("nobody", "mysql"); err != nil {
		return err
	}
	if c.record, err = cluster.NewRecord(c.kind); err != nil {
		return err
	}
	if o.Dir == "" {
		c.temporary = true
		c.dir, err = c.record.TempFolder(temporary(o.InMemory))
	} else if c.dir, err = filepath.Abs(o.Dir); err == nil {
		err = os.MkdirAll(c.dir, 0o755)
	}
	if err != nil {
		return err
	}
	if err = enterable(filepath.Join(c.dir, "n0"), c.attr); err != nil {
		return err
	}
	if c.network, err = cluster.NewNetwork(ctx, o.Nodes, o.Loopback); err != nil {
		return err
	}
	for i := range o.Nodes {
		if err = c.newNode(ctx, i, o.Clock); err != nil {
			return err
		}
	}
	if err = c.initialize(ctx, c.nodes[0]); err != nil {
		return err
	}
	// One after another: a node that gives its data away does nothing else meanwhile.
	for _, n := range c.nodes {
		if err = n.Restart(ctx); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.formed = true
	c.mu.Unlock()
	if err = c.Whole(ctx); err != nil {
		return err
	}
	return c.record.SetURL(c.URL())
}

// initialize makes the data of the first node, with the database and a superuser
// who can come from the cluster's own network, in which there is nobody else.
// The others get theirs when they join.
func (c *Cluster) initialize(ctx context.Context, n *node) error {
	from := "127.0.0.1"
	if c.network.Loopback() == "" {
		from = "%"
	}
	// MariaDB takes one statement a line here, and none about users before it has
	// read their tables.
	statements := []string{
		"FLUSH PRIVILEGES",
		"CREATE USER IF NOT EXISTS " + Superuser + "@'" + from + "'",
		"GRANT ALL PRIVILEGES ON *.* TO " + Superuser + "@'" + from + "' WITH GRANT OPTION",
		"CREATE DATABASE " + Database,
	}
	file := filepath.Join(n.scratch, "first.sql")
	if err := os.WriteFile(file, []byte(strings.Join(statements, ";\n")+";\n"), 0o644); err != nil {
		return err
	}
	cmd := newCommand(ctx, c.programs.install, c.attr, installFlags(n.Dir(), n.scratch, "--extra-file="+file)...)
	cmd.Dir = c.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, complaints(out))
	}
	return os.Remove(file)
}

// each does something to all nodes at once.
func (c *Cluster) each(do func(*node) error) error {
	errs := make([]error, len(c.nodes))
	var group sync.WaitGroup
	for i, n := range c.nodes {
		group.Go(func() { errs[i] = do(n) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// temporary returns the folder for temporary folders.
func temporary(inMemory bool) string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); inMemory && err == nil && info.IsDir() {
		return shm
	}
	return os.TempDir()
}

// portTaken says that a node's log complains of a port that somebody else has.
func (c *Cluster) portTaken() bool {
	return slices.ContainsFunc(c.nodes, func(n *node) bool {
		text, err := os.ReadFile(n.Log())
		return err == nil && strings.Contains(string(text), "Address already in use")
	})
}

// URL is the address of all nodes; a client's sessions begin with different ones.
func (c *Cluster) URL() string {
	hosts := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		hosts[i] = n.address
	}
	u := c.url(strings.Join(hosts, ","))
	if len(hosts) > 1 {
		u.RawQuery = "spread=true"
	}
	return u.String()
}

// NodeURL is the address of node i alone; empty if there is none.
func (c *Cluster) NodeURL(i int) string {
	if i < 0 || i >= len(c.nodes) {
		return ""
	}
	return c.url(c.nodes[i].address).String()
}

func (c *Cluster) url(host string) *url.URL {
	return &url.URL{Scheme: "mysql", User: url.User(Superuser), Host: host, Path: "/" + Database}
}

// Nodes are the nodes of the cluster. A Restart of a Galera node returns when it
// is synchronized. Where no node is left in a primary component, the one with the
// newest data has to be among those that run or are being restarted: after all
// were killed, restart them at once, not one after another.
func (c *Cluster) Nodes() []cluster.Node {
	var nodes []cluster.Node
	for _, n := range c.nodes {
		nodes = append(nodes, n)
	}
	return nodes
}

// Leader is always cluster.ErrNoLeader.
func (c *Cluster) Leader(context.Context) (int, error) { return 0, cluster.ErrNoLeader }

// Network joins the nodes.
func (c *Cluster) Network() *cluster.Network { return c.network }

var errStopped = errors.New("the cluster is stopped")

// Stop kills all nodes and removes all that was made for them, the nodes' folders
// in a folder of the caller's included. It may be called again.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.retire(errStopped) // all that waits for a node gives up
		c.changing <- struct{}{}
		c.forming <- struct{}{} // nobody looks into a folder that is being removed
		err := c.each((*node).erase)
		if c.network != nil {
			err = errors.Join(err, c.network.Close())
		}
		if c.temporary && c.dir != "" {
			err = errors.Join(err, os.RemoveAll(c.dir))
		}
		if err == nil && c.record != nil {
			err = c.record.Close()
		}
		if err != nil {
			c.stopErr = fmt.Errorf("stop %s: %w", c.kind, err)
		}
	})
	return c.stopErr
}
