package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/cluster"
)

const (
	// glance is the time between two looks at the primary's process.
	glance = 20 * time.Millisecond
	// reviewEvery is the time between two looks at who replicates from it.
	reviewEvery = 100 * time.Millisecond
	// promoteLimit bounds the wait for a promotion; it is ordered again if it
	// takes longer.
	promoteLimit = 5 * time.Second
)

// step looks whether the primary is lost and who follows it, and does what is to be
// done then; the roles are held.
func (c *Cluster) step(ctx context.Context) {
	p := c.Leading()
	if why := c.Lost(p); why != "" {
		if c.noticedAt.IsZero() {
			c.noticedAt = time.Now()
			c.Note("%s, which leads, is lost: %s", p.Name(), why)
		}
		c.failOver(ctx, p, why)
	} else {
		c.noticedAt = time.Time{}
		c.PrimaryAnswers()
		if time.Since(c.reviewed) >= reviewEvery {
			c.review(ctx, p)
			c.reviewed = time.Now()
		}
	}
	c.RestartLost(func(n *node) bool { return n.stale || !n.Running() })
}

// failOver gives the lead of a lost primary to a standby, if there is one that
// may have it. The primary is ended for sure before anything else: a server that
// does not answer this program may answer others yet, and go on.
func (c *Cluster) failOver(ctx context.Context, p *node, why string) {
	if len(c.candidates(p)) == 0 {
		c.AwaitReturn(ctx, p, func() { c.noteWaitingFor(p) })
		return
	}
	if err := p.Server.Kill(); err != nil {
		c.NoteWaiting("%s cannot be fenced, so nobody is promoted: %v", p.Name(), err)
		return
	}
	// What they answer now is final: nobody sends them anything any more.
	chosen, position := c.farthest(ctx, c.candidates(p))
	if chosen == nil {
		c.NoteWaiting("%s was fenced, and no standby answers to be promoted", p.Name())
		return
	}
	c.Note("%s was fenced; %s, which has the log up to %X/%X, is promoted", p.Name(), chosen.Name(), position>>32, uint32(position))
	c.setPrimary(chosen, p)
	if err := p.markStandby(); err != nil {
		c.Note("the data of %s, which was fenced, could not be marked: %v", p.Name(), err)
	}
	if err := chosen.promote(ctx); err != nil {
		c.Note("%s does not take the lead yet: %v", chosen.Name(), err)
		return
	}
	c.Note("%s leads, %v after the loss of %s was seen", chosen.Name(), time.Since(c.noticedAt).Round(time.Millisecond), p.Name())
	c.noticedAt = time.Time{}
	c.part(ctx, p, chosen, position)
}

// part finds the standbys that have more of a fenced primary's log than the node
// that was promoted, up to a position: their data are of no use. What they answer is
// final, for they are not configured yet to follow anybody.
func (c *Cluster) part(ctx context.Context, p, chosen *node, position int64) {
	for _, n := range c.Others(p) {
		if n == chosen || !n.Awake() {
			continue
		}
		at, err := n.position(ctx)
		if err != nil || at <= position {
			continue // one that does not answer is seen to, if need be, when it does: see rescue
		}
		c.Mu.Lock()
		n.stale = true
		c.Mu.Unlock()
		c.Note("%s has the log up to %X/%X, which %s never had: it gets new data", n.Name(), at>>32, uint32(at), chosen.Name())
	}
}

// candidates are the standbys that may be promoted in place of p and that
// answer over the network: a primary that no client reaches is of no use.
//
// With synchronous replication it is the registered one alone, which has all
// that was acknowledged. Without, it is any that has followed p.
func (c *Cluster) candidates(p *node) []*node {
	nodes := c.List()
	c.Mu.Lock()
	if c.params.synchronous {
		nodes = nil
		if c.registered {
			nodes = []*node{c.standby}
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n == p || n.stale || n.streamed != p && !c.params.synchronous })
	c.Mu.Unlock()
	return slices.DeleteFunc(nodes, func(n *node) bool { return c.Lost(n) != "" || n.Paused() })
}

// farthest returns the node that has most of the log, received or replayed, and
// how far that is; nil if none answers.
func (c *Cluster) farthest(ctx context.Context, nodes []*node) (best *node, position int64) {
	for _, n := range nodes {
		at, err := n.position(ctx)
		if err == nil && (best == nil || at > position) {
			best, position = n, at
		}
	}
	return best, position
}

// position is how far a standby has the log, in bytes.
func (n *node) position(ctx context.Context) (int64, error) {
	return one[int64](ctx, n.orders, "SELECT (coalesce(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0') - '0/0')::bigint")
}

// setPrimary makes n the primary in the records, before it is promoted: from here on it
// may acknowledge what nobody else has, so nobody else is ever promoted instead. The
// former primary's data are of no use, for they may hold what n never had, unless
// that is nil.
func (c *Cluster) setPrimary(n, former *node) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Primary = n
	c.standby, c.registered, c.barrier = nil, false, 0
	n.cut, n.stale = false, false
	if former != nil {
		former.stale = true
	}
}

// promote has a standby lead and returns when it takes writes.
func (n *node) promote(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, promoteLimit)
	defer cancel()
	if err := n.orders.ask(ctx, "SELECT pg_promote(false)"); err != nil {
		return fmt.Errorf("promote %s: %w", n.Name(), err)
	}
	return cluster.RetryEvery(ctx, 5*time.Millisecond, func() error {
		recovering, err := n.recovering(ctx)
		if err == nil && recovering {
			err = fmt.Errorf("promote %s: it is a standby yet", n.Name())
		}
		return err
	})
}

// recovering says that a server is a standby, or a primary to be.
func (n *node) recovering(ctx context.Context) (bool, error) {
	recovering, err := one[bool](ctx, n.orders, "SELECT pg_is_in_recovery()")
	if err != nil {
		return false, fmt.Errorf("ask %s for its role: %w", n.Name(), err)
	}
	return recovering, nil
}

// noteWaitingFor notes why a lost primary is waited for.
func (c *Cluster) noteWaitingFor(p *node) {
	if len(c.List()) == 1 {
		return
	}
	has := "all that it acknowledged"
	if !c.params.synchronous {
		has = "followed it"
	}
	c.NoteWaiting("no standby that answers has %s, so %s is waited for", has, p.Name())
}
