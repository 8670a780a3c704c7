package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
)

// timeChaos has the processes of a container see another time (TimeChaosSpec).
const timeChaos = "TimeChaos"

// Clock is a database whose servers say what time they have.
type Clock interface {
	Now(ctx context.Context, node int) (time.Time, error)
}

var errNoClock = errors.New("this kind of server cannot be asked for its time, so the fault could not be verified")

// Steered says why the clock of the node's server cannot be put forward or back, nil if it can.
func (n *node) Steered() error {
	if _, ok := n.cluster.database.(Clock); !ok {
		return errNoClock
	}
	return n.cluster.chaosAllowed([]schema.GroupVersionKind{chaosKind(timeChaos)}, nil)
}

// Awake reports whether the node's server can be asked.
func (n *node) Awake() bool { return n.Running() }

// Now is the time that the node's server says it is.
func (n *node) Now(ctx context.Context) (time.Time, error) {
	c, ok := n.cluster.database.(Clock)
	if !ok {
		return time.Time{}, errNoClock
	}
	return c.Now(ctx, n.number)
}

// JumpClock puts the clock of the node's server forward by a time, or back by a negative one. The pod's processes see
// it, and those that they fork. A pod that is made meanwhile has a right clock.
func (n *node) JumpClock(ctx context.Context, by time.Duration) (cluster.Effect, error) {
	e, err := cluster.JumpClock(ctx, n, by, func(ctx context.Context) (func(context.Context) error, error) {
		x, err := n.cluster.inject(ctx, timeChaos, clockSpec(n.cluster, n.number, by))
		if err != nil {
			return nil, fmt.Errorf("put the clock of %s: %w", n.Name(), err)
		}
		return x.heal, nil
	})
	if err == nil {
		e.Seen += ", by Chaos Mesh"
	}
	return e, err
}

// clockSpec is a TimeChaos of one pod.
func clockSpec(c *Cluster, node int, by time.Duration) map[string]any {
	return map[string]any{"mode": "all", "selector": c.selects(node), "timeOffset": by.String()}
}
