package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"stroppy/internal/cluster"
)

// The faults of nodes, each by itself.
const (
	kill         = "kill"
	stop         = "stop"
	pause        = "pause"
	replace      = "replace"
	clock        = "clock"
	diskFull     = "disk-full"
	slowDisk     = "slow-disk"
	loseUnsynced = "lose-unsynced"
)

// What a clock and a disk can be made, so that it can be seen.
const (
	leastJump      = 100 * time.Millisecond
	leastDrift     = 0.01 // a rate this near to 1 cannot be seen in a few seconds
	mostRateOf     = 100.0
	defaultPerCall = 100 * time.Millisecond
	leastPerCall   = 5 * time.Millisecond // less cannot be told from a busy machine
)

// nodeFault is a fault of nodes or of their links.
type nodeFault struct {
	word   string
	target target
	// What its kind reads of these, and zero otherwise.
	by      time.Duration // how much longer a call or a packet takes, or how far a clock jumps
	varies  time.Duration // the delay of a packet
	rate    float64       // of a clock
	percent float64       // of packets that get lost
	bytes   int64         // a second, of a link
}

// nodeKind is what the faults of nodes differ in.
type nodeKind struct {
	params func(*nodeFault, *reader) error // reads what follows the target; nil: nothing does
	able   func(cluster.Node) error        // says why the fault can never be done to a node; nil: it is one of links
	inject func(context.Context, nodeFault, *state, cluster.Node) (cluster.Effect, error)

	running bool   // it is done only to nodes that run
	lost    bool   // the cluster cannot count on the node meanwhile
	blocked []part // a node of which another fault has claimed one of these is down
	claims  part
	heals   healing
	stage   stage
}

func nodeKinds() map[string]nodeKind {
	down, frozen := []part{partLife}, []part{partLife, partPause}
	return map[string]nodeKind{
		kill:         {able: both(kills, restarts), inject: injectKill, running: true, lost: true, blocked: down, claims: partLife, stage: stageStart},
		stop:         {able: both(stops, restarts), inject: injectStop, running: true, lost: true, blocked: down, claims: partLife, stage: stageStart},
		replace:      {able: both(kills, replaces), inject: injectReplace, running: true, lost: true, blocked: down, claims: partLife, stage: stageStart, heals: healAtOnce},
		loseUnsynced: {able: layered, inject: injectLoss, running: true, lost: true, blocked: down, claims: partLife, stage: stageStart},
		pause:        {able: pauses, inject: injectPause, running: true, lost: true, blocked: frozen, claims: partPause, stage: stageStart},
		diskFull:     {able: layered, inject: injectFull, lost: true, blocked: down, claims: partDisk, stage: stageRelease},
		slowDisk:     {able: layered, inject: injectSlowDisk, params: readPerCall, blocked: down, claims: partDisk, stage: stageRelease},
		clock:        {able: steerable, inject: injectClock, params: readClock, blocked: frozen, claims: partClock, stage: stageRelease},
		// One link can have several faults, but what each of them does could not be told
		// apart.
		slow:  {params: readDelay, claims: partLink, stage: stageRelease},
		lossy: {params: readLoss, claims: partLink, stage: stageRelease},
		limit: {params: readRate, claims: partLink, stage: stageRelease},
	}
}

func parseNodeFault(word string) func(*reader) (effect, error) {
	return func(r *reader) (effect, error) {
		f := nodeFault{word: word}
		var err error
		if f.target, err = r.target(); err != nil {
			return nil, err
		}
		if params := f.kind().params; params != nil {
			err = params(&f, r)
		}
		return f, err
	}
}

func (f nodeFault) kind() nodeKind { return nodeKinds()[f.word] }

func readPerCall(f *nodeFault, r *reader) (err error) {
	f.by = defaultPerCall
	if r.word("by") {
		f.by, err = r.span("by", leastPerCall)
	}
	return err
}

func readClock(f *nodeFault, r *reader) (err error) {
	const usage = "clock TARGET by 10s, or clock TARGET at rate 1.05"
	if r.word("by") {
		if f.by, err = r.duration("by"); err == nil && f.by.Abs() < leastJump {
			err = fmt.Errorf("a jump by %s is too little to be seen: the least is %s, forward or back", short(f.by), short(leastJump))
		}
		return err
	}
	if err := r.must("at", usage); err != nil {
		return err
	}
	if err := r.must("rate", usage); err != nil {
		return err
	}
	word := r.take()
	rate, ok := number(word.text, "")
	switch {
	case !ok || word.quoted:
		return fmt.Errorf("%q is no rate of a clock: write it as 1.05 or 0.5", clip(word.text))
	case rate < leastDrift || rate > mostRateOf || math.Abs(rate-1) < leastDrift:
		return fmt.Errorf("a clock at rate %s is out of bounds: it must be between %s and %s, and differ from 1 by %s at least", decimal(rate), decimal(leastDrift), decimal(mostRateOf), decimal(leastDrift))
	}
	f.rate = rate
	return nil
}

func (f nodeFault) String() string {
	text := f.word + " " + f.target.String()
	switch {
	case f.by != 0:
		text += " by " + short(f.by)
	case f.rate != 0:
		text += " at rate " + decimal(f.rate)
	case f.percent != 0:
		text += " by " + decimal(f.percent) + "%"
	case f.bytes != 0:
		text += " to " + rateText(f.bytes)
	}
	if f.varies != 0 {
		text += " varying " + short(f.varies)
	}
	return text
}

func (f nodeFault) heals() healing { return f.kind().heals }

func (f nodeFault) needsLeader() bool { return f.target.needsLeader() }

func (f nodeFault) possible(s *state) error {
	nodes := s.cluster.Nodes()
	if err := f.able(s, nodes); err != nil {
		return err
	}
	if f.word == replace && len(nodes) < 2 && !s.grows {
		return errors.New("a cluster of one node has nobody to take the data from: kill it instead, or start more nodes")
	}
	return f.target.possible(s)
}

// able says why the fault can never be done to one of the nodes.
func (f nodeFault) able(s *state, nodes []cluster.Node) error {
	able := f.kind().able
	if able == nil {
		return s.hasLinks()
	}
	for _, n := range nodes {
		if err := able(n); err != nil {
			return err
		}
	}
	return nil
}

func (f nodeFault) plan(s *state, c situation) (*injection, error) {
	k := f.kind()
	nodes, err := f.target.choose(s, c)
	if err != nil {
		return nil, err
	}
	if nodes, err = s.unclaimed(nodes, errDown, k.blocked...); err != nil {
		return nil, err
	}
	if nodes, err = s.unclaimed(nodes, errSamePart, k.claims); err != nil {
		return nil, err
	}
	if k.running {
		// A node that no fault ended is one that crashed, or that its cluster takes
		// down and up by itself. Whether it comes back is seen at the end.
		down := names(nodes)
		nodes = slices.DeleteFunc(nodes, func(n cluster.Node) bool { return !n.Running() })
		if len(nodes) == 0 {
			return nil, skipError(down + " is not running, and it was no fault of the script that ended it")
		}
	}
	if err := f.able(s, nodes); err != nil { // of one that came since the start
		return nil, err
	}
	i := &injection{target: c.titles(nodes), claims: claimEach(nodes, k.claims), stage: k.stage}
	if k.lost {
		i.lost = numbers(nodes)
		if err := s.keepMajority(f.target, i.lost); err != nil {
			return nil, err
		}
	}
	seed := c.rng.Uint64()
	i.inject = func(ctx context.Context) (cluster.Effect, error) {
		if k.inject == nil {
			return injectLink(ctx, f, s, nodes, seed)
		}
		return onEach(nodes, func(n cluster.Node) (cluster.Effect, error) { return k.inject(ctx, f, s, n) })
	}
	return i, nil
}

// onEach makes one effect of that on each node, all at once.
func onEach(nodes []cluster.Node, inject func(cluster.Node) (cluster.Effect, error)) (cluster.Effect, error) {
	effects := make([]cluster.Effect, len(nodes))
	seen, err := each(nodes, func(at int, n cluster.Node) (seen string, err error) {
		effects[at], err = inject(n)
		return effects[at].Seen, err
	})
	return cluster.Effect{
		Seen: seen,
		Still: func() error {
			for _, e := range effects {
				if e.Still == nil {
					continue
				}
				if err := e.Still(); err != nil {
					return err
				}
			}
			return nil
		},
		Heal: func(ctx context.Context) (string, error) {
			return each(nodes, func(at int, _ cluster.Node) (string, error) {
				if heal := effects[at].Heal; heal != nil {
					return heal(ctx)
				}
				return "", nil
			})
		},
	}, err
}
