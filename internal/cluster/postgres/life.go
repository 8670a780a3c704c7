package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// resumeLimit bounds the return of a paused node that has to join again.
const resumeLimit = time.Minute

// hold notes who ends or pauses the node, so that the supervisor leaves it so,
// and ends what is being done to it.
func (n *node) hold(by hold) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.held = by
	if n.cancel != nil {
		n.cancel(errHurt)
	}
}

// begin waits until nothing else is done to the node and returns a context that
// ends when somebody kills the node, removes it, or stops the cluster. With
// release nobody holds the node from here on; else begin refuses a node that is
// held. end must be called.
func (n *node) begin(ctx context.Context, release bool) (_ context.Context, end func(), err error) {
	if err := n.busy.acquire(ctx); err != nil {
		return nil, nil, err
	}
	return n.enter(ctx, release)
}

// enter is begin when n.busy is held already; an error releases it.
func (n *node) enter(ctx context.Context, release bool) (_ context.Context, end func(), err error) {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if !release && n.held != unheld {
		err = errHurt
	}
	if n.life.Err() != nil {
		err = context.Cause(n.life)
	}
	if err != nil {
		n.busy.release()
		return nil, nil, err
	}
	n.held = unheld
	ctx, cancel := context.WithCancelCause(ctx)
	n.cancel = cancel
	detach := context.AfterFunc(n.life, func() { cancel(context.Cause(n.life)) })
	return ctx, func() {
		detach()
		cancel(nil)
		c.mu.Lock()
		n.cancel = nil
		c.mu.Unlock()
		n.busy.release()
	}, nil
}

// Kill ends the node with SIGKILL. It stays down until Restart.
func (n *node) Kill() error {
	n.hold(killed)
	return n.Server.Kill()
}

// Terminate shuts the node down fast, which is in good order: sessions are
// ended, and the standbys get the rest of the log. It stays down until Restart.
func (n *node) Terminate(ctx context.Context) error {
	n.hold(stopped)
	return n.Server.Terminate(ctx)
}

// Pause stops the node's processes where they are. A primary that is paused for
// longer than the cluster's time-out is fenced if a standby may be promoted: then
// Running is false and Fenced true until Resume or Restart.
func (n *node) Pause() error {
	n.cluster.mu.Lock()
	before := n.held
	n.held = paused
	n.cluster.mu.Unlock()
	err := n.Server.Pause()
	if err != nil {
		n.cluster.mu.Lock()
		n.held = before
		n.cluster.mu.Unlock()
	}
	return err
}

// Resume undoes Pause. A node that was fenced meanwhile joins again as a standby,
// and Resume returns when it answers.
func (n *node) Resume() error {
	c := n.cluster
	c.mu.Lock()
	held := n.held
	c.mu.Unlock()
	if held != paused {
		return n.Server.Resume()
	}
	if n.Running() {
		if err := n.Server.Resume(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(n.life, resumeLimit)
	defer cancel()
	return n.Restart(ctx)
}

// Restart starts the node, unless it runs, and returns when it answers: the
// primary on its own data, a standby on its own as the standby of the present
// primary, and a node that was fenced on a new copy of the primary's data. A
// paused node goes on.
func (n *node) Restart(ctx context.Context) error {
	ctx, end, err := n.begin(ctx, true)
	if err == nil {
		defer end()
		err = n.Server.Resume()
		if err == nil {
			err = n.restore(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("restart %s: %w", n.Name(), err)
	}
	return nil
}

// restore brings the node up in the role that is its own; n.busy is held.
func (n *node) restore(ctx context.Context) error {
	c := n.cluster
	for {
		if err := c.roles.acquire(ctx); err != nil {
			return err
		}
		if c.leading() == n {
			err := n.lead(ctx)
			c.roles.release()
			return err
		}
		c.mu.Lock()
		stale := n.stale
		c.mu.Unlock()
		c.roles.release()
		var err error
		switch {
		case stale:
			err = n.rejoin(ctx)
		case n.Running():
			return nil
		default:
			err = n.follow(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// lead starts the primary on its own data; the roles are held.
func (n *node) lead(ctx context.Context) error {
	if n.Running() {
		return nil
	}
	n.cluster.mu.Lock()
	n.fenced = false
	n.cluster.mu.Unlock()
	if err := n.configure(); err != nil {
		return err
	}
	return n.Server.Restart(ctx)
}

// follow starts the node on its own data as a standby of the present primary,
// which need not run.
func (n *node) follow(ctx context.Context) error {
	c := n.cluster
	c.mu.Lock()
	n.names = c.alone()
	c.aim(n)
	c.mu.Unlock()
	if err := n.markStandby(); err != nil {
		return err
	}
	if err := n.configure(); err != nil {
		return err
	}
	c.mu.Lock()
	n.untold = false // the server reads it when it starts
	c.mu.Unlock()
	return n.Server.Restart(ctx)
}

// rejoin takes the node's data away and gives it a copy of the primary's, as
// soon as there is a primary that answers; n.busy is held. That the data go is
// noted first, so that nobody relies on them.
func (n *node) rejoin(ctx context.Context) error {
	c := n.cluster
	if err := c.condemn(ctx, n); err != nil {
		return err
	}
	for {
		err := c.awaitPrimary(ctx, n)
		if err == nil {
			err = errors.Join(n.Server.Kill(), releaseMemory(n.Dir()))
		}
		if err == nil {
			if err = n.Server.Replace(ctx); err == nil {
				c.note("%s has a new copy of the data of %s and follows it", n.Name(), c.leading().Name())
				return nil
			}
		}
		if waited := pause(ctx, 200*time.Millisecond); waited != nil {
			return errors.Join(waited, err)
		}
	}
}

// Replace kills the node, takes its data away, and lets it join again with a
// copy of the primary's. A node that leads is replaced when the supervisor has
// promoted another; one whose data nobody else has is not: that is an error, and
// it comes back on its data.
func (n *node) Replace(ctx context.Context) error {
	c := n.cluster
	err := c.expendable(n)
	if err == nil {
		err = errors.Join(n.Kill(), c.awaitSuccessor(ctx, n))
	}
	if err != nil {
		c.mu.Lock()
		if n.held == killed {
			n.held = unheld // the supervisor starts it on its own data
		}
		c.mu.Unlock()
		return fmt.Errorf("replace %s: %w", n.Name(), err)
	}
	ctx, end, err := n.begin(ctx, true)
	if err == nil {
		defer end()
		err = n.rejoin(ctx)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", n.Name(), err)
	}
	return nil
}

// Fenced says that the supervisor ended the node when it led and did not answer,
// and that it has not come back since.
func (n *node) Fenced() bool {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return n.fenced
}
