package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"stroppy/internal/cluster/postgres"
)

// What both sides drive: pgbench's ten branches, for which eight clients wait now and
// then.
const (
	tpcbScale   = 10
	tpcbRows    = tpcbScale * (1 + 10 + 100_000)
	tpcbClients = 8
	tpcbTurns   = 5 // of each mode; the medians are printed

	sharedMemory = "/dev/shm" // a file system that is no disk
)

// tpcb measures the transaction of TPC-B beside pgbench on the same tables of the same
// server, in turn: the load, then each mode, on a disk, for which both wait much of the
// time, and in memory, where what remains is what each side costs.
func (s *suite) tpcb() error {
	pgbench, err := postgres.PGBin("pgbench")
	if err != nil {
		return err
	}
	if err := s.tpcbOn("disk", "", pgbench); err != nil {
		return err
	}
	return s.tpcbOn("memory", sharedMemory, pgbench)
}

// tpcbModes are the modes with what is wanted of them.
var tpcbModes = []struct{ name, rate, cpu string }{
	{"pipelined", "≥ 1.50", "≤ 0.60"}, {"interactive", "≥ 1.00", "≤ 1.70"}, {"procedure", "", ""},
}

// tpcbOn measures a server whose data is in a temporary folder, below dir unless that
// is empty.
func (s *suite) tpcbOn(place, dir, pgbench string) error {
	server, err := postgres.Start(s.ctx, postgres.Options{Dir: dir, Settings: map[string]string{"dynamic_shared_memory_type": "posix"}})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	if dir == "" {
		if err := s.tpcbLoad(server, pgbench); err != nil {
			return err
		}
	}
	all, figures := s.tpcbContenders(server.URL(), pgbench), make(map[string]*sides)
	for turn := range tpcbTurns {
		if err := s.tpcbTurn(server.URL(), all, turn, figures); err != nil {
			return err
		}
	}
	peer := figures[tpcbPeers[0]]
	for _, mode := range tpcbModes {
		ours := figures[mode.name]
		name := fmt.Sprintf("tpcb: %s, %d clients, %s", place, tpcbClients, mode.name)
		a, b, c, d := median(ours.rates), median(peer.rates), median(ours.costs), median(peer.costs)
		s.row(name+": transactions a second", fmt.Sprintf("%.0f", a), fmt.Sprintf("%.0f", b), fmt.Sprintf("%.2f", a/b), mode.rate)
		s.row(name+": client CPU a transaction", fmt.Sprintf("%.1f µs", c), fmt.Sprintf("%.1f µs", d), fmt.Sprintf("%.2f", c/d), mode.cpu)
	}
	for _, threads := range tpcbPeers[1:] {
		s.row(fmt.Sprintf("tpcb: %s: transactions a second of pgbench -j %s", place, threads), "",
			fmt.Sprintf("%.0f", median(figures[threads].rates)), "", "")
	}
	return nil
}

// tpcbPeers are the numbers of threads (-j) that pgbench is run with. We are compared
// with the first, which is its default; the others are told beside.
var tpcbPeers = []string{"1", "2"}

// contender is one that drives the tables.
type contender struct {
	name  string // a mode, or the threads of pgbench
	drive func() (rate, cost float64, err error)
}

func (s *suite) tpcbContenders(url, pgbench string) (all []contender) {
	for _, threads := range tpcbPeers {
		all = append(all, contender{threads, func() (float64, float64, error) {
			p, err := s.pgbenchWith(pgbench, "-n", "-c", strconv.Itoa(tpcbClients), "-j", threads, "-M", "prepared", "-T", strconv.Itoa(int(s.seconds.Seconds())), url)
			return p.tps, p.cpu, err
		}})
	}
	for _, mode := range tpcbModes {
		all = append(all, contender{mode.name, func() (float64, float64, error) {
			r, err := s.driveTPCB("--db="+url, "--no-load", "--mode="+mode.name, "--duration="+s.seconds.String())
			if err != nil {
				return 0, 0, err
			}
			return r.Drive.TPS.Mean, r.Client.CPU * 1e6 / float64(r.Drive.Committed), nil
		}})
	}
	return all
}

// tpcbTurn has each contender drive the same tables, which are fresh when the turn
// begins. Who is first is another one in each turn, because tables grow.
func (s *suite) tpcbTurn(url string, all []contender, turn int, figures map[string]*sides) error {
	if _, err := s.tpcbFresh(url); err != nil {
		return err
	}
	for i := range all {
		c := all[(i+turn)%len(all)]
		rate, cost, err := c.drive()
		if err != nil {
			return err
		}
		if figures[c.name] == nil {
			figures[c.name] = &sides{}
		}
		figures[c.name].add(rate, cost)
		if err := s.settle(url); err != nil {
			return err
		}
	}
	return nil
}

// loaded is a result.json with what the load took.
type loaded struct {
	result
	Load struct{ Seconds float64 }
}

// driveTPCB runs the workload and returns its result.json.
func (s *suite) driveTPCB(args ...string) (*loaded, error) {
	out := filepath.Join(s.dir, "run")
	defer os.RemoveAll(out)
	args = append([]string{"run", "tpcb", "--json", "--no-check", "--out=" + out, "--clients=" + strconv.Itoa(tpcbClients)}, args...)
	text, err := run(exec.CommandContext(s.ctx, s.stroppy, args...))
	if err != nil {
		return nil, err
	}
	var r loaded
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the result of stroppy %v: %w", args, err)
	}
	return &r, nil
}

// tpcbFresh loads the tables anew, with what is to be written to the disk written, and
// returns the seconds that the load took. One transaction is driven on them.
func (s *suite) tpcbFresh(url string) (float64, error) {
	r, err := s.driveTPCB("--db="+url, "--scale="+strconv.Itoa(tpcbScale), "--seed=1", "--count=1")
	if err != nil {
		return 0, err
	}
	return r.Load.Seconds, s.settle(url)
}

// settle writes what is to be written to the disk, so that nobody pays for the other's
// pages.
func (s *suite) settle(url string) error {
	psql, err := postgres.PGBin("psql")
	if err == nil {
		_, err = run(exec.CommandContext(s.ctx, psql, "-XAtq", "-c", "CHECKPOINT", url))
	}
	if err == nil {
		_, err = run(exec.CommandContext(s.ctx, "sync"))
	}
	return err
}

// tpcbLoad times both loads in turn, each into a database of its own.
func (s *suite) tpcbLoad(server *postgres.Server, pgbench string) error {
	psql, err := postgres.PGBin("psql")
	if err != nil {
		return err
	}
	if _, err := run(exec.CommandContext(s.ctx, psql, "-XAtq", "-c", "CREATE DATABASE pgbench", server.URL())); err != nil {
		return err
	}
	peer := server.URLFor(postgres.Superuser, "", "pgbench")
	var ours, theirs []float64
	for range s.repeats {
		if err := s.settle(peer); err != nil {
			return err
		}
		start := time.Now()
		if _, err := run(exec.CommandContext(s.ctx, pgbench, "-i", "-q", "-s", strconv.Itoa(tpcbScale), peer)); err != nil {
			return err
		}
		theirs = append(theirs, tpcbRows/time.Since(start).Seconds())
		if err := s.settle(peer); err != nil {
			return err
		}
		seconds, err := s.tpcbFresh(server.URL())
		if err != nil {
			return err
		}
		ours = append(ours, tpcbRows/seconds)
	}
	a, b := median(ours), median(theirs)
	s.row(fmt.Sprintf("tpcb: load, rows a second (pgbench -i -s %d)", tpcbScale), fmt.Sprintf("%.0f", a), fmt.Sprintf("%.0f", b), fmt.Sprintf("%.2f", a/b), "≥ 0.90")
	return nil
}
