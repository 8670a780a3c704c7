package nemesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"stroppy/internal/cluster"
)

// Cluster is what is injected into: nodes, and the database's own word of which of
// them leads and whether all is well. A cluster.Cluster is one. What can be done to its
// nodes and to itself are the capabilities below, cluster.Mover and cluster.Resizer;
// each call returns nil only when its effect was seen.
type Cluster interface {
	Nodes() []cluster.Node
	// Leader returns the number of the node that takes the writes, or
	// cluster.ErrNoLeader where the nodes are equal.
	Leader(ctx context.Context) (int, error)
	// WaitHealthy returns when the database itself says that all its nodes are members,
	// have caught up, and answer.
	WaitHealthy(ctx context.Context) error
}

// What a node may be able to suffer.
type (
	// Killer ends a node as a crash does.
	Killer interface {
		Kill(ctx context.Context) error
	}
	// Terminator shuts a node down in good order.
	Terminator interface {
		Terminate(ctx context.Context) error
	}
	// Restarter starts a node that is down, on its own data, and returns when it
	// answers.
	Restarter interface {
		Restart(ctx context.Context) error
	}
	// Replacer takes a node's data away and lets it join again empty; it returns when
	// the node answers.
	Replacer interface {
		Replace(ctx context.Context) error
	}
	// Pauser stops a node where it is and lets it go on.
	Pauser interface {
		Pause(ctx context.Context) error
		StillPaused(ctx context.Context) error // why it goes on although nobody has resumed it
		Resume(ctx context.Context) error      // of a node that was ended meanwhile it is no error
	}
)

// SelfRestarter is a node that does not stay down, because what it runs on starts it again at
// once: its Kill and Terminate have seen its end when they return.
type SelfRestarter interface{ RestartsItself() }

// Disk is a node whose disk can have faults.
type Disk interface {
	// DiskFaults says why the disk of this node cannot, nil if it can.
	DiskFaults() error
	// FillDisk lets everything that needs room on the node's disk fail.
	FillDisk(ctx context.Context) (cluster.Effect, error)
	// SlowDisk lets every call to the node's data folder take so much longer.
	SlowDisk(ctx context.Context, perCall time.Duration) (cluster.Effect, error)
}

// VolatileDisk is a Disk that can also lose what was not synced.
type VolatileDisk interface {
	Disk
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
}

// Drifter is a Clock that can also run too fast or too slowly.
type Drifter interface {
	Clock
	// DriftClock makes the clock run so many times as fast as it should.
	DriftClock(ctx context.Context, rate float64) (cluster.Effect, error)
}

// Processor is a node whose share of the processors others can take part in.
type Processor interface {
	// Stressable says why they cannot, nil if they can.
	Stressable() error
	// Stress has so many processes compute there; 0: one for each processor.
	Stress(ctx context.Context, processes int) (cluster.Effect, error)
}

// Network joins the nodes, by their numbers, and this program, cluster.Client. Both
// calls return an effect that heals beside an error where a part was done.
type Network interface {
	// LinkFaults says why its links cannot have faults of a kind, nil if they can.
	LinkFaults(kind cluster.LinkFault) error
	// Partition lets no packet through in any of the directions.
	Partition(ctx context.Context, cuts []cluster.Cut) (cluster.Effect, error)
	// Degrade makes the links of the nodes slow, lossy or narrow.
	Degrade(ctx context.Context, nodes []int, link cluster.Link) (cluster.Effect, error)
}

// Witnessed is a cluster with hosts that vote on who leads and have no data. A partition
// cuts its target off from them too.
type Witnessed interface {
	Witnesses() []int
}

// ChaosTaker is a cluster that has Chaos Mesh inject what a file of its objects says. The effect
// is what Chaos Mesh says of it: what those objects do is known to who wrote them.
type ChaosTaker interface {
	// ChaosFile says why what a file says can never be injected; it is asked before the load.
	ChaosFile(file string) error
	Chaos(ctx context.Context, file string) (cluster.Effect, error)
}

// able says why nodes of a cluster can never suffer an effect, nil if they can.
type able func(e effect, s *state, nodes []cluster.Node) error

// The abilities that several kinds of faults need.
var (
	kills    = has[Killer]("killed")
	stops    = has[Terminator]("shut down in good order")
	restarts = has[Restarter]("started again")
	resizes  = is[cluster.Resizer]("this kind of cluster cannot grow or shrink while it works")
)

// has says it of nodes without a capability.
func has[C any](what string) able {
	return fit("this kind of node cannot be "+what, "%s: %w", func(C) error { return nil })
}

// fit says none of nodes without a capability, and wrong of one that says by why that it
// cannot.
func fit[C any](none, wrong string, why func(C) error) able {
	return func(_ effect, _ *state, nodes []cluster.Node) error {
		for _, n := range nodes {
			c, ok := n.(C)
			if !ok {
				return errors.New(none)
			}
			if err := why(c); err != nil {
				return fmt.Errorf(wrong, n.Name(), err)
			}
		}
		return nil
	}
}

// is says it of a cluster without a capability.
func is[C any](otherwise string) able {
	return func(_ effect, s *state, _ []cluster.Node) error {
		if _, ok := s.cluster.(C); !ok {
			return errors.New(otherwise)
		}
		return nil
	}
}

// led refuses a cluster whose nodes are equal.
func led(_ effect, s *state, _ []cluster.Node) error {
	if !s.leads {
		return cluster.ErrNoLeader
	}
	return nil
}

// both is what the first of two says, or else the second.
func both(a, b able) able {
	return func(e effect, s *state, nodes []cluster.Node) error {
		return cmp.Or(a(e, s, nodes), b(e, s, nodes))
	}
}
