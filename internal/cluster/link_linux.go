package cluster

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

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
