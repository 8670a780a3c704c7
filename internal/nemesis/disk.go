package nemesis

import (
	"context"
	"fmt"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// Additional time of each call to a slow disk.
const (
	defaultPerCall = 100 * time.Millisecond
	leastPerCall   = 5 * time.Millisecond // less cannot be distinguished from a busy machine
)

// disks is the ability to have disk faults.
var disks = both(fit("this kind of node cannot have faults of its disk: take a cluster that is started on this machine with layer=on, as in KIND:1?layer=on", "the disk of %s cannot have faults: %w", Disk.DiskFaults), both(kills, restarts))

// diskKinds lists the faults of a node's disk.
func diskKinds() []kind {
	return []kind{{
		word: "disk-full", usage: "disk-full TARGET", about: "writes to the node's data fail: no space left on device",
		able: disks, claims: partDisk, lost: true, needsLayer: true, inject: injectFull,
	}, {
		word: "slow-disk", usage: "slow-disk TARGET [by T]",
		about: "each call to the node's data folder takes T longer, 100ms if it does not say",
		able:  disks, claims: partDisk, needsLayer: true, read: readPerCall,
		inject: func(ctx context.Context, e effect, _ *state, n cluster.Node) (fault.Effect, error) {
			return n.(Disk).SlowDisk(ctx, time.Duration(e.arg.(byTime)))
		},
	}, {
		word: "lose-unsynced", usage: "lose-unsynced TARGET",
		about:  "cut the power: kill the node, and what it did not fsync is gone; healed by a restart",
		able:   both(has[VolatileDisk]("this kind of node cannot be made to lose what it did not sync"), disks),
		claims: partLife, needsLayer: true, inject: injectPowerCut,
	}}
}

// injectFull fills a disk. Its heal starts the node again if the node ended by itself, as some
// servers do on a full disk.
func injectFull(ctx context.Context, _ effect, s *state, n cluster.Node) (fault.Effect, error) {
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

func readPerCall(e *effect, r *reader) (err error) {
	by := defaultPerCall
	if r.word("by") {
		by, err = r.span("by", leastPerCall)
	}
	e.arg = byTime(by)
	return err
}

func injectPowerCut(ctx context.Context, _ effect, s *state, n cluster.Node) (fault.Effect, error) {
	e, err := injectKill(ctx, effect{}, s, n)
	if err != nil {
		return e, err
	}
	if err := n.(VolatileDisk).LoseUnsynced(); err != nil {
		return e, fmt.Errorf("drop the unsynced writes of %s: %w", n.Name(), err)
	}
	e.Seen += ", an unsynced file lost"
	return e, nil
}
