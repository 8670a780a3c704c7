package resource

import (
	"net"
	"slices"
	"strconv"

	psnet "github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"
)

// Listener is the server on this machine that listens at address, HOST:PORT: the
// process that holds the socket, and its descendants. It is found now, and its
// descendants at every sample. It returns false where the address is none of
// this machine's, nobody listens there, or the system does not report who: that
// takes the same user, or root.
func Listener(address string) (Group, bool) {
	host, text, _ := net.SplitHostPort(address) // both are empty after an error
	port, err := strconv.Atoi(text)
	if here, _ := Local(host); err != nil || !here {
		return Group{}, false
	}
	sockets, err := psnet.Connections("tcp")
	var first int32
	for _, s := range sockets { // children hold their parent's socket too
		if s.Status == "LISTEN" && int(s.Laddr.Port) == port && s.Pid != 0 && (first == 0 || s.Pid < first) {
			first = s.Pid
		}
	}
	if err != nil || first == 0 {
		return Group{}, false
	}
	return Group{Name: address, PIDs: (&family{root: first}).pids}, true
}

// Local says whether a host is this machine, and whether that is known: it is not of a name
// without an address. Addresses of other network namespaces are not this machine's.
func Local(host string) (here, known bool) {
	ips, unknown := net.LookupIP(host)
	own, err := net.InterfaceAddrs()
	if unknown != nil || err != nil {
		return false, false
	}
	here = slices.ContainsFunc(ips, func(ip net.IP) bool {
		return ip.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		})
	})
	return here, true
}

// family is a process and its descendants.
type family struct {
	root int32
	// parents has those of all processes of the machine that were there at the last
	// look: to read each of them again at every sample cost more than the samples.
	parents map[int32]int32
}

// pids returns the processes of the family as they are now.
func (f *family) pids() []int {
	all := []int{int(f.root)}
	now, err := process.Pids()
	if err != nil {
		return all
	}
	parents, children := make(map[int32]int32, len(now)), map[int32][]int32{}
	for _, p := range now {
		parent, known := f.parents[p]
		if !known {
			one := process.Process{Pid: p}
			if parent, err = one.Ppid(); err != nil {
				continue
			}
		}
		parents[p], children[parent] = parent, append(children[parent], p)
	}
	f.parents = parents
	for i := 0; i < len(all); i++ {
		for _, child := range children[int32(all[i])] {
			all = append(all, int(child))
		}
	}
	return all
}
