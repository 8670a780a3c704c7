package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// loop is one client of a bare loop. It makes the calls of our transaction and does nothing else. It uses the library
// of our driver, or the usual one for the database.
type loop interface {
	// Once carries out one transaction. Each has a number of its own.
	Once(ctx context.Context, n uint64) error
	Close() error
}

// warmup is the flag by which ours warms up for as long as a bare loop does.
func (s *suite) warmup() string { return "--warmup=" + (s.seconds / 10).String() }

// bare runs a loop with so many clients in this process for as long as a measurement
// takes. A tenth of the time before it warms up.
func (s *suite) bare(clients int, open func(ctx context.Context, client int) (loop, error)) (reached speed, err error) {
	loops := make([]loop, clients)
	defer func() {
		for _, l := range loops {
			if l != nil {
				err = errors.Join(err, l.Close())
			}
		}
	}()
	for i := range loops {
		if loops[i], err = open(s.ctx, i); err != nil {
			return speed{}, err
		}
	}
	drive := func(long time.Duration) error {
		ctx, cancel := context.WithCancelCause(s.ctx)
		defer cancel(nil)
		end := time.Now().Add(long)
		var all sync.WaitGroup
		for _, l := range loops {
			all.Go(func() {
				for ctx.Err() == nil && time.Now().Before(end) {
					if err := l.Once(ctx, s.number.Add(1)); err != nil {
						cancel(err)
						return
					}
				}
			})
		}
		all.Wait()
		return context.Cause(ctx)
	}
	if err := drive(s.seconds / 10); err != nil {
		return speed{}, err
	}
	before, first, start := processorTime(), s.number.Load(), time.Now()
	if err := drive(s.seconds); err != nil {
		return speed{}, err
	}
	done := float64(s.number.Load() - first)
	return speed{rate: done / time.Since(start).Seconds(), cost: float64((processorTime() - before).Microseconds()) / done}, nil
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

// besideLoop loads a bank, and runs transfers of ours and a bare loop on it alternately.
func (s *suite) besideLoop(database, url string, args []string, open func(ctx context.Context, client int) (loop, error)) error {
	return s.besideClients(database, url, loopClients, "", args, open)
}

// besideClients is besideLoop with a number of clients on both sides; rate names the wanted figure.
func (s *suite) besideClients(
	name, url string, clients int, rate string, args []string, open func(ctx context.Context, client int) (loop, error),
) error {
	args = slices.Concat(args, transfersOnly, []string{"--db=" + url, "--accounts=" + strconv.Itoa(loopAccounts), "--clients=" + strconv.Itoa(clients)})
	if _, err := s.runWorkload("bank", slices.Concat(args, []string{"--count=1"})...); err != nil {
		return err
	}
	ours, bare, err := s.inTurn("bank", args, clients, open)
	if err != nil {
		return err
	}
	s.row(name+": client CPU a transfer (a bare loop)", "%.1f µs", ours.cost, bare.cost, "≤ 1.30")
	s.row(name+": transfers a second (a bare loop)", "%.0f", ours.rate, bare.rate, rate)
	return nil
}

// inTurn measures a workload of ours on what is loaded, and so many bare loops, three times
// each.
func (s *suite) inTurn(
	workload string, args []string, loops int, open func(ctx context.Context, client int) (loop, error),
) (ours, bare speed, err error) {
	reached, err := contest(3, []contender{
		{"ours", func() (speed, error) {
			r, err := s.drive(workload, slices.Concat(args, []string{"--no-load", s.warmup()})...)
			if err != nil {
				return speed{}, err
			}
			return r.speed(), nil
		}},
		{"loop", func() (speed, error) { return s.bare(loops, open) }},
	}, nil, nil)
	return reached["ours"], reached["loop"], err
}

// besideReads loads records, and alternates nine reads to one write of ours with bare loops. peer names the loops.
func (s *suite) besideReads(
	name, peer string, loops int, args []string, open func(ctx context.Context, client int) (loop, error),
) error {
	if _, err := s.runWorkload("kv", slices.Concat(args, []string{"--count=1"})...); err != nil {
		return err
	}
	ours, bare, err := s.inTurn("kv", args, loops, open)
	if err != nil {
		return err
	}
	s.row(fmt.Sprintf("%s: kv 90/10, operations a second (%s)", name, peer), "%.0f", ours.rate, bare.rate, "≥ 0.90")
	s.row(name+": kv 90/10, client CPU an operation (the same)", "%.1f µs", ours.cost, bare.cost, "≤ 1.30")
	return nil
}
