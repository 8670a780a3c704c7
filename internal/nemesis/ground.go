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

// network is what the faults on links need of *cluster.Network. A node's number
// is the number of its host.
type network interface {
	Loopback() string
	Cut(ctx context.Context, cuts []cluster.Cut) (heal func() error, err error)
	Reaches(ctx context.Context, from, to int) (bool, error)
	Shape(ctx context.Context, host int, link cluster.Link) (heal func() error, err error)
	RoundTrip(ctx context.Context, from, to int) (time.Duration, error)
	Loss(ctx context.Context, from, to, datagrams int) (float64, error)
	Throughput(ctx context.Context, from, to int, period time.Duration) (int64, error)
}

// moment is what an effect chooses its nodes by.
type moment struct {
	rng    *rand.Rand
	leader int             // the number of the node that leads, -1 where it is not known
	age    time.Duration   // so long ago it was known to lead; 0 where it was asked for this injection
	drive  context.Context // ends with the drive
}

// part is what of a node a fault takes hold of. Two faults may have hold of
// different parts of one node.
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

// anyNode is the node of a hold on the cluster as a whole.
const anyNode = -1

// hold is a part of a node that a fault has hold of.
type hold struct {
	node int
	part part
}

// wound is one injection: what is done, to which nodes, and how it is seen and
// undone. All functions may be called once only.
type wound struct {
	target string // the nodes, for a person
	holds  []hold
	lost   []int // nodes on which the cluster cannot count meanwhile
	cuts   []cluster.Cut
	stage  stage // when it is healed at the end of the drive

	inject func(context.Context) error
	verify func(context.Context) (string, error) // how the effect was seen
	still  func() error                          // nil, or says whether the effect is there yet, at once
	heal   func(context.Context) error           // nil: there is nothing to undo
	healed func(context.Context) (string, error) // how the end of the effect was seen

	record  Injection
	settled chan struct{} // closed when it is known whether the injection succeeded
	claimed atomic.Bool   // somebody heals it, or has
	over    bool          // it hurts no longer; guarded by the ground
}

// stage orders the heals at the end of the drive.
type stage int

const (
	stageRelease stage = iota // links, disks, clocks and commands, one after the other in reverse order
	stageStart                // dead and paused nodes, all at once: one may not answer before another is back
	stageReshape              // nodes that come or go, which needs the others
)

// ground is the cluster with all that is being done to it.
type ground struct {
	cluster cluster.Cluster
	net     network
	leads   bool // the nodes have a leader
	grows   bool // the script adds nodes

	mu     sync.Mutex
	closed bool     // the drive has ended: nothing is injected any more
	wounds []*wound // in order of injection; those that are over are taken out
}

// node returns the node of a number, nil if it is not in the cluster.
func (g *ground) node(number int) cluster.Node {
	for _, n := range g.cluster.Nodes() {
		if n.Number() == number {
			return n
		}
	}
	return nil
}

// held tells whether a fault has hold of this part of the node.
func (g *ground) held(node int, p part) bool {
	return slices.ContainsFunc(g.wounds, func(w *wound) bool { return !w.over && slices.Contains(w.holds, hold{node, p}) })
}

// unhurt returns the nodes that run and that no fault has hold of.
func (g *ground) unhurt(nodes []cluster.Node) []cluster.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool {
		return !n.Running() || slices.ContainsFunc(g.wounds, func(w *wound) bool {
			return !w.over && slices.ContainsFunc(w.holds, func(h hold) bool { return h.node == n.Number() })
		})
	})
}

// spare refuses a choice of ours that, with what earlier faults have taken,
// leaves no majority. A fault that comes alone may take all that it names.
func (g *ground) spare(t target, further []int) error {
	if !t.ours() {
		return nil
	}
	nodes := g.cluster.Nodes()
	lost := map[int]bool{}
	for _, n := range nodes {
		lost[n.Number()] = !n.Running() || slices.ContainsFunc(g.wounds, func(w *wound) bool {
			return !w.over && slices.Contains(w.lost, n.Number())
		})
	}
	before, after := 0, 0
	for number, gone := range lost {
		if gone {
			before++
		}
		if gone || slices.Contains(further, number) {
			after++
		}
	}
	if before > 0 && after > (len(nodes)-1)/2 {
		return errMajority
	}
	return nil
}

// free leaves out the nodes whose part another fault has hold of; the error says
// that none remains.
func (g *ground) free(nodes []cluster.Node, why error, parts ...part) ([]cluster.Node, error) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool {
		return slices.ContainsFunc(parts, func(p part) bool { return g.held(n.Number(), p) })
	})
	if len(nodes) == 0 {
		return nil, why
	}
	return nodes, nil
}

// takeHold makes the holds of one part of several nodes.
func takeHold(nodes []cluster.Node, p part) []hold {
	list := make([]hold, len(nodes))
	for i, n := range nodes {
		list[i] = hold{n.Number(), p}
	}
	return list
}

// remove takes a wound that is over off the ground.
func (g *ground) remove(w *wound) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.over = true
	g.wounds = slices.DeleteFunc(g.wounds, func(other *wound) bool { return other == w })
}

// each makes the wound of a change to each node that brings its own undoing.
// Where it succeeds on some of the nodes only, the heal undoes it on those. An
// undoing that fails is tried again for a while.
func (w *wound) each(nodes []cluster.Node, do func(context.Context, cluster.Node) (heal func() error, err error)) {
	heals := make([]func() error, len(nodes))
	w.inject = func(ctx context.Context) error {
		return each(nodes, func(n cluster.Node) (err error) {
			heals[slices.Index(nodes, n)], err = do(ctx, n)
			return err
		})
	}
	w.heal = func(ctx context.Context) error {
		return each(nodes, func(n cluster.Node) error {
			if heal := heals[slices.Index(nodes, n)]; heal != nil {
				return until(ctx, lookFor, heal)
			}
			return nil
		})
	}
}
