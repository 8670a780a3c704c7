package redis

import (
	"context"
	"time"

	"stroppy/internal/cluster"
)

const (
	// watchEvery is the time between two looks at whom the Sentinels name, and roleEvery
	// that between two at the role of a node.
	watchEvery, roleEvery = 100 * time.Millisecond, 50 * time.Millisecond
	// roleLimit bounds one look at a role: a node that was frozen or cut off is asked again
	// so soon after it is back.
	roleLimit = 500 * time.Millisecond
)

// watchSentinels notes when most of the Sentinels name another primary, until the cluster
// is stopped. They agree later than that node takes writes, by a second and more.
func (c *SentinelCluster) watchSentinels() {
	last := c.servers()[0]
	for cluster.Sleep(c.Life, watchEvery) == nil {
		ctx, cancel := context.WithTimeout(c.Life, askLimit)
		p := c.named(ctx, func(n *server) *session { return n.watched })
		cancel()
		if p != nil && p != last {
			c.Note("most of the Sentinels name %s as the primary in place of %s", p.Name(), last.Name())
			last = p
		}
	}
}

// watchRole notes when a node takes writes that was a replica before, as the node itself
// says from the clients' side of the network, until the cluster is stopped. What a node
// does while it cannot be reached is not noted.
func (c *SentinelCluster) watchRole(n *server) {
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
