package resource

import (
	"net"
	"slices"
	"strconv"

	psnet "github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"
)

// Listeners are the servers on this machine that listen at addresses, HOST:PORT: of
// each the process that holds the socket, and its descendants. They are found now, and
// their descendants at every sample. An address is left out that is none of this
// machine's, at which nobody listens, or of which the system does not report who does:
// that takes the same user, or root. All sockets of the machine are read, once.
func Listeners(addresses ...string) (groups []Group) {
	first := map[int]int32{}             // by port: of the processes that hold the socket, as children do too
	ports := make([]int, len(addresses)) // 0: none of this machine's
	for i, address := range addresses {
		if ports[i] = localPort(address); ports[i] != 0 {
			first[ports[i]] = 0
		}
	}
	if len(first) == 0 {
		return nil
	}
	sockets, err := psnet.ConnectionsWithoutUids("tcp") // which would read a file for each socket
	if err != nil {
		return nil
	}
	for _, s := range sockets {
		at, asked := first[int(s.Laddr.Port)]
		if asked && s.Status == "LISTEN" && s.Pid != 0 && (at == 0 || s.Pid < at) {
			first[int(s.Laddr.Port)] = s.Pid
		}
	}
	for i, address := range addresses {
		if root := first[ports[i]]; root != 0 {
			groups = append(groups, Group{Name: address, PIDs: (&family{root: root}).pids})
		}
	}
	return groups
}

// localPort is the port of an address of this machine, 0 if it is none.
func localPort(address string) int {
	host, text, _ := net.SplitHostPort(address) // both are empty after an error
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	if here, _ := Local(host); !here {
		return 0
	}
	return port
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
