package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// moveLook bounds the wait for the cluster to name its new leader.
const moveLook = 10 * time.Second

var (
	errFixed    = errors.New("this kind of cluster cannot grow or shrink while it works")
	errUnmoving = errors.New("this kind of cluster cannot hand its lead over in good order; kill leader makes it find a new one")
)

// adding lets a new node join.
type adding struct{}

func parseAdd(r *reader) (effect, error) { return adding{}, r.must("node", "add node") }

func (adding) String() string { return "add node" }

func (adding) heals() healing { return healIfAsked }

func (adding) possible(g *ground) error {
	if _, ok := g.cluster.(cluster.Resizer); !ok {
		return errFixed
	}
	return nil
}

func (adding) plan(g *ground, m moment) (*wound, error) {
	if g.held(anyNode, partMember) {
		return nil, errReshaping
	}
	resizer := g.cluster.(cluster.Resizer)
	w := &wound{target: "a new node", holds: []hold{{anyNode, partMember}}, stage: stageReshape}
	number := -1
	w.inject = func(ctx context.Context) (err error) {
		n, err := resizer.Add(ctx)
		if err == nil {
			number = n
			w.record.Target = nodeName(n)
		}
		return err
	}
	w.verify = func(context.Context) (string, error) { return g.joined(number) }
	w.heal = func(ctx context.Context) error {
		if number < 0 {
			return nil
		}
		return resizer.Remove(ctx, number)
	}
	w.healed = func(context.Context) (string, error) { return g.left(number) }
	return w, nil
}

// joined sees that a node belongs to the cluster and runs.
func (g *ground) joined(number int) (string, error) {
	n := g.node(number)
	if n == nil {
		return "", fmt.Errorf("%s was added, but the cluster does not have it", nodeName(number))
	}
	if !n.Running() {
		return "", fmt.Errorf("%s was added, but it does not run", n.Name())
	}
	return n.Name() + " joined and runs", nil
}

// left sees that a node does not belong to the cluster any more; -1 is none.
func (g *ground) left(number int) (string, error) {
	if number < 0 {
		return "", nil // it never came
	}
	if g.node(number) != nil {
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

func (removing) heals() healing { return healIfAsked }

func (e removing) possible(g *ground) error {
	if _, ok := g.cluster.(cluster.Resizer); !ok {
		return errFixed
	}
	if len(g.cluster.Nodes()) < 2 && !g.grows {
		return errors.New("the only node of a cluster cannot be removed")
	}
	return e.target.possible(g)
}

func (e removing) plan(g *ground, m moment) (*wound, error) {
	if g.held(anyNode, partMember) {
		return nil, errReshaping
	}
	if len(g.cluster.Nodes()) < 2 {
		return nil, skipError("it is the last node of the cluster")
	}
	nodes, err := e.target.choose(g, m)
	if err != nil {
		return nil, err
	}
	if nodes, err = g.free(nodes, errDown, partLife); err != nil {
		return nil, err
	}
	if err := g.spare(e.target, numbers(nodes)); err != nil {
		return nil, err
	}
	before := processesOf(nodes...)
	resizer := g.cluster.(cluster.Resizer)
	w := &wound{target: m.titles(nodes), holds: append(takeHold(nodes, partLife), hold{anyNode, partMember}), stage: stageReshape}
	removed, added := false, -1
	w.inject = func(ctx context.Context) error {
		err := resizer.Remove(ctx, nodes[0].Number())
		removed = err == nil
		return err
	}
	w.verify = func(ctx context.Context) (string, error) {
		how, err := g.left(nodes[0].Number())
		if err != nil {
			return "", err
		}
		processes, err := gone(ctx, nodes, before)
		return how + ", " + processes, err
	}
	w.heal = func(ctx context.Context) (err error) {
		if removed {
			added, err = resizer.Add(ctx)
		}
		return err
	}
	w.healed = func(context.Context) (string, error) {
		if !removed {
			return "", nil
		}
		return g.joined(added)
	}
	return w, nil
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

func (moving) heals() healing { return healNever }

func (e moving) possible(g *ground) error {
	if _, ok := g.cluster.(cluster.Mover); !ok {
		return errUnmoving
	}
	if !g.leads {
		return errEquals
	}
	return e.to.possible(g)
}

func (e moving) plan(g *ground, m moment) (*wound, error) {
	nodes, err := e.to.choose(g, m)
	if err != nil {
		return nil, err
	}
	if nodes, err = g.free(nodes, errDown, partLife, partPause); err != nil {
		return nil, err
	}
	to := nodes[0].Number()
	if to == m.leader {
		return nil, skipError(nodes[0].Name() + " leads already")
	}
	mover := g.cluster.(cluster.Mover)
	w := &wound{target: nodeName(m.leader) + m.leads() + " to " + nodes[0].Name()}
	w.inject = func(ctx context.Context) error { return mover.MoveLeader(ctx, to) }
	w.verify = func(ctx context.Context) (string, error) {
		err := until(ctx, moveLook, func() error {
			now, err := g.cluster.Leader(ctx)
			if err != nil {
				return err
			}
			if now != to {
				return fmt.Errorf("the lead was handed to %s, and %s leads", nodeName(to), nodeName(now))
			}
			return nil
		})
		return nodeName(to) + " leads", err
	}
	return w, nil
}

// turning restarts one node after the other.
type turning struct{}

func parseRolling(*reader) (effect, error) { return turning{}, nil }

func (turning) String() string { return rolling }

func (turning) heals() healing { return healNever }

func (turning) possible(*ground) error { return nil }

func (turning) plan(g *ground, m moment) (*wound, error) {
	if g.held(anyNode, partMember) {
		return nil, errReshaping
	}
	nodes := slices.Clone(g.cluster.Nodes())
	for _, n := range nodes {
		if !n.Running() || g.held(n.Number(), partLife) || g.held(n.Number(), partPause) {
			return nil, skipError(n.Name() + " is not up, and a restart of the others needs all")
		}
	}
	// The leader comes last, so that the lead moves once.
	slices.SortStableFunc(nodes, func(a, b cluster.Node) int {
		switch m.leader {
		case a.Number():
			return 1
		case b.Number():
			return -1
		}
		return 0
	})
	w := &wound{target: m.titles(nodes), stage: stageStart}
	w.holds = append(takeHold(nodes, partLife), hold{anyNode, partMember})
	var ended []string
	w.inject = func(ctx context.Context) error {
		for i, n := range nodes {
			if m.drive.Err() != nil {
				return fmt.Errorf("the drive ended when %d of %d nodes were restarted", i, len(nodes))
			}
			before := processesOf(n)
			if err := n.Terminate(ctx); err != nil {
				return err
			}
			if _, err := gone(ctx, []cluster.Node{n}, before); err != nil {
				return err
			}
			if err := n.Restart(ctx); err != nil {
				return err
			}
			if err := g.cluster.WaitHealthy(ctx); err != nil {
				return fmt.Errorf("wait until the cluster is whole after the restart of %s: %w", n.Name(), err)
			}
			ended = append(ended, n.Name())
		}
		return nil
	}
	w.verify = func(ctx context.Context) (string, error) {
		_, err := up(ctx, nodes)
		return "ended and up again, one after the other: " + strings.Join(ended, ", "), err
	}
	// Only a restart that broke off leaves something to heal.
	w.heal = func(ctx context.Context) error {
		return each(nodes, func(n cluster.Node) error { return n.Restart(ctx) })
	}
	w.healed = func(ctx context.Context) (string, error) { return up(ctx, nodes) }
	return w, nil
}
