package run

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"stroppy/internal/fault"
	"stroppy/internal/load"
	"stroppy/internal/report"
)

// Nemesis injects faults into the database during the load phase.
type Nemesis interface {
	// Run injects faults until ctx ends, and then heals what is not healed yet,
	// however long that takes. clock is the time since the run's start. note gets
	// each fault when it was injected and again when it was healed; it may be
	// called by several goroutines.
	Run(ctx context.Context, clock func() time.Duration, note func(fault.Injection))
	// Whole waits until the database reports that all its nodes are there and caught up.
	Whole(ctx context.Context) error
}

// wholeLimit bounds how long a database may take to become whole after the last heal.
const wholeLimit = 3 * time.Minute

// runNemesis runs the nemesis beside the load. The function it returns ends the
// injections and waits until all is healed; it may be called again.
func (c *conductor) runNemesis(ctx context.Context, start time.Time, background []load.Background) (end func() error) {
	if c.o.Nemesis == nil {
		return func() error { return nil }
	}
	injecting, stop := context.WithCancel(ctx)
	log := &faultLog{conductor: c, background: background}
	var running sync.WaitGroup
	running.Go(func() {
		c.o.Nemesis.Run(injecting, func() time.Duration { return time.Since(start) }, log.note)
	})
	return func() error {
		stop()
		running.Wait()
		return log.err
	}
}

// faultLog keeps faults.jsonl: a line for each injection and one for its heal.
type faultLog struct {
	conductor  *conductor
	background []load.Background
	mu         sync.Mutex
	err        error // the first
}

func (l *faultLog) note(f fault.Injection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conductor
	for _, text := range []*string{&f.Fault, &f.Target, &f.Verified, &f.Late, &f.Error, &f.HealError} {
		*text = c.o.Scrub(*text)
	}
	c.log.Info("fault", "number", f.Number, "fault", f.Fault, "target", f.Target, "at", f.At.Seconds(), "healed", f.Healed != nil,
		"verified", f.Verified, "error", f.Error, "heal_error", f.HealError, "skipped", f.Skipped)
	c.o.Progress.Fault(fault.Record{Injection: f})
	if f.Healed != nil {
		l.wake()
	}
	c.faultCount = max(c.faultCount, f.Number)
	line, err := json.Marshal(faultLine{f, c.result.Identity})
	if err == nil {
		c.faultLines++
		err = c.o.Dir.Append(FaultsFile, append(line, '\n'))
	}
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("record the faults: %w", err)
	}
}

// wake lets the clients in the background look at once, after a heal.
func (l *faultLog) wake() {
	for _, b := range l.background {
		select {
		case b.Wake <- struct{}{}:
		default:
		}
	}
}

// heal waits until the database is whole. That it is not is a part of the verdict.
func (c *conductor) heal(ctx context.Context) error {
	if c.o.Nemesis == nil {
		return nil
	}
	c.enter("heal")
	defer c.leave()
	limited, stop := context.WithTimeout(ctx, wholeLimit)
	defer stop()
	if err := c.o.Nemesis.Whole(limited); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("wait until the database is whole: %w", context.Cause(ctx))
		}
		c.unwhole = c.o.Scrub(err.Error())
		c.log.Error("the database did not become whole", "error", c.unwhole)
	}
	return c.keepNodes(&nodesRecord{})
}

// clusterEvents writes the actions of the cluster's supervisor since the load into the result and the log. An outage
// ends when it has acted, and a fail-over that nobody requested must not go unseen.
func (c *conductor) clusterEvents() {
	if c.o.Events == nil {
		return
	}
	c.result.ClusterEvents = append([]report.Event{}, c.o.Events(c.zero)...)
	for _, e := range c.result.ClusterEvents {
		c.log.Info("the cluster", "at", e.AtSeconds, "event", e.Text)
	}
	c.divideOutages()
}
