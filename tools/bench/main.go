// Command bench measures Stroppy beside its peer, pgbench, in one run on one
// real PostgreSQL server that it starts itself, and prints the figures with
// their ratios and with what the project wants to reach. It judges nothing: it
// exits 0 whenever everything could be measured.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"stroppy/internal/cluster/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(3)
	}
}

// suite is one run of all measurements.
type suite struct {
	ctx     context.Context
	stroppy string // the binary
	dir     string
	seconds time.Duration // of each drive
	repeats int           // of each load
	out     *tabwriter.Writer
}

func bench(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	seconds := flags.Duration("duration", 10*time.Second, "how long each drive takes")
	repeats := flags.Int("repeats", 5, "how often each load is repeated; the median is printed")
	only := flags.String("only", "", "measure this part alone: postgres, tpcb, kv, harness, memory or connections")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if *repeats < 1 || *seconds < time.Second {
		return fmt.Errorf("take at least one repeat and one second")
	}
	dir, err := os.MkdirTemp("", "stroppy-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &suite{
		ctx: ctx, stroppy: filepath.Join(dir, "stroppy"), dir: dir, seconds: *seconds, repeats: *repeats,
		out: tabwriter.NewWriter(out, 0, 4, 2, ' ', 0),
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", s.stroppy, "./cmd/stroppy")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if _, err := run(build); err != nil {
		return err
	}
	fmt.Fprintln(s.out, "FIGURE\tSTROPPY\tPGBENCH\tRATIO\tWANTED")
	for _, part := range []struct {
		name    string
		measure func() error
	}{{"postgres", s.postgres}, {"tpcb", s.tpcb}, {"kv", s.kv}, {"harness", s.harness}, {"memory", s.memory}, {"connections", s.many}} {
		if *only != "" && *only != part.name {
			continue
		}
		if err := part.measure(); err != nil {
			return errors.Join(err, s.out.Flush())
		}
	}
	return s.out.Flush()
}

// result is what is read of result.json.
type result struct {
	Drive struct {
		Committed uint64
		TPS       struct{ Mean, Median float64 }
		Latency   struct{ P50, P99 float64 } `json:"latency_ms"`
	}
	Client struct {
		CPU float64 `json:"cpu_seconds"`
		RSS int64   `json:"max_rss_bytes"`
	}
}

// transfersOnly takes everything but plain transfers out of the mix, so that
// figures are a transfer's.
var transfersOnly = []string{"--payroll-share=0", "--two-account-share=0", "--read-only-share=0", "--audits=0"}

// drive runs the bank and returns its result.json.
func (s *suite) drive(args ...string) (*result, error) {
	out := filepath.Join(s.dir, "run")
	defer os.RemoveAll(out)
	args = append([]string{"run", "bank", "--json", "--no-check", "--seed=1", "--out=" + out, "--duration=" + s.seconds.String()}, args...)
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

func (s *suite) row(figure, ours, peer, ratio, wanted string) {
	fmt.Fprintf(s.out, "%s\t%s\t%s\t%s\t%s\n", figure, ours, peer, ratio, wanted)
}

// harness measures the tool itself: transactions against noop: with history and
// histograms on.
func (s *suite) harness() error {
	r, err := s.drive(append(transfersOnly, "--db=noop:", "--clients=16")...)
	if err != nil {
		return err
	}
	s.row("noop: transfers a second", fmt.Sprintf("%.0f", r.Drive.TPS.Mean), "", "", "≥ 1000000 on two cores")
	s.row("noop: CPU a transfer", fmt.Sprintf("%.2f µs", r.Client.CPU*1e6/float64(r.Drive.Committed)), "", "", "")
	return nil
}

// memory measures what 50 million accounts cost while they are driven.
func (s *suite) memory() error {
	for _, zipfian := range []string{"--zipfian=false", "--zipfian=true"} {
		r, err := s.drive("--db=noop:", "--accounts=50000000", "--clients=16", zipfian, "--audits=1", "--no-load")
		if err != nil {
			return err
		}
		s.row("noop: memory with 50,000,000 accounts, "+zipfian[2:], fmt.Sprintf("%.0f MB", float64(r.Client.RSS)/1e6), "", "", "< 200 MB")
	}
	return nil
}

func (s *suite) postgres() error {
	// PostgreSQL's own choice on Linux, which Start changes for servers that are
	// killed: with mmap, parallel sorts share their memory through the disk.
	server, err := postgres.Start(s.ctx, postgres.Options{Settings: map[string]string{"dynamic_shared_memory_type": "posix"}})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	pgbench, err := postgres.PGBin("pgbench")
	if err != nil {
		return err
	}
	if err := s.load(server.URL(), pgbench); err != nil {
		return err
	}
	peer, err := s.pgbench(pgbench, server.URL())
	if err != nil {
		return err
	}
	for _, mode := range []string{"pipelined", "interactive", "procedure"} {
		r, err := s.drive(append(transfersOnly, "--db="+server.URL(), "--no-load", "--clients=16", "--mode="+mode)...)
		if err != nil {
			return err
		}
		wanted := ""
		if mode == "pipelined" {
			wanted = "≤ 30 µs"
		}
		cpu := r.Client.CPU * 1e6 / float64(r.Drive.Committed)
		s.row("postgres: client CPU a transfer, 16 clients, "+mode, fmt.Sprintf("%.1f µs", cpu),
			fmt.Sprintf("%.1f µs", peer.cpu), fmt.Sprintf("%.2f", cpu/peer.cpu), wanted)
		s.row("postgres: transfers a second, "+mode+" (pgbench: TPC-B)", fmt.Sprintf("%.0f", r.Drive.TPS.Mean),
			fmt.Sprintf("%.0f", peer.tps), fmt.Sprintf("%.2f", r.Drive.TPS.Mean/peer.tps), "")
	}
	return nil
}

// load times both loads of a million accounts in turn, A B B A. What one of them
// has left to be written to the disk is written before the clock of the next
// starts: nobody pays for the other's pages.
func (s *suite) load(url, pgbench string) error {
	psql, err := postgres.PGBin("psql")
	if err != nil {
		return err
	}
	var ours, theirs []float64
	for i := range s.repeats {
		sides := []struct {
			times *[]float64
			cmd   *exec.Cmd
		}{
			{&theirs, exec.CommandContext(s.ctx, pgbench, "-i", "-s", "10", "-q", url)},
			{&ours, exec.CommandContext(s.ctx, s.stroppy, "pop", "--db="+url, "--accounts=1000000", "--seed=1")},
		}
		if i%2 == 1 { // what a load finds of the one before, such as recycled WAL, comes to both alike
			slices.Reverse(sides)
		}
		for _, side := range sides {
			if _, err := run(exec.CommandContext(s.ctx, psql, "-XAtq", "-c", "CHECKPOINT", url)); err != nil {
				return err
			}
			if _, err := run(exec.CommandContext(s.ctx, "sync")); err != nil {
				return err
			}
			start := time.Now()
			if _, err := run(side.cmd); err != nil {
				return err
			}
			*side.times = append(*side.times, time.Since(start).Seconds())
		}
	}
	a, b := median(ours), median(theirs)
	s.row("postgres: load 1,000,000 accounts (pgbench -i -s 10)", fmt.Sprintf("%.2f s", a), fmt.Sprintf("%.2f s", b), fmt.Sprintf("%.2f", a/b), "≤ 1.00")
	return nil
}

// peer is what pgbench reached.
type peer struct{ tps, cpu float64 } // µs a transaction

func (s *suite) pgbench(path, url string) (peer, error) {
	return s.pgbenchWith(path, "-n", "-c", "16", "-j", "2", "-M", "prepared", "-T", strconv.Itoa(int(s.seconds.Seconds())), url)
}

func (s *suite) pgbenchWith(path string, args ...string) (peer, error) {
	cmd := exec.CommandContext(s.ctx, path, args...)
	text, err := run(cmd)
	if err != nil {
		return peer{}, err
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
		return peer{}, err
	}
	count, err := number("actually processed: ", '\n')
	if err != nil {
		return peer{}, err
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return peer{tps: tps, cpu: used.Seconds() * 1e6 / count}, nil
}

// run runs a command and returns its standard output; its standard error is part
// of the error.
func run(cmd *exec.Cmd) ([]byte, error) {
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run %s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(complaints.Bytes()))
	}
	return out.Bytes(), nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}
