package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster/host"
	"stroppy/internal/fault"
)

// timeChaos changes the time that the processes of a container see (TimeChaosSpec).
const timeChaos = "TimeChaos"

// Clock is a database whose servers can be asked for their time.
type Clock interface {
	Now(ctx context.Context, node int) (time.Time, error)
}

var errNoClock = errors.New("this kind of server cannot be asked for its time, so the fault could not be verified")

// Steered returns why the clock of the node's server cannot be changed, or nil if it can.
func (n *node) Steered() error {
	if _, ok := n.cluster.database.(Clock); !ok {
		return errNoClock
	}
	return n.cluster.chaosAllowed([]schema.GroupVersionKind{chaosKind(timeChaos)}, nil)
}

// Awake reports whether the node's server can be asked.
func (n *node) Awake() bool { return n.Running() }

// Now returns the server's own time.
func (n *node) Now(ctx context.Context) (time.Time, error) {
	c, ok := n.cluster.database.(Clock)
	if !ok {
		return time.Time{}, errNoClock
	}
	return c.Now(ctx, n.number)
}

// JumpClock moves the clock of the node's server by a duration. The pod's processes and their children see it. A new
// pod has the right time.
func (n *node) JumpClock(ctx context.Context, by time.Duration) (fault.Effect, error) {
	e, err := host.JumpClock(ctx, n, by, func(ctx context.Context) (func(context.Context) error, error) {
		x, err := n.cluster.inject(ctx, timeChaos, clockSpec(n.cluster, n.number, by))
		if err != nil {
			return nil, fmt.Errorf("change the clock of %s: %w", n.Name(), err)
		}
		return x.heal, nil
	})
	if err == nil {
		e.Seen += ", by Chaos Mesh"
	}
	return e, err
}

// clockSpec returns a TimeChaos for one pod.
func clockSpec(c *Cluster, node int, by time.Duration) map[string]any {
	return map[string]any{"mode": "all", "selector": c.selects(node), "timeOffset": by.String()}
}
