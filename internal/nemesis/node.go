package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/fault"
)

// planNodes plans a fault of nodes or of their links.
func planNodes(e effect, s *state, c situation) (*injection, error) {
	k := e.kind()
	ends := k.claims == partLife || k.claims == partPause
	nodes, err := s.available(e.target, c, blocking(k.claims)...)
	if err != nil {
		return nil, err
	}
	if nodes, err = s.unclaimed(nodes, errSamePart, k.claims); err != nil {
		return nil, err
	}
	if ends {
		// If no fault ended the node, it crashed, or its cluster restarts it. The end of the
		// run shows whether it comes back.
		down := joined(names(nodes))
		nodes = without(nodes, func(n cluster.Node) bool { return !n.Running() })
		if len(nodes) == 0 {
			return nil, skipError(down + " is not running, and it was no fault of the script that ended it")
		}
	}
	if err := k.able(e, s, nodes); err != nil { // of one that came since the start
		return nil, err
	}
	i := &injection{target: c.titles(nodes), claims: claimEach(numbers(nodes), k.claims), agent: k.agent, stage: stageRelease}
	if ends {
		i.stage = stageStart
	}
	if ends || k.lost {
		i.lost = numbers(nodes)
		if err := s.keepMajority(e.target, i.lost); err != nil {
			return nil, err
		}
	}
	seed := c.rng.Uint64()
	i.inject = func(ctx context.Context) (fault.Effect, error) {
		if l, ok := e.arg.(link); ok {
			l.Loss, l.Seed = l.Loss/100, seed
			return s.net.Degrade(ctx, numbers(nodes), fault.Link(l))
		}
		return onEach(nodes, func(n cluster.Node) (fault.Effect, error) { return k.inject(ctx, e, s, n) })
	}
	return i, nil
}

// blocking returns the parts of a node that conflict with a new claim of p.
func blocking(p part) []part {
	switch p {
	case partLife, partDisk, partProcessor:
		return []part{partLife}
	case partPause, partClock:
		return []part{partLife, partPause}
	}
	return nil
}

// onEach injects into all nodes at once and joins their effects.
func onEach[N any](nodes []N, inject func(N) (fault.Effect, error)) (fault.Effect, error) {
	effects := make([]fault.Effect, len(nodes))
	seen, err := each(nodes, func(at int, n N) (seen string, err error) {
		effects[at], err = inject(n)
		return effects[at].Seen, err
	})
	return fault.Effect{
		Seen:       seen,
		EndsItself: !slices.ContainsFunc(effects, func(e fault.Effect) bool { return !e.EndsItself }),
		Still: func(ctx context.Context) error {
			for _, e := range effects {
				if e.Still == nil {
					continue
				}
				if err := e.Still(ctx); err != nil {
					return err
				}
			}
			return nil
		},
		Heal: func(ctx context.Context) (string, error) {
			return each(nodes, func(at int, _ N) (string, error) {
				if heal := effects[at].Heal; heal != nil {
					return heal(ctx)
				}
				return "", nil
			})
		},
	}, err
}

// each calls do for all nodes at once, by their index, and joins the results.
func each[N any](nodes []N, do func(int, N) (string, error)) (string, error) {
	texts, errs := make([]string, len(nodes)), make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() { texts[i], errs[i] = do(i, n) })
	}
	group.Wait()
	return joined(texts), errors.Join(errs...)
}

// process is a node or a process beside it.
type process interface {
	Name() string
	Running() bool
}

// down ends a process. The heal of the effect starts the process again.
func down(ctx context.Context, n process, end, start func(context.Context) error) (fault.Effect, error) {
	e := fault.Effect{
		Seen: n.Name() + " down",
		Still: func(context.Context) error {
			return check(n, false, "%s did not stay down: something else started it before its time")()
		},
		Heal: func(ctx context.Context) (string, error) { return up(ctx, n, start, " up again") },
	}
	if _, ok := n.(SelfRestarter); ok {
		e.Seen, e.Still, e.EndsItself = n.Name()+" ended", nil, true
		return e, end(ctx)
	}
	if err := end(ctx); err != nil {
		return e, err
	}
	return e, wait.Until(ctx, wait.SeenWithin, check(n, false, "%s was ended and is running yet"))
}

// up starts a process and waits until it runs.
func up(ctx context.Context, n process, start func(context.Context) error, seen string) (string, error) {
	if err := start(ctx); err != nil {
		return "", err
	}
	return n.Name() + seen, wait.Until(ctx, wait.SeenWithin, check(n, true, "%s was started and does not run"))
}

// check returns a function that returns an error if the process does not run, or runs, against expectation.
func check(n process, running bool, wrong string) func() error {
	return func() error {
		if n.Running() != running {
			return fmt.Errorf(wrong, n.Name())
		}
		return nil
	}
}

// still pauses a process. The heal of the effect lets it go on.
func still(ctx context.Context, n process, p Pauser) (fault.Effect, error) {
	return fault.Effect{
		Seen:  n.Name() + " stopped where it is",
		Still: p.StillPaused,
		Heal: func(ctx context.Context) (string, error) {
			if err := p.Resume(ctx); err != nil {
				return "", err
			}
			if !n.Running() {
				return n.Name() + " ended meanwhile", nil
			}
			return n.Name() + " goes on", nil
		},
	}, p.Pause(ctx)
}
