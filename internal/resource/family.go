package resource

import (
	"net"
	"os"
	"slices"
	"strconv"

	psnet "github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"
)

// Listeners returns the servers on this machine that listen on addresses, HOST:PORT: for each, the process that holds
// the socket, and its descendants. The listening processes are found now, and the descendants at every sample. An
// address is omitted if it is not local, or if no process listens there. It is also omitted if the system does not show
// the process, which requires the same user or root. All sockets of the machine are read once.
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

// localPort returns the port of a local address, or 0.
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

// Local reports whether a host is this machine, and whether that is known. It is not known for a name without
// an address. Addresses of other network namespaces are not local.
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

// family is a process with its descendants.
type family struct {
	root int32
	// parents holds the parents of all processes that existed at the last look. Reading them again at every
	// sample would cost more than the samples.
	parents map[int32]int32
}

// pids returns the current processes of the family.
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

// WithRest returns the groups and one more with all descendants of this program that are in none of them:
// programs that support a cluster, or that use processors as a fault. They belong to the run but to no other
// group. A Meter must sample the groups in this order.
func WithRest(groups ...Group) []Group {
	return withRest(int32(os.Getpid()), groups)
}

func withRest(root int32, groups []Group) []Group {
	all := slices.Clone(groups)
	last := make([][]int, len(groups))
	for i, g := range groups {
		if g.PIDs != nil {
			all[i].PIDs = func() []int {
				last[i] = g.PIDs()
				return last[i]
			}
		}
	}
	started := family{root: root}
	return append(all, Group{Name: "rest", PIDs: func() []int {
		return slices.DeleteFunc(started.pids(), func(pid int) bool {
			return slices.ContainsFunc(last, func(group []int) bool { return slices.Contains(group, pid) })
		})
	}})
}
