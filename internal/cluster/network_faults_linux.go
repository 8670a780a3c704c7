package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// lossUnits is the resolution of a share of lost packets.
const lossUnits = 1_000_000

// filter puts the rules on the bridge's way from port to port, where all packets
// between places pass. Neither a sender nor a receiver sees them: a packet that
// is dropped on a sender's own way out would fail its call.
func (n *namespaces) filter(cuts []Cut, losses map[int]float64) error {
	if !n.filtered && len(cuts) == 0 && len(losses) == 0 {
		return nil
	}
	c, err := nftables.New(nftables.WithNetNSFd(int(n.switchNS.ns)))
	if err != nil {
		return fmt.Errorf("reach the kernel's packet filter nftables: %w", err)
	}
	table := c.AddTable(&nftables.Table{Name: ourPrefix, Family: nftables.TableFamilyBridge})
	chain := c.AddChain(&nftables.Chain{
		Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	c.FlushChain(chain)
	drop := func(comment string, when ...expr.Any) {
		c.AddRule(&nftables.Rule{
			Table: table, Chain: chain,
			Exprs:    append(append(isIPv4(), when...), &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}),
			UserData: userdata.AppendString(nil, userdata.TypeComment, comment),
		})
	}
	for _, cut := range cuts {
		when := append(addressAt(sourceOffset, n.addr(cut.From)), addressAt(destinationOffset, n.addr(cut.To))...)
		drop("cut "+endpointName(cut.From)+" to "+endpointName(cut.To), when...)
	}
	for host, loss := range losses {
		for _, offset := range []uint32{sourceOffset, destinationOffset} {
			drop(fmt.Sprintf("loss %s %v", endpointName(host), loss), append(addressAt(offset, n.addr(host)), atRandom(loss)...)...)
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("set the rules of the kernel's packet filter nftables on a bridge: %w", err)
	}
	n.filtered = true
	return nil
}

// Where addresses are in the header of IPv4, RFC 791 section 3.1, in bytes.
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

// atRandom is true for a share of the packets. Less-than compares bytes, so the
// number is brought to network order first.
func atRandom(share float64) []expr.Any {
	return []expr.Any{
		&expr.Numgen{Register: 1, Modulus: lossUnits, Type: unix.NFT_NG_RANDOM},
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
		&expr.Cmp{Op: expr.CmpOpLt, Register: 1, Data: binary.BigEndian.AppendUint32(nil, uint32(share*lossUnits+0.5))},
	}
}

// shapedLink is what was done to one host's link.
type shapedLink struct {
	narrow   bool  // queues hold its bandwidth down
	wire     *wire // holds packets back; nil without delay
	detached bool  // the port was taken off the bridge
}

// shape sets the bandwidth by a queue of the kernel's at both ends, and the
// delay by a wire of this program's own: the kernel's netem is missing from many
// kernels, and its jitter changes the order of packets.
func (n *namespaces) shape(number int, link Link) error {
	return errors.Join(n.narrow(number, link.Bandwidth), n.delay(number, link))
}

const (
	// burstShare is how much of the bandwidth may go at once.
	burstShare = 50 // of a second, that is 20 ms
	// minBurst holds a packet of 1500 bytes with its frame, however it is rounded.
	minBurst = 2048
	// queueShare is how long a packet may wait before it is dropped.
	queueShare = 5 // of a second, that is 200 ms
	// minQueue holds ten full packets.
	minQueue = 16 << 10
)

// narrow puts a token bucket, tc-tbf(8), on both ends of a host's link. Zero
// takes it away.
func (n *namespaces) narrow(number int, bandwidth int64) error {
	if bandwidth == 0 && !n.links[number].narrow {
		return nil
	}
	ends := []end{{n.switchNS.links, portName(number)}, {n.hosts[number].links, hostLink}}
	n.links[number].narrow = true // at one end at least, if this fails
	for _, end := range ends {
		link, err := end.links.LinkByName(end.name)
		if err != nil {
			return fmt.Errorf("set the bandwidth: look at the link %s: %w", end.name, err)
		}
		root := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
		if bandwidth == 0 {
			err = end.links.QdiscDel(&netlink.Tbf{QdiscAttrs: root})
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
				err = nil // it was not there
			}
		} else {
			burst := min(max(minBurst, bandwidth/burstShare), 64<<20)
			err = end.links.QdiscReplace(&netlink.Tbf{
				QdiscAttrs: root,
				Rate:       uint64(bandwidth),
				Buffer:     netlink.Xmittime(uint64(bandwidth), uint32(burst)),
				Limit:      uint32(min(burst+max(minQueue, bandwidth/queueShare), 1<<30)),
			})
		}
		if errors.Is(err, unix.ENOENT) {
			err = fmt.Errorf("this kernel has no token bucket queue (module sch_tbf): %w", err)
		}
		if err != nil {
			return fmt.Errorf("set the bandwidth: %w", err)
		}
	}
	n.links[number].narrow = bandwidth > 0
	return nil
}

// delay puts a wire between a host's port and the bridge, changes the one that
// is there, or takes it away. The packets of about a millisecond are lost when
// it comes and when it goes.
func (n *namespaces) delay(number int, link Link) error {
	l := &n.links[number]
	switch {
	case link.Delay == 0 && link.Jitter == 0:
		if err := errors.Join(l.cutWire(), n.reattach(number)); err != nil {
			return fmt.Errorf("take the delay away: %w", err)
		}
		return nil
	case l.wire != nil:
		l.wire.set(link)
		return nil
	}
	if err := n.newWire(number, link); err != nil {
		return fmt.Errorf("set the delay: %w", errors.Join(err, l.cutWire(), n.reattach(number)))
	}
	return nil
}

// newWire takes a host's port off the bridge and puts a wire between.
func (n *namespaces) newWire(number int, link Link) error {
	links := n.switchNS.links
	port, err := links.LinkByName(portName(number))
	if err != nil {
		return fmt.Errorf("look at the host's link: %w", err)
	}
	w := &n.links[number].wire
	err = n.within(n.switchNS.ns, func() (err error) {
		*w, err = newWire(port.Attrs().Index, tapName(number), link)
		return err
	})
	if err != nil {
		return err
	}
	if err := setUp(end{links, tapName(number)}); err != nil {
		return err
	}
	tap, err := links.LinkByName(tapName(number))
	if err != nil {
		return fmt.Errorf("look at the wire's link: %w", err)
	}
	n.links[number].detached = true
	if err := links.LinkSetNoMaster(port); err != nil {
		return fmt.Errorf("take the host's link off the bridge: %w", err)
	}
	if err := (*w).start(); err != nil {
		return err
	}
	if err := links.LinkSetMaster(tap, n.bridge); err != nil {
		return fmt.Errorf("put the wire on the bridge: %w", err)
	}
	return nil
}

// tapName is the wire's end at the switch.
func tapName(number int) string { return fmt.Sprintf("wire%d", number) }

// reattach puts a host's port on the bridge, unless it is there.
func (n *namespaces) reattach(number int) error {
	if !n.links[number].detached {
		return nil
	}
	port, err := n.switchNS.links.LinkByName(portName(number))
	if err == nil {
		err = n.switchNS.links.LinkSetMaster(port, n.bridge)
	}
	if err != nil {
		return fmt.Errorf("put the host's link back on the bridge: %w", err)
	}
	n.links[number].detached = false
	return nil
}

// cutWire takes the wire away, if there is one.
func (l *shapedLink) cutWire() error {
	if l.wire == nil {
		return nil
	}
	w := l.wire
	l.wire = nil
	return w.close()
}
