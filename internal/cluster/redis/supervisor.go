package redis

import (
	"context"
	"sync"
	"time"

	"stroppy/internal/cluster"
)

const (
	// glance is the time between two looks at whether the primary is lost.
	glance = 50 * time.Millisecond
	// drainLimit bounds how long a replica may read what a dead primary had sent.
	// It ends earlier when the replica sees that the connection has ended, which a
	// replica that is cut off does not.
	drainLimit = 300 * time.Millisecond
)

// Answers asks the node what it is, and directs it to its primary if that has changed.
func (m *member) Answers(ctx context.Context) bool {
	c := m.cluster
	c.Mu.Lock()
	life := m.lives
	c.Mu.Unlock()
	v, err := look(ctx, m.health)
	c.Mu.Lock()
	same := m.lives == life // it was not started anew meanwhile
	if p := c.Primary; same && err == nil {
		if m.seen = v; v.up && v.follows(p.address()) {
			m.following = p
		}
	}
	c.Mu.Unlock()
	if !same || err != nil {
		return same && refused(err)
	}
	m.Answered() // telling may take a while
	if m.right(v) || !c.Roles.Try() {
		return true
	}
	defer c.Roles.Release()
	if !m.right(v) {
		if err := m.assign(ctx); err != nil {
			c.Note("%s could not be directed to its primary: %v", m.Name(), err)
		}
	}
	return true
}

// right reports whether a node has the role that is its own.
func (m *member) right(v view) bool {
	if p := m.cluster.Leading(); p != m {
		return v.follows(p.address())
	}
	return v.primary
}

// assign gives a running server the role that is its own; the roles are held.
func (m *member) assign(ctx context.Context) error {
	host, port := "NO", "ONE"
	if p := m.cluster.Leading(); p != m {
		host, port = p.host(), p.port()
	}
	_, err := m.orders.ask(ctx, "REPLICAOF", host, port)
	return err
}

// candidates are the replicas that may be promoted in place of p: those that have
// had all its data at some time, that answer, and that nobody is ending.
func (c *Cluster) candidates(p *member) (found []*member) {
	for _, m := range c.List() {
		c.Mu.Lock()
		may := m != p && m.Held == cluster.Unheld && m.following == p && !m.seen.syncing
		c.Mu.Unlock()
		if may && c.Lost(m) == "" {
			found = append(found, m)
		}
	}
	return found
}

// farthest returns the candidate with the highest replication offset, once each
// has read what the dead primary had sent.
func (c *Cluster) farthest(ctx context.Context, p *member) (best *member, ok bool) {
	c.Mu.Lock()
	history := p.seen.history
	c.Mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, drainLimit+c.params.timeout)
	defer cancel()
	candidates := c.candidates(p)
	views, errs := make([]view, len(candidates)), make([]error, len(candidates))
	var group sync.WaitGroup
	for i, m := range candidates {
		group.Go(func() { views[i], errs[i] = m.drained(ctx) })
	}
	group.Wait()
	var most view
	for i, m := range candidates {
		if errs[i] == nil && (best == nil || most.before(views[i], history)) {
			best, most = m, views[i]
		}
	}
	return best, best != nil
}

// drained returns what a replica of a dead primary has in the end.
func (m *member) drained(ctx context.Context) (view, error) {
	for began := time.Now(); ; {
		v, err := look(ctx, m.orders)
		if err != nil || !v.up || time.Since(began) > drainLimit {
			return v, err
		}
		if err := cluster.Sleep(ctx, cluster.PollEvery); err != nil {
			return v, err
		}
	}
}

// setPrimary makes m the primary in the records, before it is promoted: from here on it
// may acknowledge what nobody else has, so nobody else is ever promoted instead.
func (c *Cluster) setPrimary(m *member) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Primary = m
}
