package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"stroppy/internal/cluster"
)

// Clock is a node whose processes can be made to see another time than the
// machine's. A cluster.Node may satisfy it.
type Clock interface {
	// Steered says why the node's clock cannot be steered, such as that its
	// program is linked statically; nil if it can.
	Steered() error
	// Jump and Rate change the clock at once; heal puts it right, and may be called
	// again when it fails. Jump puts the clock forward by a time, or back by a negative one.
	Jump(ctx context.Context, by time.Duration) (heal func() error, err error)
	// Rate makes the clock run so many times as fast as it should.
	Rate(ctx context.Context, factor float64) (heal func() error, err error)
	// Now is the time that the node's processes see.
	Now(ctx context.Context) (time.Time, error)
}

const clock = "clock"

// What a clock can be made, and what can be seen of it.
const (
	leastJump  = 100 * time.Millisecond
	leastDrift = 0.01 // a rate this near to 1 cannot be seen in a few seconds
	mostRateOf = 100.0
	driftLook  = 10 * time.Second
)

// timing is a fault of clocks: a jump, or a rate where by is zero.
type timing struct {
	target target
	by     time.Duration
	rate   float64
}

func parseClock(r *reader) (effect, error) {
	const usage = "clock TARGET by 10s, or clock TARGET at rate 1.05"
	t, err := r.target()
	if err != nil {
		return nil, err
	}
	c := timing{target: t}
	if r.word("by") {
		if c.by, err = r.duration("by"); err != nil {
			return nil, err
		}
		if c.by.Abs() < leastJump {
			return nil, fmt.Errorf("a jump by %s is too little to be seen: the least is %s, forward or back", short(c.by), short(leastJump))
		}
		return c, nil
	}
	if err := r.must("at", usage); err != nil {
		return nil, err
	}
	if err := r.must("rate", usage); err != nil {
		return nil, err
	}
	word := r.take()
	rate, ok := number(word.text, "")
	switch {
	case !ok || word.quoted:
		return nil, fmt.Errorf("%q is no rate of a clock: write it as 1.05 or 0.5", clip(word.text))
	case rate < leastDrift || rate > mostRateOf || math.Abs(rate-1) < leastDrift:
		return nil, fmt.Errorf("a clock at rate %s is out of bounds: it must be between %s and %s, and differ from 1 by %s at least", decimal(rate), decimal(leastDrift), decimal(mostRateOf), decimal(leastDrift))
	}
	c.rate = rate
	return c, nil
}

func (c timing) String() string {
	if c.by != 0 {
		return clock + " " + c.target.String() + " by " + short(c.by)
	}
	return clock + " " + c.target.String() + " at rate " + decimal(c.rate)
}

func (c timing) heals() healing { return healAlways }

func (c timing) possible(g *ground) error {
	for _, n := range g.cluster.Nodes() {
		steered, ok := n.(Clock)
		if !ok {
			return errors.New("nothing can steer the clocks of this kind of node")
		}
		if err := steered.Steered(); err != nil {
			return fmt.Errorf("the clock of %s cannot be steered: %w", n.Name(), err)
		}
	}
	return c.target.possible(g)
}

func (c timing) plan(g *ground, m moment) (*wound, error) {
	nodes, err := c.target.choose(g, m)
	if err != nil {
		return nil, err
	}
	if nodes, err = g.free(nodes, errDown, partLife, partPause); err != nil {
		return nil, err
	}
	if nodes, err = g.free(nodes, errSamePart, partClock); err != nil {
		return nil, err
	}
	clocks := map[int]Clock{}
	for _, n := range nodes {
		steered, ok := n.(Clock)
		if !ok {
			return nil, fmt.Errorf("nothing can steer the clock of %s", n.Name())
		}
		clocks[n.Number()] = steered
	}
	w := &wound{target: m.titles(nodes), holds: takeHold(nodes, partClock), stage: stageRelease}
	before := make(map[int]offset)
	w.each(nodes, func(ctx context.Context, n cluster.Node) (func() error, error) {
		if c.by != 0 {
			return clocks[n.Number()].Jump(ctx, c.by)
		}
		return clocks[n.Number()].Rate(ctx, c.rate)
	})
	change := w.inject
	w.inject = func(ctx context.Context) error {
		for _, n := range nodes {
			o, err := offsetOf(ctx, n, clocks[n.Number()])
			if err != nil {
				return err
			}
			before[n.Number()] = o
		}
		return change(ctx)
	}
	w.verify = func(ctx context.Context) (how string, err error) {
		for _, n := range nodes {
			if how, err = c.seen(ctx, n, clocks[n.Number()], before[n.Number()]); err != nil {
				return "", err
			}
		}
		return how, nil
	}
	w.healed = func(ctx context.Context) (how string, err error) {
		for _, n := range nodes {
			if g.held(n.Number(), partLife) {
				continue // nobody is there to be asked; it starts with a right clock
			}
			if how, err = c.right(ctx, n, clocks[n.Number()], before[n.Number()]); err != nil {
				return "", err
			}
		}
		return how, nil
	}
	return w, nil
}

// offset is how far a node's clock was ahead of this program's.
type offset struct {
	ahead time.Duration
	sure  time.Duration // ahead may be wrong by this, for the question took time
	at    time.Time
}

func offsetOf(ctx context.Context, n cluster.Node, c Clock) (offset, error) {
	asked := time.Now()
	now, err := c.Now(ctx)
	took := time.Since(asked)
	if err != nil {
		return offset{}, fmt.Errorf("ask %s what time it is: %w", n.Name(), err)
	}
	middle := asked.Add(took / 2)
	return offset{ahead: now.Round(0).Sub(middle.Round(0)), sure: took / 2, at: middle}, nil
}

// seen sees that the clock jumped, or that it runs at its rate.
func (c timing) seen(ctx context.Context, n cluster.Node, node Clock, before offset) (how string, err error) {
	if c.by == 0 {
		return c.drifts(ctx, n, node)
	}
	after, err := offsetOf(ctx, n, node)
	if err != nil {
		return "", err
	}
	moved := after.ahead - before.ahead
	if off := (moved - c.by).Abs(); off > c.by.Abs()/2+after.sure+before.sure {
		return "", fmt.Errorf("the clock of %s was to jump by %s and moved by %s", n.Name(), short(c.by), moved.Round(time.Millisecond))
	}
	return "clock moved by " + moved.Round(time.Millisecond).String(), nil
}

// drifts watches a clock for long enough to tell its rate.
func (c timing) drifts(ctx context.Context, n cluster.Node, node Clock) (how string, err error) {
	first, err := offsetOf(ctx, n, node)
	if err != nil {
		return "", err
	}
	err = until(ctx, driftLook, func() error {
		last, err := offsetOf(ctx, n, node)
		if err != nil {
			return err
		}
		passed, unsure := last.at.Sub(first.at), last.sure+first.sure
		asked := time.Duration((c.rate - 1) * float64(passed))
		drift := last.ahead - first.ahead
		how = fmt.Sprintf("clock drifted by %s in %s", drift.Round(time.Millisecond), passed.Round(time.Millisecond))
		if passed < time.Second || asked.Abs() < 4*unsure || (drift-asked).Abs() > asked.Abs()/2 {
			return fmt.Errorf("the clock of %s was to run at rate %s; %s", n.Name(), decimal(c.rate), how)
		}
		return nil
	})
	return how, err
}

// right sees that the clock is where it was before the fault, and stays there.
func (c timing) right(ctx context.Context, n cluster.Node, node Clock, before offset) (how string, err error) {
	least := c.by.Abs()
	if c.by == 0 {
		least = time.Duration(math.Abs(c.rate-1) * float64(time.Second))
	}
	err = until(ctx, lookFor, func() error {
		now, err := offsetOf(ctx, n, node)
		if err != nil {
			return err
		}
		wrong := now.ahead - before.ahead
		if wrong.Abs() > least/2+now.sure+before.sure {
			return fmt.Errorf("the clock of %s is wrong by %s after its heal", n.Name(), wrong.Round(time.Millisecond))
		}
		how = "clock right to " + wrong.Abs().Round(time.Millisecond).String()
		return nil
	})
	return how, err
}
