package voltdb

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

const (
	askTimeout    = 3 * time.Second // of a question to one node, which may hang
	shutdownLimit = 30 * time.Second
	// resumeLimit bounds the return of a paused node, which the others may have given up.
	resumeLimit = time.Minute
)

// node is a member of the cluster.
type node struct {
	*cluster.Server
	cluster *Cluster
	wanted  atomic.Bool // nobody has ended it on purpose

	client, admin, internal, zookeeper, replication netip.AddrPort
}

// newNode makes the folder of a node and describes its server.
func (c *Cluster) newNode(ctx context.Context, number int, host *cluster.Host) (*node, error) {
	n := &node{cluster: c}
	if err := c.TakeEndpoints(ctx, host, map[int]*netip.AddrPort{
		21212: &n.client, 21211: &n.admin, 3021: &n.internal, 7181: &n.zookeeper, 5555: &n.replication,
	}); err != nil {
		return nil, err
	}
	dir := c.Folder(number)
	n.Server = c.NewServer(number, host, dir, dir+".log", cluster.Program{
		Command: n.command, Ready: n.ready, Join: func(context.Context) error { return nil }, // a node without data joins by its start
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit, Clock: c.Options.Clock,
	})
	return n, c.MakeFolder(dir, number, 0o700)
}

// opened are the packages of Java that VoltDB 10.0 looks into, which Java 17 allows only
// where the command line opens them.
var opened = []string{"java.lang", "sun.nio.ch", "java.net", "java.nio", "sun.net.www.protocol.http", "sun.net.www.protocol.https", "sun.net.www.protocol.file", "sun.net.www.protocol.ftp"}

// mostSkew is how many milliseconds apart the clocks of two nodes may seem. VoltDB 10.0
// ends a node that joins with more than 200 (org.voltcore.messaging.SocketJoiner), but the
// nodes of one machine have one clock, and what they find is how long one of them waited
// for a processor.
const mostSkew = "10000"

// run is VoltDB's program with arguments.
func (n *node) run(args ...string) *exec.Cmd {
	c := n.cluster
	all := []string{
		"-Xmx768m", "-XX:+UseG1GC", "-Djava.awt.headless=true", "-Djava.io.tmpdir=" + n.temp(),
		"-Dlog4j.configuration=file://" + c.loggingFile(), "-Djava.library.path=default", "-DMAX_CLOCKSKEW=" + mostSkew,
	}
	for _, name := range opened {
		all = append(all, "--add-opens", "java.base/"+name+"=ALL-UNNAMED")
	}
	cmd := exec.Command(c.java, append(append(all, "-cp", c.classes, "org.voltdb.VoltDB"), args...)...)
	cmd.Dir, cmd.Env = n.Dir(), append(os.Environ(), "HOME="+n.Dir()) // a node that ends itself writes why into the folder where it runs
	return cmd
}

// temp is where Java puts what it unpacks.
func (n *node) temp() string { return filepath.Join(n.Dir(), "tmp") }

// command makes the command that starts the node, which forms a cluster with the others, or
// joins theirs. A folder without data is made one of VoltDB's first.
func (n *node) command(ctx context.Context) (*exec.Cmd, error) {
	c := n.cluster
	if _, err := os.Stat(filepath.Join(n.Dir(), "voltdbroot")); errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(n.temp(), 0o700); err != nil {
			return nil, err
		}
		made, err := n.Host().Run(ctx, n.run("initialize", "voltdbroot", n.Dir(), "deployment", c.deploymentFile(), "force"))
		if err != nil {
			return nil, fmt.Errorf("make the folder of VoltDB: %w: %s", err, cluster.LastLines([]byte(made)))
		}
	}
	host := n.client.Addr().String()
	return n.run("probe", "voltdbroot", n.Dir(),
		"mesh", c.Addresses(func(m *node) string { return m.internal.String() }),
		"hostcount", strconv.Itoa(c.Options.Nodes), "externalinterface", host, "internalinterface", host,
		"port", n.client.String(), "adminport", n.admin.String(), "internalport", n.internal.String(),
		"zkport", n.zookeeper.String(), "replicationport", n.replication.String()), nil
}

// ready returns when the node answers, for which it has to be part of a cluster.
func (n *node) ready(ctx context.Context) error {
	return cluster.RetryEvery(ctx, 100*time.Millisecond, func() error {
		_, err := n.ask(ctx)
		return err
	})
}

// ask asks the node what it knows of all nodes.
func (n *node) ask(ctx context.Context) ([]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	hosts, err := n.cluster.hosts(ctx, n.URL())
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", n.Name(), err)
	}
	return hosts, nil
}

// URL is the address of the node alone, by which the whole database is read.
func (n *node) URL() string { return n.cluster.urlOf(n.client.String()) }

// Kill, Terminate and Restart are the server's. The supervisor leaves a node down that one
// of the first two has ended.
func (n *node) Kill(ctx context.Context) error {
	n.wanted.Store(false)
	return n.Server.Kill(ctx)
}

func (n *node) Terminate(ctx context.Context) error {
	n.wanted.Store(false)
	return n.Server.Terminate(ctx)
}

func (n *node) Restart(ctx context.Context) error {
	err := n.Server.Restart(ctx)
	if err == nil {
		n.wanted.Store(true)
	}
	return err
}

// restartEvery is how often the supervisor looks for a node that has ended by itself.
const restartEvery = 500 * time.Millisecond

// supervise starts the node again when nobody has ended it on purpose: VoltDB ends a node
// that the others have given up, and the service manager of a real one does this.
func (n *node) supervise() {
	life := n.cluster.Life
	for cluster.Sleep(life, restartEvery) == nil {
		if n.wanted.Load() && !n.Running() {
			_ = n.Restart(life) // the next round tries again
		}
	}
}

// Resume lets the node go on. One that the others have given up meanwhile ends itself when
// it finds out, and is started again.
func (n *node) Resume(ctx context.Context) error {
	paused := n.Paused()
	if err := n.Server.Resume(ctx); err != nil || !paused {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resumeLimit)
	defer cancel()
	return cluster.Retry(ctx, func() error {
		if !n.Running() {
			return n.Restart(ctx)
		}
		hosts, err := n.ask(ctx)
		if err == nil && len(hosts) < len(n.cluster.List()) {
			seen := make([]string, len(hosts))
			for i, h := range hosts {
				seen[i] = h["ipaddress"]
			}
			err = fmt.Errorf("%s sees only the nodes %s", n.Name(), strings.Join(seen, ", "))
		}
		return err
	})
}

// Replace kills the node, takes its folder away, and lets it join as a new node. That is
// what a restart does too, for the data are in memory.
func (n *node) Replace(ctx context.Context) error {
	ctx, cancel := n.Bound(ctx)
	defer cancel()
	return n.cluster.ReplaceWhen(ctx, n, func(ctx context.Context) error { return n.cluster.expendable(ctx, n) }, func(ctx context.Context) error {
		n.wanted.Store(false)
		err := n.Server.Replace(ctx)
		n.wanted.Store(err == nil)
		return err
	})
}
