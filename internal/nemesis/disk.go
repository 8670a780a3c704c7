package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// Disk is a node with a file system of ours under its data. A cluster.Node may
// satisfy it.
type Disk interface {
	// Layered says why there is no such file system under the data, nil if there
	// is.
	Layered() error
	// Fill and Slow work at once; heal undoes them, and may be called again when it
	// fails. Fill lets everything that needs room on the node's disk fail with ENOSPC.
	Fill(ctx context.Context) (heal func() error, err error)
	// Slow lets every call to the node's data folder take so much longer.
	Slow(ctx context.Context, perCall time.Duration) (heal func() error, err error)
	// LoseUnsynced throws away what was written and not synced. It is called
	// while the node is down.
	LoseUnsynced() error
	// Sync makes all that was written until now count as synced.
	Sync() error
}

// The faults of disks.
const (
	diskFull     = "disk-full"
	slowDisk     = "slow-disk"
	loseUnsynced = "lose-unsynced"
)

const (
	defaultPerCall = 100 * time.Millisecond
	leastPerCall   = 5 * time.Millisecond // less cannot be told from a busy machine
	probeName      = "stroppy-probe"      // is written to a node's data to see what becomes of it
	probeSize      = 64 << 10
)

// disk is a fault of what lies under a node's data.
type disk struct {
	word    string
	target  target
	perCall time.Duration
}

func parseDisk(word string) func(*reader) (effect, error) {
	return func(r *reader) (effect, error) {
		d := disk{word: word}
		var err error
		if d.target, err = r.target(); err != nil || word != slowDisk {
			return d, err
		}
		d.perCall = defaultPerCall
		if r.word("by") {
			d.perCall, err = r.span("by", leastPerCall)
		}
		return d, err
	}
}

func (d disk) String() string {
	if d.word == slowDisk {
		return d.word + " " + d.target.String() + " by " + short(d.perCall)
	}
	return d.word + " " + d.target.String()
}

func (d disk) heals() healing { return healAlways }

func (d disk) possible(g *ground) error {
	for _, n := range g.cluster.Nodes() {
		if _, err := layer(n); err != nil {
			return err
		}
	}
	return d.target.possible(g)
}

func layer(n cluster.Node) (Disk, error) {
	layered, ok := n.(Disk)
	if !ok {
		return nil, errors.New("this kind of node cannot have a file system of ours under its data")
	}
	if err := layered.Layered(); err != nil {
		return nil, fmt.Errorf("the data of %s have no file system of ours under them: %w", n.Name(), err)
	}
	return layered, nil
}

func (d disk) plan(g *ground, m moment) (*wound, error) {
	nodes, err := d.target.choose(g, m)
	if err != nil {
		return nil, err
	}
	if nodes, err = g.free(nodes, errDown, partLife); err != nil {
		return nil, err
	}
	if nodes, err = g.free(nodes, errSamePart, partDisk); err != nil {
		return nil, err
	}
	disks := map[cluster.Node]Disk{}
	for _, n := range nodes {
		if disks[n], err = layer(n); err != nil {
			return nil, err
		}
	}
	w := &wound{target: m.titles(nodes), holds: takeHold(nodes, partDisk), stage: stageRelease}
	if d.word != slowDisk {
		w.lost = numbers(nodes)
		if err := g.spare(d.target, w.lost); err != nil {
			return nil, err
		}
	}
	switch d.word {
	case diskFull:
		w.each(nodes, func(ctx context.Context, n cluster.Node) (func() error, error) { return disks[n].Fill(ctx) })
		w.watch(nodes, fullSeen)
		w.restartAfter(g, nodes)
	case slowDisk:
		w.each(nodes, func(ctx context.Context, n cluster.Node) (func() error, error) { return disks[n].Slow(ctx, d.perCall) })
		w.watch(nodes, d.slowSeen)
	case loseUnsynced:
		w.stage, w.holds = stageStart, takeHold(nodes, partLife)
		w.powerCut(nodes, disks)
	}
	return w, nil
}

// restartAfter lets the heal start the nodes again whose servers ended by
// themselves, as some do where there is no space.
func (w *wound) restartAfter(g *ground, nodes []cluster.Node) {
	undo := w.heal
	w.heal = func(ctx context.Context) error {
		if err := undo(ctx); err != nil {
			return err
		}
		for _, n := range nodes {
			g.mu.Lock()
			held := g.held(n.Number(), partLife)
			g.mu.Unlock()
			if n.Running() || held {
				continue
			}
			if err := n.Restart(ctx); err != nil {
				return fmt.Errorf("start %s, which had ended on a full disk: %w", n.Name(), err)
			}
		}
		return nil
	}
}

// settle makes the load count as synced on every node with a file system of ours:
// a power cut loses what the drive wrote and did not sync, not what came before.
func (g *ground) settle() error {
	for _, n := range g.cluster.Nodes() {
		if d, err := layer(n); err == nil {
			if err := d.Sync(); err != nil {
				return fmt.Errorf("settle the disk of %s before the first fault: %w", n.Name(), err)
			}
		}
	}
	return nil
}

// watch verifies a fault and its heal by a look at each node's data.
func (w *wound) watch(nodes []cluster.Node, seen func(cluster.Node) (bool, string, error)) {
	look := func(hurt bool) (how string, err error) {
		for _, n := range nodes {
			is, text, err := seen(n)
			if err != nil {
				return "", err
			}
			if is != hurt {
				return "", fmt.Errorf("the disk of %s: %s", n.Name(), text)
			}
			how = text
		}
		return how, nil
	}
	w.verify = func(context.Context) (string, error) { return look(true) }
	w.healed = func(ctx context.Context) (how string, err error) {
		err = until(ctx, lookFor, func() (err error) { how, err = look(false); return err })
		return how, err
	}
}

// fullSeen tells whether a write to the node's data finds no space.
func fullSeen(n cluster.Node) (bool, string, error) {
	path := filepath.Join(n.Dir(), probeName)
	err := os.WriteFile(path, make([]byte, probeSize), 0o600)
	errRemove := os.Remove(path)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return true, "a write found no space", nil
	case err != nil:
		return false, "", fmt.Errorf("write to the data of %s to see whether there is space: %w", n.Name(), err)
	case errRemove != nil:
		return false, "", fmt.Errorf("remove what was written to the data of %s to see whether there is space: %w", n.Name(), errRemove)
	}
	return false, "a write found space", nil
}

// slowSeen tells whether a call to the node's data takes its time. It makes a
// file, which no cache above a file system answers.
func (d disk) slowSeen(n cluster.Node) (bool, string, error) {
	path := filepath.Join(n.Dir(), probeName)
	began := time.Now()
	err := os.WriteFile(path, nil, 0o600)
	took := time.Since(began)
	if err = errors.Join(err, os.Remove(path)); err != nil {
		return false, "", fmt.Errorf("write to the data of %s to see how slow they are: %w", n.Name(), err)
	}
	return took >= d.perCall, "a file took " + short(took.Round(time.Microsecond)), nil
}

// powerCut ends the nodes so that what they did not sync is lost. A file of ours
// that was not synced shows that it is.
func (w *wound) powerCut(nodes []cluster.Node, disks map[cluster.Node]Disk) {
	w.end(nodes, func(n cluster.Node) error {
		path := filepath.Join(n.Dir(), probeName)
		if err := os.WriteFile(path, make([]byte, probeSize), 0o600); err != nil {
			return errors.Join(fmt.Errorf("write to the data of %s, to see that it gets lost: %w", n.Name(), err), n.Kill())
		}
		if err := n.Kill(); err != nil {
			return err
		}
		if err := disks[n].LoseUnsynced(); err != nil {
			return fmt.Errorf("lose what %s did not sync: %w", n.Name(), err)
		}
		return nil
	})
	ended := w.verify
	w.verify = func(ctx context.Context) (string, error) {
		how, err := ended(ctx)
		if err != nil {
			return "", err
		}
		for _, n := range nodes {
			path := filepath.Join(n.Dir(), probeName)
			left, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", fmt.Errorf("look at the data of %s for what was not synced: %w", n.Name(), err)
			}
			if err := os.Remove(path); err != nil {
				return "", fmt.Errorf("remove a file of ours from the data of %s: %w", n.Name(), err)
			}
			if len(left) == probeSize {
				return "", fmt.Errorf("a file in the data of %s that was not synced is there yet", n.Name())
			}
		}
		return how + ", an unsynced file lost", nil
	}
}
