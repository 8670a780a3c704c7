// Command bench measures Stroppy beside its peers in one run on real servers that it
// starts itself: pgbench on PostgreSQL, and on other databases a bare loop that makes the
// same calls. It prints the measurements with their ratios and with what the project
// wants to reach. It judges nothing: it exits 0 whenever everything could be measured.
// A server that is not there is skipped by name. Start it with go -C tools/bench run .
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
	"strings"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"
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
	seconds time.Duration // of each measurement
	repeats int           // of each load

	profiles string // the folder of the profiles; empty: none are made

	transactions int // of each recording that is checked

	out    *tabwriter.Writer
	number atomic.Uint64 // of the latest transaction of a bare loop
}

// parts are groups of measurements.
var parts = []struct {
	name    string
	measure func(*suite) error
}{
	{"postgres", (*suite).bank}, {"tpcb", (*suite).tpcb}, {"kv", (*suite).kv},
	{"harness", (*suite).harness}, {"memory", (*suite).memory}, {"connections", (*suite).connections},
	{"check", (*suite).checks}, {"check-memory", (*suite).memoryOfChecks}, {"check-kv", (*suite).checkKV}, {"check-events", (*suite).checkEvents}, {"download", (*suite).download},
	{"live", (*suite).live}, {"isolation", (*suite).isolation},
	{"cockroach", (*suite).cockroach}, {"voltdb", (*suite).voltdb},
	{"mongodb", (*suite).mongodb}, {"lists", (*suite).lists}, {"registers", (*suite).registers}, {"foundationdb", (*suite).foundationdb}, {"infinisql", (*suite).infinisql},
}

func bench(ctx context.Context, args []string, out io.Writer) error {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	seconds := flags.Duration("duration", 10*time.Second, "how long each measurement takes")
	repeats := flags.Int("repeats", 5, "how often each load is repeated; the median is printed")
	transactions := flags.Int("transactions", 5_000_000, "how many transactions the recordings have that are checked")
	only := flags.String("only", "", "measure this part alone: "+strings.Join(names, ", ")+"; or several with commas between")
	profile := flags.String("profile", "", "write a CPU profile of all that stroppy does into this file, such as "+releaseProfile+", by which releases are built")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if *repeats < 1 || *seconds < time.Second {
		return fmt.Errorf("take at least one repeat and one second")
	}
	if err := os.Chdir("../.."); err != nil { // from tools/bench, its own module, to the program's
		return err
	}
	dir, err := os.MkdirTemp("", "stroppy-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &suite{
		ctx: ctx, stroppy: filepath.Join(dir, "stroppy"), dir: dir, seconds: *seconds, repeats: *repeats, transactions: *transactions,
		out: tabwriter.NewWriter(out, 0, 4, 2, ' ', 0),
	}
	if err := s.build(*profile != ""); err != nil {
		return err
	}
	fmt.Fprintln(s.out, "FIGURE\tSTROPPY\tPEER\tRATIO\tWANTED")
	for _, p := range parts {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), p.name) {
			continue
		}
		if err := p.measure(s); err != nil {
			return errors.Join(err, s.out.Flush())
		}
	}
	if *profile != "" {
		return errors.Join(s.mergeProfiles(*profile), s.out.Flush())
	}
	return s.out.Flush()
}

// row prints a measurement of one side or both, in the format of each; 0 is none.
func (s *suite) row(figure, format string, ours, peer float64, wanted string) {
	text := func(format string, value float64) string {
		if value == 0 {
			return ""
		}
		return fmt.Sprintf(format, value)
	}
	ratio := ""
	if ours != 0 && peer != 0 {
		ratio = fmt.Sprintf("%.2f", ours/peer)
	}
	fmt.Fprintf(s.out, "%s\t%s\t%s\t%s\t%s\n", figure, text(format, ours), text(format, peer), ratio, wanted)
}

// result holds the keys of result.json that are read here.
type result struct {
	Load  struct{ Seconds float64 }
	Drive struct {
		Committed uint64
		TPS       struct{ Mean float64 }
	}
	Phases []struct {
		Name    string
		Seconds float64
	}
	Client struct {
		CPU float64 `json:"cpu_seconds"`
		RSS int64   `json:"max_rss_bytes"`
	}
}

// speed is the speed of one side.
type speed struct{ rate, cost float64 } // transactions a second; µs of client CPU for each

func (r *result) speed() speed {
	return speed{rate: r.Drive.TPS.Mean, cost: r.Client.CPU * 1e6 / float64(r.Drive.Committed)}
}

// drive runs a workload for as long as a measurement takes.
func (s *suite) drive(workload string, args ...string) (*result, error) {
	return s.runWorkload(workload, append(args, "--duration="+s.seconds.String())...)
}

// runWorkload runs a workload and returns its result.json.
func (s *suite) runWorkload(workload string, args ...string) (*result, error) {
	return s.runChecked(workload, append([]string{"--no-check"}, args...)...)
}

// runChecked does the same with a run that is checked.
func (s *suite) runChecked(workload string, args ...string) (*result, error) {
	out := filepath.Join(s.dir, "run")
	defer os.RemoveAll(out)
	args = append([]string{"run", workload, "--json", "--out=" + out}, args...)
	command := exec.CommandContext(s.ctx, s.stroppy, args...)
	command.Env = append(os.Environ(), "CPU_PROFILES="+s.profiles)
	text, err := run(command)
	if err != nil {
		return nil, err
	}
	var r result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the result of stroppy %v: %w", args, err)
	}
	return &r, nil
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
