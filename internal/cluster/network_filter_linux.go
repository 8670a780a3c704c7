package cluster

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// lossUnits is how finely a share of lost packets can be told.
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
		when := append(addressAt(sourceOffset, n.addrOf(cut.From)), addressAt(destinationOffset, n.addrOf(cut.To))...)
		drop("cut "+endpointName(cut.From)+" to "+endpointName(cut.To), when...)
	}
	for host, loss := range losses {
		for _, offset := range []uint32{sourceOffset, destinationOffset} {
			drop(fmt.Sprintf("loss %s %v", endpointName(host), loss), append(addressAt(offset, n.addrOf(host)), atRandom(loss)...)...)
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
