package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/cluster"
	postgres "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/stats"
)

// server is a PostgreSQL server on which both sides are measured alternately.
type server struct {
	*suite
	*postgres.Server
	pgbench, psql string
}

// shutdownLimit bounds how long a server takes to end in good order.
const shutdownLimit = time.Minute

// serve starts a server, hands it to measure and stops it.
func (s *suite) serve(options cluster.Options, measure func(*server) error) error {
	pgbench, err := postgres.PGBin("pgbench")
	if err != nil {
		return err
	}
	psql, err := postgres.PGBin("psql")
	if err != nil {
		return err
	}
	started, err := postgres.Start(s.ctx, options)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), shutdownLimit)
		defer cancel()
		_ = errors.Join(started.Terminate(ctx), started.Stop())
	}()
	return measure(&server{s, started, pgbench, psql})
}

func (s *server) sql(statement string) error {
	_, err := run(exec.CommandContext(s.ctx, s.psql, "-XAtq", "-c", statement, s.URL()))
	return err
}

// settle writes what is to be written to the disk, so that nobody pays for the other's
// pages.
func (s *server) settle() error {
	if err := s.sql("CHECKPOINT"); err != nil {
		return err
	}
	_, err := run(exec.CommandContext(s.ctx, "sync"))
	return err
}

// peer runs pgbench for as long as a measurement takes, with prepared statements unless the
// arguments have another -M.
func (s *server) peer(args ...string) (speed, error) {
	cmd := exec.CommandContext(s.ctx, s.pgbench, append([]string{"-n", "-M", "prepared", "-T", strconv.Itoa(int(s.seconds.Seconds()))}, append(args, s.URL())...)...)
	text, err := run(cmd)
	if err != nil {
		return speed{}, err
	}
	number := func(before string, after byte) (float64, error) {
		_, rest, ok := bytes.Cut(text, []byte(before))
		if end := bytes.IndexByte(rest, after); ok && end > 0 {
			return strconv.ParseFloat(string(rest[:end]), 64)
		}
		return 0, fmt.Errorf("pgbench printed no %q: %s", before, text)
	}
	tps, err := number("tps = ", ' ')
	if err != nil {
		return speed{}, err
	}
	count, err := number("actually processed: ", '\n')
	if err != nil {
		return speed{}, err
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return speed{rate: tps, cost: used.Seconds() * 1e6 / count}, nil
}

// contender is one side, or one way of it.
type contender struct {
	name  string
	drive func() (speed, error)
}

// ours runs a workload on what is loaded.
func (s *server) ours(name, workload string, args ...string) contender {
	return contender{name, func() (speed, error) {
		r, err := s.drive(workload, append(args, "--db="+s.URL(), "--no-load")...)
		if err != nil {
			return speed{}, err
		}
		return r.speed(), nil
	}}
}

func (s *server) theirs(name string, args ...string) contender {
	return contender{name, func() (speed, error) { return s.peer(args...) }}
}

// contest measures the contenders alternately and returns the medians of each. Each turn begins with another
// contender, because tables grow. before begins a turn and between follows each measurement, unless they are nil.
func contest(turns int, all []contender, before, between func() error) (map[string]speed, error) {
	rates, costs, err := inTurns(turns, all, before, between)
	if err != nil {
		return nil, err
	}
	return medians(rates, costs), nil
}

func medians(rates, costs map[string][]float64) map[string]speed {
	all := map[string]speed{}
	for name := range rates {
		all[name] = speed{stats.Median(rates[name]), stats.Median(costs[name])}
	}
	return all
}

// inTurns is contest, and returns what each contender reached in each turn.
func inTurns(turns int, all []contender, before, between func() error) (rates, costs map[string][]float64, err error) {
	rates, costs = map[string][]float64{}, map[string][]float64{}
	for turn := range turns {
		if before != nil {
			if err := before(); err != nil {
				return nil, nil, err
			}
		}
		for i := range all {
			c := all[(i+turn)%len(all)]
			reached, err := c.drive()
			if err == nil && between != nil {
				err = between()
			}
			if err != nil {
				return nil, nil, err
			}
			rates[c.name], costs[c.name] = append(rates[c.name], reached.rate), append(costs[c.name], reached.cost)
		}
	}
	return rates, costs, nil
}

// paired returns the median of the ratios of two sides that were measured in turns. low and high are its confidence
// interval of 95 %, from order statistics by the binomial distribution (Conover, Practical Nonparametric Statistics,
// 3.2). A machine that is slower for a while slows both sides of a turn.
func paired(ours, peer []float64) (median, low, high float64) {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i] / peer[i]
	}
	slices.Sort(ratios)
	n := len(ratios)
	// The chance of fewer than k of n on one side.
	below, chance, k := 0.0, math.Pow(0.5, float64(n)), 0
	for below+chance <= 0.025 {
		below += chance
		k++
		chance *= float64(n-k+1) / float64(k)
	}
	return stats.Median(ratios), ratios[max(k-1, 0)], ratios[n-max(k, 1)]
}

// loads measures both loads alternately, A B B A, and returns the medians. So the remains of the load before, such as
// recycled WAL, affect both alike.
func (s *server) loads(ours, theirs func() (seconds float64, err error)) (a, b float64, err error) {
	side := func(name string, load func() (float64, error)) contender {
		return contender{name, func() (speed, error) {
			seconds, err := load()
			return speed{cost: seconds}, err
		}}
	}
	reached, err := contest(s.repeats, []contender{side("theirs", theirs), side("ours", ours)}, s.settle, s.settle)
	return reached["ours"].cost, reached["theirs"].cost, err
}

// timed returns the seconds that a command takes.
func (s *server) timed(name string, args ...string) func() (float64, error) {
	return func() (float64, error) {
		start := time.Now()
		_, err := run(exec.CommandContext(s.ctx, name, args...))
		return time.Since(start).Seconds(), err
	}
}
