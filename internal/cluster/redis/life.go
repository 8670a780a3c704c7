package redis

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// resumeLimit bounds the return of a paused node that has to join again.
	resumeLimit = time.Minute
	// handOverLimit bounds what is done for a primary, in good order, before it is
	// replaced all the same.
	handOverLimit = 5 * time.Second
)

// hold notes who ends the node, so that the supervisor leaves it so, and ends
// what is being done to it.
func (m *member) hold(by hold) {
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	m.held = by
	if m.cancel != nil {
		m.cancel(errHurt)
	}
}

// begin waits until nothing else is done to the node and returns a context that
// ends when somebody kills the node, removes it, or stops the cluster. With
// release nobody holds the node from here on; else begin refuses a node that is
// held. end must be called.
func (m *member) begin(ctx context.Context, release bool) (_ context.Context, end func(), err error) {
	if err := m.busy.acquire(ctx); err != nil {
		return nil, nil, err
	}
	return m.enter(ctx, release)
}

// enter is begin when m.busy is held already; an error releases it.
func (m *member) enter(ctx context.Context, release bool) (_ context.Context, end func(), err error) {
	c := m.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if !release && m.held != unheld {
		err = errHurt
	}
	if m.being.Err() != nil {
		err = context.Cause(m.being)
	}
	if err != nil {
		m.busy.release()
		return nil, nil, err
	}
	m.held = unheld
	ctx, cancel := context.WithCancelCause(ctx)
	m.cancel = cancel
	detach := context.AfterFunc(m.being, func() { cancel(context.Cause(m.being)) })
	return ctx, func() {
		detach()
		cancel(nil)
		c.mu.Lock()
		m.cancel = nil
		c.mu.Unlock()
		m.busy.release()
	}, nil
}

// Kill ends the node with SIGKILL. It stays down until Restart.
func (m *member) Kill() error {
	m.hold(killed)
	return m.Server.Kill()
}

// Terminate shuts the node down in good order: a primary stops taking writes and
// lets its replicas catch up before it ends. It stays down until Restart.
func (m *member) Terminate(ctx context.Context) error {
	m.hold(stopped)
	return m.Server.Terminate(ctx)
}

// Pause stops the node's process where it is. A primary that is paused for longer
// than the cluster's time-out is ended if a replica can be promoted: then it is
// down until Resume or Restart.
func (m *member) Pause() error {
	c := m.cluster
	c.mu.Lock()
	before := m.held
	m.held = paused
	c.mu.Unlock()
	err := m.Server.Pause()
	if err != nil {
		c.mu.Lock()
		m.held = before
		c.mu.Unlock()
	}
	return err
}

// Resume undoes Pause. A node that was ended meanwhile joins again as a replica,
// and Resume returns when it answers.
func (m *member) Resume() error {
	c := m.cluster
	c.mu.Lock()
	held := m.held
	c.mu.Unlock()
	if held != paused {
		return m.Server.Resume()
	}
	ctx, cancel := context.WithTimeout(m.being, resumeLimit)
	defer cancel()
	return m.Restart(ctx)
}

// Restart starts the node on its own data, unless it runs, and returns when it
// answers: the node that leads as the primary, any other as a replica of that
// one, from which it takes what it has not, or everything. A paused node goes on.
func (m *member) Restart(ctx context.Context) error {
	ctx, end, err := m.begin(ctx, true)
	if err == nil {
		defer end()
		err = m.Server.Resume()
		if err == nil {
			err = m.restore(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("restart %s: %w", m.Name(), err)
	}
	return nil
}

// restore brings the node up in the role that is its own; m.busy is held.
func (m *member) restore(ctx context.Context) error {
	c := m.cluster
	for {
		if err := c.roles.acquire(ctx); err != nil {
			return err
		}
		if c.leader() == m {
			err := m.lead(ctx)
			c.roles.release()
			return err
		}
		c.roles.release()
		if err := m.Server.Restart(ctx); !errors.Is(err, errLeads) {
			return err
		}
	}
}

// lead starts the node that leads, on its own data, as the primary; the roles are
// held.
func (m *member) lead(ctx context.Context) error {
	set := func(leading bool) {
		m.cluster.mu.Lock()
		defer m.cluster.mu.Unlock()
		m.leading = leading
	}
	set(true)
	defer set(false)
	return m.Server.Restart(ctx)
}

// Replace kills the node, takes its data away, and lets it join again, empty, as
// a replica. A node that leads hands the lead over in good order first, if it can;
// one that is dead is replaced when the supervisor has promoted another. One whose
// data nobody else has is not replaced: that is an error, and it comes back on its
// data.
func (m *member) Replace(ctx context.Context) error {
	c := m.cluster
	err := c.expendable(m)
	if err == nil {
		if c.leader() == m && m.awake() {
			limited, cancel := context.WithTimeout(ctx, handOverLimit)
			if moved := persist(limited, func() error { return c.succeed(limited, m) }); moved != nil {
				c.note("%s, which is to be replaced, did not hand the lead over: %v", m.Name(), moved)
				if !c.params.failOver {
					err = moved
				}
			}
			cancel()
		}
		if err == nil {
			err = errors.Join(m.Kill(), c.awaitSuccessor(ctx, m))
		}
	}
	if err != nil {
		c.mu.Lock()
		if m.held == killed {
			m.held = unheld // the supervisor starts it on its own data
		}
		c.mu.Unlock()
		return fmt.Errorf("replace %s: %w", m.Name(), err)
	}
	ctx, end, err := m.begin(ctx, true)
	if err == nil {
		defer end()
		if err = c.awaitPrimary(ctx, m); err == nil {
			err = m.Server.Replace(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", m.Name(), err)
	}
	return nil
}
