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
	// moveTimeout is how long a primary may hold its writes back until the replica
	// that is to lead has everything.
	moveTimeout = 3 * time.Second
	// moveLimit bounds a switch-over as a whole.
	moveLimit = 2 * moveTimeout
)

// CheckPrimary says why the node does not take writes; nil if it does.
func (m *member) CheckPrimary(ctx context.Context) error {
	_, err := m.leads(ctx)
	return err
}

// leads returns the view of a node that takes writes, or why it does not.
func (m *member) leads(ctx context.Context) (view, error) {
	if !m.Awake() {
		return view{}, fmt.Errorf("%s, which leads, is down or paused", m.Name())
	}
	v, err := look(ctx, m.orders)
	if err == nil && !v.primary {
		err = fmt.Errorf("%s, which is to lead, is a replica yet", m.Name())
	}
	return v, err
}

// expendable says why a node's data must not be taken away; nil if they may.
func (c *Cluster) expendable(m *member) error {
	others := c.Others(m)
	c.Mu.Lock()
	defer c.Mu.Unlock()
	switch {
	case c.Primary != m:
		return nil
	case !slices.ContainsFunc(others, func(n *member) bool { return n.following == m }):
		return errors.New("it leads, and no replica has its data")
	case !c.params.failOver && !m.Awake():
		return errors.New("it leads and is down, and failover=off lets nobody take its place: restart it")
	}
	return nil
}

// healthy begins a wait until every node runs and answers in its role, and every replica
// is connected to the primary and has all that the primary had at the first look. The
// supervisor brings back all nodes that nobody holds down.
func (c *Cluster) healthy() func(context.Context) error {
	var goal view
	return func(ctx context.Context) error {
		p := c.Leading()
		v, err := p.leads(ctx)
		if err != nil {
			return err
		}
		if goal.history != v.history { // of another primary, offsets say nothing of this one's
			goal = v
		}
		for _, m := range c.List() {
			if err := c.sound(ctx, m, p, goal); err != nil {
				return err
			}
		}
		return nil
	}
}

// sound says what is wrong with a node; nil if nothing is.
func (c *Cluster) sound(ctx context.Context, m, p *member, goal view) error {
	if err := c.CheckUp(m); err != nil || m == p {
		return err
	}
	c.Mu.Lock()
	following := m.following
	c.Mu.Unlock()
	if err := caughtUp(ctx, m, p.endpoint, goal); err != nil {
		return err
	}
	if following != p {
		return fmt.Errorf("the supervisor has not seen yet that %s follows %s", m.Name(), p.Name())
	}
	return nil
}

// replica is a server that is to follow another one.
type replica interface {
	Name() string
	asked() *session
}

// caughtUp says what a replica lacks to follow the primary at an address and to have what
// the primary had when it was looked at; nil if nothing.
func caughtUp(ctx context.Context, m replica, primary endpoint, goal view) error {
	v, err := look(ctx, m.asked())
	switch {
	case err != nil:
		return fmt.Errorf("%s does not answer: %w", m.Name(), err)
	case !v.follows(primary.address()) || !v.up || v.history != goal.history:
		return fmt.Errorf("%s is not connected to the primary %s", m.Name(), primary.address())
	case v.offset < goal.offset:
		return fmt.Errorf("%s lacks %d bytes of what the primary has written", m.Name(), goal.offset-v.offset)
	}
	return nil
}

// next is the replica that has most.
func (c *Cluster) next(_ context.Context, m *member) (*member, error) {
	var next *member
	var most view
	for _, n := range c.candidates(m) {
		c.Mu.Lock()
		seen := n.seen
		c.Mu.Unlock()
		if next == nil || most.before(seen, seen.history) {
			next, most = n, seen
		}
	}
	if next == nil {
		return nil, fmt.Errorf("%s leads, and no replica that answers has its data", m.Name())
	}
	return next, nil
}

// handOver hands the lead over in good order, by Redis's FAILOVER: the primary takes no
// writes until the replica has everything, becomes a replica, and directs the other to
// lead. After FAILOVER was sent, m may become the primary at any moment, so the end is
// waited for, whatever becomes of ctx.
func (c *Cluster) handOver(ctx context.Context, m *member) error {
	p := c.Leading()
	if p == m {
		return nil
	}
	if _, err := p.leads(ctx); err != nil {
		return err
	}
	if !m.Awake() {
		return fmt.Errorf("%s does not run", m.Name())
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveLimit)
	defer cancel()
	began := time.Now()
	once := newSession(p.address(), moveLimit) // on which nothing is sent twice
	defer once.close()
	_, err := once.ask(limited, "FAILOVER", "TO", m.host(), m.port(), "TIMEOUT", strconv.FormatInt(moveTimeout.Milliseconds(), 10))
	if refused(err) {
		return err
	}
	for {
		if v, err := look(limited, m.orders); err == nil && v.primary {
			c.setPrimary(m)
			c.NoteLeader(m.Name(), "%s leads, which %s has handed over in %v", m.Name(), p.Name(), time.Since(began).Round(time.Millisecond))
			return nil
		}
		v, err := look(limited, p.orders)
		if err == nil && v.primary && !v.moving {
			return fmt.Errorf("%s gave the switch-over up: %s did not get everything within %v", p.Name(), m.Name(), moveTimeout)
		}
		if !p.Running() || cluster.Sleep(limited, cluster.PollEvery) != nil {
			break
		}
	}
	// Nobody knows whether m leads already. From here on it does.
	err = p.Server.Kill(ctx)
	if err == nil {
		c.setPrimary(m)
		err = m.assign(context.WithoutCancel(ctx))
		c.NoteLeader(m.Name(), "%s did not answer any more when it handed the lead over to %s, and was ended", p.Name(), m.Name())
	}
	return err
}
