package nemesis

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stroppy/internal/cluster"
)

// situation is what an effect chooses its nodes by.
type situation struct {
	rng    *rand.Rand
	leader int             // the number of the node that leads, -1 where it is not known
	age    time.Duration   // so long ago it was known to lead; 0 where it was asked for this injection
	drive  context.Context // ends with the drive
}

// part is what of a node a fault changes. Several faults may change different
// parts of one node.
type part string

const (
	partLife   part = "life"   // its processes are ended and started
	partPause  part = "pause"  // its processes are stopped where they are
	partSide   part = "side"   // whom it reaches
	partLink   part = "link"   // how fast
	partDisk   part = "disk"   // its data
	partClock  part = "clock"  // what time it sees
	partMember part = "member" // whether it belongs to the cluster
)

// anyNode is the node of a claim on the cluster as a whole.
const anyNode = -1

// claim is a part of a node that a fault changes.
type claim struct {
	node int
	part part
}

// injection is one fault from its plan to its heal.
type injection struct {
	target string // the nodes, for a person
	claims []claim
	lost   []int // nodes on which the cluster cannot count meanwhile
	stage  stage // when it is healed at the end of the drive
	// inject does it and sees its effect. It is called once. Beside an error the
	// effect heals what was done all the same.
	inject func(context.Context) (cluster.Effect, error)

	record  Injection
	effect  cluster.Effect
	settled chan struct{} // closed when it is known whether the injection succeeded
	healing atomic.Bool   // somebody heals it, or has
	over    bool          // guarded by the state
}

// stage orders the heals at the end of the drive.
type stage int

const (
	stageRelease stage = iota // links, disks, clocks and commands, one after the other in reverse order
	stageStart                // dead and paused nodes, all at once: one may not answer before another is back
	stageReshape              // nodes that come or go, which needs the others
)

// state is the cluster with all faults that are in it.
type state struct {
	cluster Cluster
	net     Network // nil: nothing can be done to its links
	leads   bool    // the nodes have a leader
	grows   bool    // the script adds nodes

	mu         sync.Mutex
	closed     bool         // the drive has ended: nothing is injected any more
	injections []*injection // in their order; those that are over are taken out
}

// node returns the node of a number, nil if it is not in the cluster.
func (s *state) node(number int) cluster.Node {
	for _, n := range s.cluster.Nodes() {
		if n.Number() == number {
			return n
		}
	}
	return nil
}

// claimed tells whether a fault has claimed this part of the node.
func (s *state) claimed(node int, p part) bool {
	return slices.ContainsFunc(s.injections, func(i *injection) bool { return !i.over && slices.Contains(i.claims, claim{node, p}) })
}

// untouched returns the nodes that run and that have no fault.
func (s *state) untouched(nodes []cluster.Node) []cluster.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool {
		return !n.Running() || slices.ContainsFunc(s.injections, func(i *injection) bool {
			return !i.over && slices.ContainsFunc(i.claims, func(c claim) bool { return c.node == n.Number() })
		})
	})
}

// keepMajority refuses a choice by chance that, with what earlier faults have
// taken, leaves no majority. A fault that comes alone may take all that it names.
func (s *state) keepMajority(t target, further []int) error {
	if !t.byChance() {
		return nil
	}
	nodes := s.cluster.Nodes()
	before, after := 0, 0
	for _, n := range nodes {
		lost := !n.Running() || slices.ContainsFunc(s.injections, func(i *injection) bool {
			return !i.over && slices.Contains(i.lost, n.Number())
		})
		if lost {
			before++
		}
		if lost || slices.Contains(further, n.Number()) {
			after++
		}
	}
	if before > 0 && after > (len(nodes)-1)/2 {
		return errMajority
	}
	return nil
}

// unclaimed leaves out the nodes of which another fault has claimed one of the
// parts; the error says that none remains.
func (s *state) unclaimed(nodes []cluster.Node, why error, parts ...part) ([]cluster.Node, error) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool {
		return slices.ContainsFunc(parts, func(p part) bool { return s.claimed(n.Number(), p) })
	})
	if len(nodes) == 0 {
		return nil, why
	}
	return nodes, nil
}

// claimEach claims one part of several nodes.
func claimEach(nodes []cluster.Node, p part) []claim {
	list := make([]claim, len(nodes))
	for i, n := range nodes {
		list[i] = claim{n.Number(), p}
	}
	return list
}

// remove takes out an injection that is over.
func (s *state) remove(i *injection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i.over = true
	s.injections = slices.DeleteFunc(s.injections, func(other *injection) bool { return other == i })
}
