package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
)

// showEvery is how often progress is told during a drive.
const showEvery = 250 * time.Millisecond

// drive opens the clients and the history, drives, and closes both again.
func (c *conductor) drive(ctx context.Context) (err error) {
	c.enter("connect")
	options := c.o.Drive
	defer func() { err = errors.Join(err, closeClients(&options)) }()
	if err := c.connect(ctx, &options); err != nil {
		return err
	}
	clients := len(options.Clients) + len(options.Background)
	options.Start = time.Now()
	c.zero = options.Start
	header := c.o.Workload.Header()
	header.Clients, header.Started, header.Database = len(options.Clients), options.Start.UnixNano(), c.result.Database
	header.Keys = withClock(withKey(header.Keys, keyExpect, c.o.Expect.String()), options.Start)
	if c.o.Nemesis != nil {
		header.Keys = withKey(header.Keys, keyNemesis, c.o.Script)
		if c.o.Nodes != nil {
			var names []string
			for _, node := range c.o.Nodes() {
				names = append(names, node.Name)
			}
			header.Keys = withKey(header.Keys, keyNodes, strings.Join(names, " "))
		}
	}
	header = withBudget(header, c.o.Budget)
	writer, err := history.Create(c.o.Dir.History(), header, clients)
	if err != nil {
		return err
	}
	c.started = true
	if err := c.identify(); err != nil {
		return errors.Join(err, writer.Close())
	}
	if err := c.save(); err != nil { // what a run that is cut off leaves to read
		return errors.Join(err, writer.Close())
	}
	options.History = writer

	c.enter("drive")
	c.publish(c.asked(&options))
	endFaults := c.runNemesis(ctx, options.Start)
	options.Ended = func() { _ = endFaults() } // its error is asked for below
	driver := load.New(options)
	endMetering := c.resourceUsage(options.Start)
	result, err := c.watch(ctx, driver, options)
	took := time.Since(options.Start)
	err = errors.Join(err, endMetering(), endFaults())
	c.leave()
	if closing := writer.Close(); closing != nil && !errors.Is(err, closing) {
		err = errors.Join(err, closing)
	}
	c.committed = driver.Live().Committed
	if result == nil {
		return err
	}
	c.figures(&options, result, took)
	c.enter("figures")
	defer c.leave()
	if err = errors.Join(err, c.series(options.Warmup, result.Unsent), c.effects()); err != nil {
		return err
	}
	_, fixed := options.Plan.Fixed()
	c.steadyState(c.timeline, fixed || options.Plan.Closed())
	d := c.result.Drive
	c.result.Client.Bottleneck = bottleneck(result.CPUSeconds, d.WarmupSeconds+d.Seconds, result.Threads, d.Pacing, c.o.Embedded)
	return ctx.Err()
}

func (c *conductor) connect(ctx context.Context, options *load.Options) error {
	clients := c.o.Workload.Header().Clients
	for i := range clients {
		if err := ctx.Err(); err != nil {
			return err
		}
		client, err := c.o.Workload.Client(ctx, i)
		if err != nil {
			return fmt.Errorf("open client %d of %d: %w", i+1, clients, err)
		}
		options.Clients = append(options.Clients, client)
	}
	background, err := c.o.Workload.Background(ctx)
	options.Background = background
	return err
}

func closeClients(options *load.Options) error {
	var all error
	for _, client := range options.Clients {
		all = errors.Join(all, client.Close())
	}
	for _, b := range options.Background {
		all = errors.Join(all, b.Client.Close())
	}
	return all
}

// watch runs the driver and tells the progress. An interrupt ends the drive and
// nothing else; the end of ctx ends it at once.
func (c *conductor) watch(ctx context.Context, driver *load.Driver, options load.Options) (*load.Result, error) {
	driving, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	watched := make(chan struct{})
	show := func() {
		live := driver.Live()
		state := State{
			Done: live.Done, Total: options.Count, Elapsed: time.Since(c.begin), Of: options.Duration, Transactional: true,
			Committed: live.Committed, Reconnecting: live.Reconnecting, Clients: len(options.Clients),
			Counters: live, Drive: driver,
		}
		if second, ok := driver.Second(); ok {
			state.Second = &second
		}
		c.o.Progress.Show(state)
	}
	go func() {
		defer close(watched)
		ticker := time.NewTicker(showEvery)
		defer ticker.Stop()
		interrupt, everything := c.o.Interrupt, ctx.Done()
		for {
			select {
			case <-ended:
				return
			case <-interrupt:
				interrupt = nil
				c.log.Warn("the drive is ended early by a person")
				stop()
			case <-everything:
				everything = nil
				driver.Abort()
			case <-ticker.C:
				show()
			}
		}
	}()
	result, err := driver.Run(driving)
	close(ended)
	<-watched
	show()
	return result, err
}
