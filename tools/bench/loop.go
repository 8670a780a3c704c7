package main

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"
)

// loop is one client of a bare loop: what a program would be that makes the calls of a
// transaction of ours on the library that our driver uses, or on the one that people
// use for the database, and does nothing else.
type loop interface {
	// Once carries out one transaction. Each has a number of its own.
	Once(ctx context.Context, n uint64) error
	Close() error
}

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
