// Package netem joins the nodes of a cluster by an emulated network. A Network cuts, delays and limits its links, and
// verifies each fault by packets of its own.
package netem

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wrap"
	"stroppy/internal/fault"
)

// OnThisMachine reports whether an address belongs to a running cluster on this machine, of any run. Such hosts have
// links with our names.
func OnThisMachine(address netip.Addr) (bool, error) {
	links, err := net.Interfaces()
	if err != nil {
		return false, fmt.Errorf("list this machine's links: %w", err)
	}
	for _, link := range links {
		networks, err := link.Addrs()
		if err != nil || !strings.HasPrefix(link.Name, host.Prefix) {
			continue // the link may be gone by now
		}
		for _, n := range networks {
			if prefix, err := netip.ParsePrefix(n.String()); err == nil && prefix.Contains(address.Unmap()) {
				return true, nil
			}
		}
	}
	return false, nil
}

// Network joins the hosts of one cluster and this program, which is their client. The hosts are network namespaces on
// a bridge, or all 127.0.0.1. Its methods may be called from several goroutines.
type Network struct {
	loopback string       // why there are no namespaces; empty if there are
	backend  backend      // nil on loopback
	record   *host.Record // for cleanup if this program is killed

	mu     sync.Mutex
	hosts  []*host.Host
	faults []*linkFault // not yet healed
	closed bool
}

// backend makes a network of namespaces. Network calls its methods one at a time, except inside.
type backend interface {
	addHost(number int) (netip.Addr, error)
	// inside moves the calling thread to a host, or to this program's own namespace for Client, until leave. The
	// thread must be locked to its goroutine.
	inside(number int) (leave func() error, err error)
	// filter replaces the rules that drop packets, in one step.
	filter(cuts []fault.Cut) error
	// shape sets the properties of one host's link; the zero Link restores the original.
	shape(number int, link fault.Link) error
	// shapedBy names the mechanism that shapes the link.
	shapedBy(number int) string
	addr(number int) netip.Addr
	close() error
}

// New makes a network of hosts. If loopback is set, or namespaces are not available, all hosts are 127.0.0.1,
// and Loopback returns the reason.
func New(ctx context.Context, hosts int, loopback bool) (*Network, error) {
	record, err := host.NewRecord("network")
	if err != nil {
		return nil, err
	}
	n := &Network{record: record}
	if loopback {
		n.loopback = askedLoopback
	} else if err := n.makeNamespaces(ctx, hosts); err != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(err, n.Close())
		}
		n.loopback = err.Error()
	}
	for len(n.hosts) < hosts {
		if _, err := n.Add(ctx); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

const askedLoopback = "loopback was requested"

// Planned returns the network that New would make with namespaces available, but makes nothing.
func Planned(hosts int, loopback bool) *Network {
	n := &Network{}
	if loopback {
		n.loopback = askedLoopback
	}
	for range hosts {
		n.hosts = append(n.hosts, host.New(loopbackAddr, nil, nil))
	}
	return n
}

// makeNamespaces makes the namespaces of the first hosts and verifies that packets pass. After an error nothing is
// left of them.
func (n *Network) makeNamespaces(ctx context.Context, hosts int) (err error) {
	if n.backend, err = newBackend(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.backend.close())
			n.backend, n.hosts = nil, nil
		}
	}()
	for number := range hosts {
		_, err := n.Add(ctx)
		if err == nil {
			err = reaches(ctx, n, fault.Between(fault.Client, number), ": look for a firewall on this machine")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endpointName names a host or this program in an error.
func endpointName(number int) string {
	if number == fault.Client {
		return "the client"
	}
	return fmt.Sprintf("n%d", number)
}

func (n *Network) Host(number int) *host.Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[number]
}

func (n *Network) Add(ctx context.Context) (h *host.Host, err error) {
	defer wrap.Error(&err, "add a host to the network")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errors.New("it is closed")
	}
	h, number := host.New(loopbackAddr, n.record, nil), len(n.hosts)
	if n.backend != nil {
		addr, err := n.backend.addHost(number)
		if err != nil {
			return nil, err
		}
		h = host.New(addr, n.record, func() (func() error, error) { return n.backend.inside(number) })
	}
	n.hosts = append(n.hosts, h)
	return h, nil
}

// Loopback returns why the hosts have no namespaces, or "" if they have them.
func (n *Network) Loopback() string { return n.loopback }

// LinkFaults returns why its links cannot have faults, or nil if they can.
func (n *Network) LinkFaults(fault.LinkFault) error {
	if n.loopback == "" {
		return nil
	}
	return fmt.Errorf("its nodes share one address, so links between them cannot have faults: %s; run as root and without loopback", n.loopback)
}

// Close removes the network with all processes that still run on its hosts, and ends all faults on it. It may be
// called again.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	if n.backend != nil {
		if err := n.backend.close(); err != nil {
			return fmt.Errorf("remove the network: %w", err)
		}
	}
	n.closed = true
	n.faults = nil
	return n.record.Close()
}

// known returns an error if a place does not exist; n.mu is held.
func (n *Network) known(places ...int) error {
	if n.closed {
		return errors.New("the network is closed")
	}
	for _, p := range places {
		if p < fault.Client || p >= len(n.hosts) {
			return fmt.Errorf("the network has no host n%d, only n0 to n%d", p, len(n.hosts)-1)
		}
	}
	return nil
}

// loopbackAddr is the address of all hosts without namespaces.
var loopbackAddr = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// at runs f on a thread of a host, or in this program's own namespace for Client. Sockets that f opens stay there. f
// must not start goroutines that open sockets.
func (n *Network) at(number int, f func() error) error {
	if n.backend == nil {
		return f()
	}
	return onThread(func() (func() error, error) { return n.backend.inside(number) }, f)
}

// onThread runs f on its own thread, which enter moves to another place and leave moves back. A thread that cannot be
// moved back ends with its goroutine. enter may return leave together with an error.
func onThread(enter host.Enter, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		leave, err := enter()
		if err != nil {
			if leave != nil && leave() == nil {
				runtime.UnlockOSThread()
			}
			done <- err
			return
		}
		err = f()
		left := leave()
		if left == nil {
			runtime.UnlockOSThread()
		}
		done <- errors.Join(err, left)
	}()
	return <-done
}
