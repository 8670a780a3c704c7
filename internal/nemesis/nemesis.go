// Package nemesis injects the faults of a script into a cluster, on schedule, and heals them.
//
// A fault is a line of text such as "kill leader every 20s for 10s". List returns the forms. Each injection is verified
// by its effect, and each heal by the end of the effect. An effect that could not be observed is an error of the
// injection, never a success.
//
// # Time
//
// A line without at and every is injected once, five seconds after the start of the run. A line without for is healed
// at the end of the load phase or, if it repeats, half way to its next time. There are three exceptions. A replaced
// node comes back at once. An added or removed node stays so. A killed or stopped node is healed when a supervisor has
// restarted it.
//
// # Choice
//
// All chance comes from one seed: the same seed with the same roles in the cluster gives the same
// choices. A target by chance (random, follower, minority) is a node that no fault has claimed yet.
// It is left out, with a note, if it would take away the majority together with the nodes that are
// lost already. A target that the script names (a number, leader, majority, all) is always taken.
//
// # Overlap
//
// Several faults may claim different parts of one node: a node that is cut off may be paused, and a
// paused node killed, after which the pause has nothing to heal. A node that a fault has ended, or
// that has ended by itself, is not ended or paused by another fault: that injection is left out with
// a note.
//
// At the end of the load phase, links, disks, clocks, processors and commands are healed first, in
// the reverse order of their injection. Then all dead and paused nodes are brought back together,
// because one may not answer before another does. Nodes that came or went are undone last.
package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// Nemesis carries out a script on a cluster, once.
type Nemesis struct {
	state  *state
	script Script
	seed   uint64
	late   time.Duration // lateLimit

	clock  func() time.Duration
	ended  chan struct{} // closed when the load phase has ended
	length time.Duration // of the load phase, once it is over
	notes  sync.Mutex    // held while note runs
	note   func(fault.Injection)
	noted  int // injections, each of which is noted twice at most
}

const (
	askAtStart  = 5 * time.Second        // bounds the first question for a leader
	askAhead    = 500 * time.Millisecond // time before an injection when the cluster is first asked for its leader
	askEvery    = 100 * time.Millisecond // interval between these questions
	awaitLeader = 10 * time.Second       // bounds the wait of an injection for a leader
	askAgain    = 80 * time.Millisecond  // bounds the last question, when the injection is due; it does not count as late
	injectLimit = 2 * time.Minute        // bounds an injection, such as a rolling restart
	healLimit   = 5 * time.Minute        // bounds a heal: a server may replay its log or copy all data
	lateLimit   = 100 * time.Millisecond // an injection that begins later than this is left out
)

// New returns the nemesis that carries out a script. net joins the nodes and may be nil. The error
// names a fault that this cluster can never suffer, and the reason.
func New(c Cluster, net Network, script Script, seed uint64) (*Nemesis, error) {
	s := &state{cluster: c, net: net, grows: script.grows()}
	needed := false
	for i, f := range script {
		if len(f.effects) == 0 {
			return nil, fmt.Errorf("fault %d of the script is empty: make it with Parse", i+1)
		}
		for _, e := range f.effects {
			needed = needed || e.needsLeader()
		}
	}
	if err := s.learnLeads(needed); err != nil {
		return nil, err
	}
	if err := script.possible(s); err != nil {
		return nil, err
	}
	return &Nemesis{state: s, script: script, seed: seed, late: lateLimit}, nil
}

// Probe sets the command that sees the effects of exec: it succeeds while a fault is in effect. It is called before Run.
func (n *Nemesis) Probe(command string) { n.state.probe = command }

// Possible returns the error of New for a planned cluster, as far as it is known before the start.
func Possible(p *cluster.PlannedError, net Network, script Script) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel() // only a cluster of equal nodes answers before its start
	_, err := p.Cluster.Leader(ended)
	return script.possible(&state{cluster: p.Cluster, net: net, grows: script.grows(), uncounted: p.Uncounted, leads: !errors.Is(err, cluster.ErrNoLeader)})
}

// learnLeads asks whether the nodes of this cluster have a leader.
func (s *state) learnLeads(needed bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), askAtStart)
	defer cancel()
	_, err := s.cluster.Leader(ctx)
	switch {
	case err == nil:
		s.leads = true
	case errors.Is(err, cluster.ErrNoLeader):
	case needed:
		return fmt.Errorf("a fault of the script needs to know which node leads, and the cluster does not say: %w", err)
	}
	return nil
}

// Run carries out the script until ctx ends, then heals all that is not healed,
// and returns. clock returns the time since the start of the run.
// note gets each injection twice, by one goroutine at a time: when it is in
// effect, and when it is over. An injection that was left out, or that failed
// at once, is noted once. Run is called once.
func (n *Nemesis) Run(ctx context.Context, clock func() time.Duration, note func(fault.Injection)) {
	n.clock, n.note, n.ended = clock, note, make(chan struct{})
	if n.script.NeedsLayer() {
		if err := n.state.syncDisks(); err != nil {
			n.report(&fault.Injection{Fault: "prepare the disks", Scheduled: fault.Seconds(clock()), Error: err.Error(), Over: true})
		}
	}
	var lines sync.WaitGroup
	for i, f := range n.script {
		l := &line{Nemesis: n, number: i + 1, fault: f, chance: f.chance(n.seed, i+1)}
		lines.Go(func() { l.run(ctx) })
	}
	<-ctx.Done()
	n.length = clock()
	close(n.ended)
	n.finish()
	lines.Wait()
}

// syncDisks makes the load count as synced on every node with a file system of ours. A power cut
// then loses only what the load phase wrote and did not sync.
func (s *state) syncDisks() error {
	for _, n := range s.cluster.Nodes() {
		if d, ok := n.(VolatileDisk); ok && d.DiskFaults() == nil {
			if err := d.Sync(); err != nil {
				return fmt.Errorf("sync the disk of %s before the first fault: %w", n.Name(), err)
			}
		}
	}
	return nil
}

// Whole waits until the database reports that it is whole again. It is called after Run.
func (n *Nemesis) Whole(ctx context.Context) error {
	if err := n.state.cluster.WaitHealthy(ctx); err != nil {
		return fmt.Errorf("wait until the cluster is whole after the last heal: %w", err)
	}
	return nil
}

// now returns the time since the start of the run.
func (n *Nemesis) now() *fault.Seconds { return new(fault.Seconds(n.clock())) }

func (n *Nemesis) report(i *fault.Injection) {
	n.notes.Lock()
	defer n.notes.Unlock()
	if i.Number == 0 {
		n.noted++
		i.Number = n.noted
	}
	n.note(*i)
}

// finish waits for the injections that are under way and heals what the lines have left.
func (n *Nemesis) finish() {
	s := n.state
	s.mu.Lock()
	s.closed = true
	injections := slices.Clone(s.injections)
	s.mu.Unlock()
	for _, i := range injections {
		<-i.settled
	}
	slices.Reverse(injections)
	for _, stage := range []stage{stageRelease, stageStart, stageReshape} {
		var started sync.WaitGroup
		for _, i := range injections {
			switch {
			case i.stage != stage || !i.healing.CompareAndSwap(false, true):
			case stage == stageStart:
				started.Go(func() { n.heal(i) })
			default:
				n.heal(i)
			}
		}
		started.Wait()
	}
}

// heal undoes an injection that nobody else heals, and reports that it is over. It has a time limit
// of its own, because it may run after the load phase.
func (n *Nemesis) heal(i *injection) {
	ctx, cancel := context.WithTimeout(context.Background(), healLimit)
	defer cancel()
	r := &i.record
	r.Healing = n.now()
	if i.effect.Still != nil && r.Error == "" {
		if err := i.effect.Still(ctx); err != nil {
			r.Error = err.Error()
		}
	}
	seen, err := i.effect.Heal(ctx)
	if err != nil {
		r.HealError = err.Error()
	} else {
		r.Healed = n.now()
		r.Verified = join(r.Verified, seen)
	}
	n.over(i, err == nil)
}

func join(seen, healed string) string {
	if seen == "" || healed == "" {
		return seen + healed
	}
	return seen + "; " + healed
}

// over reports that nothing follows. A fault that was not healed keeps its claims.
func (n *Nemesis) over(i *injection, healed bool) {
	if healed {
		n.state.drop(i)
	}
	r := &i.record
	switch {
	case r.Failed():
		r.Healed = nil
	case r.Healed == nil:
		r.Healed = r.InEffect
	}
	r.Over = true
	n.report(r)
}
