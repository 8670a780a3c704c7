//go:build !embedded

package netem

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wrap"
	"stroppy/internal/fault"
)

// namespaces is a backend with a network namespace per host and one for the switch, whose bridge joins them. The
// switch has its own namespace for two reasons. No firewall of this machine for forwarded packets, such as a
// container engine's, sees the packets between hosts. And other programs see only one link, this program's own.
//
//	this program ── client ┐
//	n0: eth0 ──────────────┤ switch: bridge
//	n1: eth0 ──────────────┘
//
// No namespace has a name. A host's namespace lasts as long as its keeper, which ends all processes in it when this
// program ends. The switch's namespace lasts as long as this program has it open. Links and packet filter rules
// disappear with their namespaces. This program's own link disappears with its other end.
type namespaces struct {
	id     string // part of the name of this program's own link
	subnet netip.Prefix

	mu     sync.RWMutex // held for reading by threads that are inside
	hosts  []*hostSpace
	closed bool

	home     netns.NsHandle // this program's own namespace
	switchNS namespace      // the switch
	bridge   netlink.Link
	homeEnd  end  // this program's link; without a handle until it is made
	filtered bool // filter has set rules before
	netem    bool // the kernel has netem
}

type namespace struct {
	name   string // for errors
	ns     netns.NsHandle
	links  *netlink.Handle
	keeper *keeper // nil if the namespace has no processes
}

// hostSpace is the namespace of a host and the changes to its link.
type hostSpace struct {
	namespace
	number   int
	wire     *wire // delays and drops packets; nil if there is none
	detached bool  // the port was taken off the bridge
	netem    []end // ends with a netem
}

const (
	// clientLast is the last byte of this program's address; hosts count up from 1.
	clientLast = 254
	hostLink   = "eth0" // a host's link in the host's namespace
	clientPort = "client"
	bridgeName = "bridge"
)

// newBackend makes the switch and this program's link to it.
func newBackend() (backend, error) {
	n := &namespaces{home: netns.None()}
	if err := n.build(); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			err = fmt.Errorf("network namespaces need root, or the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN: %w", err)
		}
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *namespaces) build() (err error) {
	if n.home, err = netns.GetFromPath("/proc/thread-self/ns/net"); err != nil {
		return fmt.Errorf("open this program's network namespace: %w", err)
	}
	n.id = host.RandomName()
	if n.switchNS, err = n.newNamespace("the switch", false); err != nil {
		return err
	}
	links := n.switchNS.links
	if err = links.LinkAdd(&netlink.Bridge{LinkAttrs: named(bridgeName)}); err == nil {
		if n.bridge, err = links.LinkByName(bridgeName); err == nil {
			err = links.LinkSetUp(n.bridge)
		}
	}
	if err != nil {
		return fmt.Errorf("make a bridge: %w", err)
	}
	home, err := netlink.NewHandleAt(n.home, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open this program's network namespace: %w", err)
	}
	n.homeEnd = end{home, host.Prefix + n.id} // at most 15 characters
	if err := n.attach(clientPort, fault.Client, n.homeEnd.name, n.home); err != nil {
		return err
	}
	link, err := home.LinkByName(n.homeEnd.name)
	if err != nil {
		return fmt.Errorf("make the link %s: %w", n.homeEnd.name, err)
	}
	if n.subnet, err = takeSubnet(home, link); err != nil {
		return err
	}
	n.netem = end{links, clientPort}.hasNetem()
	return setUp(n.homeEnd, end{links, clientPort})
}

func named(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return attrs
}

// newNamespace makes a network namespace in which lo is up. No other link has IPv6, which the rules here would not
// cut.
func (n *namespaces) newNamespace(name string, keep bool) (p namespace, err error) {
	defer wrap.Error(&err, "make a network namespace for %s", name)
	p = namespace{name: name, ns: netns.None()}
	err = onThread(func() (leave func() error, err error) {
		p.ns, err = netns.New() // it moves the calling thread there
		return n.comeHome, err
	}, func() (err error) {
		err = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
		if errors.Is(err, os.ErrNotExist) {
			err = nil // this kernel has no IPv6
		}
		if err == nil && keep {
			p.keeper, err = startKeeper()
		}
		return err
	})
	if err == nil {
		p.links, err = netlink.NewHandleAt(p.ns, unix.NETLINK_ROUTE)
	}
	if err == nil {
		err = setUp(end{p.links, "lo"})
	}
	if err != nil {
		err = errors.Join(err, p.close())
	}
	return p, err
}

func (n *namespaces) comeHome() error { return netns.Set(n.home) }

// close ends all processes in the namespace. The kernel removes the namespace and its links when it is no longer
// used. close may be called again after an error.
func (p *namespace) close() error {
	if err := p.keeper.close(); err != nil {
		return fmt.Errorf("end the processes of %s: %w", p.name, err)
	}
	p.keeper = nil
	if p.links != nil {
		p.links.Close()
		p.links = nil
	}
	if p.ns.IsOpen() {
		if err := p.ns.Close(); err != nil {
			return fmt.Errorf("close the network namespace of %s: %w", p.name, err)
		}
	}
	return nil
}

// portIndex is the first index of the bridge's ports. The kernel notices the carrier of a link at once only if its
// index differs from the index of its other end (linkwatch_urgent_event). Otherwise it takes up to a second.
const portIndex = 1 << 20

// attach joins a new link of a host, or of this program, to a new port of the bridge.
func (n *namespaces) attach(port string, number int, link string, ns netns.NsHandle) (err error) {
	defer wrap.Error(&err, "make the link %s", link)
	veth := &netlink.Veth{LinkAttrs: named(port), PeerName: link, PeerNamespace: netlink.NsFd(ns), PeerHardwareAddr: hardwareAddr(number)}
	veth.Index = portIndex + int(lastByte(number))
	veth.MasterIndex = n.bridge.Attrs().Index
	return n.switchNS.links.LinkAdd(veth)
}

// carrierLimit bounds the wait until the kernel notices a carrier.
const carrierLimit = 3 * time.Second

// setUp sets links up, such as the two ends of one cable, and waits until the kernel lets packets pass. It does so in
// the state unknown too, see netif_oper_up.
func setUp(ends ...end) error {
	for _, e := range ends {
		link, err := e.links.LinkByName(e.name)
		if err == nil {
			err = e.links.LinkSetUp(link)
		}
		if err != nil {
			return fmt.Errorf("set the link %s up: %w", e.name, err)
		}
	}
	for limit := time.Now().Add(carrierLimit); len(ends) > 0; {
		link, err := ends[0].links.LinkByName(ends[0].name)
		switch {
		case err != nil:
			return fmt.Errorf("set the link %s up: %w", ends[0].name, err)
		case link.Attrs().OperState == netlink.OperUp, link.Attrs().OperState == netlink.OperUnknown:
			ends = ends[1:]
		case time.Now().After(limit):
			return fmt.Errorf("set the link %s up: it is still %v after %v", ends[0].name, link.Attrs().OperState, carrierLimit)
		default:
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// end is a link in one namespace.
type end struct {
	links *netlink.Handle
	name  string
}

func (n *namespaces) addHost(number int) (netip.Addr, error) {
	if number+1 >= clientLast {
		return netip.Addr{}, fmt.Errorf("one network has room for %d hosts", clientLast-1)
	}
	p, err := n.newNamespace("n"+strconv.Itoa(number), true) // also the name of its port at the switch
	if err != nil {
		return netip.Addr{}, err
	}
	var link netlink.Link
	addr := n.addr(number)
	if err = n.attach(p.name, number, hostLink, p.ns); err == nil {
		link, err = p.links.LinkByName(hostLink)
	}
	if err == nil {
		err = p.links.AddrAdd(link, addressOf(addr, n.subnet))
	}
	if err == nil {
		err = setUp(end{p.links, hostLink}, end{n.switchNS.links, p.name})
	}
	if err == nil {
		err = n.acquaint(number, end{p.links, hostLink})
	}
	if err != nil {
		return addr, errors.Join(fmt.Errorf("give the address %s to %s: %w", addr, p.name, err), p.close())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts = append(n.hosts, &hostSpace{namespace: p, number: number})
	return addr, nil
}

func addressOf(addr netip.Addr, subnet netip.Prefix) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(subnet.Bits(), 32)}}
}

// acquaint makes the hardware addresses of a new host and all others known to each other permanently. So none asks by
// ARP, which fails after 3 s on a slow or lossy link.
func (n *namespaces) acquaint(number int, new end) error {
	ends := map[int]end{fault.Client: n.homeEnd}
	for _, h := range n.hosts {
		ends[h.number] = end{h.links, hostLink}
	}
	for other, e := range ends {
		if err := errors.Join(n.know(new, other), n.know(e, number)); err != nil {
			return err
		}
	}
	return nil
}

// know adds the hardware address of a host, or of this program, to the neighbors of one end.
func (n *namespaces) know(at end, number int) error {
	link, err := at.links.LinkByName(at.name)
	if err != nil {
		return err
	}
	return at.links.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: n.addr(number).AsSlice(), HardwareAddr: hardwareAddr(number),
	})
}

// addr returns the address of a host or of this program.
func (n *namespaces) addr(number int) netip.Addr {
	bytes := n.subnet.Addr().As4()
	bytes[3] = lastByte(number)
	return netip.AddrFrom4(bytes)
}

// lastByte returns the last byte of the addresses of a host or of this program.
func lastByte(number int) byte {
	if number == fault.Client {
		return clientLast
	}
	return byte(number + 1)
}

// hardwareAddr returns a locally administered address, which may repeat in other networks. It is set because udev
// changes an address that the kernel has chosen.
func hardwareAddr(number int) net.HardwareAddr {
	return net.HardwareAddr{2, 's', 't', 'r', 'o', lastByte(number)}
}

// inside keeps the namespaces open until leave, so no process starts in one that close has already emptied.
func (n *namespaces) inside(number int) (leave func() error, err error) {
	n.mu.RLock()
	if n.closed {
		n.mu.RUnlock()
		return nil, errors.New("the network is closed")
	}
	ns := n.home
	if number != fault.Client {
		ns = n.hosts[number].ns
	}
	if err := netns.Set(ns); err != nil {
		n.mu.RUnlock()
		return nil, fmt.Errorf("enter the network namespace of %s: %w", endpointName(number), err)
	}
	return func() error {
		defer n.mu.RUnlock()
		if err := n.comeHome(); err != nil {
			return fmt.Errorf("leave the network namespace of %s: %w", endpointName(number), err)
		}
		return nil
	}, nil
}

// within runs f on a thread in a namespace.
func (n *namespaces) within(ns netns.NsHandle, f func() error) error {
	return onThread(func() (func() error, error) { return n.comeHome, netns.Set(ns) }, f)
}

// close may be called again after an error.
func (n *namespaces) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	var err error
	for _, h := range n.hosts {
		err = errors.Join(err, h.cutWire(), h.close())
	}
	if n.homeEnd.links != nil {
		// Remove this link now: the kernel would remove it only some time after the switch is closed.
		if errLink := n.homeEnd.remove(); errLink != nil {
			return errors.Join(err, errLink)
		}
		n.homeEnd.links.Close()
		n.homeEnd.links = nil
	}
	err = errors.Join(err, n.switchNS.close())
	if err == nil && n.home.IsOpen() {
		err = n.home.Close()
	}
	return err
}

// remove removes a link together with its other end; a missing link is no error.
func (e end) remove() (err error) {
	defer wrap.Error(&err, "remove the link %s", e.name)
	link, err := e.links.LinkByName(e.name)
	if err == nil {
		err = e.links.LinkDel(link)
	}
	if notFound := (netlink.LinkNotFoundError{}); errors.As(err, &notFound) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// takeSubnet gives this program's link an address in a /24 network that nothing on this machine uses, and returns the
// network. It is part of 10.213.0.0/16 or of 198.18.0.0/15, which is reserved for network benchmarks (RFC 2544).
func takeSubnet(links *netlink.Handle, link netlink.Link) (netip.Prefix, error) {
	used, err := usedSubnets(links, link)
	for _, first := range [][2]byte{{10, 213}, {198, 18}, {198, 19}} {
		for _, third := range rand.Perm(256) {
			subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{first[0], first[1], byte(third), 0}), 24)
			if err != nil || slices.ContainsFunc(used, subnet.Overlaps) {
				continue
			}
			address := addressOf(netip.AddrFrom4([4]byte{first[0], first[1], byte(third), clientLast}), subnet)
			if err = links.AddrAdd(link, address); err == nil {
				used, err = usedSubnets(links, link) // another program may have taken the same network since
			}
			if err == nil && !slices.ContainsFunc(used, subnet.Overlaps) {
				return subnet, nil
			}
			if err == nil {
				err = links.AddrDel(link, address)
			}
		}
	}
	if err == nil {
		err = errors.New("this machine has addresses or routes for all of 10.213.0.0/16 and 198.18.0.0/15")
	}
	return netip.Prefix{}, fmt.Errorf("find free network addresses: %w", err)
}

// usedSubnets lists the addresses and routes of this machine, except for one link. Default routes, whole or in
// halves, lead anywhere and do not count.
func usedSubnets(links *netlink.Handle, except netlink.Link) ([]netip.Prefix, error) {
	var used []netip.Prefix
	add := func(index int, network *net.IPNet) {
		if index == except.Attrs().Index || network == nil {
			return
		}
		addr, ok := netip.AddrFromSlice(network.IP)
		ones, bits := network.Mask.Size()
		if ok && bits == 32 && ones > 1 {
			used = append(used, netip.PrefixFrom(addr.Unmap(), ones).Masked())
		}
	}
	addrs, err := links.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	for _, a := range addrs {
		add(a.LinkIndex, a.IPNet)
	}
	routes, err := links.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("list the routes of this machine: %w", err)
	}
	for _, r := range routes {
		add(r.LinkIndex, r.Dst)
	}
	return used, nil
}
