package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"stroppy/internal/cluster/postgres"
)

// What both sides read: as many rows, each about as long.
const (
	kvScale   = 10
	kvRecords = kvScale * 100_000
	kvClients = 8
	kvTurns   = 3
)

// kvShape makes records that are as long as pgbench's accounts.
var kvShape = []string{"--records=" + strconv.Itoa(kvRecords), "--key-size=16", "--value-size=84", "--seed=1"}

// kv measures the key-value workload: alone, and reads of single rows beside those of
// pgbench -S on the same server, in turn.
func (s *suite) kv() error {
	r, err := s.driveKV("--db=noop:", "--clients=2", "--duration="+s.seconds.String())
	if err != nil {
		return err
	}
	s.row("kv: noop: operations a second, 90 % reads", fmt.Sprintf("%.0f", r.Drive.TPS.Mean), "", "", "≥ 1500000 on two cores")
	s.row("kv: noop: CPU an operation", fmt.Sprintf("%.2f µs", r.Client.CPU*1e6/float64(r.Drive.Committed)), "", "", "")

	// All rows of both stay in memory, so that neither side reads more pages.
	server, err := postgres.Start(s.ctx, postgres.Options{Settings: map[string]string{"shared_buffers": "640MB"}})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	url := server.URL()
	pgbench, err := postgres.PGBin("pgbench")
	if err != nil {
		return err
	}
	if _, err := run(exec.CommandContext(s.ctx, pgbench, "-i", "-q", "-s", strconv.Itoa(kvScale), url)); err != nil {
		return err
	}
	if _, err := s.driveKV(append(kvShape, "--db="+url, "--count=1")...); err != nil {
		return err
	}
	psql, err := postgres.PGBin("psql")
	if err != nil {
		return err
	}
	// pgbench -i has vacuumed its tables.
	if _, err := run(exec.CommandContext(s.ctx, psql, "-XAtq", "-c", "VACUUM ANALYZE stroppy_kv", url)); err != nil {
		return err
	}
	if err := s.settle(url); err != nil {
		return err
	}
	return s.kvReads(pgbench, url)
}

// kvLanes is how many transactions each connection has under way in the second of our
// turns; pgbench -S has no such thing.
const kvLanes = 16

// kvReads measures reads on one connection a client, one after another as pgbench makes
// them, and with several under way on each connection, in turn.
func (s *suite) kvReads(pgbench, url string) error {
	var theirs, single, lanes sides
	for range kvTurns {
		p, err := s.pgbenchWith(pgbench, "-n", "-S", "-c", strconv.Itoa(kvClients), "-j", "2", "-M", "prepared", "-T", strconv.Itoa(int(s.seconds.Seconds())), url)
		if err != nil {
			return err
		}
		theirs.add(p.tps, p.cpu)
		for _, turn := range []struct {
			side     *sides
			inFlight int
		}{{&single, 1}, {&lanes, kvLanes}} {
			r, err := s.driveKV("--db="+url, "--no-load", "--read-share=1", "--update-share=0", "--clients="+strconv.Itoa(kvClients),
				"--in-flight="+strconv.Itoa(turn.inFlight), "--duration="+s.seconds.String())
			if err != nil {
				return err
			}
			turn.side.add(r.Drive.TPS.Mean, r.Client.CPU*1e6/float64(r.Drive.Committed))
		}
	}
	for _, way := range []struct {
		name string
		side *sides
	}{{"", &single}, {fmt.Sprintf(", %d in flight on each", kvLanes), &lanes}} {
		name := fmt.Sprintf("kv: postgres: %d connections%s: ", kvClients, way.name)
		a, b, c, d := median(way.side.rates), median(theirs.rates), median(way.side.costs), median(theirs.costs)
		s.row(name+"reads a second (pgbench -S)", fmt.Sprintf("%.0f", a), fmt.Sprintf("%.0f", b), fmt.Sprintf("%.2f", a/b), "≥ 1.00")
		s.row(name+"client CPU a read", fmt.Sprintf("%.1f µs", c), fmt.Sprintf("%.1f µs", d), fmt.Sprintf("%.2f", c/d), "")
	}
	return nil
}

// sides are the figures of one side, turn by turn.
type sides struct{ rates, costs []float64 } // a second; µs each

func (s *sides) add(rate, cost float64) {
	s.rates, s.costs = append(s.rates, rate), append(s.costs, cost)
}

// driveKV runs the workload and returns its result.json.
func (s *suite) driveKV(args ...string) (*result, error) {
	out := filepath.Join(s.dir, "run")
	defer os.RemoveAll(out)
	args = append([]string{"run", "kv", "--json", "--no-check", "--out=" + out}, args...)
	text, err := run(exec.CommandContext(s.ctx, s.stroppy, args...))
	if err != nil {
		return nil, err
	}
	var r result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the result of stroppy %v: %w", args, err)
	}
	return &r, nil
}
