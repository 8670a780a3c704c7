package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/cluster"
)

const (
	// watchEvery is the time between two looks at whom the Sentinels name, which is that of
	// the clients, and roleEvery that between two at the role of a node.
	watchEvery, roleEvery = 100 * time.Millisecond, 50 * time.Millisecond
	// roleLimit bounds one look at a role: a node that was frozen or cut off is asked again
	// so soon after it is back.
	roleLimit = 500 * time.Millisecond
)

// watchSentinels notes when one of the Sentinels names another primary by a newer epoch, until
// the cluster is stopped. Clients learn it then: a Sentinel asks the node that it has promoted
// once a second whether it is a primary, and names it when it says so.
func (c *Cluster) watchSentinels() {
	last := naming{address: c.servers()[0].address()}
	for cluster.Sleep(c.Life, watchEvery) == nil {
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

// naming is whom a Sentinel names as the primary. The newest epoch counts; 0 is nobody's word.
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
				a = naming{} // one that is down or paused has no say
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

// askNaming asks for the address first: it is the new primary's as soon as there is an epoch of
// its fail-over.
func askNaming(ctx context.Context, s *session) (n naming, err error) {
	answer, err := s.do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", master)
	if err != nil {
		return n, err
	}
	words, err := answer.StringSlice()
	if err != nil || len(words) != 2 {
		return n, fmt.Errorf("a Sentinel names %q as the primary: %w", words, errors.Join(err, errNoPrimary))
	}
	m, err := askMaster(ctx, s)
	if err != nil {
		return n, err
	}
	n.address = words[0] + ":" + words[1]
	n.epoch, err = strconv.ParseUint(m["config-epoch"], 10, 64)
	return n, err
}

// watchRole notes when a node takes writes that was a replica before, as the node itself
// says from the clients' side of the network, until the cluster is stopped. What a node
// does while it cannot be reached is not noted.
func (c *Cluster) watchRole(n *server) {
	role := roleSeen{primary: n == c.servers()[0]}
	for cluster.Sleep(c.Life, roleEvery) == nil {
		v, err := look(c.Life, n.role)
		if err == nil && role.came(v, c.params.leastReplicas()) {
			c.NoteLeader(n.Name(), "%s takes writes", n.Name())
		}
	}
}

// roleSeen is the role in which a node was seen last. One that was killed as a primary and
// comes back as one, with its data or without, has not changed it.
type roleSeen struct{ primary bool }

// came says that a replica has become a primary that takes writes, which one does that has
// so many replicas.
func (r *roleSeen) came(v view, least int) bool {
	came := !r.primary && v.primary && v.replicas >= least
	r.primary = v.primary && (r.primary || came)
	return came
}
