package cockroach

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

// Add makes one more host with a node that joins the cluster. The node gets replicas later.
func (c *Cluster) Add(ctx context.Context) (int, error) {
	return c.AddNode(ctx, func(ctx context.Context, n *node) error { return n.Restart(ctx) }, func(ctx context.Context, n *node) error {
		if n.id.Load() == 0 {
			return nil // nobody knows it
		}
		return n.membership(ctx, "decommission", n.id.Load(), "--wait=none")
	})
}

// Remove decommissions a node, waits until the others have all its replicas, ends it and removes its data. The last
// three nodes cannot be removed, because each range has three replicas.
func (c *Cluster) Remove(ctx context.Context, number int) error {
	return c.RemoveNode(ctx, number, func(ctx context.Context, n *node) error {
		if others := len(c.Others(n)); others < replicas {
			return fmt.Errorf("the other %d nodes have no place for its replicas (%d per range): add a node first", others, replicas)
		}
		return n.drain(ctx)
	})
}

// drain moves all replicas of the node to the others. If this fails, the node gets replicas again.
func (n *node) drain(ctx context.Context) error {
	id := n.id.Load()
	if id == 0 {
		return errors.New("it has not answered yet, so its id is not known")
	}
	err := n.membership(ctx, "decommission", id, "--wait=none")
	if err == nil {
		err = wait.RetryEvery(ctx, 100*time.Millisecond, func() error { return n.empty(ctx, id) })
	}
	if err == nil {
		return nil
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	return errors.Join(err, n.membership(back, "recommission", id))
}

// undoLimit bounds the return of a node that could not be removed.
const undoLimit = 10 * time.Second

// empty returns nil if no range has a replica on the node with this id.
func (n *node) empty(ctx context.Context, id int64) error {
	err := errors.New("no other node runs")
	for _, via := range n.cluster.Others(n) {
		if !via.Awake() {
			continue
		}
		var ranges []replicated
		if ranges, err = via.server().ranges(ctx); err != nil {
			continue
		}
		held := len(slices.DeleteFunc(ranges, func(r replicated) bool { return !slices.Contains(r.replicas, id) }))
		if held > 0 {
			return fmt.Errorf("%d ranges have a replica on it", held)
		}
		return nil
	}
	return err
}

// forget removes the id of a removed store from the cluster.
func (n *node) forget(ctx context.Context) error {
	id := n.gone.Load()
	if id == 0 {
		return nil
	}
	err := n.membership(ctx, "decommission", id, "--wait=none")
	if err == nil {
		n.gone.Store(0)
	}
	return err
}

// membership runs `cockroach node …` for an id through any running node until it succeeds. A decommissioned id gets
// no replicas and gives away its own.
func (n *node) membership(ctx context.Context, command string, id int64, flags ...string) error {
	return wait.RetryEvery(ctx, 100*time.Millisecond, func() error {
		err := errors.New("no node runs")
		for _, via := range append(n.cluster.Others(n), n) {
			if !via.Awake() {
				continue
			}
			limited, cancel := context.WithTimeout(ctx, changeTimeout)
			args := append([]string{"node", command, strconv.FormatInt(id, 10), "--insecure", "--host=" + via.sql.String()}, flags...)
			var out []byte
			out, err = exec.CommandContext(limited, n.cluster.binary, args...).CombinedOutput()
			cancel()
			if err == nil {
				return nil
			}
			err = fmt.Errorf("cockroach node %s by %s: %w: %s", command, via.Name(), err, host.LastLines(out))
		}
		return err
	})
}
