package redis

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"
)

const (
	// glance is the time between two looks at whether the primary is lost.
	glance = 50 * time.Millisecond
	// lookEvery is the time between two questions to a server.
	lookEvery = 100 * time.Millisecond
	// retryAfter is the time between two tries to bring a node back.
	retryAfter = time.Second
	// drainLimit bounds how long a replica may read what a dead primary had sent.
	// It ends earlier when the replica sees that the connection has ended, which a
	// replica that is cut off does not.
	drainLimit = 300 * time.Millisecond
	// crashLimit bounds the start of a primary that ended by itself.
	crashLimit = 2 * time.Minute
)

// attend begins to ask a node all the time what it is, and to tell it whom to
// follow if that has changed.
func (c *Cluster) attend(m *member) {
	c.tasks.Go(func() {
		for pause(m.being, lookEvery) == nil {
			if m.Running() {
				m.attend(m.being)
			}
		}
	})
}

func (m *member) attend(ctx context.Context) {
	c := m.cluster
	c.mu.Lock()
	life := m.lives
	if m.unheard.IsZero() {
		m.unheard = time.Now()
	}
	c.mu.Unlock()
	v, err := look(ctx, m.health)
	if err != nil && !refused(err) {
		return
	}
	c.mu.Lock()
	if m.lives != life {
		c.mu.Unlock()
		return // it was started anew meanwhile
	}
	m.unheard = time.Time{}
	p := c.primary
	if err == nil {
		if m.seen = v; v.up && v.follows(p.address()) {
			m.following = p
		}
	}
	c.mu.Unlock()
	if err != nil || m.right(v) || !c.roles.try() {
		return
	}
	defer c.roles.release()
	if !m.right(v) {
		if err := m.tell(ctx); err != nil {
			c.note("%s could not be told whom to follow: %v", m.Name(), err)
		}
	}
}

// right tells that a node has the role that is its own.
func (m *member) right(v view) bool {
	if p := m.cluster.leader(); p != m {
		return v.follows(p.address())
	}
	return v.primary
}

// tell gives a running server the role that is its own; the roles are held.
func (m *member) tell(ctx context.Context) error {
	host, port := "NO", "ONE"
	if p := m.cluster.leader(); p != m {
		host, port = p.host(), strconv.Itoa(p.port)
	}
	_, err := m.orders.ask(ctx, "REPLICAOF", host, port)
	return err
}

// supervise watches the primary until the cluster is stopped. While somebody else
// holds the roles, as for a switch-over, it does nothing.
func (c *Cluster) supervise() {
	for pause(c.life, glance) == nil {
		if c.roles.try() {
			c.step(c.life)
			c.roles.release()
		}
	}
}

func (c *Cluster) step(ctx context.Context) {
	p := c.leader()
	switch why := p.lost(); {
	case why == "":
		c.lamented = ""
	case c.params.failOver && len(c.candidates(p)) > 0:
		c.failOver(ctx, p, why)
	default:
		c.forgo(ctx, p)
	}
	c.reviveAll()
}

// leader is the node that leads, or that is about to.
func (c *Cluster) leader() *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.primary
}

// lost says why a node cannot lead any more; empty if it can.
func (m *member) lost() string {
	if !m.Running() {
		return "its process is gone"
	}
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	if limit := m.cluster.params.patience; !m.unheard.IsZero() && time.Since(m.unheard) >= limit {
		return fmt.Sprintf("it has not answered for %v", limit)
	}
	return ""
}

// failOver gives the lead of a lost primary to a replica. The primary is ended
// for sure before anything else: a server that does not answer this program may
// answer others yet, and go on.
func (c *Cluster) failOver(ctx context.Context, p *member, why string) {
	began := time.Now()
	if err := p.Server.Kill(); err != nil {
		c.lament("%s cannot be ended, so nobody is promoted: %v", p.Name(), err)
		return
	}
	chosen := c.farthest(ctx, p)
	if chosen == nil {
		c.lament("%s was ended, for %s, and no replica answers to be promoted", p.Name(), why)
		return
	}
	c.crown(chosen)
	if err := chosen.tell(ctx); err != nil {
		c.note("%s does not take the lead of %s yet: %v", chosen.Name(), p.Name(), err)
		return // it is told again
	}
	c.note("%s leads in place of %s: %s; it took %v", chosen.Name(), p.Name(), why, time.Since(began).Round(time.Millisecond))
}

// candidates are the replicas that may be promoted in place of p: those that have
// had all its data at some time, that answer, and that nobody is ending.
func (c *Cluster) candidates(p *member) (found []*member) {
	for _, m := range c.list() {
		c.mu.Lock()
		may := m != p && m.held == unheld && m.following == p && !m.seen.syncing
		c.mu.Unlock()
		if may && m.lost() == "" {
			found = append(found, m)
		}
	}
	return found
}

// farthest returns the candidate with the highest replication offset, once each
// has read what the dead primary had sent; nil if none answers.
func (c *Cluster) farthest(ctx context.Context, p *member) (best *member) {
	c.mu.Lock()
	history := p.seen.history
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, drainLimit+c.params.patience)
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
	return best
}

// drained returns what a replica of a dead primary has in the end.
func (m *member) drained(ctx context.Context) (view, error) {
	for began := time.Now(); ; {
		v, err := look(ctx, m.orders)
		if err != nil || !v.up || time.Since(began) > drainLimit {
			return v, err
		}
		if err := pause(ctx, pollEvery); err != nil {
			return v, err
		}
	}
}

// crown makes m the primary in the records, before it is told: from here on it
// may acknowledge what nobody else has, so nobody else is ever told instead.
func (c *Cluster) crown(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.primary = m
}

// forgo deals with a lost primary that nobody may replace: it is waited for, and
// started on its own data if it ended by itself.
func (c *Cluster) forgo(ctx context.Context, p *member) {
	c.mu.Lock()
	held, early := p.held, time.Now().Before(p.retryAt)
	c.mu.Unlock()
	if p.Running() || held != unheld || early {
		c.lament("nobody can be promoted in place of %s, which is waited for", p.Name())
		return
	}
	if !p.busy.try() {
		return // somebody restarts it, and waits for the roles
	}
	ctx, cancel := context.WithTimeout(ctx, crashLimit)
	defer cancel()
	ctx, end, err := p.enter(ctx, false)
	if err != nil {
		return
	}
	defer end()
	c.note("%s is started on its own data", p.Name())
	if err := p.lead(ctx); err != nil {
		c.delay(p)
		c.note("%s did not start: %v", p.Name(), err)
	}
}

// lament notes, once, why nobody is promoted.
func (c *Cluster) lament(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != c.lamented {
		c.lamented = text
		c.note("%s", text)
	}
}

// delay puts off the next try to bring a node back.
func (c *Cluster) delay(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.retryAt = time.Now().Add(retryAfter)
}

// reviveAll brings back the replicas that are down and that nobody holds.
func (c *Cluster) reviveAll() {
	c.mu.Lock()
	var down []*member
	for _, m := range c.members {
		if m != c.primary && m.held == unheld && m.cancel == nil && time.Now().After(m.retryAt) && !m.Running() {
			m.retryAt = time.Now().Add(retryAfter)
			down = append(down, m)
		}
	}
	c.mu.Unlock()
	for _, m := range down {
		c.tasks.Go(func() {
			ctx, end, err := m.begin(m.being, false)
			if err != nil {
				return
			}
			defer end()
			if err := m.restore(ctx); err != nil && ctx.Err() == nil {
				c.delay(m)
				c.note("%s did not come back: %v", m.Name(), err)
			}
		})
	}
}
