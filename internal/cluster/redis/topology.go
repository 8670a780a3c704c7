package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

const (
	// moveTimeout is how long a primary may hold its writes back until the replica
	// that is to lead has everything.
	moveTimeout = 3 * time.Second
	// moveLimit bounds a switch-over as a whole.
	moveLimit = 2 * moveTimeout
)

// Leader returns the number of the node that takes the writes. While there is
// none, or it does not answer, Leader waits until ctx ends.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	var p *member
	err := persist(ctx, func() error {
		p = c.leader()
		_, err := p.leads(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find the primary of the Redis cluster: %w", err)
	}
	return p.Number(), nil
}

// leads returns the view of a node that takes writes, or why it does not.
func (m *member) leads(ctx context.Context) (view, error) {
	if !m.awake() {
		return view{}, fmt.Errorf("%s, which leads, is down or paused", m.Name())
	}
	v, err := look(ctx, m.orders)
	if err == nil && !v.primary {
		err = fmt.Errorf("%s, which is to lead, is a replica yet", m.Name())
	}
	return v, err
}

// awaitPrimary returns when a node other than m takes writes.
func (c *Cluster) awaitPrimary(ctx context.Context, m *member) error {
	return persist(ctx, func() error {
		p := c.leader()
		if p == m {
			return fmt.Errorf("%s leads itself", m.Name())
		}
		_, err := p.leads(ctx)
		return err
	})
}

// awaitSuccessor returns when a node that was killed does not lead any more.
func (c *Cluster) awaitSuccessor(ctx context.Context, m *member) error {
	return persist(ctx, func() error {
		if c.leader() == m {
			return errors.New("no replica could be promoted")
		}
		return nil
	})
}

// expendable says why a node's data must not be taken away; nil if they may.
func (c *Cluster) expendable(m *member) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.members) == 1:
		return errors.New("a cluster of one node has nobody to take its data from")
	case c.primary != m:
		return nil
	case !slices.ContainsFunc(c.members, func(n *member) bool { return n.following == m }):
		return errors.New("it leads, and no replica has its data")
	case !c.params.failOver && !m.awake():
		return errors.New("it leads and is down, and failover=off lets nobody take its place: restart it")
	}
	return nil
}

// Whole returns when every node runs and answers in its role, and every replica is
// connected to the primary and has all that the primary had when Whole asked
// first. The supervisor brings back all nodes that nobody holds down.
func (c *Cluster) Whole(ctx context.Context) error {
	var goal view
	if err := persist(ctx, func() error { return c.whole(ctx, &goal) }); err != nil {
		return fmt.Errorf("wait until the Redis cluster is whole: %w", err)
	}
	return nil
}

func (c *Cluster) whole(ctx context.Context, goal *view) error {
	p := c.leader()
	v, err := p.leads(ctx)
	if err != nil {
		return err
	}
	if goal.history != v.history { // of another primary, offsets say nothing of this one's
		*goal = v
	}
	for _, m := range c.list() {
		if err := c.sound(ctx, m, p, *goal); err != nil {
			return err
		}
	}
	return nil
}

// sound says what is wrong with a node; nil if nothing is.
func (c *Cluster) sound(ctx context.Context, m, p *member, goal view) error {
	c.mu.Lock()
	held, following := m.held, m.following
	c.mu.Unlock()
	switch {
	case held != unheld:
		return fmt.Errorf("%s is %s", m.Name(), held)
	case !m.Running():
		return fmt.Errorf("%s is down", m.Name())
	case m == p:
		return nil
	}
	v, err := look(ctx, m.orders)
	switch {
	case err != nil:
		return fmt.Errorf("%s does not answer: %w", m.Name(), err)
	case !v.follows(p.address()) || !v.up || v.history != goal.history:
		return fmt.Errorf("%s is not connected to %s", m.Name(), p.Name())
	case v.offset < goal.offset:
		return fmt.Errorf("%s lacks %d bytes of what %s has written", m.Name(), goal.offset-v.offset, p.Name())
	case following != p:
		return fmt.Errorf("the supervisor has not seen yet that %s follows %s", m.Name(), p.Name())
	}
	return nil
}

// MoveLeader hands the lead over in good order, by Redis's FAILOVER: the primary
// takes no writes until the replica has everything, becomes a replica, and tells
// the other to lead.
func (c *Cluster) MoveLeader(ctx context.Context, to int) error {
	m, err := c.member(to)
	if err == nil {
		err = persist(ctx, func() error {
			if err := c.roles.acquire(ctx); err != nil {
				return err
			}
			defer c.roles.release()
			return c.handOver(ctx, m)
		})
	}
	if err != nil {
		return fmt.Errorf("move the lead of the Redis cluster to node %d: %w", to, err)
	}
	return nil
}

// succeed hands the lead of m over, if it has it, to the replica that has most.
func (c *Cluster) succeed(ctx context.Context, m *member) error {
	if err := c.roles.acquire(ctx); err != nil {
		return err
	}
	defer c.roles.release()
	if c.leader() != m {
		return nil
	}
	var heir *member
	var most view
	for _, n := range c.candidates(m) {
		c.mu.Lock()
		seen := n.seen
		c.mu.Unlock()
		if heir == nil || most.before(seen, seen.history) {
			heir, most = n, seen
		}
	}
	if heir == nil {
		return fmt.Errorf("%s leads, and no replica that answers has its data", m.Name())
	}
	return c.handOver(ctx, heir)
}

// handOver hands the lead over to m; the roles are held. After FAILOVER was sent,
// m may become the primary at any moment, so the end is waited for, whatever
// becomes of ctx.
func (c *Cluster) handOver(ctx context.Context, m *member) error {
	p := c.leader()
	if p == m {
		return nil
	}
	if _, err := p.leads(ctx); err != nil {
		return err
	}
	if !m.awake() {
		return fmt.Errorf("%s does not run", m.Name())
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveLimit)
	defer cancel()
	began := time.Now()
	_, err := ask(limited, p.address(), "", []string{"FAILOVER", "TO", m.host(), strconv.Itoa(m.port), "TIMEOUT", strconv.FormatInt(moveTimeout.Milliseconds(), 10)})
	if refused(err) {
		return err
	}
	for {
		if v, err := look(limited, m.orders); err == nil && v.primary {
			c.crown(m)
			c.note("%s leads, which %s has handed over in %v", m.Name(), p.Name(), time.Since(began).Round(time.Millisecond))
			return nil
		}
		v, err := look(limited, p.orders)
		if err == nil && v.primary && !v.moving {
			return fmt.Errorf("%s gave the switch-over up: %s did not get everything within %v", p.Name(), m.Name(), moveTimeout)
		}
		if !p.Running() || pause(limited, pollEvery) != nil {
			break
		}
	}
	// Nobody knows whether m leads already. From here on it does.
	err = p.Server.Kill()
	if err == nil {
		c.crown(m)
		err = m.tell(context.WithoutCancel(ctx))
		c.note("%s did not answer any more when it handed the lead over to %s, and was ended", p.Name(), m.Name())
	}
	return err
}

// Add makes one more host and a replica on it. Clients that were opened before do
// not know it.
func (c *Cluster) Add(ctx context.Context) (int, error) {
	m, err := c.grow(ctx)
	if err == nil {
		if err = m.Restart(ctx); err != nil {
			err = errors.Join(err, c.drop(m))
		}
	}
	if err != nil {
		return 0, fmt.Errorf("add a node to the Redis cluster: %w", err)
	}
	return m.Number(), nil
}

func (c *Cluster) grow(ctx context.Context) (*member, error) {
	if err := c.changing.acquire(ctx); err != nil {
		return nil, err
	}
	defer c.changing.release()
	if c.life.Err() != nil {
		return nil, context.Cause(c.life)
	}
	host, err := c.network.Add(ctx)
	if err != nil {
		return nil, err
	}
	number := c.hosts
	c.hosts++
	m, err := c.newMember(ctx, number, host)
	if err != nil {
		return nil, err
	}
	m.held = joining
	c.mu.Lock()
	c.members = append(c.members, m)
	c.mu.Unlock()
	c.attend(m)
	return m, nil
}

// Remove takes a node out of the cluster, shuts it down and removes its data. One
// that leads hands the lead over first.
func (c *Cluster) Remove(ctx context.Context, number int) error {
	m, err := c.member(number)
	switch {
	case err != nil:
	case len(c.list()) == 1:
		err = errors.New("it is the last one")
	default:
		err = persist(ctx, func() error { return c.dethrone(ctx, m) })
	}
	if err == nil {
		err = errors.Join(m.Server.Terminate(ctx), c.drop(m))
	}
	if err != nil {
		return fmt.Errorf("remove node %d of the Redis cluster: %w", number, err)
	}
	return nil
}

// dethrone sees to it that m does not lead, nor ever will.
func (c *Cluster) dethrone(ctx context.Context, m *member) error {
	if err := c.succeed(ctx, m); err != nil {
		return err
	}
	if err := c.roles.acquire(ctx); err != nil {
		return err
	}
	defer c.roles.release()
	if c.leader() == m {
		return fmt.Errorf("%s has come to lead again", m.Name())
	}
	m.hold(stopped)
	return nil
}

// drop takes a node out of the list and removes what was made for it.
func (c *Cluster) drop(m *member) error {
	c.mu.Lock()
	c.members = slices.DeleteFunc(c.members, func(n *member) bool { return n == m })
	c.mu.Unlock()
	m.retire(errRemoved)
	return m.erase()
}
