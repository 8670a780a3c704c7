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

// What both sides drive: ten branches, so that eight clients seldom wait for one.
const (
	tpcbScale   = 10
	tpcbRows    = tpcbScale * (1 + 10 + 100_000)
	tpcbClients = 8
	tpcbTurns   = 3 // of each mode; the medians are printed
)

// tpcb measures the transaction of TPC-B beside pgbench on the same tables of the same
// server, in turn: the load, then each mode.
func (s *suite) tpcb() error {
	server, err := postgres.Start(s.ctx, postgres.Options{Settings: map[string]string{"dynamic_shared_memory_type": "posix"}})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	pgbench, err := postgres.PGBin("pgbench")
	if err != nil {
		return err
	}
	if err := s.tpcbLoad(server, pgbench); err != nil {
		return err
	}
	for _, mode := range []struct{ name, rate, cpu string }{
		{"pipelined", "≥ 1.50", "≤ 0.60"}, {"interactive", "≥ 1.00", "≤ 1.70"}, {"procedure", "", ""},
	} {
		var ours, theirs sides
		for range tpcbTurns {
			if err := s.tpcbTurn(server.URL(), pgbench, mode.name, &ours, &theirs); err != nil {
				return err
			}
		}
		name := fmt.Sprintf("tpcb: %d clients, %s", tpcbClients, mode.name)
		a, b, c, d := median(ours.rates), median(theirs.rates), median(ours.costs), median(theirs.costs)
		s.row(name+": transactions a second", fmt.Sprintf("%.0f", a), fmt.Sprintf("%.0f", b), fmt.Sprintf("%.2f", a/b), mode.rate)
		s.row(name+": client CPU a transaction", fmt.Sprintf("%.1f µs", c), fmt.Sprintf("%.1f µs", d), fmt.Sprintf("%.2f", c/d), mode.cpu)
	}
	return nil
}

// tpcbTurn is pgbench and we, one after the other, each on tables as fresh.
func (s *suite) tpcbTurn(url, pgbench, mode string, ours, theirs *sides) error {
	if _, err := s.tpcbFresh(url); err != nil {
		return err
	}
	p, err := s.pgbenchTPCB(pgbench, url)
	if err != nil {
		return err
	}
	theirs.add(p.tps, p.cpu)
	if _, err := s.tpcbFresh(url); err != nil {
		return err
	}
	r, err := s.driveTPCB("--db="+url, "--no-load", "--mode="+mode, "--duration="+s.seconds.String())
	if err != nil {
		return err
	}
	ours.add(r.Drive.TPS.Mean, r.Client.CPU*1e6/float64(r.Drive.Committed))
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

func (s *suite) pgbenchTPCB(path, url string) (peer, error) {
	return s.pgbenchWith(path, "-n", "-c", strconv.Itoa(tpcbClients), "-j", "2", "-M", "prepared", "-T", strconv.Itoa(int(s.seconds.Seconds())), url)
}
