package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"stroppy/internal/cluster"
)

// StartReplica starts the node, unless it runs, on its own data as a standby, and one that
// was fenced on a new copy of the primary's.
func (n *node) StartReplica(ctx context.Context) (done bool, err error) {
	n.cluster.Mu.Lock()
	stale := n.stale
	n.cluster.Mu.Unlock()
	switch {
	case stale:
		return false, n.rejoin(ctx)
	case n.Running():
		return true, nil
	default:
		return false, n.follow(ctx)
	}
}

// StartPrimary starts the primary on its own data, unless it runs; the roles are held.
func (n *node) StartPrimary(ctx context.Context) error {
	if n.Running() {
		return nil
	}
	if err := n.configure(); err != nil {
		return err
	}
	return n.Server.Restart(ctx)
}

// follow starts the node on its own data as a standby of the present primary,
// which need not run.
func (n *node) follow(ctx context.Context) error {
	c := n.cluster
	c.Mu.Lock()
	n.names = c.alone()
	c.aim(n)
	c.Mu.Unlock()
	if err := n.markStandby(); err != nil {
		return err
	}
	if err := n.configure(); err != nil {
		return err
	}
	c.Mu.Lock()
	n.untold = false // the server reads it when it starts
	c.Mu.Unlock()
	return n.Server.Restart(ctx)
}

// rejoin takes the node's data away and gives it a copy of the primary's, as
// soon as there is a primary that answers; Busy is held. That the data go is
// noted first, so that nobody relies on them.
func (n *node) rejoin(ctx context.Context) error {
	c := n.cluster
	if err := c.condemn(ctx, n); err != nil {
		return err
	}
	for {
		err := c.AwaitPrimary(ctx, n)
		if err == nil {
			err = errors.Join(n.Server.Kill(), releaseMemory(n.Dir()))
		}
		if err == nil {
			if err = n.Server.Replace(ctx); err == nil {
				c.Note("%s has a new copy of the data of %s and follows it", n.Name(), c.Leading().Name())
				return nil
			}
		}
		if waited := cluster.Sleep(ctx, 200*time.Millisecond); waited != nil {
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
	return c.ReplaceNode(ctx, n, func(context.Context) error { return c.expendable(n) }, n.rejoin)
}

// signalFile is there in the data of a server that starts as a standby.
const signalFile = "standby.signal"

// markStandby makes the server start as a standby. The file is synced: it has to
// be there when what was not is lost.
func (n *node) markStandby() error {
	path := filepath.Join(n.Dir(), signalFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close(), n.cluster.User.Give(path), syncFolder(n.Dir()))
	}
	if err != nil {
		return fmt.Errorf("make %s a standby: %w", n.Name(), err)
	}
	return nil
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
