package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
)

// Network joins the hosts of one cluster with this program, which is the client
// of all of them: in network namespaces on a bridge, or on 127.0.0.1. Its
// methods may be called from several goroutines.
type Network struct {
	loopback string  // why there are no namespaces; empty if there are
	backend  backend // nil on loopback
	record   *Record // what a later start clears if this program is killed

	mu     sync.Mutex
	hosts  []*Host
	cuts   map[Cut]int // how many faults ask for each cut
	links  []shaped    // the faults on links that are not healed
	closed bool
}

// backend is what makes a network of namespaces. Network calls addHost, filter,
// shape and close one at a time; inside may be called at any time.
type backend interface {
	addHost(number int) (netip.Addr, error)
	// inside makes the calling thread, which is locked to its goroutine, one of
	// the host's (or of this program's own place, for Client) until leave.
	inside(number int) (leave func() error, err error)
	// filter replaces, in one step, the rules by which packets are dropped.
	filter(cuts []Cut, losses map[int]float64) error
	// shape sets the delay and the bandwidth of one host's link.
	shape(number int, link Link) error
	addr(number int) netip.Addr
	close() error
}

// Client stands for this program among the hosts' numbers.
const Client = -1

// NewNetwork makes a network of so many hosts. Where namespaces cannot be had,
// or loopback asks for it, all hosts are 127.0.0.1; Loopback says why.
func NewNetwork(ctx context.Context, hosts int, loopback bool) (*Network, error) {
	record, err := NewRecord("network")
	if err != nil {
		return nil, err
	}
	n := &Network{record: record, cuts: map[Cut]int{}}
	if loopback {
		n.loopback = "the nodes were asked to share 127.0.0.1"
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

// makeNamespaces makes the namespaces of the first hosts and sees that packets get
// through. After an error nothing of them is left.
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
	for range hosts {
		h, err := n.Add(ctx)
		if err != nil {
			return err
		}
		for _, way := range [][2]int{{Client, h.number}, {h.number, Client}} {
			through, err := n.Reaches(ctx, way[0], way[1])
			if err != nil {
				return err
			}
			if !through {
				return fmt.Errorf("no packet gets from %s to %s: look for a firewall on this machine", endpointName(way[0]), endpointName(way[1]))
			}
		}
	}
	return nil
}

// endpointName names a host or this program in an error.
func endpointName(number int) string {
	if number == Client {
		return "the client"
	}
	return fmt.Sprintf("n%d", number)
}

// Host returns the host of a number.
func (n *Network) Host(number int) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[number]
}

// Add makes one more host.
func (n *Network) Add(ctx context.Context) (*Host, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("add a host to the network: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errors.New("add a host to the network: it is closed")
	}
	h := &Host{network: n, number: len(n.hosts), addr: netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	if n.backend != nil {
		addr, err := n.backend.addHost(h.number)
		if err != nil {
			return nil, fmt.Errorf("add host n%d to the network: %w", h.number, err)
		}
		h.addr = addr
	}
	n.hosts = append(n.hosts, h)
	return h, nil
}

// Loopback says why the hosts have no namespaces of their own, empty if they do.
func (n *Network) Loopback() string { return n.loopback }

// Close takes the network away, with all processes that still run on its hosts,
// and ends all faults on it. It may be called again.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	if n.backend != nil {
		if err := n.backend.close(); err != nil {
			return fmt.Errorf("take the network away: %w", err)
		}
	}
	n.closed = true
	n.cuts, n.links = map[Cut]int{}, nil
	return n.record.Close()
}

// usable says why a fault cannot be done to these places; n.mu is held.
func (n *Network) usable(places ...int) error {
	if n.backend == nil {
		return fmt.Errorf("the nodes share 127.0.0.1, where nothing can be cut or slowed: %s", n.loopback)
	}
	if n.closed {
		return errors.New("the network is closed")
	}
	for _, p := range places {
		if p < Client || p >= len(n.hosts) {
			return fmt.Errorf("the network has no host n%d, only n0 to n%d", p, len(n.hosts)-1)
		}
	}
	return nil
}

// Cut is a direction in which nothing gets through: no packet from host From
// arrives at host To. Either may be Client.
type Cut struct{ From, To int }

// Cut drops all packets that go the ways of cuts, those of established
// connections too; nobody is told that they are dropped. A way that several
// faults cut stays cut until the last of them is healed. heal may be called
// again, and needs to be when it fails.
func (n *Network) Cut(ctx context.Context, cuts []Cut) (heal func() error, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cut the network: %w", err)
	}
	for _, c := range cuts {
		if err := n.usable(c.From, c.To); err != nil {
			return nil, fmt.Errorf("cut the network: %w", err)
		}
		if c.From == c.To {
			return nil, fmt.Errorf("cut the network: %s cannot be cut off from itself", endpointName(c.From))
		}
	}
	cuts = slices.Clone(cuts)
	n.count(cuts, 1)
	if err := n.filter(); err != nil {
		n.count(cuts, -1)
		return nil, fmt.Errorf("cut the network: %w", err)
	}
	healed := false
	return func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if healed || n.closed {
			return nil
		}
		n.count(cuts, -1)
		if err := n.filter(); err != nil {
			n.count(cuts, 1)
			return fmt.Errorf("heal the network: %w", err)
		}
		healed = true
		return nil
	}, nil
}

func (n *Network) count(cuts []Cut, faults int) {
	for _, c := range cuts {
		if n.cuts[c] += faults; n.cuts[c] == 0 {
			delete(n.cuts, c)
		}
	}
}

// filter brings the backend's rules to what all faults together ask for.
func (n *Network) filter() error {
	var cuts []Cut
	for c := range n.cuts {
		cuts = append(cuts, c)
	}
	slices.SortFunc(cuts, func(a, b Cut) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return a.To - b.To
	})
	losses := map[int]float64{}
	for host, link := range n.effective() {
		if link.Loss > 0 {
			losses[host] = link.Loss
		}
	}
	return n.backend.filter(cuts, losses)
}
