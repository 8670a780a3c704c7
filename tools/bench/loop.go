package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/tools/try"
)

// loop is one client of a bare loop. It makes the calls of our transaction and does nothing else. It uses the library
// of our driver, or the usual one for the database.
type loop interface {
	// Once carries out one transaction. Each has a number of its own.
	Once(ctx context.Context, n uint64)
	Close() error
}

// opener opens the loop of a client.
type opener func(ctx context.Context, client int) loop

// engine starts a server with one node and calls measure with its URL. A server that is not there is skipped by name.
func engine[C cluster.Cluster](
	s *suite, name string, start func(context.Context, cluster.Options) (C, error), params url.Values, measure func(url string),
) {
	c, err := start(s.ctx, cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Params: params})
	if errors.As(err, new(host.MissingError)) {
		fmt.Fprintf(os.Stderr, "bench: skipped engine: %s: %v\n", name, err)
		return
	}
	try.Check(err)
	defer func() { _ = c.Stop() }()
	measure(c.URL())
}

// warmup is the flag by which ours warms up for as long as a bare loop does.
func (s *suite) warmup() string { return "--warmup=" + (s.seconds / 10).String() }

// bare runs a loop with so many clients in this process for as long as a measurement
// takes. A tenth of the time before it warms up.
func (s *suite) bare(clients int, open opener) speed {
	loops := make([]loop, clients)
	for i := range loops {
		loops[i] = open(s.ctx, i)
		defer func() { try.Check(loops[i].Close()) }()
	}
	drive := func(long time.Duration) {
		ctx, cancel := context.WithCancelCause(s.ctx)
		defer cancel(nil)
		end := time.Now().Add(long)
		var all sync.WaitGroup
		for _, l := range loops {
			all.Go(func() {
				if err := try.Attempt(func() {
					for ctx.Err() == nil && time.Now().Before(end) {
						l.Once(ctx, s.number.Add(1))
					}
				}); err != nil {
					cancel(err)
				}
			})
		}
		all.Wait()
		try.Check(context.Cause(ctx))
	}
	drive(s.seconds / 10)
	before, first, start := processorTime(), s.number.Load(), time.Now()
	drive(s.seconds)
	done := float64(s.number.Load() - first)
	return speed{rate: done / time.Since(start).Seconds(), cost: float64((processorTime() - before).Microseconds()) / done}
}

// processorTime is the user and system time of this process so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // which gives a cost that nobody believes
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// loopClients is the number of clients on both sides, unless a part has another.
const loopClients = 16

// besideLoop loads a bank, and runs transfers of ours and a bare loop on it alternately, with a number of clients on
// both sides. rate names the wanted figure.
func (s *suite) besideLoop(name, url string, clients int, rate string, args []string, open opener) {
	args = slices.Concat(args, transfersOnly, []string{"--db=" + url, "--accounts=" + strconv.Itoa(loopAccounts), "--clients=" + strconv.Itoa(clients)})
	s.runWorkload("bank", slices.Concat(args, []string{"--count=1"})...)
	ours, bare := s.inTurn("bank", args, clients, open)
	s.row(name+": client CPU a transfer (a bare loop)", "%.1f µs", ours.cost, bare.cost, "≤ 1.30")
	s.row(name+": transfers a second (a bare loop)", "%.0f", ours.rate, bare.rate, rate)
}

// inTurn measures a workload of ours on what is loaded, and so many bare loops, three times
// each.
func (s *suite) inTurn(workload string, args []string, loops int, open opener) (ours, bare speed) {
	reached := contest(3, []contender{
		{"ours", func() speed {
			return s.drive(workload, slices.Concat(args, []string{"--no-load", s.warmup()})...).speed()
		}},
		{"loop", func() speed { return s.bare(loops, open) }},
	}, nil, nil)
	return reached["ours"], reached["loop"]
}

// besideReads loads records, and alternates nine reads to one write of ours with bare loops. peer names the loops.
func (s *suite) besideReads(name, peer string, loops int, args []string, open opener) {
	s.runWorkload("kv", slices.Concat(args, []string{"--count=1"})...)
	ours, bare := s.inTurn("kv", args, loops, open)
	s.row(fmt.Sprintf("%s: kv 90/10, operations a second (%s)", name, peer), "%.0f", ours.rate, bare.rate, "≥ 0.90")
	s.row(name+": kv 90/10, client CPU an operation (the same)", "%.1f µs", ours.cost, bare.cost, "≤ 1.30")
}
