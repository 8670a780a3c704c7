package cluster

import (
	"context"
	"net/netip"
	"os/exec"
	"syscall"
)

// Network joins the hosts of one cluster with this program, which is the client
// of all of them: in network namespaces on a bridge, or on 127.0.0.1.
type Network struct {
	loopback string // why there are no namespaces; empty if there are
	hosts    []*Host
}

// Client stands for this program among the hosts' numbers.
const Client = -1

// Host is the place of one node: an address and how processes are started there.
type Host struct {
	number int
	addr   netip.Addr
}

// Addr is the address of the host, on which only its node listens. On loopback
// it is 127.0.0.1 for all of them, and nodes differ by port.
func (h *Host) Addr() netip.Addr { return h.addr }

// Start starts a process on the host, as StartProcess does.
func (h *Host) Start(cmd *exec.Cmd, death syscall.Signal) (*Process, error) {
	return StartProcess(cmd, death)
}

// Port returns the port on which a server of this host is to listen: the
// standard one where the host's address is its own, else a free one.
func (h *Host) Port(ctx context.Context, standard int) (int, error) { return FreePort(ctx) }

// NewNetwork makes a network of so many hosts.
func NewNetwork(ctx context.Context, hosts int, loopback bool) (*Network, error) {
	n := &Network{loopback: "this is the loopback network"}
	for range hosts {
		if _, err := n.Add(ctx); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Host returns the host of a number.
func (n *Network) Host(number int) *Host { return n.hosts[number] }

// Add makes one more host.
func (n *Network) Add(ctx context.Context) (*Host, error) {
	h := &Host{number: len(n.hosts), addr: netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	n.hosts = append(n.hosts, h)
	return h, ctx.Err()
}

// Loopback says why the hosts have no namespaces of their own, empty if they do.
func (n *Network) Loopback() string { return n.loopback }

// Close takes the network away.
func (n *Network) Close() error { return nil }
