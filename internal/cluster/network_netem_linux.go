//go:build !embedded

package cluster

import (
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
)

// netem is what the kernel's netem (tc-netem(8)) does to one direction of the link in place
// of a wire. It is not the same as a wire where delays vary, because packets then overtake
// each other in it. Nor is it the same on a narrow link: its queue is bounded in packets, of
// which one may have 64 KiB, so that it holds back seconds in place of 200 ms.
func (l Link) netem() (attrs netlink.NetemQdiscAttrs, same bool) {
	return netlink.NetemQdiscAttrs{
		Latency: uint32((l.Delay + time.Microsecond - 1) / time.Microsecond),
		Loss:    float32(100 * l.Loss), // in percent
		Limit:   maxFrames,
	}, l.Jitter == 0 && l.Bandwidth == 0
}

// hasNetem asks the kernel for netem by adding it, with no effect, to a link and removing
// it. NetemQdiscAttrs's times are nothing without the length of the kernel's ticks.
func (e end) hasNetem() bool {
	none := netlink.NetemQdiscAttrs{}
	return netlink.TickInUsec() > 0 && e.qdisc(e.links.QdiscAdd, none) == nil && e.qdisc(e.links.QdiscDel, none) == nil
}

// qdisc does something to the netem through which passes what leaves a link.
func (e end) qdisc(do func(netlink.Qdisc) error, attrs netlink.NetemQdiscAttrs) error {
	link, err := e.links.LinkByName(e.name)
	if err == nil {
		root := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
		err = do(netlink.NewNetem(root, attrs))
	}
	if err != nil {
		return fmt.Errorf("set the kernel's netem on the link %s: %w", e.name, err)
	}
	return nil
}

// addNetem puts a netem on both ends of a host's link, one for each direction.
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
