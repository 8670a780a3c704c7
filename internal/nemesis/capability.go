package nemesis

import (
	"context"
	"errors"
	"time"

	"stroppy/internal/cluster"
)

// Cluster is what is injected into: nodes, and the database's own word of which of
// them leads and whether all is well. A cluster.Cluster is one. What its nodes and
// itself can suffer are the capabilities below; each call returns nil only when its
// effect was seen.
type Cluster interface {
	Nodes() []cluster.Node
	// Leader returns the number of the node that takes the writes, or
	// cluster.ErrNoLeader where the nodes are equal.
	Leader(ctx context.Context) (int, error)
	// WaitHealthy returns when the database itself says that all its nodes are members,
	// have caught up, and answer.
	WaitHealthy(ctx context.Context) error
}

// Killer ends a node as a crash does.
type Killer interface{ Kill() error }

// Terminator shuts a node down in good order.
type Terminator interface {
	Terminate(ctx context.Context) error
}

// Restarter starts a node that is down, on its own data, and returns when it
// answers.
type Restarter interface {
	Restart(ctx context.Context) error
}

// Replacer takes a node's data away and lets it join again empty; it returns when
// the node answers.
type Replacer interface {
	Replace(ctx context.Context) error
}

// Pauser stops a node where it is and lets it go on.
type Pauser interface {
	Pause() error
	StillPaused() error // why it goes on although nobody has resumed it
	Resume() error      // of a node that was ended meanwhile it is no error
}

// Disk is a node whose disk can have faults.
type Disk interface {
	// Layered says why the disk of this node cannot, nil if it can.
	Layered() error
	// FillDisk lets everything that needs room on the node's disk fail.
	FillDisk(ctx context.Context) (cluster.Effect, error)
	// SlowDisk lets every call to the node's data folder take so much longer.
	SlowDisk(ctx context.Context, perCall time.Duration) (cluster.Effect, error)
	// LoseUnsynced throws away what was written and not synced. It is called
	// while the node is down.
	LoseUnsynced() error
	// Sync makes all that was written until now count as synced.
	Sync() error
}

// Clock is a node whose processes can be made to see another time than the
// machine's.
type Clock interface {
	// Steered says why the clock of this node cannot be steered, nil if it can.
	Steered() error
	// JumpClock puts the clock forward by a time, or back by a negative one.
	JumpClock(ctx context.Context, by time.Duration) (cluster.Effect, error)
	// DriftClock makes the clock run so many times as fast as it should.
	DriftClock(ctx context.Context, rate float64) (cluster.Effect, error)
}

// Network joins the nodes, by their numbers, and this program, cluster.Client. Both
// calls return an effect that heals beside an error where a part was done.
type Network interface {
	// Loopback says why its links cannot have faults, empty if they can.
	Loopback() string
	// Partition lets no packet through in any of the directions.
	Partition(ctx context.Context, cuts []cluster.Cut) (cluster.Effect, error)
	// Degrade makes the links of the nodes slow, lossy or narrow.
	Degrade(ctx context.Context, nodes []int, link cluster.Link) (cluster.Effect, error)
}

// Mover is a Cluster that can hand the lead over in good order.
type Mover interface {
	MoveLeader(ctx context.Context, to int) error
}

// Resizer is a Cluster that can grow and shrink while it works.
type Resizer interface {
	Add(ctx context.Context) (int, error)
	Remove(ctx context.Context, node int) error
}

// What each says of a node that does not have a capability.
func kills(n cluster.Node) error    { return has[Killer](n, "killed") }
func stops(n cluster.Node) error    { return has[Terminator](n, "shut down in good order") }
func restarts(n cluster.Node) error { return has[Restarter](n, "started again") }
func replaces(n cluster.Node) error { return has[Replacer](n, "replaced") }
func pauses(n cluster.Node) error   { return has[Pauser](n, "paused") }

func has[C any](n cluster.Node, what string) error {
	if _, ok := n.(C); !ok {
		return errors.New("this kind of node cannot be " + what)
	}
	return nil
}

// both joins what two say of a node.
func both(a, b func(cluster.Node) error) func(cluster.Node) error {
	return func(n cluster.Node) error { return errors.Join(a(n), b(n)) }
}
