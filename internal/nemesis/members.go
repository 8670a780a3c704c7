package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/cluster"
)

// The faults of the cluster's shape.
const (
	add     = "add"
	remove  = "remove"
	move    = "move"
	rolling = "rolling-restart"
)

// moveWithin bounds the wait for the cluster to name its new leader.
const moveWithin = 10 * time.Second

var (
	errFixed    = errors.New("this kind of cluster cannot grow or shrink while it works")
	errUnmoving = errors.New("this kind of cluster cannot hand its lead over in good order; kill leader makes it find a new one")
)

// adding lets a new node join.
type adding struct{}

func parseAdd(r *reader) (effect, error) { return adding{}, r.must("node", "add node") }

func (adding) String() string { return "add node" }

func (adding) needsLeader() bool { return false }

func (adding) heals() healing { return healIfAsked }

func (adding) possible(s *state) error {
	if _, ok := s.cluster.(Resizer); !ok {
		return errFixed
	}
	return nil
}

func (adding) plan(s *state, c situation) (*injection, error) {
	if s.claimed(anyNode, partMember) {
		return nil, errReshaping
	}
	resizer := s.cluster.(Resizer)
	i := &injection{target: "a new node", claims: []claim{{anyNode, partMember}}, stage: stageReshape}
	i.inject = func(ctx context.Context) (e cluster.Effect, err error) {
		number, err := resizer.Add(ctx)
		if err != nil {
			return e, err
		}
		i.record.Target = nodeName(number)
		e.Heal = func(ctx context.Context) (string, error) {
			if err := resizer.Remove(ctx, number); err != nil {
				return "", err
			}
			return s.left(number)
		}
		e.Seen, err = s.joined(number)
		return e, err
	}
	return i, nil
}

// joined sees that a node belongs to the cluster and runs.
func (s *state) joined(number int) (string, error) {
	n := s.node(number)
	if n == nil {
		return "", fmt.Errorf("%s was added, but the cluster does not have it", nodeName(number))
	}
	if !n.Running() {
		return "", fmt.Errorf("%s was added, but it does not run", n.Name())
	}
	return n.Name() + " joined and runs", nil
}

// left sees that a node does not belong to the cluster any more.
func (s *state) left(number int) (string, error) {
	if s.node(number) != nil {
		return "", fmt.Errorf("%s was removed, but the cluster has it yet", nodeName(number))
	}
	return nodeName(number) + " left", nil
}

// removing takes a node out of the cluster.
type removing struct{ target target }

func parseRemove(r *reader) (effect, error) {
	t, err := r.target()
	if err == nil && slices.Contains([]string{followers, standbys, majority, minority, all}, t.word) {
		err = fmt.Errorf("%s are several nodes: remove takes one at a time", t)
	}
	return removing{t}, err
}

func (e removing) String() string { return remove + " " + e.target.String() }

func (e removing) needsLeader() bool { return e.target.needsLeader() }

func (removing) heals() healing { return healIfAsked }

func (e removing) possible(s *state) error {
	if _, ok := s.cluster.(Resizer); !ok {
		return errFixed
	}
	if len(s.cluster.Nodes()) < 2 && !s.grows {
		return errors.New("the only node of a cluster cannot be removed")
	}
	return e.target.possible(s)
}

func (e removing) plan(s *state, c situation) (*injection, error) {
	if s.claimed(anyNode, partMember) {
		return nil, errReshaping
	}
	if len(s.cluster.Nodes()) < 2 {
		return nil, skipError("it is the last node of the cluster")
	}
	nodes, err := e.target.choose(s, c)
	if err != nil {
		return nil, err
	}
	if nodes, err = s.unclaimed(nodes, errDown, partLife); err != nil {
		return nil, err
	}
	if err := s.keepMajority(e.target, numbers(nodes)); err != nil {
		return nil, err
	}
	resizer, n := s.cluster.(Resizer), nodes[0]
	i := &injection{target: c.titles(nodes), claims: append(claimEach(nodes, partLife), claim{anyNode, partMember}), stage: stageReshape}
	i.inject = func(ctx context.Context) (e cluster.Effect, err error) {
		if err := resizer.Remove(ctx, n.Number()); err != nil {
			return e, err
		}
		e.Heal = func(ctx context.Context) (string, error) {
			added, err := resizer.Add(ctx)
			if err != nil {
				return "", err
			}
			return s.joined(added)
		}
		if e.Seen, err = s.left(n.Number()); err != nil {
			return e, err
		}
		e.Seen += ", " + n.Name() + " down"
		return e, until(ctx, seenWithin, func() error {
			if n.Running() {
				return fmt.Errorf("%s was removed and is running yet", n.Name())
			}
			return nil
		})
	}
	return i, nil
}

// moving hands the lead over.
type moving struct {
	to    target
	names bool // the text says to whom
}

func parseMove(r *reader) (effect, error) {
	if err := r.must("leader", "move leader, or move leader to n1"); err != nil {
		return nil, err
	}
	if !r.word("to") {
		return moving{to: target{word: follower}}, nil
	}
	t, err := r.target()
	if err == nil && t.word != "" && t.word != follower && t.word != standby {
		err = fmt.Errorf("the lead cannot be moved to %s: name a node or a follower", t)
	}
	return moving{to: t, names: true}, err
}

func (e moving) String() string {
	if e.names {
		return "move leader to " + e.to.String()
	}
	return "move leader"
}

func (moving) needsLeader() bool { return true }

func (moving) heals() healing { return healNever }

func (e moving) possible(s *state) error {
	if _, ok := s.cluster.(Mover); !ok {
		return errUnmoving
	}
	if !s.leads {
		return errEquals
	}
	return e.to.possible(s)
}

func (e moving) plan(s *state, c situation) (*injection, error) {
	nodes, err := e.to.choose(s, c)
	if err != nil {
		return nil, err
	}
	if nodes, err = s.unclaimed(nodes, errDown, partLife, partPause); err != nil {
		return nil, err
	}
	to := nodes[0].Number()
	if to == c.leader {
		return nil, skipError(nodes[0].Name() + " leads already")
	}
	mover := s.cluster.(Mover)
	inject := func(ctx context.Context) (cluster.Effect, error) {
		if err := mover.MoveLeader(ctx, to); err != nil {
			return cluster.Effect{}, err
		}
		return cluster.Effect{Seen: nodeName(to) + " leads"}, until(ctx, moveWithin, func() error {
			now, err := s.cluster.Leader(ctx)
			if err != nil {
				return err
			}
			if now != to {
				return fmt.Errorf("the lead was handed to %s, and %s leads", nodeName(to), nodeName(now))
			}
			return nil
		})
	}
	return &injection{target: nodeName(c.leader) + c.leads() + " to " + nodes[0].Name(), inject: inject}, nil
}

// turning restarts one node after the other.
type turning struct{}

func parseRolling(*reader) (effect, error) { return turning{}, nil }

func (turning) String() string { return rolling }

func (turning) needsLeader() bool { return false }

func (turning) heals() healing { return healNever }

func (turning) possible(s *state) error {
	for _, n := range s.cluster.Nodes() {
		if err := stoppable(n); err != nil {
			return err
		}
	}
	return nil
}

func (turning) plan(s *state, c situation) (*injection, error) {
	if s.claimed(anyNode, partMember) {
		return nil, errReshaping
	}
	nodes := slices.Clone(s.cluster.Nodes())
	for _, n := range nodes {
		if !n.Running() || s.claimed(n.Number(), partLife) || s.claimed(n.Number(), partPause) {
			return nil, skipError(n.Name() + " is not up, and a restart of the others needs all")
		}
	}
	// The leader comes last, so that the lead moves once.
	slices.SortStableFunc(nodes, func(a, b cluster.Node) int {
		switch c.leader {
		case a.Number():
			return 1
		case b.Number():
			return -1
		}
		return 0
	})
	i := &injection{target: c.titles(nodes), stage: stageStart, claims: append(claimEach(nodes, partLife), claim{anyNode, partMember})}
	i.inject = func(ctx context.Context) (cluster.Effect, error) {
		err := s.restartEach(ctx, nodes, c.drive)
		if err == nil {
			return cluster.Effect{Seen: "ended and up again, one after the other: " + names(nodes)}, nil
		}
		// Only a restart that broke off leaves something to heal.
		return cluster.Effect{Heal: func(ctx context.Context) (string, error) {
			return each(nodes, func(_ int, n cluster.Node) (string, error) {
				return up(ctx, n, n.(Restarter).Restart, " up again")
			})
		}}, err
	}
	return i, nil
}

// restartEach shuts down and starts one node after the other, until the drive ends.
func (s *state) restartEach(ctx context.Context, nodes []cluster.Node, drive context.Context) error {
	for i, n := range nodes {
		if drive.Err() != nil {
			return fmt.Errorf("the drive ended when %d of %d nodes were restarted", i, len(nodes))
		}
		e, err := down(ctx, n, func() error { return n.(Terminator).Terminate(ctx) })
		if err != nil {
			return err
		}
		if _, err := e.Heal(ctx); err != nil {
			return err
		}
		if err := s.cluster.WaitHealthy(ctx); err != nil {
			return fmt.Errorf("wait until the cluster is whole after the restart of %s: %w", n.Name(), err)
		}
	}
	return nil
}
