package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/cluster/wait"
)

const (
	// watchEvery is the interval of queries to the Sentinels, the same as a client's. roleEvery is the interval of
	// queries for the role of a node.
	watchEvery, roleEvery = 100 * time.Millisecond, 50 * time.Millisecond
	// roleLimit bounds one query for a role: a node that was frozen or cut off is asked again this soon after its
	// return.
	roleLimit = 500 * time.Millisecond
)

// watchSentinels notes when a Sentinel names another primary by a newer epoch, until the cluster is stopped. Clients
// learn it then. A Sentinel asks the promoted node once a second for its role, and names it when the node confirms
// that it is a primary.
func (c *Cluster) watchSentinels() {
	last := naming{address: c.servers()[0].address()}
	for wait.Sleep(c.Life, watchEvery) == nil {
		ctx, cancel := context.WithTimeout(c.Life, askLimit)
		n := c.newestNaming(ctx)
		cancel()
		if n.epoch <= last.epoch {
			continue
		}
		servers := c.servers()
		if at := slices.IndexFunc(servers, func(s *server) bool { return s.address() == n.address }); at >= 0 && n.address != last.address {
			c.NoteNamed(servers[at].Name(), "a Sentinel names %s as the primary", servers[at].Name())
		}
		last = n
	}
}

// naming is the primary that a Sentinel names. The newest epoch counts; 0 means no answer.
type naming struct {
	address string
	epoch   uint64
}

// newestNaming asks all Sentinels at once.
func (c *Cluster) newestNaming(ctx context.Context) (newest naming) {
	nodes := c.List()
	answers := make(chan naming, len(nodes))
	for _, n := range nodes {
		go func() {
			a, err := askNaming(ctx, n.watched)
			if err != nil {
				a = naming{} // a Sentinel that is down or paused does not count
			}
			answers <- a
		}()
	}
	for range nodes {
		if a := <-answers; a.epoch > newest.epoch {
			newest = a
		}
	}
	return newest
}

// askNaming asks for the epoch first: a Sentinel changes both at once, so the address is never older than the epoch.
func askNaming(ctx context.Context, s *session) (n naming, err error) {
	m, err := askMaster(ctx, s)
	if err != nil {
		return n, err
	}
	answer, err := s.do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", master)
	if err != nil {
		return n, err
	}
	words, err := answer.StringSlice()
	if err != nil || len(words) != 2 {
		return n, fmt.Errorf("a Sentinel names %q as the primary: %w", words, errors.Join(err, errNoPrimary))
	}
	n.address = words[0] + ":" + words[1]
	n.epoch, err = strconv.ParseUint(m["config-epoch"], 10, 64)
	return n, err
}

// watchRole notes when a former replica accepts writes, by the node's own answer over the clients' network, until the
// cluster is stopped. It notes nothing while the node cannot be reached.
func (c *Cluster) watchRole(n *server) {
	role := roleSeen{primary: n == c.servers()[0]}
	for wait.Sleep(c.Life, roleEvery) == nil {
		v, err := look(c.Life, n.role)
		if err == nil && role.came(v, c.params.leastReplicas()) {
			c.NoteLeader(n.Name(), "%s takes writes", n.Name())
		}
	}
}

// roleSeen is the last seen role of a node. A killed primary that returns as a primary, with or without its data, has
// not changed it.
type roleSeen struct{ primary bool }

// came reports whether a replica has become a primary that accepts writes, which it does with at least this many
// replicas.
func (r *roleSeen) came(v view, least int) bool {
	came := !r.primary && v.primary && v.replicas >= least
	r.primary = v.primary && (r.primary || came)
	return came
}
