package cli

import (
	"cmp"
	"net"
	"net/url"
	"strings"

	"stroppy/internal/resource"
)

// listeners are the servers of a database's address that run on this machine and
// that this user may measure.
func listeners(database string) []resource.Group {
	var groups []resource.Group
	for _, address := range addresses(database) {
		if g, ok := resource.Listener(address); ok {
			groups = append(groups, g)
		}
	}
	return groups
}

// addresses are the HOST:PORT of a database's address, of which there may be
// several with commas between them.
func addresses(database string) []string {
	_, rest, ok := strings.Cut(database, "://")
	kind, err := databaseOf(database)
	if !ok || err != nil {
		return nil
	}
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	var list []string
	for host := range strings.SplitSeq(authority[strings.LastIndex(authority, "@")+1:], ",") {
		u := url.URL{Host: host}
		if port := cmp.Or(u.Port(), kind.port); u.Hostname() != "" && port != "" {
			list = append(list, net.JoinHostPort(u.Hostname(), port))
		}
	}
	return list
}

// servers are the nodes of the cluster that are processes of this machine.
func (r *clusterSession) servers() []resource.Group {
	var groups []resource.Group
	for _, n := range r.cluster.Nodes() {
		if local, ok := n.(interface{ PIDs() []int }); ok {
			groups = append(groups, resource.Group{Name: n.Name(), PIDs: local.PIDs})
		}
	}
	return groups
}
