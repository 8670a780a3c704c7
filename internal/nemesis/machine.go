package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// machineKinds lists the faults of a node's clock and of its processors.
func machineKinds() []kind {
	drifts := has[Drifter]("the clocks of this kind of node can be put forward or back, by `clock TARGET by T`, and not made to run at another rate")
	return []kind{{
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
	}, {
		word: "stress", usage: "stress TARGET [by N]", also: []string{"cpu"},
		about: "start N processes that only compute, by default one per processor, in the node's own share of the processors",
		read:  readProcesses, claims: partProcessor,
		able: fit("nothing can take part in the share of the processors that this kind of node has", "the processors of %s cannot be taken up: %w", Processor.Stressable),
		inject: func(ctx context.Context, e effect, _ *state, n cluster.Node) (fault.Effect, error) {
			return n.(Processor).Stress(ctx, int(e.arg.(processes)))
		},
	}}
}

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

// mostProcesses bounds the processes beside a node, each of which must be seen to compute.
const mostProcesses = 256

// processes is the argument of stress; 0: one for each processor.
type processes int

func (p processes) String() string {
	if p == 0 {
		return ""
	}
	return "by " + strconv.Itoa(int(p))
}

func readProcesses(e *effect, r *reader) error {
	e.arg = processes(0)
	if !r.word("by") {
		return nil
	}
	t := r.argument()
	count, err := strconv.Atoi(t)
	switch {
	case t == "":
		return errors.New(`after "by" the number of processes is missing, such as 4: write stress TARGET by 4`)
	case errors.Is(err, strconv.ErrSyntax):
		return fmt.Errorf("%q is no number of processes: write it as 4", clip(t))
	case err != nil || count < 1 || count > mostProcesses:
		return fmt.Errorf("%s processes are out of bounds: the number must be between 1 and %d", clip(t), mostProcesses)
	}
	e.arg = processes(count)
	return nil
}
