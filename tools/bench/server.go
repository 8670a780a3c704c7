package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/cluster"
	postgres "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/stats"
	"stroppy/tools/try"
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
func (s *suite) serve(options cluster.Options, measure func(*server)) {
	pgbench := try.Must(postgres.PGBin("pgbench"))
	psql := try.Must(postgres.PGBin("psql"))
	started := try.Must(postgres.Start(s.ctx, options))
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), shutdownLimit)
		defer cancel()
		_ = errors.Join(started.Terminate(ctx), started.Stop())
	}()
	measure(&server{s, started, pgbench, psql})
}

func (s *server) sql(statement string) {
	try.Output(exec.CommandContext(s.ctx, s.psql, "-XAtq", "-c", statement, s.URL()))
}

// settle writes what is to be written to the disk, so that nobody pays for the other's
// pages.
func (s *server) settle() {
	s.sql("CHECKPOINT")
	try.Output(exec.CommandContext(s.ctx, "sync"))
}

// peer runs pgbench for as long as a measurement takes, with prepared statements unless the
// arguments have another -M.
func (s *server) peer(args ...string) speed {
	cmd := exec.CommandContext(s.ctx, s.pgbench, append([]string{"-n", "-M", "prepared", "-T", strconv.Itoa(int(s.seconds.Seconds()))}, append(args, s.URL())...)...)
	text := try.Output(cmd)
	number := func(before string, after byte) float64 {
		_, rest, ok := bytes.Cut(text, []byte(before))
		end := bytes.IndexByte(rest, after)
		if !ok || end <= 0 {
			try.Fail("pgbench printed no %q: %s", before, text)
		}
		return try.Must(strconv.ParseFloat(string(rest[:end]), 64))
	}
	tps, count := number("tps = ", ' '), number("actually processed: ", '\n')
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return speed{rate: tps, cost: used.Seconds() * 1e6 / count}
}

// contender is one side, or one way of it.
type contender struct {
	name  string
	drive func() speed
}

// ours runs a workload on what is loaded.
func (s *server) ours(name, workload string, args ...string) contender {
	return contender{name, func() speed {
		return s.drive(workload, append(args, "--db="+s.URL(), "--no-load")...).speed()
	}}
}

func (s *server) theirs(name string, args ...string) contender {
	return contender{name, func() speed { return s.peer(args...) }}
}

// contest measures the contenders alternately and returns the medians of each. Each turn begins with another
// contender, because tables grow. before begins a turn and between follows each measurement, unless they are nil.
func contest(turns int, all []contender, before, between func()) map[string]speed {
	rates, costs := inTurns(turns, all, before, between)
	return medians(rates, costs)
}

func medians(rates, costs map[string][]float64) map[string]speed {
	all := map[string]speed{}
	for name := range rates {
		all[name] = speed{stats.Median(rates[name]), stats.Median(costs[name])}
	}
	return all
}

// inTurns is contest, and returns what each contender reached in each turn.
func inTurns(turns int, all []contender, before, between func()) (rates, costs map[string][]float64) {
	rates, costs = map[string][]float64{}, map[string][]float64{}
	for turn := range turns {
		if before != nil {
			before()
		}
		for i := range all {
			c := all[(i+turn)%len(all)]
			reached := c.drive()
			if between != nil {
				between()
			}
			rates[c.name], costs[c.name] = append(rates[c.name], reached.rate), append(costs[c.name], reached.cost)
		}
	}
	return rates, costs
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
func (s *server) loads(ours, theirs func() (seconds float64)) (a, b float64) {
	side := func(name string, load func() float64) contender {
		return contender{name, func() speed { return speed{cost: load()} }}
	}
	reached := contest(s.repeats, []contender{side("theirs", theirs), side("ours", ours)}, s.settle, s.settle)
	return reached["ours"].cost, reached["theirs"].cost
}

// timed returns the seconds that a command takes.
func (s *server) timed(name string, args ...string) func() float64 {
	return func() float64 {
		start := time.Now()
		try.Output(exec.CommandContext(s.ctx, name, args...))
		return time.Since(start).Seconds()
	}
}
