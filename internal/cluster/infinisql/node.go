package infinisql

import (
	"bytes"
	"context"
	_ "embed"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/template"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

const (
	askTimeout    = 3 * time.Second // of a query, which may hang
	shutdownLimit = 10 * time.Second
)

// serve is a Python program that starts the server and stays its parent. configuration is a template of the manager's
// file.
var (
	//go:embed serve.py
	serve string
	//go:embed node.conf
	configuration string
)

var configurationTemplate = template.Must(template.New("node.conf").Parse(configuration))

// node is the server.
type node struct {
	*host.Server
	cluster                         *Cluster
	sql, admin, management, gateway netip.AddrPort
}

// newNode describes a node.
func (c *Cluster) newNode(int, *host.Host) (*node, cluster.Design) {
	n := &node{cluster: c}
	return n, cluster.Design{Server: &n.Server, Ports: map[int]*netip.AddrPort{15432: &n.sql, 11521: &n.admin, 11520: &n.management, 11530: &n.gateway}, Program: host.Program{
		Command: n.command, Ready: n.ready,
		Death: syscall.SIGTERM, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit,
	}}
}

// command returns the command that starts the server, which is empty at first.
func (n *node) command(context.Context) (*exec.Cmd, error) {
	p, file := n.cluster.programs, filepath.Join(n.Dir(), "node.conf")
	var text bytes.Buffer
	err := configurationTemplate.Execute(&text, map[string]any{
		"Server": p.server, "Log": filepath.Join(n.Dir(), "infinisqld.log"), "Password": password,
		"Management": n.management, "Admin": n.admin, "Gateway": n.gateway, "SQL": n.sql,
	})
	if err == nil {
		err = os.WriteFile(file, text.Bytes(), 0o600)
	}
	if err == nil {
		err = os.RemoveAll(n.readyFile())
	}
	cmd := exec.Command(p.python, "-c", serve, p.manager, file, n.readyFile())
	cmd.Dir = n.Dir()
	return cmd, err
}

func (n *node) readyFile() string { return filepath.Join(n.Dir(), "ready") }

// ready waits until the manager is done and the server has the user.
func (n *node) ready(ctx context.Context) error {
	return wait.RetryEvery(ctx, 50*time.Millisecond, func() error {
		if _, err := os.Stat(n.readyFile()); err != nil {
			return err
		}
		return n.ask(ctx)
	})
}
