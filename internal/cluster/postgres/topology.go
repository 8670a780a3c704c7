package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"stroppy/internal/cluster"
)

const (
	// checkpointLimit bounds the checkpoint before a switch-over.
	checkpointLimit = time.Minute
	// replayLimit bounds the wait for the rest of the log in a switch-over.
	replayLimit = 10 * time.Second
)

// CheckPrimary says why the node does not take writes; nil if it does.
func (n *node) CheckPrimary(ctx context.Context) error {
	if !n.Awake() {
		return fmt.Errorf("%s, which leads, is down or paused", n.Name())
	}
	recovering, err := n.recovering(ctx)
	if err == nil && recovering {
		err = fmt.Errorf("%s is a standby yet", n.Name())
	}
	return err
}

// expendable says why a node's data must not be taken away; nil if they may.
func (c *Cluster) expendable(n *node) error {
	others := c.Others(n)
	c.Mu.Lock()
	defer c.Mu.Unlock()
	switch {
	case c.Primary != n || c.registered:
		return nil
	case c.params.synchronous:
		return errors.New("it leads, and no standby has all that it acknowledged")
	case !slices.ContainsFunc(others, func(m *node) bool { return m.streamed == n && !m.stale }):
		return errors.New("it leads, and no standby has followed it")
	}
	return nil
}

// discard notes that the data of a node are taken away; the roles are held.
func (c *Cluster) discard(ctx context.Context, n *node) error {
	c.Mu.Lock()
	p, waited := c.Primary, c.standby == n
	if p != n {
		n.stale = true
	}
	c.Mu.Unlock()
	if p == n {
		return fmt.Errorf("%s leads: its data are needed", n.Name())
	}
	if waited {
		c.dismiss(ctx, p, "its data are taken away")
	}
	return nil
}

// healthy begins a wait until every node runs and answers over the network in its role,
// every standby is connected to the primary and has replayed all that was in its
// log at the first look, and, with synchronous replication, a standby may be
// promoted. The supervisor brings back all nodes that nobody holds down.
func (c *Cluster) healthy() func(context.Context) error {
	var target int64
	return func(ctx context.Context) error {
		p := c.Leading()
		if err := p.CheckPrimary(ctx); err != nil {
			return err
		}
		v, err := c.view(ctx, p)
		if err != nil {
			return err
		}
		if target == 0 {
			target = v.flushed
		}
		nodes := c.List()
		for _, n := range nodes {
			if err := c.sound(ctx, n, p, v, target); err != nil {
				return err
			}
		}
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if c.params.synchronous && len(nodes) > 1 && !c.registered {
			return fmt.Errorf("%s waits for no standby yet that has everything", p.Name())
		}
		return nil
	}
}

// sound says what is wrong with a node; nil if nothing is.
func (c *Cluster) sound(ctx context.Context, n, p *node, v *view, target int64) error {
	if err := c.CheckUp(n); err != nil {
		return err
	}
	c.Mu.Lock()
	stale, cut := n.stale, n.cut
	c.Mu.Unlock()
	switch {
	case stale:
		return fmt.Errorf("%s is to get new data", n.Name())
	case cut:
		return fmt.Errorf("the receiver of %s is stopped", n.Name())
	}
	recovering, err := One[bool](ctx, n.over, "SELECT pg_is_in_recovery()")
	switch {
	case err != nil:
		return fmt.Errorf("%s does not answer over the network: %w", n.Name(), err)
	case recovering == (n == p):
		return fmt.Errorf("%s has not the role that is its own yet", n.Name())
	case n == p:
		return nil
	}
	switch s, connected := v.standbys[n.Name()]; {
	case !connected || !s.streaming:
		return fmt.Errorf("%s is not connected to %s", n.Name(), p.Name())
	case !c.follows(n, p):
		return fmt.Errorf("the supervisor has not seen yet that %s follows %s", n.Name(), p.Name())
	case s.replayed < target:
		return fmt.Errorf("%s has %d bytes of the log to replay", n.Name(), target-s.replayed)
	}
	return nil
}

// handOver hands the lead over in good order: the primary is shut down, the
// standby, which has to follow it closely, is promoted when it has replayed the very end
// of its log, and the former primary comes back as a standby on its own data.
func (c *Cluster) handOver(ctx context.Context, n *node) error {
	p := c.Leading()
	if err := p.CheckPrimary(ctx); err != nil || p == n {
		return err
	}
	v, err := c.view(ctx, p)
	if err != nil {
		return err
	}
	if !c.closely(n, p, v) {
		return fmt.Errorf("%s does not follow %s closely", n.Name(), p.Name())
	}
	// The shutdown writes what is left since this checkpoint, which is little.
	long := &Session{config: p.orders.config, limit: checkpointLimit}
	err = long.Ask(ctx, "CHECKPOINT")
	long.Close()
	if err != nil {
		return fmt.Errorf("make a checkpoint on %s: %w", p.Name(), err)
	}
	began := time.Now()
	err = p.Server.Terminate(ctx)
	if err == nil {
		err = p.drained(ctx, n)
	}
	if err != nil {
		if p.Holder() == cluster.Unheld { // nobody has ended it on purpose
			err = errors.Join(err, p.StartPrimary(context.WithoutCancel(ctx)))
		}
		return err
	}
	c.setPrimary(n, nil)
	if err := n.promote(ctx); err != nil {
		return err
	}
	c.NoteLeader(n.Name(), "%s leads, %v after %s began to shut down for it", n.Name(), time.Since(began).Round(time.Millisecond), p.Name())
	return c.demote(ctx, p)
}

// demote starts a former primary, which was shut down in good order and whose
// log the present one has to its end, as a standby on its own data; the roles
// are held.
func (c *Cluster) demote(ctx context.Context, p *node) error {
	if p.Holder() != cluster.Unheld {
		return nil // it comes back when it is restarted
	}
	err := p.follow(ctx)
	if err != nil {
		c.Mu.Lock()
		p.stale = true // the supervisor gives it new data
		c.Mu.Unlock()
	}
	return err
}

// controlData finds the last checkpoint of a server that was shut down in good order.
var controlData = regexp.MustCompile(`(?s)Database cluster state: +shut down\n.*Latest checkpoint location: +(\S+)`)

// drained returns when n has replayed the record with which p's log ends.
func (p *node) drained(ctx context.Context, n *node) error {
	ctx, cancel := context.WithTimeout(ctx, replayLimit)
	defer cancel()
	out, err := p.run(ctx, "pg_controldata", p.Dir())
	if err != nil {
		return err
	}
	found := controlData.FindStringSubmatch(out)
	if found == nil {
		return fmt.Errorf("%s was not shut down in good order: %s", p.Name(), cluster.LastLines([]byte(out)))
	}
	end := found[1]
	return cluster.Retry(ctx, func() error {
		all, err := One[bool](ctx, n.orders, "SELECT pg_last_wal_replay_lsn() > '"+end+"'")
		if err == nil && !all {
			err = fmt.Errorf("%s has not replayed the end of the log of %s at %s", n.Name(), p.Name(), end)
		}
		return err
	})
}

// next is the standby that follows the primary most closely.
func (c *Cluster) next(ctx context.Context, p *node) (*node, error) {
	v, err := c.view(ctx, p)
	if err != nil {
		return nil, err
	}
	n := c.fittest(p, v, time.Now())
	if n == nil {
		err = fmt.Errorf("%s leads, and no standby follows it closely", p.Name())
	}
	return n, err
}
