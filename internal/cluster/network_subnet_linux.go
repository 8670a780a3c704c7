//go:build !embedded

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// takeSubnet gives this program's link an address in a network of 256 addresses
// that nothing on this machine uses, and returns that network. It is one of
// 10.213.0.0/16 or else of 198.18.0.0/15, which is set aside for benchmarks of networks
// (RFC 2544).
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
				used, err = usedSubnets(links, link) // another program may have taken the same ones since
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
	return netip.Prefix{}, fmt.Errorf("look for free network addresses: %w", err)
}

// usedSubnets lists the addresses and routes of this machine but for those of
// one link. Default routes, whole or in halves, are to anywhere and do not count.
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
