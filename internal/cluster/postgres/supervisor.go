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

// replace has a standby lead in place of a primary that was fenced. What the standbys
// answer is final: nobody sends them anything any more.
func (c *Cluster) replace(ctx context.Context, p, chosen *node) error {
	position, err := chosen.position(ctx)
	if err != nil {
		return err
	}
	c.Note("%s has the log up to %X/%X", chosen.Name(), position>>32, uint32(position))
	c.setPrimary(chosen, p)
	if err := p.markStandby(); err != nil {
		c.Note("the data of %s, which was fenced, could not be marked: %v", p.Name(), err)
	}
	if err := chosen.promote(ctx); err != nil {
		return err
	}
	c.part(ctx, p, chosen, position)
	return nil
}

// part finds the standbys that have more of a fenced primary's log than the node
// that was promoted, up to a position: their data are of no use. They are not configured
// yet to follow anybody.
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

// farthest returns the candidate that has most of the log, received or replayed.
func (c *Cluster) farthest(ctx context.Context, p *node) (best *node, ok bool) {
	var position int64
	for _, n := range c.candidates(p) {
		at, err := n.position(ctx)
		if err == nil && (best == nil || at > position) {
			best, position = n, at
		}
	}
	return best, best != nil
}

// position is how far a standby has the log, in bytes.
func (n *node) position(ctx context.Context) (int64, error) {
	return One[int64](ctx, n.orders, "SELECT (coalesce(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0') - '0/0')::bigint")
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
	n.streamed, n.parted = nil, time.Time{}
	if former != nil {
		former.stale = true
	}
}

// promote has a standby lead and returns when it takes writes.
func (n *node) promote(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, promoteLimit)
	defer cancel()
	if err := n.orders.Ask(ctx, "SELECT pg_promote(false)"); err != nil {
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
	recovering, err := One[bool](ctx, n.orders, "SELECT pg_is_in_recovery()")
	if err != nil {
		return false, fmt.Errorf("ask %s for its role: %w", n.Name(), err)
	}
	return recovering, nil
}

// whyWaiting says why a lost primary is waited for.
func (c *Cluster) whyWaiting(p *node) string {
	if len(c.List()) == 1 {
		return ""
	}
	has := "all that it acknowledged"
	if !c.params.synchronous {
		has = "followed it"
	}
	return fmt.Sprintf("no standby that answers has %s, so %s is waited for", has, p.Name())
}
