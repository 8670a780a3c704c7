// Package voltdb starts real VoltDB clusters on this machine.
//
// It needs java on PATH, and a folder with the jars of VoltDB 10.0.
package voltdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"stroppy/internal/cluster"
)

// Cluster is a running VoltDB cluster of equal nodes. It keeps its data in memory, and loses them when more than
// kfactor nodes are gone. Then the nodes must be started at the same time, and form a new and empty cluster.
type Cluster struct {
	*cluster.NodeSet[*node]
	cluster.EventLog
	java, classes string
	params        params
	hosts         Hosts
}

var _ cluster.Local = (*Cluster)(nil)

// Hosts returns the columns of @SystemInformation of each present node, by their names in lower case, from the node
// at a URL. It returns an error until the node accepts clients.
type Hosts func(ctx context.Context, url string) ([]map[string]string, error)

// Starter returns a function that starts clusters and queries their nodes through hosts.
func Starter(hosts Hosts) func(context.Context, cluster.Options) (*Cluster, error) {
	return func(ctx context.Context, o cluster.Options) (*Cluster, error) { return launch(ctx, o, hosts) }
}

// launch starts a cluster and returns when every node answers and every partition has all its copies. An error leaves
// nothing behind. It is a host.MissingError if java or the folder of jars is missing, and a *cluster.ParamError
// for a wrong parameter. The parameters are:
//
//	jars=DIR       folder of the jars
//	kfactor=1      number of nodes that may be lost; 0 for one node
//	sites=2        partitions per node
//	heartbeat=5s   time to wait for a silent node, in whole seconds
//	security=on    clients log in as the user in the URL
func launch(ctx context.Context, o cluster.Options, hosts Hosts) (*Cluster, error) {
	params, err := parseParams(o.Params, o.Nodes)
	if err != nil {
		return nil, err
	}
	java, noJava := o.Find("java", "openjdk-17-jre-headless")
	classes, noClasses := classPath(params.jars)
	return cluster.Launch(ctx, cluster.Kind{
		Name: "voltdb", PortTaken: "Address already in use", Lacks: cmp.Or(noJava, noClasses),
		NoFaultFS: "disk faults are not possible with VoltDB, which keeps its data in memory",
	}, o, func() *Cluster {
		c := &Cluster{java: java, classes: classes, params: params, hosts: hosts}
		c.NodeSet = cluster.NewNodeSet("the VoltDB cluster", c.newNode, func() func(context.Context) error { return c.checkHealthy })
		return c
	}, (*Cluster).start)
}

// params are the parameters of a cluster.
type params struct {
	jars      string
	kfactor   int
	sites     int
	heartbeat time.Duration
	security  bool
}

func parseParams(values url.Values, nodes int) (params, error) {
	p := params{kfactor: min(1, max(nodes-1, 0)), sites: 2, heartbeat: 5 * time.Second}
	err := cluster.Params{
		Known: map[string]func(string) error{
			"jars":      func(value string) error { p.jars = value; return nil },
			"kfactor":   cluster.Number(&p.kfactor, 0, max(nodes-1, 0)),
			"sites":     cluster.Number(&p.sites, 1, 24),
			"heartbeat": cluster.Between(&p.heartbeat, time.Second, time.Hour, "5s"),
			"security":  cluster.OnOff(&p.security),
		},
		Set:  func(string, string) error { return errors.New("a VoltDB cluster has no settings of this kind") },
		Kind: "a cluster of VoltDB",
	}.Read(values)
	if err == nil && p.sites*nodes%(p.kfactor+1) != 0 {
		err = &cluster.ParamError{Param: "sites", Reason: fmt.Sprintf("%d partitions on each of %d nodes cannot hold %d copies of each: sites × nodes must be divisible by kfactor + 1", p.sites, nodes, p.kfactor+1)}
	}
	return p, err
}

// The user of a cluster with security. The password is no secret, because the cluster is only on this machine.
const user, password = "stroppy", "stroppy"

const logging = `<?xml version="1.0" encoding="UTF-8" ?>
<!DOCTYPE log4j:configuration SYSTEM "log4j.dtd">
<log4j:configuration xmlns:log4j="http://jakarta.apache.org/log4j/"><appender name="A" class="org.apache.log4j.ConsoleAppender"><layout class="org.apache.log4j.PatternLayout"><param name="ConversionPattern" value="%d %-5p [%t] %c: %m%n"/></layout></appender><root><priority value="info"/><appender-ref ref="A"/></root></log4j:configuration>
`

func (c *Cluster) deployment() string {
	p, security := c.params, ""
	if p.security {
		security = fmt.Sprintf(`<security enabled="true"/><users><user name=%q password=%q roles="administrator"/></users>`, user, password)
	}
	return fmt.Sprintf(`<deployment><cluster sitesperhost="%d" kfactor="%d"/><heartbeat timeout="%d"/><httpd enabled="false"/>%s</deployment>`,
		p.sites, p.kfactor, int(p.heartbeat/time.Second), security)
}

func (c *Cluster) loggingFile() string    { return filepath.Join(c.Dir, "log4j.xml") }
func (c *Cluster) deploymentFile() string { return filepath.Join(c.Dir, "deployment.xml") }

// start starts all nodes at once, because none answers before they have formed a cluster.
func (c *Cluster) start(ctx context.Context) error {
	err := os.WriteFile(c.loggingFile(), []byte(logging), 0o644)
	if err == nil {
		err = os.WriteFile(c.deploymentFile(), []byte(c.deployment()), 0o644)
	}
	if err == nil {
		err = c.Each(func(n *node) error { return n.Restart(ctx) })
	}
	if err == nil { // VoltDB ends a node that the others have expelled, and a service manager would restart it
		c.RestartEnded(&c.EventLog)
	}
	return err
}

// checkHealthy returns nil if every node answers and sees the complete cluster.
func (c *Cluster) checkHealthy(ctx context.Context) error {
	for _, n := range c.List() {
		hosts, err := n.ask(ctx)
		if err == nil {
			err = c.whole(n, hosts)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expendable returns nil if the data of the node are not needed. This holds if every partition has all its copies. It
// also holds if the node is down and all others answer, because a node answers only with all its copies. With kfactor
// 0 it never holds.
func (n *node) expendable(ctx context.Context) error {
	c := n.cluster
	if c.params.kfactor == 0 {
		return errors.New("with kfactor=0 no other node has its data")
	}
	for _, m := range c.Others(n) {
		if !m.Awake() {
			return fmt.Errorf("%s does not run, and without both nodes the cluster would be lost", m.Name())
		}
		hosts, err := m.ask(ctx)
		if err != nil {
			return err
		}
		if n.Awake() {
			if err := c.whole(m, hosts); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole returns nil if a node sees all nodes and finds all copies of every partition.
func (c *Cluster) whole(n *node, hosts []map[string]string) error {
	if count := len(c.List()); len(hosts) != count {
		return fmt.Errorf("%s sees %d of %d nodes", n.Name(), len(hosts), count)
	}
	for _, h := range hosts {
		if h["clustersafety"] != "FULL" || h["clusterstate"] != "RUNNING" {
			return fmt.Errorf("%s reports the cluster as %s and its safety as %s", n.Name(), h["clusterstate"], h["clustersafety"])
		}
	}
	return nil
}

// URL names all nodes; a client's sessions start with different ones.
func (c *Cluster) URL() string {
	return c.urlOf(c.Addresses(func(n *node) string { return n.client.String() }))
}

func (c *Cluster) urlOf(hosts string) string {
	u := url.URL{Scheme: "voltdb", Host: hosts, RawQuery: "connect_timeout=1s"}
	if c.params.security {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}
