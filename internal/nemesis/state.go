package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// situation is the state by which an effect chooses its nodes.
type situation struct {
	rng    *rand.Rand
	leader int             // number of the leading node; -1: not known
	age    time.Duration   // time since the leader was known; 0: the cluster was asked for this injection
	drive  context.Context // ends with the load phase
}

// part is a part of a node that a fault changes. Several faults may change different parts of one
// node.
type part string

const (
	partLife      part = "life"      // its processes are ended and started
	partPause     part = "pause"     // its processes are stopped and resumed
	partSide      part = "side"      // the nodes that it reaches
	partLink      part = "link"      // delay, loss and bandwidth; effects of several faults cannot be distinguished
	partDisk      part = "disk"      // its data
	partClock     part = "clock"     // its time
	partProcessor part = "processor" // its share of the processors
	partStore     part = "store"     // servers of the whole cluster in which agents note the leader
	partMember    part = "member"    // its membership of the cluster
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
	target string // names of the nodes, for reports
	claims []claim
	lost   []int // nodes that do not count towards a majority meanwhile
	agent  bool  // it affects the agents of the nodes
	stage  stage // order of its heal at the end of the load phase
	// inject injects the fault and observes its effect. It is called once. If it fails after a
	// part was done, the effect beside the error heals that part.
	inject func(context.Context) (fault.Effect, error)

	record  fault.Injection
	effect  fault.Effect
	settled chan struct{} // closed when the injection has succeeded or failed
	healing atomic.Bool   // its heal has begun
}

// stage orders the heals at the end of the load phase.
type stage int

const (
	stageRelease stage = iota // links, disks, clocks, processors and commands, one after the other in reverse order
	stageStart                // dead and paused nodes, all at once: one may not answer before another is back
	stageReshape              // nodes that come or go, which needs the others
)

// state is the cluster with all faults that are in effect.
type state struct {
	cluster   Cluster
	net       Network // nil: its links cannot have faults
	leads     bool    // the nodes have a leader
	grows     bool    // the script adds nodes
	uncounted bool    // the number of nodes is not known
	probe     string  // a command that succeeds while a fault by exec is in effect; empty: there is none

	mu         sync.Mutex
	closed     bool         // the load phase has ended: nothing is injected any more
	injections []*injection // in their order, without those that are over
}

// faulty reports whether a current fault satisfies so.
func (s *state) faulty(so func(*injection) bool) bool { return slices.ContainsFunc(s.injections, so) }

// claimed reports whether a fault has claimed one of these parts of the node.
func (s *state) claimed(node int, parts ...part) bool {
	return s.faulty(func(i *injection) bool {
		return slices.ContainsFunc(i.claims, func(c claim) bool { return c.node == node && slices.Contains(parts, c.part) })
	})
}

// untouched returns the nodes that run and that have no fault.
func (s *state) untouched(nodes []cluster.Node) []cluster.Node {
	return without(nodes, func(n cluster.Node) bool {
		return !n.Running() || s.faulty(func(i *injection) bool {
			return slices.ContainsFunc(i.claims, func(c claim) bool { return c.node == n.Number() })
		})
	})
}

// keepMajority returns an error if a choice by chance and the earlier faults together leave no
// majority. A fault without earlier faults may take all nodes that it names.
func (s *state) keepMajority(t target, further []int) error {
	nodes := s.cluster.Nodes()
	left := without(nodes, func(n cluster.Node) bool {
		return !n.Running() || s.faulty(func(i *injection) bool { return slices.Contains(i.lost, n.Number()) })
	})
	after := without(left, func(n cluster.Node) bool { return slices.Contains(further, n.Number()) })
	if t.byChance() && len(left) < len(nodes) && len(after) <= len(nodes)/2 {
		return errMajority
	}
	return nil
}

// available returns the nodes of a target that no other fault keeps down or still.
func (s *state) available(t target, c situation, parts ...part) ([]cluster.Node, error) {
	nodes, err := t.choose(s, c)
	if err != nil {
		return nil, err
	}
	return s.unclaimed(nodes, s.whyDown(nodes, parts), parts...)
}

// whyDown returns why none of the nodes is available: the agent of one has a fault, or a node is
// down or paused.
func (s *state) whyDown(nodes []cluster.Node, parts []part) error {
	for _, i := range s.injections {
		if i.agent && slices.ContainsFunc(i.claims, func(c claim) bool {
			return slices.Contains(parts, c.part) && slices.Contains(numbers(nodes), c.node)
		}) {
			return skipError(fmt.Sprintf("its agent is not back yet from another fault of the script, %s", i.record.Fault))
		}
	}
	return errDown
}

// unclaimed returns the nodes of which no other fault has claimed one of the parts. If none
// remains, it returns the error why.
func (s *state) unclaimed(nodes []cluster.Node, why error, parts ...part) ([]cluster.Node, error) {
	nodes = without(nodes, func(n cluster.Node) bool { return s.claimed(n.Number(), parts...) })
	if len(nodes) == 0 {
		return nil, why
	}
	return nodes, nil
}

// claimEach claims one part of several nodes, and the further claims.
func claimEach(nodes []int, p part, further ...claim) (claims []claim) {
	for _, n := range nodes {
		claims = append(claims, claim{n, p})
	}
	return append(claims, further...)
}

func (s *state) drop(i *injection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.injections = slices.DeleteFunc(s.injections, func(other *injection) bool { return other == i })
}
