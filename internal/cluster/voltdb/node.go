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
	"syscall"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

const (
	askTimeout    = 3 * time.Second // of a query to one node, which may hang
	shutdownLimit = 30 * time.Second
	// resumeLimit bounds the return of a paused node, which the others may have expelled.
	resumeLimit = time.Minute
)

// node is a member of the cluster.
type node struct {
	*host.Server
	cluster *Cluster

	client, admin, internal, zookeeper, replication netip.AddrPort
}

// newNode describes a node.
func (c *Cluster) newNode(int, *host.Host) (*node, cluster.Design) {
	n := &node{cluster: c}
	return n, cluster.Design{Server: &n.Server, Ports: map[int]*netip.AddrPort{
		21212: &n.client, 21211: &n.admin, 3021: &n.internal, 7181: &n.zookeeper, 5555: &n.replication,
	}, Expendable: n.expendable, Program: host.Program{
		Command: n.command, Ready: n.ready, Join: func(context.Context) error { return nil },
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit, Clock: true,
	}}
}

// opened are the Java packages that VoltDB 10.0 accesses. Java 17 allows this only if the command line opens them.
var opened = []string{"java.lang", "sun.nio.ch", "java.net", "java.nio", "sun.net.www.protocol.http", "sun.net.www.protocol.https", "sun.net.www.protocol.file", "sun.net.www.protocol.ftp"}

// mostSkew is the allowed difference of two nodes' clocks in milliseconds. VoltDB 10.0 ends a joining node with more
// than 200 (org.voltcore.messaging.SocketJoiner). But the nodes of one machine share a clock, and the measured
// difference is only the time that a node waited for a processor.
const mostSkew = "10000"

// run returns VoltDB's program with arguments.
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
	cmd.Dir, cmd.Env = n.Dir(), append(os.Environ(), "HOME="+n.Dir()) // a node that ends itself writes the reason into its working directory
	return cmd
}

// temp returns the folder into which Java unpacks files.
func (n *node) temp() string { return filepath.Join(n.Dir(), "tmp") }

// command returns the command that starts the node, which forms or joins a cluster. An empty folder is initialized
// first.
func (n *node) command(ctx context.Context) (*exec.Cmd, error) {
	c := n.cluster
	if _, err := os.Stat(filepath.Join(n.Dir(), "voltdbroot")); errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(n.temp(), 0o700); err != nil {
			return nil, err
		}
		made, err := n.Host().Run(ctx, n.run("initialize", "voltdbroot", n.Dir(), "deployment", c.deploymentFile(), "force"))
		if err != nil {
			return nil, fmt.Errorf("make the folder of VoltDB: %w: %s", err, host.LastLines([]byte(made)))
		}
	}
	host := n.client.Addr().String()
	return n.run("probe", "voltdbroot", n.Dir(),
		"mesh", c.Addresses(func(m *node) string { return m.internal.String() }),
		"hostcount", strconv.Itoa(c.Options.Nodes), "externalinterface", host, "internalinterface", host,
		"port", n.client.String(), "adminport", n.admin.String(), "internalport", n.internal.String(),
		"zkport", n.zookeeper.String(), "replicationport", n.replication.String()), nil
}

// ready waits until the node answers, which needs a formed cluster.
func (n *node) ready(ctx context.Context) error {
	return wait.RetryEvery(ctx, 100*time.Millisecond, func() error {
		_, err := n.ask(ctx)
		return err
	})
}

// ask returns the node's view of all nodes.
func (n *node) ask(ctx context.Context) ([]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	hosts, err := n.cluster.hosts(ctx, n.URL())
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", n.Name(), err)
	}
	return hosts, nil
}

// URL returns the address of the node alone, through which the whole database can be read.
func (n *node) URL() string { return n.cluster.urlOf(n.client.String()) }

// Resume resumes the node. A node that the others have expelled meanwhile ends itself and is restarted.
func (n *node) Resume(ctx context.Context) error {
	paused := n.Paused()
	if err := n.Server.Resume(ctx); err != nil || !paused {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resumeLimit)
	defer cancel()
	return wait.Retry(ctx, func() error {
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
