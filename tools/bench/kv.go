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

	server, err := postgres.Start(s.ctx, postgres.Options{})
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
	if err := s.settle(url); err != nil {
		return err
	}
	var rates, costs, peerRates, peerCosts []float64
	for range kvTurns {
		theirs, err := s.pgbenchWith(pgbench, "-n", "-S", "-c", strconv.Itoa(kvClients), "-j", "2", "-M", "prepared", "-T", strconv.Itoa(int(s.seconds.Seconds())), url)
		if err != nil {
			return err
		}
		ours, err := s.driveKV("--db="+url, "--no-load", "--read-share=1", "--update-share=0", "--clients="+strconv.Itoa(kvClients), "--duration="+s.seconds.String())
		if err != nil {
			return err
		}
		rates, costs = append(rates, ours.Drive.TPS.Mean), append(costs, ours.Client.CPU*1e6/float64(ours.Drive.Committed))
		peerRates, peerCosts = append(peerRates, theirs.tps), append(peerCosts, theirs.cpu)
	}
	a, b, c, d := median(rates), median(peerRates), median(costs), median(peerCosts)
	s.row(fmt.Sprintf("kv: postgres: reads a second, %d clients (pgbench -S)", kvClients), fmt.Sprintf("%.0f", a), fmt.Sprintf("%.0f", b), fmt.Sprintf("%.2f", a/b), "≥ 1.00")
	s.row("kv: postgres: client CPU a read", fmt.Sprintf("%.1f µs", c), fmt.Sprintf("%.1f µs", d), fmt.Sprintf("%.2f", c/d), "≤ 1.50")
	return nil
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
