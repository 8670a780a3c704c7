package nemesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// Cluster is a cluster that faults are injected into. A cluster.Cluster is one. Further abilities
// are the interfaces below, cluster.Mover and cluster.Resizer. A call returns nil only if its
// effect was observed.
type Cluster interface {
	Nodes() []cluster.Node
	// Leader returns the number of the node that takes the writes, or cluster.ErrNoLeader if
	// the nodes are equal.
	Leader(ctx context.Context) (int, error)
	// WaitHealthy returns when the database itself reports that all its nodes are members, have
	// caught up, and answer.
	WaitHealthy(ctx context.Context) error
}

// The abilities of a node.
type (
	// Killer ends a node as a crash does.
	Killer interface {
		Kill(ctx context.Context) error
	}
	// Terminator shuts a node down in good order.
	Terminator interface {
		Terminate(ctx context.Context) error
	}
	// Restarter starts a node that is down on its own data and returns when it answers.
	Restarter interface {
		Restart(ctx context.Context) error
	}
	// Replacer removes a node's data, lets it join again empty, and returns when it answers.
	Replacer interface {
		Replace(ctx context.Context) error
	}
	// Pauser stops a node where it is and lets it go on.
	Pauser interface {
		Pause(ctx context.Context) error
		StillPaused(ctx context.Context) error // returns an error if it goes on although nobody has resumed it
		Resume(ctx context.Context) error      // returns nil for a node that has ended meanwhile
	}
)

// SelfRestarter is a node whose supervisor restarts it at once. Its Kill and Terminate return when
// they have observed its end.
type SelfRestarter interface{ RestartsItself() }

// Disk is a node whose disk can have faults.
type Disk interface {
	// DiskFaults returns an error if the disk of this node cannot have faults.
	DiskFaults() error
	// FillDisk makes calls fail that need space on the node's disk.
	FillDisk(ctx context.Context) (fault.Effect, error)
	// SlowDisk makes every call to the node's data folder take perCall longer.
	SlowDisk(ctx context.Context, perCall time.Duration) (fault.Effect, error)
}

// VolatileDisk is a Disk that can also lose unsynced writes.
type VolatileDisk interface {
	Disk
	// LoseUnsynced discards unsynced writes. The node must be down.
	LoseUnsynced() error
	// Sync makes all writes until now count as synced.
	Sync() error
}

// Clock is a node whose clock can differ from the machine's clock.
type Clock interface {
	// Steered returns an error if the clock of this node cannot be steered.
	Steered() error
	// JumpClock puts the clock forward, or back if the time is negative.
	JumpClock(ctx context.Context, by time.Duration) (fault.Effect, error)
}

// Drifter is a Clock that can also run too fast or too slowly.
type Drifter interface {
	Clock
	// DriftClock makes the clock run at a rate: at 2 it is twice as fast as the machine's clock.
	DriftClock(ctx context.Context, rate float64) (fault.Effect, error)
}

// Processor is a node whose processors other processes can compete for.
type Processor interface {
	// Stressable returns an error if this is not possible.
	Stressable() error
	// Stress starts computing processes; 0: one for each processor.
	Stress(ctx context.Context, processes int) (fault.Effect, error)
}

// Network joins the nodes, by their numbers, and this program, which is fault.Client. If a
// call fails after a part was done, the effect beside the error heals that part.
type Network interface {
	// LinkFaults returns an error if its links cannot have faults of a kind.
	LinkFaults(kind fault.LinkFault) error
	// Partition drops every packet in the given directions.
	Partition(ctx context.Context, cuts []fault.Cut) (fault.Effect, error)
	// Degrade makes the links of the nodes slow, lossy or narrow.
	Degrade(ctx context.Context, nodes []int, link fault.Link) (fault.Effect, error)
}

// Witnessed is a cluster with hosts that vote on the leader and have no data. A partition cuts
// its target off from them too.
type Witnessed interface{ Witnesses() []int }

// ChaosTaker is a cluster in which Chaos Mesh injects the objects of a file. Chaos Mesh reports the
// effect; only the author of the file knows the meaning of the objects.
type ChaosTaker interface {
	// ChaosFile returns an error if the file can never be injected. It is called before the load.
	ChaosFile(file string) error
	Chaos(ctx context.Context, file string) (fault.Effect, error)
}

// Foreign is a cluster of servers that this program did not start. Its owner decides what can be done to them.
type Foreign interface {
	// Can returns an error if the owner gave no command for a fault, such as "kill leader". It is called before the load.
	Can(fault string) error
	// Shell runs a command of the user and logs its output.
	Shell(ctx context.Context, command string) error
	// Promise records a command that heals a fault, in case this program is killed before the heal. kept removes the record.
	Promise(heal string) (kept func() error, err error)
	// Observe returns which server takes writes now, as a clause; empty: it cannot be known.
	Observe(ctx context.Context) string
}

// able returns an error if nodes of a cluster can never suffer an effect.
type able func(e effect, s *state, nodes []cluster.Node) error

// The abilities that several kinds of faults need.
var (
	kills    = has[Killer]("this kind of node cannot be killed")
	stops    = has[Terminator]("this kind of node cannot be shut down in good order")
	restarts = has[Restarter]("this kind of node cannot be started again")
	resizes  = is[cluster.Resizer]("this kind of cluster cannot grow or shrink while it works")
)

// has returns an able that needs the ability C of each node.
func has[C any](otherwise string) able {
	return fit(otherwise, "%s: %w", func(C) error { return nil })
}

// fit returns an able that needs the ability C of each node, and no error from why. The message
// none is for nodes without the ability, and wrong for a node that returns an error.
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

// is returns an able that needs the ability C of the cluster.
func is[C any](otherwise string) able {
	return func(_ effect, s *state, _ []cluster.Node) error {
		if _, ok := s.cluster.(C); !ok {
			return errors.New(otherwise)
		}
		return nil
	}
}

// led returns an error if the nodes of the cluster are equal.
func led(_ effect, s *state, _ []cluster.Node) error {
	if !s.leads {
		return cluster.ErrNoLeader
	}
	return nil
}

// both returns an able that needs both.
func both(a, b able) able {
	return func(e effect, s *state, nodes []cluster.Node) error {
		return cmp.Or(a(e, s, nodes), b(e, s, nodes))
	}
}
