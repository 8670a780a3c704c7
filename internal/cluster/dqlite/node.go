//go:build dqlite

package dqlite

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/canonical/go-dqlite/client"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

const (
	// handOverLimit bounds the wait of an ending node until another node has taken its leadership and its vote.
	handOverLimit = 10 * time.Second
	// shutdownLimit bounds a clean shutdown.
	shutdownLimit = handOverLimit + 10*time.Second
)

// node is a member of the cluster. Its folder and address stay; its process and its member id change.
type node struct {
	*host.Server
	cluster *Cluster
	address string // host:port, for clients and for the other nodes
}

// newNode describes a node.
func (c *Cluster) newNode(int, *host.Host) (*node, cluster.Design) {
	n, endpoint := &node{cluster: c}, netip.AddrPort{}
	remember := func() error {
		n.address = endpoint.String()
		return nil
	}
	return n, cluster.Design{Server: &n.Server, Ports: map[int]*netip.AddrPort{9000: &endpoint}, Make: remember, Expendable: n.expendable, Program: host.Program{
		Command: n.command, Ready: n.ready, Join: n.join,
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit, Clock: true,
	}}
}

// command returns the command that starts the node. A node with data ignores the other nodes.
func (n *node) command(context.Context) (*exec.Cmd, error) {
	c := n.cluster
	others := ""
	switch {
	case c.formed.Load():
		others = addresses(c.Others(n))
	case n.Number() > 0:
		others = c.List()[0].address
	}
	return exec.Command(c.program, NodeCommand, n.Dir(), n.address, strconv.Itoa(c.voters()), others), nil
}

// seesLeader returns the address that the node names as the leader's.
func (n *node) seesLeader(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	c, err := client.New(ctx, n.address)
	if err != nil {
		return "", fmt.Errorf("%s does not answer: %w", n.Name(), err)
	}
	defer c.Close()
	leader, err := c.Leader(ctx)
	if err == nil && (leader == nil || leader.Address == "") {
		err = errors.New("it knows no leader")
	}
	if err != nil {
		return "", fmt.Errorf("ask %s for the leader: %w", n.Name(), err)
	}
	return leader.Address, nil
}

// ready waits until the node is a member and knows the leader.
func (n *node) ready(ctx context.Context) error {
	return wait.Retry(ctx, func() error {
		if _, err := n.seesLeader(ctx); err != nil {
			return err
		}
		return n.cluster.ask(ctx, func(ctx context.Context, leader *client.Client) error {
			_, err := memberAt(ctx, leader, n.address)
			return err
		})
	})
}

// expendable returns nil if a majority answers without the node. A replaced node is a new member at the old address.
func (n *node) expendable(ctx context.Context) error {
	return n.cluster.Readmits(ctx, n, n.cluster.voters(), func(ctx context.Context, m *node) bool {
		_, err := m.seesLeader(ctx)
		return err == nil && m.Awake()
	})
}

// join removes the node's old member, whose vote and log are lost.
func (n *node) join(ctx context.Context) error {
	return wait.Retry(ctx, func() error {
		return n.cluster.ask(ctx, func(ctx context.Context, leader *client.Client) error {
			member, err := memberAt(ctx, leader, n.address)
			if errors.Is(err, errNoMember) {
				return nil
			}
			if err == nil {
				err = leader.Remove(ctx, member.ID)
			}
			return err
		})
	})
}
