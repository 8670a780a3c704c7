package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"stroppy/internal/cluster"
)

func layered(n cluster.Node) error {
	d, ok := n.(Disk)
	if !ok {
		return errors.New("this kind of node cannot have a file system of ours under its data")
	}
	if err := d.Layered(); err != nil {
		return fmt.Errorf("the data of %s have no file system of ours under them: %w", n.Name(), err)
	}
	return errors.Join(kills(n), restarts(n))
}

func steerable(n cluster.Node) error {
	c, ok := n.(Clock)
	if !ok {
		return errors.New("nothing can steer the clocks of this kind of node")
	}
	if err := c.Steered(); err != nil {
		return fmt.Errorf("the clock of %s cannot be steered: %w", n.Name(), err)
	}
	return nil
}

func injectKill(ctx context.Context, _ nodeFault, _ *state, n cluster.Node) (cluster.Effect, error) {
	return down(ctx, n, n.(Killer).Kill)
}

func injectStop(ctx context.Context, _ nodeFault, _ *state, n cluster.Node) (cluster.Effect, error) {
	return down(ctx, n, func() error { return n.(Terminator).Terminate(ctx) })
}

// down is the effect of a node that end has ended; its heal starts the node again.
func down(ctx context.Context, n cluster.Node, end func() error) (cluster.Effect, error) {
	e := cluster.Effect{
		Seen: n.Name() + " down",
		Still: func() error {
			if n.Running() {
				return fmt.Errorf("%s did not stay down: something else started it before its time", n.Name())
			}
			return nil
		},
		Heal: func(ctx context.Context) (string, error) { return up(ctx, n, n.(Restarter).Restart, " up again") },
	}
	if err := end(); err != nil {
		return e, err
	}
	return e, until(ctx, seenWithin, func() error {
		if n.Running() {
			return fmt.Errorf("%s was ended and is running yet", n.Name())
		}
		return nil
	})
}

// up starts a node and sees that it runs.
func up(ctx context.Context, n cluster.Node, start func(context.Context) error, seen string) (string, error) {
	if err := start(ctx); err != nil {
		return "", err
	}
	return n.Name() + seen, until(ctx, seenWithin, func() error {
		if !n.Running() {
			return fmt.Errorf("%s was started and does not run", n.Name())
		}
		return nil
	})
}

func injectReplace(ctx context.Context, f nodeFault, s *state, n cluster.Node) (cluster.Effect, error) {
	e, err := injectKill(ctx, f, s, n)
	e.Heal = func(ctx context.Context) (string, error) {
		return up(ctx, n, n.(Replacer).Replace, " up on an empty folder")
	}
	return e, err
}

// injectLoss ends a node so that what it did not sync is lost.
func injectLoss(ctx context.Context, f nodeFault, s *state, n cluster.Node) (cluster.Effect, error) {
	e, err := injectKill(ctx, f, s, n)
	if err != nil {
		return e, err
	}
	if err := n.(Disk).LoseUnsynced(); err != nil {
		return e, fmt.Errorf("lose what %s did not sync: %w", n.Name(), err)
	}
	e.Seen += ", an unsynced file lost"
	return e, nil
}

func injectPause(_ context.Context, _ nodeFault, _ *state, n cluster.Node) (cluster.Effect, error) {
	p := n.(Pauser)
	return cluster.Effect{
		Seen:  n.Name() + " stopped where it is",
		Still: p.StillPaused,
		Heal: func(context.Context) (string, error) {
			if err := p.Resume(); err != nil {
				return "", err
			}
			if !n.Running() {
				return n.Name() + " ended meanwhile", nil
			}
			return n.Name() + " goes on", nil
		},
	}, p.Pause()
}

func injectSlowDisk(ctx context.Context, f nodeFault, _ *state, n cluster.Node) (cluster.Effect, error) {
	return n.(Disk).SlowDisk(ctx, f.by)
}

func injectClock(ctx context.Context, f nodeFault, _ *state, n cluster.Node) (cluster.Effect, error) {
	if f.by != 0 {
		return n.(Clock).JumpClock(ctx, f.by)
	}
	return n.(Clock).DriftClock(ctx, f.rate)
}

// injectFull fills a disk. Its heal starts the node again if that has ended by
// itself, as some do where there is no space.
func injectFull(ctx context.Context, _ nodeFault, s *state, n cluster.Node) (cluster.Effect, error) {
	e, err := n.(Disk).FillDisk(ctx)
	empty := e.Heal
	if empty == nil {
		return e, err
	}
	e.Heal = func(ctx context.Context) (string, error) {
		seen, err := empty(ctx)
		s.mu.Lock()
		claimed := s.claimed(n.Number(), partLife)
		s.mu.Unlock()
		if err != nil || n.Running() || claimed {
			return seen, err
		}
		again, err := up(ctx, n, n.(Restarter).Restart, " up again")
		if err != nil {
			err = fmt.Errorf("start %s, which had ended on a full disk: %w", n.Name(), err)
		}
		return join(seen, again), err
	}
	return e, err
}

// How long and how often an effect is looked for that comes by itself.
const (
	seenWithin = 2 * time.Second
	lookEvery  = 5 * time.Millisecond
)

// until calls seen until it returns nil, at most for so long; the error is the
// last that it returned.
func until(ctx context.Context, limit time.Duration, seen func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := seen()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lookEvery):
		}
	}
}

// each calls do for all nodes at once, by their index, and joins what they return.
func each(nodes []cluster.Node, do func(int, cluster.Node) (string, error)) (string, error) {
	texts, errs := make([]string, len(nodes)), make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() { texts[i], errs[i] = do(i, n) })
	}
	group.Wait()
	return strings.Join(texts, ", "), errors.Join(errs...)
}
