package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
)

// showEvery is the interval in which progress is shown during the load phase.
const showEvery = 250 * time.Millisecond

// drive opens the clients and the history, generates the load, and closes both again.
func (c *conductor) drive(ctx context.Context) (err error) {
	c.enter("connect")
	options := c.loadOptions()
	defer func() { err = errors.Join(err, CloseClients(&options)) }()
	connections, err := c.connect(ctx, &options)
	if err != nil {
		return err
	}
	options.Start = time.Now()
	c.zero = options.Start
	connections.log(&options)
	clients := c.o.Workload.Header().Clients
	header := c.header(clients, c.driveKeys())
	if c.o.Workers != nil {
		header.Clocks = c.o.Workers.Clocks()
	}
	writer, err := history.Create(c.o.Dir.History(), header, clients+c.background(&options))
	if err != nil {
		return err
	}
	c.started = true
	monitoring := c.monitored()
	err = c.identify()
	if err == nil {
		err = c.save() // what a run that is cut off leaves to read
	}
	if err != nil {
		return errors.Join(err, writer.Close())
	}
	options.History = writer

	c.enter("drive")
	c.publish(c.asked(&options))
	endConnections := connections.start()
	endFaults := c.runNemesis(ctx, options.Start, options.Background)
	options.Ended = func() { _ = endFaults() } // its error is asked for below
	driver := c.generator(&options)
	endMetering := c.resourceUsage(options.Start)
	endMonitoring := monitoring.start(ctx, options.Start)
	endChecking := c.checkLive(ctx)
	result, err := c.watch(ctx, driver, &options)
	took := time.Since(options.Start)
	endChecking()
	err = errors.Join(err, endMetering(), endMonitoring(), endFaults(), endConnections())
	c.leave()
	err = c.collect(err)
	if closing := writer.Close(); closing != nil && !errors.Is(err, closing) {
		err = errors.Join(err, closing)
	}
	if result == nil {
		return err
	}
	c.measurements(&options, result, took)
	c.enter("measure")
	defer c.leave()
	if err = errors.Join(err, c.series(options.Warmup, result.Unsent), c.effects()); err != nil {
		return err
	}
	if err = c.writeSeries(); err != nil {
		return err
	}
	_, fixed := options.Plan.Fixed()
	c.steadyState(c.timeline, fixed || options.Plan.Closed())
	c.warn(result)
	return ctx.Err()
}

// collect collects the recordings of the workers, if there are any, after a load phase that ended with err.
func (c *conductor) collect(err error) error {
	if c.o.Workers == nil {
		return err
	}
	c.enter("collect")
	defer c.leave()
	if collecting := c.o.Workers.Collect(); collecting != nil && !errors.Is(err, collecting) {
		err = errors.Join(err, collecting)
	}
	if clocks := c.o.Workers.Clocks(); clocks != nil {
		err = errors.Join(err, history.KeepClocks(c.o.Dir.History(), clocks))
	}
	return err
}

// generator returns the load phase, in this process or in its workers.
func (c *conductor) generator(o *load.Options) Generator {
	if w := c.o.Workers; w != nil {
		w.Prepare(*o)
		return w
	}
	return load.New(*o)
}

// background returns the number of clients beside the measured ones.
func (c *conductor) background(o *load.Options) int {
	if attended, ok := c.o.Plan.Config.(workload.Attended); ok && c.o.Workers != nil { // which open them
		return attended.BackgroundClients()
	}
	return len(o.Background)
}

// loadOptions returns the options of the plan, without clients, history and start.
func (c *conductor) loadOptions() load.Options { return LoadOptions(&c.o.Plan, c.o.Workload.Header()) }

// LoadOptions returns the options of a plan, without clients and start.
func LoadOptions(p *scenario.Plan, h history.Header) load.Options {
	return load.Options{
		Kinds: h.Kinds,
		Plan:  p.Rate, Arrival: p.Arrivals(), Think: p.Think, MaxBacklog: int(p.MaxBacklog),
		Duration: p.Duration, Count: p.Count, Warmup: p.Warmup,
		LatencyLimit: p.LatencyLimit, Reconnect: p.Connect,
		Retries: p.Retries, GiveUp: p.GiveUp, Seed: p.Seed, Alone: true,
	}
}

// driveKeys returns the keys of the header that a later check needs.
func (c *conductor) driveKeys() map[string]string {
	keys := map[string]string{}
	if c.opened != "" {
		keys[history.KeyOpening] = c.opened
	}
	if clock, ok := clockAt(c.zero); ok {
		keys[check.KeyClock] = clock.String()
	}
	if c.o.Nemesis != nil {
		keys[keyNemesis] = c.o.Plan.ShownScript()
	}
	if c.comparesNodes() {
		var names []string
		for _, node := range c.o.Nodes() {
			names = append(names, node.Name)
		}
		keys[keyNodes] = strings.Join(names, " ")
	}
	maps.Copy(keys, objectiveKeys(&c.o.Plan))
	return keys
}

// clockReadings is the number of readings of a clock, of which the narrowest counts.
const clockReadings = 20

// SharedClock returns the name of the clock that all processes of this machine share, and its time at start, in
// nanoseconds. The error is a few tenths of a microsecond. known is false if this system has no such clock.
func SharedClock(start time.Time) (name string, at int64, known bool) {
	best, known := clockAt(start)
	for range clockReadings {
		if again, ok := clockAt(start); ok && again.To-again.From < best.To-best.From {
			best = again
		}
	}
	return best.ID, best.From + (best.To-best.From)/2, known
}

// header returns the header of a history that begins now, with these keys and the workload's.
func (c *conductor) header(clients int, keys map[string]string) history.Header {
	h := c.o.Workload.Header()
	h.Clients, h.Started, h.Database = clients, time.Now().UnixNano(), c.result.Database
	keys[keyExpect] = c.expect.String()
	for name, value := range h.Keys {
		if _, ours := keys[name]; !ours {
			keys[name] = value
		}
	}
	h.Keys = keys
	return h
}

// connect opens the clients, and notes to which servers.
func (c *conductor) connect(ctx context.Context, options *load.Options) (*connectionLog, error) {
	clients := c.o.Workload.Header().Clients
	connections := &connectionLog{conductor: c}
	if w := c.o.Workers; w != nil {
		servers, err := w.Connect(ctx, c.o.Workload.Header())
		connections.servers = servers
		return connections, err
	}
	servers, err := OpenClients(ctx, c.o.Workload, options, 0, clients)
	if err != nil {
		return nil, err
	}
	connections.servers = servers
	background, err := c.o.Workload.Background(ctx)
	options.Background = background
	return connections, err
}

// OpenClients opens so many clients from the first on for a load phase, and returns their
// servers (HOST:PORT; empty: not known). Those that were open before an error are in the
// options.
func OpenClients(ctx context.Context, w workload.Workload, options *load.Options, first, count int) (servers []string, err error) {
	defer load.SaveMemory(count)()
	server, left := "", reachAllLimit
	for i := first; i < first+count; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// The first of the clients that share a connection opens it.
		var client load.Client
		err := reach(ctx, &left, func() (err error) {
			client, err = w.Client(db.WithConnected(ctx, func(to string) { server = to }), i)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("open client %d of %d: %w", i+1, w.Header().Clients, err)
		}
		options.Clients = append(options.Clients, client)
		servers = append(servers, server)
	}
	return servers, nil
}

// These are limits for the time in which a server may drop connections or let them wait, as a busy server does. One
// is for a connection, and one for all clients of a load phase. Each try has the time that the database's URL gives
// it.
const (
	reachLimit    = 10 * time.Second
	reachAllLimit = time.Minute
	reachEvery    = 100 * time.Millisecond
)

// Reach repeats a try, within limits, if a server that was there could not be reached or did not answer in time. An
// answer of the server is returned at once, error or not.
func Reach(ctx context.Context, try func() error) error {
	left := reachLimit
	return reach(ctx, &left, try)
}

// reach is Reach with a remaining time, from which it subtracts its waiting.
func reach(ctx context.Context, left *time.Duration, try func() error) error {
	began := time.Now()
	for again := false; ; again = true {
		err := try()
		took := time.Since(began)
		if e, ok := errors.AsType[*db.Error](err); !ok || e.Class != db.Unavailable || e.Code != "" || took >= min(reachLimit, *left) {
			if again {
				*left -= took
			}
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(reachEvery):
		}
	}
}

// CloseClients closes all clients of a load phase.
func CloseClients(options *load.Options) error {
	var all error
	for _, client := range options.Clients {
		all = errors.Join(all, client.Close())
	}
	for _, b := range options.Background {
		all = errors.Join(all, b.Client.Close())
	}
	return all
}

// watch runs the driver and shows the progress. An interrupt ends the load phase and
// nothing else; the end of ctx ends it at once.
func (c *conductor) watch(ctx context.Context, driver Generator, options *load.Options) (*load.Result, error) {
	driving, stop := context.WithCancel(ctx)
	defer stop()
	release := context.AfterFunc(ctx, driver.Abort)
	defer release()
	go func() {
		select {
		case <-driving.Done():
		case <-c.o.Interrupt:
			c.log.Warn("the load phase is ended early by a person")
			stop()
		case <-c.violated:
			c.log.Warn("the load phase is ended early for a violation")
			stop()
		}
	}()
	show := func() {
		live := driver.Live()
		state := State{
			Done: live.Done, Total: options.Count, Elapsed: time.Since(c.begin), Of: options.Duration,
			Drive: driver, Clients: c.o.Workload.Header().Clients, Counters: live,
			Target: options.Plan.At(time.Since(c.begin)), LiveCheck: c.foundLive.Load(),
		}
		if second, ok := driver.Second(); ok {
			state.Second = &second
		}
		c.o.Progress.Show(state)
	}
	endShowing := Every(showEvery, show)
	result, err := driver.Run(driving)
	endShowing()
	show()
	return result, err
}

// Every calls f at each interval until end is called, which waits for a call under way.
func Every(interval time.Duration, f func()) (end func()) {
	ended := make(chan struct{})
	var calls sync.WaitGroup
	calls.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				f()
			}
		}
	})
	return func() {
		close(ended)
		calls.Wait()
	}
}
