package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/internal/cluster"
)

// The faults of processes.
const (
	kill    = "kill"
	stop    = "stop"
	pause   = "pause"
	replace = "replace"
)

// ending is a fault of a node's processes.
type ending struct {
	word   string
	target target
}

func parseProcess(word string) func(*reader) (effect, error) {
	return func(r *reader) (effect, error) {
		t, err := r.target()
		return ending{word, t}, err
	}
}

func (e ending) String() string { return e.word + " " + e.target.String() }

func (e ending) heals() healing {
	if e.word == replace {
		return healAtOnce
	}
	return healAlways
}

func (e ending) possible(g *ground) error {
	if e.word == replace && len(g.cluster.Nodes()) < 2 && !g.grows {
		return errors.New("a cluster of one node has nobody to take the data from: kill it instead, or start more nodes")
	}
	return e.target.possible(g)
}

func (e ending) plan(g *ground, m moment) (*wound, error) {
	nodes, err := e.target.choose(g, m)
	if err != nil {
		return nil, err
	}
	taken := []part{partLife}
	if e.word == pause {
		taken = []part{partLife, partPause}
	}
	if nodes, err = g.free(nodes, errDown, taken...); err != nil {
		return nil, err
	}
	// A node that no fault ended is one that crashed, or that its cluster takes
	// down and up by itself. Whether it comes back is seen at the end.
	down := names(nodes)
	if nodes = running(nodes); len(nodes) == 0 {
		return nil, skipError(down + " is not running, and it was no fault of the script that ended it")
	}
	if err := g.spare(e.target, numbers(nodes)); err != nil {
		return nil, err
	}
	w := &wound{target: m.titles(nodes), lost: numbers(nodes), stage: stageStart}
	if e.word == pause {
		w.holds = takeHold(nodes, partPause)
		w.suspend(nodes)
		return w, nil
	}
	w.holds = takeHold(nodes, partLife)
	do := cluster.Node.Kill
	if e.word == stop {
		do = nil
	}
	w.end(nodes, do)
	if e.word == replace {
		w.replace(nodes)
	}
	return w, nil
}

func running(nodes []cluster.Node) []cluster.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool { return !n.Running() })
}

// end ends the nodes with kill, or in good order where that is nil, and starts
// them again.
func (w *wound) end(nodes []cluster.Node, kill func(cluster.Node) error) {
	before := processesOf(nodes...)
	w.inject = func(ctx context.Context) error {
		return each(nodes, func(n cluster.Node) error {
			if kill == nil {
				return n.Terminate(ctx)
			}
			return kill(n)
		})
	}
	w.verify = func(ctx context.Context) (string, error) {
		return gone(ctx, nodes, before)
	}
	w.still = func() error {
		for _, n := range nodes {
			if n.Running() || len(n.PIDs()) > 0 {
				return fmt.Errorf("%s did not stay down: something else started it before its time", n.Name())
			}
		}
		return nil
	}
	w.heal = func(ctx context.Context) error {
		return each(nodes, func(n cluster.Node) error { return n.Restart(ctx) })
	}
	w.healed = func(ctx context.Context) (string, error) { return up(ctx, nodes) }
}

// gone sees that the processes that were there have ended.
func gone(ctx context.Context, nodes []cluster.Node, before []process) (string, error) {
	if len(before) == 0 {
		return "", fmt.Errorf("%s named no process before it was ended, so nobody can tell whether it ended", names(nodes))
	}
	err := until(ctx, lookFor, func() error {
		for _, p := range before {
			if p.alive() {
				return fmt.Errorf("process %d of %s is alive yet, in state %c", p.pid, names(nodes), p.state())
			}
		}
		for _, n := range nodes {
			if n.Running() {
				return fmt.Errorf("%s is running yet", n.Name())
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return count(len(before), "process", "processes") + " gone", nil
}

// up sees that the nodes run and that none of their processes is stopped.
func up(ctx context.Context, nodes []cluster.Node) (string, error) {
	err := until(ctx, lookFor, func() error {
		for _, n := range nodes {
			if !n.Running() || len(n.PIDs()) == 0 {
				return fmt.Errorf("%s was started and does not run", n.Name())
			}
			for _, p := range processesOf(n) {
				if p.stopped() {
					return fmt.Errorf("process %d of %s is stopped yet", p.pid, n.Name())
				}
			}
		}
		return nil
	})
	return names(nodes) + " up again", err
}

// suspend stops the nodes where they are and lets them go on. A cluster may end a
// node meanwhile that does not answer, so that it does no harm when it wakes up;
// what counts is that no process of it goes on before the heal.
func (w *wound) suspend(nodes []cluster.Node) {
	before := processesOf(nodes...)
	stopped := func() error {
		for _, p := range before {
			if p.alive() && !p.stopped() {
				return fmt.Errorf("process %d of %s goes on, in state %c", p.pid, names(nodes), p.state())
			}
		}
		return nil
	}
	w.inject = func(context.Context) error { return each(nodes, cluster.Node.Pause) }
	w.verify = func(ctx context.Context) (string, error) {
		if len(before) == 0 {
			return "", fmt.Errorf("%s named no process to be stopped", names(nodes))
		}
		if err := until(ctx, lookFor, stopped); err != nil {
			return "", err
		}
		for _, n := range nodes {
			if !n.Running() {
				return "", fmt.Errorf("%s ended when it was to be stopped where it is", n.Name())
			}
		}
		return count(len(before), "process", "processes") + " in state T", nil
	}
	w.still = func() error {
		if err := stopped(); err != nil {
			return fmt.Errorf("something else let it go on before its time: %w", err)
		}
		return nil
	}
	w.heal = func(context.Context) error { return each(nodes, cluster.Node.Resume) }
	w.healed = func(ctx context.Context) (how string, err error) {
		err = until(ctx, lookFor, func() error {
			alive := 0
			for _, p := range before {
				if p.stopped() {
					return fmt.Errorf("process %d of %s is stopped yet", p.pid, names(nodes))
				}
				if p.alive() {
					alive++
				}
			}
			how = count(alive, "process", "processes") + " not stopped any more"
			if alive < len(before) {
				how += fmt.Sprintf(", %d ended meanwhile", len(before)-alive)
			}
			return nil
		})
		return how, err
	}
}

// markName is a file that is put into a dead node's data to see whether they are
// taken away.
const markName = "stroppy-replaced"

// replace lets the nodes, which are dead, come back empty.
func (w *wound) replace(nodes []cluster.Node) {
	w.heal = func(ctx context.Context) error {
		return each(nodes, func(n cluster.Node) error {
			mark := filepath.Join(n.Dir(), markName)
			err := os.WriteFile(mark, []byte("This folder is to be emptied.\n"), 0o600)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("mark the data of %s, to see that they go: %w", n.Name(), err)
			}
			if err := n.Replace(ctx); err != nil {
				return err
			}
			if _, err := os.Lstat(mark); !errors.Is(err, os.ErrNotExist) {
				return errors.Join(fmt.Errorf("%s was replaced, but its old data are in %s yet", n.Name(), n.Dir()), os.Remove(mark))
			}
			return nil
		})
	}
	w.healed = func(ctx context.Context) (string, error) {
		how, err := up(ctx, nodes)
		return strings.TrimSuffix(how, "again") + "on an empty folder", err
	}
}
