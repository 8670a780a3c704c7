package nemesis

import (
	"context"
	"fmt"
	"math"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// Bounds of clock faults that can be observed.
const (
	leastJump  = 100 * time.Millisecond
	leastDrift = 0.01 // a rate this near to 1 cannot be seen in a few seconds
	mostDrift  = 100.0
)

// byTime is the argument "by T".
type byTime time.Duration

func (t byTime) String() string { return "by " + short(time.Duration(t)) }

// drift is the argument of a clock that runs so many times as fast.
type drift float64

func (d drift) String() string { return "at rate " + decimal(float64(d)) }

func clockKind() kind {
	drifts := fit("the clocks of this kind of node can be put forward or back, by `clock TARGET by T`, and not made to run at another rate", "%s: %w", func(Drifter) error { return nil })
	return kind{
		word: "clock", usage: "clock TARGET by T | at rate F", also: []string{"skew"},
		about: "the node's processes see a clock that jumped by T, which may be negative, or that runs F times as fast",
		read:  readClock, claims: partClock, needsClock: true,
		able: both(fit("nothing can steer the clocks of this kind of node", "the clock of %s cannot be steered: %w", Clock.Steered),
			func(e effect, s *state, nodes []cluster.Node) error {
				if _, ok := e.arg.(drift); ok {
					return drifts(e, s, nodes)
				}
				return nil
			}),
		inject: func(ctx context.Context, e effect, _ *state, n cluster.Node) (fault.Effect, error) {
			if rate, ok := e.arg.(drift); ok {
				return n.(Drifter).DriftClock(ctx, float64(rate))
			}
			return n.(Clock).JumpClock(ctx, time.Duration(e.arg.(byTime)))
		},
	}
}

func readClock(e *effect, r *reader) error {
	if r.word("by") {
		by, err := r.duration("by")
		if err == nil && by.Abs() < leastJump {
			err = fmt.Errorf("a jump by %s is too little to be seen: the least is %s, forward or back", short(by), short(leastJump))
		}
		e.arg = byTime(by)
		return err
	}
	if err := r.must("clock TARGET by 10s, or clock TARGET at rate 1.05", "at", "rate"); err != nil {
		return err
	}
	t := r.take()
	rate, ok := number(t, "")
	switch {
	case !ok:
		return fmt.Errorf("%q is no rate of a clock: write it as 1.05 or 0.5", clip(t))
	case rate < leastDrift || rate > mostDrift || math.Abs(rate-1) < leastDrift:
		return fmt.Errorf("a clock at rate %s is out of bounds: it must be between %s and %s, and differ from 1 by %s at least", decimal(rate), decimal(leastDrift), decimal(mostDrift), decimal(leastDrift))
	}
	e.arg = drift(rate)
	return nil
}
