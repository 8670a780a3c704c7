//go:build !embedded

package netem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wrap"
	"stroppy/internal/fault"
)

// filter sets the rules at the bridge's forward hook, which all packets between places pass. Neither sender nor
// receiver notices them. A rule in the sender's output path would make its calls fail.
func (n *namespaces) filter(cuts []fault.Cut) error {
	if !n.filtered && len(cuts) == 0 {
		return nil
	}
	c, err := nftables.New(nftables.WithNetNSFd(int(n.switchNS.ns)))
	if err != nil {
		return fmt.Errorf("reach the kernel's packet filter nftables: %w", err)
	}
	table := c.AddTable(&nftables.Table{Name: host.Prefix, Family: nftables.TableFamilyBridge})
	chain := c.AddChain(&nftables.Chain{
		Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	c.FlushChain(chain)
	for _, cut := range cuts {
		comment := "cut " + endpointName(cut.From) + " to " + endpointName(cut.To)
		c.AddRule(&nftables.Rule{
			Table: table, Chain: chain, UserData: userdata.AppendString(nil, userdata.TypeComment, comment),
			Exprs: slices.Concat(isIPv4(), addressAt(sourceOffset, n.addr(cut.From)), addressAt(destinationOffset, n.addr(cut.To)),
				[]expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}),
		})
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("set the rules of the kernel's packet filter nftables on a bridge: %w", err)
	}
	n.filtered = true
	return nil
}

// Offsets in bytes of the addresses in the header of IPv4, RFC 791 section 3.1.
const sourceOffset, destinationOffset = 12, 16

func isIPv4() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.BigEndian.AppendUint16(nil, unix.ETH_P_IP)},
	}
}

func addressAt(offset uint32, addr netip.Addr) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: addr.AsSlice()},
	}
}

// shape lets the kernel's netem delay and drop packets at both ends of a host's link. If the kernel has no netem, or
// netem would behave differently, shape puts a wire of this program between the host's port and the bridge. About a
// millisecond of packets is lost when a wire comes or goes. When a netem changes or goes, its delayed packets are
// lost, because later packets could overtake them otherwise.
//
// Netem is not tested on a kernel that has it, but every shaped link is measured.
func (n *namespaces) shape(number int, link fault.Link) error {
	h := n.hosts[number]
	attrs, same := netemOf(link)
	netem := n.netem && same
	if h.wire != nil && !netem && link != (fault.Link{}) {
		h.wire.set(link)
		return nil
	}
	err := n.unshape(h)
	switch {
	case err != nil || link == fault.Link{}:
		return err
	case netem:
		err = n.addNetem(h, attrs)
	default:
		err = n.newWire(h, link)
	}
	if err != nil {
		err = errors.Join(err, n.unshape(h))
	}
	return err
}

// unshape restores a host's link.
func (n *namespaces) unshape(h *hostSpace) error {
	return errors.Join(h.removeNetem(), h.cutWire(), n.reattach(h))
}

func (n *namespaces) shapedBy(number int) string {
	if n.hosts[number].wire != nil {
		return "a delay line of our own"
	}
	return "the kernel's netem"
}

// newWire takes a host's port off the bridge and puts a wire in between.
func (n *namespaces) newWire(h *hostSpace, link fault.Link) error {
	links, tapName := n.switchNS.links, "wire"+strconv.Itoa(h.number)
	port, err := links.LinkByName(h.name)
	if err != nil {
		return fmt.Errorf("find the host's link: %w", err)
	}
	err = n.within(n.switchNS.ns, func() (err error) {
		h.wire, err = newWire(port.Attrs().Index, tapName, link)
		return err
	})
	if err != nil {
		return err
	}
	if err := setUp(end{links, tapName}); err != nil {
		return err
	}
	tap, err := links.LinkByName(tapName)
	if err != nil {
		return fmt.Errorf("find the wire's link: %w", err)
	}
	h.detached = true
	if err := links.LinkSetNoMaster(port); err != nil {
		return fmt.Errorf("take the host's link off the bridge: %w", err)
	}
	if err := h.wire.start(); err != nil {
		return err
	}
	if err := links.LinkSetMaster(tap, n.bridge); err != nil {
		return fmt.Errorf("put the wire on the bridge: %w", err)
	}
	return nil
}

// reattach puts a host's port back on the bridge.
func (n *namespaces) reattach(h *hostSpace) (err error) {
	defer wrap.Error(&err, "put the host's link back on the bridge")
	if !h.detached {
		return nil
	}
	port, err := n.switchNS.links.LinkByName(h.name)
	if err == nil {
		err = n.switchNS.links.LinkSetMaster(port, n.bridge)
	}
	h.detached = err != nil
	return err
}

func (h *hostSpace) cutWire() error {
	w := h.wire
	if h.wire = nil; w == nil {
		return nil
	}
	return w.close()
}

// netemOf returns the attributes of the kernel's netem (tc-netem(8)) for one direction, and whether it behaves like a
// wire. With a jitter it does not, because packets overtake each other. On a narrow link it does not either: its
// queue is bounded in packets of up to 64 KiB, so it can delay for seconds instead of 200 ms.
func netemOf(l fault.Link) (attrs netlink.NetemQdiscAttrs, same bool) {
	return netlink.NetemQdiscAttrs{
		Latency: uint32((l.Delay + time.Microsecond - 1) / time.Microsecond),
		Loss:    float32(100 * l.Loss), // in percent
		Limit:   maxFrames,
	}, l.Jitter == 0 && l.Bandwidth == 0
}

// hasNetem reports whether the kernel has netem, by adding one without effect to a link and removing it. The times of
// NetemQdiscAttrs need the length of the kernel's ticks.
func (e end) hasNetem() bool {
	none := netlink.NetemQdiscAttrs{}
	return netlink.TickInUsec() > 0 && e.qdisc(e.links.QdiscAdd, none) == nil && e.qdisc(e.links.QdiscDel, none) == nil
}

// qdisc applies do to the netem at the exit of a link.
func (e end) qdisc(do func(netlink.Qdisc) error, attrs netlink.NetemQdiscAttrs) (err error) {
	defer wrap.Error(&err, "set the kernel's netem on the link %s", e.name)
	link, err := e.links.LinkByName(e.name)
	if err != nil {
		return err
	}
	root := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	return do(netlink.NewNetem(root, attrs))
}

// addNetem puts a netem on both ends of a host's link, one per direction.
func (n *namespaces) addNetem(h *hostSpace, attrs netlink.NetemQdiscAttrs) error {
	for _, e := range []end{{h.links, hostLink}, {n.switchNS.links, h.name}} {
		if err := e.qdisc(e.links.QdiscAdd, attrs); err != nil {
			return err
		}
		h.netem = append(h.netem, e)
	}
	return nil
}

func (h *hostSpace) removeNetem() error {
	for ; len(h.netem) > 0; h.netem = h.netem[1:] {
		if err := h.netem[0].qdisc(h.netem[0].links.QdiscDel, netlink.NetemQdiscAttrs{}); err != nil {
			return err
		}
	}
	return nil
}
