package server

import (
	"context"
	"errors"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

const (
	// orderLimit bounds a query through the Unix socket, and askLimit a query over the network.
	orderLimit, askLimit = 500 * time.Millisecond, time.Second
	// shutdownLimit bounds a fast shutdown, which ends all sessions and writes a checkpoint.
	shutdownLimit = 10 * time.Second
)

// node is the server of a Cluster.
type node struct {
	*host.Server
	cluster  *Cluster
	folder   string // with the configuration, the log, the socket, and the data below it
	sockets  string // folder of the Unix socket
	endpoint netip.AddrPort

	orders *Session // through the Unix socket, which no network fault affects
	over   *Session // over the network, as a client
}

// newNode describes a node.
func (c *Cluster) newNode(number int, on *host.Host) (*node, cluster.Design) {
	n := &node{cluster: c, folder: c.Folder(number)}
	return n, cluster.Design{
		Server: &n.Server, Ports: map[int]*netip.AddrPort{5432: &n.endpoint}, Folder: n.folder, Folders: []string{},
		Dir: filepath.Join(n.folder, "data"), Log: filepath.Join(n.folder, "server.log"), Make: func() error { return n.prepare(on) },
		Program: host.Program{
			Command: n.command, Ready: n.ready,
			// SIGQUIT is the immediate shutdown, in which the postmaster ends its children too; SIGINT is the fast one.
			Death: syscall.SIGQUIT, Shutdown: syscall.SIGINT, ShutdownLimit: shutdownLimit,
			FaultFS: true, Clock: true, Now: n.now,
		},
	}
}

// prepare makes the node's configuration and its sessions.
func (n *node) prepare(on *host.Host) (err error) {
	c := n.cluster
	if n.sockets, err = c.sockets(n.Number()); err != nil {
		return err
	}
	var errs [4]error
	port := n.endpoint.Port()
	n.orders, errs[0] = NewSession(n.sockets, port, orderLimit)
	n.over, errs[1] = NewSession(on.Addr().String(), port, askLimit)
	errs[2] = c.WriteFile(n.hba(), strings.Join(Trust(c.Network()), "\n")+"\n")
	errs[3] = c.WriteFile(n.conf(), n.configuration())
	return errors.Join(errs[:]...)
}

// URL returns the address of the node alone.
func (n *node) URL() string { return NodeURL(n.endpoint.String()) }

// command returns the command that starts the server. Its configuration is outside of the data, so that a loss of
// unsynced writes does not change it.
func (n *node) command(context.Context) (*exec.Cmd, error) {
	c := n.cluster
	return c.User.Command(context.Background(), n.folder, c.programs["postgres"], "-D", n.Dir(),
		"-c", "config_file="+n.conf(), "-c", "hba_file="+n.hba()), nil
}

func (n *node) now(ctx context.Context) (time.Time, error) {
	return One[time.Time](ctx, n.orders, "SELECT clock_timestamp()")
}

// ready waits until the server answers queries.
func (n *node) ready(ctx context.Context) error {
	return wait.Retry(ctx, func() error { return n.orders.Ask(ctx, "SELECT") })
}
