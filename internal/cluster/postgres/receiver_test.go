package postgres

import (
	"context"
	"fmt"

	"stroppy/internal/cluster"
)

// StopReceiver stops the replication of a standby, which goes on to answer
// queries: what the primary does from then on is not there. With sync=off the
// standby may be promoted all the same, and what was acknowledged meanwhile is
// lost; with sync=on the primary does without it after the cluster's time-out,
// and it may not. StartReceiver undoes it, and so does a promotion.
func (c *Cluster) StopReceiver(ctx context.Context, number int) error {
	if err := c.setReceiver(ctx, number, true); err != nil {
		return fmt.Errorf("stop the receiver of node %d: %w", number, err)
	}
	return nil
}

// StartReceiver undoes StopReceiver; a node whose receiver was not stopped is no
// error.
func (c *Cluster) StartReceiver(ctx context.Context, number int) error {
	if err := c.setReceiver(ctx, number, false); err != nil {
		return fmt.Errorf("start the receiver of node %d: %w", number, err)
	}
	return nil
}

func (c *Cluster) setReceiver(ctx context.Context, number int, cut bool) error {
	n, err := c.Node(number)
	if err != nil {
		return err
	}
	if err := c.Roles.Acquire(ctx); err != nil {
		return err
	}
	defer c.Roles.Release()
	c.Mu.Lock()
	leads, done := c.Primary == n, n.cut == cut
	if !leads && !done {
		n.cut = cut
	}
	c.Mu.Unlock()
	switch {
	case done:
		return nil
	case leads:
		return fmt.Errorf("%s leads, and receives from nobody", n.Name())
	case !n.Awake():
		return nil // it comes back so
	}
	if err := n.reconfigure(ctx); err != nil || !cut {
		return err
	}
	return cluster.Retry(ctx, func() error {
		receives, err := One[bool](ctx, n.orders, "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver)")
		if err == nil && receives {
			err = fmt.Errorf("%s receives yet", n.Name())
		}
		return err
	})
}
