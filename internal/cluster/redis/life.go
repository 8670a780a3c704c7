package redis

import (
	"context"
	"errors"
	"time"

	"stroppy/internal/cluster"
)

// handOverLimit bounds what is done for a primary, in good order, before it is
// replaced all the same.
const handOverLimit = 5 * time.Second

// StartReplica starts the node, unless it runs, as a replica of the primary, from which it
// takes what it has not, or everything.
func (m *member) StartReplica(ctx context.Context) (done bool, err error) {
	if err = m.Server.Restart(ctx); errors.Is(err, errLeads) {
		return false, nil
	}
	return true, err
}

// StartPrimary starts the node that leads, on its own data, as the primary; the roles are
// held.
func (m *member) StartPrimary(ctx context.Context) error {
	set := func(leading bool) {
		m.cluster.Mu.Lock()
		defer m.cluster.Mu.Unlock()
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
	free := func(ctx context.Context) error {
		if err := c.expendable(m); err != nil || c.Leading() != m || !m.Awake() {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, handOverLimit)
		defer cancel()
		moved := cluster.Retry(limited, func() error { return c.succeed(limited, m) })
		if moved != nil {
			c.Note("%s, which is to be replaced, did not hand the lead over: %v", m.Name(), moved)
			if c.params.failOver {
				moved = nil
			}
		}
		return moved
	}
	return c.ReplaceNode(ctx, m, free, func(ctx context.Context) error {
		if err := c.AwaitPrimary(ctx, m); err != nil {
			return err
		}
		return m.Server.Replace(ctx)
	})
}
