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

// shapeFault is a fault of the cluster's shape.
type shapeFault struct {
	word   string
	target target // of remove and move
	named  bool   // the text says to whom the lead moves
}

// shapeKind is what the faults of the shape differ in.
type shapeKind struct {
	params   func(*shapeFault, *reader) error
	heals    healing
	possible func(shapeFault, *state) error
	plan     func(shapeFault, *state, situation) (*injection, error)
	reshapes bool // nodes come, go or restart: no two of these at a time
}

func shapeKinds() map[string]shapeKind {
	return map[string]shapeKind{
		add:     {params: readAdd, heals: healIfAsked, possible: shapeFault.canResize, plan: shapeFault.add, reshapes: true},
		remove:  {params: readRemove, heals: healIfAsked, possible: shapeFault.canRemove, plan: shapeFault.remove, reshapes: true},
		move:    {params: readMove, heals: healNever, possible: shapeFault.canMove, plan: shapeFault.move},
		rolling: {params: readNothing, heals: healNever, possible: shapeFault.canRestart, plan: shapeFault.restart, reshapes: true},
	}
}

func parseShapeFault(word string) func(*reader) (effect, error) {
	return func(r *reader) (effect, error) {
		f := shapeFault{word: word}
		err := f.kind().params(&f, r)
		return f, err
	}
}

func (f shapeFault) kind() shapeKind { return shapeKinds()[f.word] }

func (f shapeFault) String() string {
	switch {
	case f.word == add:
		return "add node"
	case f.word == remove:
		return remove + " " + f.target.String()
	case f.named:
		return "move leader to " + f.target.String()
	case f.word == move:
		return "move leader"
	}
	return f.word
}

func (f shapeFault) needsLeader() bool { return f.word == move || f.target.needsLeader() }

func (f shapeFault) heals() healing { return f.kind().heals }

func (f shapeFault) possible(s *state) error { return f.kind().possible(f, s) }

func (f shapeFault) plan(s *state, c situation) (*injection, error) {
	if f.kind().reshapes && s.claimed(anyNode, partMember) {
		return nil, errReshaping
	}
	return f.kind().plan(f, s, c)
}

func readNothing(*shapeFault, *reader) error { return nil }

func readAdd(_ *shapeFault, r *reader) error { return r.must("node", "add node") }

func (shapeFault) canResize(s *state) error {
	if _, ok := s.cluster.(Resizer); !ok {
		return errFixed
	}
	return nil
}

// add lets a new node join.
func (shapeFault) add(s *state, c situation) (*injection, error) {
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

func readRemove(f *shapeFault, r *reader) (err error) {
	f.target, err = r.target()
	if err == nil && slices.Contains([]string{followers, standbys, majority, minority, all}, f.target.word) {
		err = fmt.Errorf("%s are several nodes: remove takes one at a time", f.target)
	}
	return err
}

func (f shapeFault) canRemove(s *state) error {
	if err := f.canResize(s); err != nil {
		return err
	}
	if len(s.cluster.Nodes()) < 2 && !s.grows {
		return errors.New("the only node of a cluster cannot be removed")
	}
	return f.target.possible(s)
}

// remove takes a node out of the cluster.
func (f shapeFault) remove(s *state, c situation) (*injection, error) {
	if len(s.cluster.Nodes()) < 2 {
		return nil, skipError("it is the last node of the cluster")
	}
	nodes, err := f.target.choose(s, c)
	if err != nil {
		return nil, err
	}
	if nodes, err = s.unclaimed(nodes, errDown, partLife); err != nil {
		return nil, err
	}
	if err := s.keepMajority(f.target, numbers(nodes)); err != nil {
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

func readMove(f *shapeFault, r *reader) (err error) {
	if err := r.must("leader", "move leader, or move leader to n1"); err != nil {
		return err
	}
	if f.named = r.word("to"); !f.named {
		f.target = target{word: follower}
		return nil
	}
	f.target, err = r.target()
	if t := f.target; err == nil && t.word != "" && t.word != follower && t.word != standby {
		err = fmt.Errorf("the lead cannot be moved to %s: name a node or a follower", t)
	}
	return err
}

func (f shapeFault) canMove(s *state) error {
	if _, ok := s.cluster.(Mover); !ok {
		return errUnmoving
	}
	if !s.leads {
		return errEquals
	}
	return f.target.possible(s)
}

// move hands the lead over.
func (f shapeFault) move(s *state, c situation) (*injection, error) {
	nodes, err := f.target.choose(s, c)
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

func (shapeFault) canRestart(s *state) error {
	for _, n := range s.cluster.Nodes() {
		if err := both(stops, restarts)(n); err != nil {
			return err
		}
	}
	return nil
}

// restart restarts one node after the other.
func (shapeFault) restart(s *state, c situation) (*injection, error) {
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
