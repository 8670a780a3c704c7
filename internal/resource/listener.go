package resource

import (
	"net"
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
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return Group{}, false
	}
	port, err := strconv.Atoi(text)
	if err != nil || !local(host) {
		return Group{}, false
	}
	sockets, err := psnet.Connections("tcp")
	if err != nil {
		return Group{}, false
	}
	var first int32
	for _, s := range sockets {
		if s.Status != "LISTEN" || int(s.Laddr.Port) != port || s.Pid == 0 {
			continue
		}
		if first == 0 || s.Pid < first { // children hold their parent's socket too
			first = s.Pid
		}
	}
	if first == 0 {
		return Group{}, false
	}
	return Group{Name: address, PIDs: func() []int { return family(first) }}, true
}

// local says whether a host is this machine. Addresses of other network
// namespaces are not.
func local(host string) bool {
	ips, err := net.LookupIP(host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, ip := range ips {
		if ip.IsLoopback() {
			return true
		}
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return true
			}
		}
	}
	return false
}

// family is a process and its descendants.
func family(pid int32) []int {
	children := map[int32][]int32{}
	pids, err := process.Pids()
	if err != nil {
		return []int{int(pid)}
	}
	for _, p := range pids {
		one := process.Process{Pid: p}
		if parent, err := one.Ppid(); err == nil {
			children[parent] = append(children[parent], p)
		}
	}
	all := []int{int(pid)}
	for next := []int32{pid}; len(next) > 0; {
		var after []int32
		for _, p := range next {
			for _, child := range children[p] {
				all, after = append(all, int(child)), append(after, child)
			}
		}
		next = after
	}
	return all
}
