package nemesis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/fault"
)

// moveWithin bounds the wait for the cluster to name its new leader.
const moveWithin = 10 * time.Second

// addWord names the only fault by which a cluster grows.
const addWord = "add"

// memberKinds lists the faults that change the nodes of a cluster or their roles.
func memberKinds() []kind {
	moves := is[cluster.Mover]("this kind of cluster cannot hand its lead over in good order; kill leader makes it find a new one")
	return []kind{{
		word: addWord, usage: "add node", about: "a new empty node joins; with `for` it leaves again",
		able: resizes, plan: planAdd, heals: healIfAsked,
		read: func(_ *effect, r *reader) error { return r.must("add node", "node") },
		text: func(effect) string { return "add node" },
	}, {
		word: "remove", usage: "remove TARGET", about: "the node leaves the cluster for good; with `for` a new one joins afterwards",
		read: readRemove, able: resizes, plan: planRemove, heals: healIfAsked,
		few: atLeast(2, "the only node of a cluster cannot be removed"),
	}, {
		word: "move", usage: "move leader [to TARGET]", about: "hand the lead over in good order",
		read: readMove, able: both(led, moves), plan: planMove, heals: healNever,
		few: atLeast(2, "a cluster of one node has nobody to hand the lead to: start more nodes"),
		led: func(effect) bool { return true },
		text: func(e effect) string {
			if e.target == "" {
				return "move leader"
			}
			return "move leader to " + string(e.target)
		},
	}, {
		word: "rolling-restart", usage: "rolling-restart",
		about: "shut down and restart one node after the other, the cluster whole in between",
		able:  both(stops, restarts), plan: planRestart, heals: healNever,
	}}
}

// reshape begins the plan of a fault by which nodes come, go or restart. There is one such fault at
// a time.
func (s *state) reshape(target string, stage stage, nodes ...cluster.Node) (*injection, error) {
	if s.claimed(anyNode, partMember) {
		return nil, errReshaping
	}
	return &injection{target: target, stage: stage, claims: claimEach(numbers(nodes), partLife, claim{anyNode, partMember})}, nil
}

func planAdd(_ effect, s *state, _ situation) (*injection, error) {
	i, err := s.reshape("a new node", stageReshape)
	if err != nil {
		return nil, err
	}
	i.inject = func(ctx context.Context) (e fault.Effect, err error) {
		number, seen, err := s.add(ctx, &i.record)
		if number >= 0 {
			i.record.Target = nodeName(number)
			e.Heal = func(ctx context.Context) (string, error) { return s.remove(ctx, &i.record, number) }
		}
		e.Seen = seen
		return e, err
	}
	return i, nil
}

// add lets a node join and verifies that it belongs to the cluster and runs. The number is -1 if no
// node was added.
func (s *state) add(ctx context.Context, r *fault.Injection) (number int, seen string, err error) {
	number, err = s.cluster.(cluster.Resizer).Add(ctx)
	if err != nil {
		return -1, "", err
	}
	r.Joined = append(r.Joined, nodeName(number))
	for _, n := range s.cluster.Nodes() {
		switch {
		case n.Number() != number:
		case !n.Running():
			return number, "", fmt.Errorf("%s was added, but it does not run", n.Name())
		default:
			return number, n.Name() + " joined and runs", nil
		}
	}
	return number, "", fmt.Errorf("%s was added, but the cluster does not have it", nodeName(number))
}

// remove takes a node out and verifies that it no longer belongs to the cluster.
func (s *state) remove(ctx context.Context, r *fault.Injection, number int) (seen string, err error) {
	if err := s.cluster.(cluster.Resizer).Remove(ctx, number); err != nil {
		return "", err
	}
	r.Left = append(r.Left, nodeName(number))
	if slices.Contains(numbers(s.cluster.Nodes()), number) {
		return "", fmt.Errorf("%s was removed, but the cluster has it yet", nodeName(number))
	}
	return nodeName(number) + " left", nil
}

func readRemove(e *effect, r *reader) (err error) {
	e.target, err = r.target()
	if err == nil && slices.Contains([]target{followers, majority, minority, all}, e.target.role()) {
		err = fmt.Errorf("%s are several nodes: remove takes one at a time", e.target)
	}
	return err
}

func planRemove(e effect, s *state, c situation) (*injection, error) {
	if len(s.cluster.Nodes()) < 2 {
		return nil, skipError("it is the last node of the cluster")
	}
	nodes, err := s.available(e.target, c, partLife)
	if err != nil {
		return nil, err
	}
	if err := s.keepMajority(e.target, numbers(nodes)); err != nil {
		return nil, err
	}
	i, err := s.reshape(c.titles(nodes), stageReshape, nodes...)
	if err != nil {
		return nil, err
	}
	i.inject = func(ctx context.Context) (done fault.Effect, err error) {
		n := nodes[0]
		if done.Seen, err = s.remove(ctx, &i.record, n.Number()); err != nil {
			return done, err
		}
		done.Heal = func(ctx context.Context) (string, error) {
			_, seen, err := s.add(ctx, &i.record)
			return seen, err
		}
		done.Seen += ", " + n.Name() + " down"
		return done, wait.Until(ctx, wait.SeenWithin, check(n, false, "%s was removed and is running yet"))
	}
	return i, nil
}

func readMove(e *effect, r *reader) (err error) {
	if err := r.must("move leader, or move leader to n1", "leader"); err != nil || !r.word("to") {
		return err
	}
	e.target, err = r.target()
	if t := e.target.role(); err == nil && t != follower && slices.Contains(targetWords(), string(t)) {
		err = fmt.Errorf("the lead cannot be moved to %s: name a node or a follower", e.target)
	}
	return err
}

// planMove hands the lead over. Without a target it chooses any follower.
func planMove(e effect, s *state, c situation) (*injection, error) {
	if e.target == "" {
		e.target = follower
	}
	nodes, err := s.available(e.target, c, partLife, partPause)
	if err != nil {
		return nil, err
	}
	to := nodes[0].Number()
	if to == c.leader {
		return nil, skipError(nodes[0].Name() + " leads already")
	}
	inject := func(ctx context.Context) (fault.Effect, error) {
		if err := s.cluster.(cluster.Mover).MoveLeader(ctx, to); err != nil {
			return fault.Effect{}, err
		}
		return fault.Effect{Seen: nodeName(to) + " leads"}, wait.Until(ctx, moveWithin, func() error {
			now, err := s.cluster.Leader(ctx)
			if err == nil && now != to {
				err = fmt.Errorf("the lead was handed to %s, and %s leads", nodeName(to), nodeName(now))
			}
			return err
		})
	}
	return &injection{target: nodeName(c.leader) + c.leads() + " to " + nodes[0].Name(), inject: inject}, nil
}

// planRestart restarts one node after the other. The leader is last, so that the lead moves once.
func planRestart(_ effect, s *state, c situation) (*injection, error) {
	led, rest := c.divide(s.cluster.Nodes())
	nodes := append(rest, led...)
	i, err := s.reshape(c.titles(nodes), stageStart, nodes...)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if !n.Running() || s.claimed(n.Number(), partLife, partPause) {
			return nil, skipError(n.Name() + " is not up, and a restart of the others needs all")
		}
	}
	i.inject = func(ctx context.Context) (fault.Effect, error) {
		err := s.restartEach(ctx, nodes, c.drive)
		if err == nil {
			return fault.Effect{Seen: "ended and up again, one after the other: " + joined(names(nodes))}, nil
		}
		// Only a restart that failed leaves something to heal.
		return fault.Effect{Heal: func(ctx context.Context) (string, error) {
			return each(nodes, func(_ int, n cluster.Node) (string, error) {
				return up(ctx, n, n.(Restarter).Restart, " up again")
			})
		}}, err
	}
	return i, nil
}

// restartEach shuts down and starts one node after the other, until the load phase ends.
func (s *state) restartEach(ctx context.Context, nodes []cluster.Node, drive context.Context) error {
	for i, n := range nodes {
		if drive.Err() != nil {
			return fmt.Errorf("the drive ended when %d of %d nodes were restarted", i, len(nodes))
		}
		e, err := injectStop(ctx, effect{}, s, n)
		if err == nil {
			_, err = e.Heal(ctx)
		}
		if err != nil {
			return err
		}
		if err := s.cluster.WaitHealthy(ctx); err != nil {
			return fmt.Errorf("wait until the cluster is whole after the restart of %s: %w", n.Name(), err)
		}
	}
	return nil
}
