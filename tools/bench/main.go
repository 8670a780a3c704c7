// Command bench measures Stroppy beside its peers in one run on real servers that it
// starts itself: pgbench on PostgreSQL, and on other databases a bare loop that makes the
// same calls. It prints the measurements with their ratios and with what the project
// wants to reach. It judges nothing: it exits 0 whenever everything could be measured.
// A server that is not there is skipped by name. Start it with go -C tools/bench run .
package main

import (
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

	"stroppy/tools/try"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	try.Main("bench", 3, func() {
		defer stop()
		bench(ctx, os.Args[1:], os.Stdout)
	})
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
	measure func(*suite)
}{
	{"postgres", (*suite).bank}, {"tpcb", (*suite).tpcb}, {"script", (*suite).script}, {"kv", (*suite).kv},
	{"harness", (*suite).harness}, {"memory", (*suite).memory}, {"connections", (*suite).connections},
	{"check", (*suite).checks}, {"check-memory", (*suite).memoryOfChecks}, {"check-kv", (*suite).checkKV}, {"check-events", (*suite).checkEvents}, {"download", (*suite).download},
	{"live", (*suite).live}, {"isolation", (*suite).isolation},
	{"cockroach", (*suite).cockroach}, {"voltdb", (*suite).voltdb},
	{"mongodb", (*suite).mongodb}, {"lists", (*suite).lists}, {"registers", (*suite).registers}, {"foundationdb", (*suite).foundationdb}, {"infinisql", (*suite).infinisql},
}

func bench(ctx context.Context, args []string, out io.Writer) {
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
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return
	} else {
		try.Check(err)
	}
	if *repeats < 1 || *seconds < time.Second {
		try.Fail("take at least one repeat and one second")
	}
	try.Check(os.Chdir("../..")) // from tools/bench, its own module, to the program's
	dir := try.Must(os.MkdirTemp("", "stroppy-bench-"))
	defer os.RemoveAll(dir)
	s := &suite{
		ctx: ctx, stroppy: filepath.Join(dir, "stroppy"), dir: dir, seconds: *seconds, repeats: *repeats, transactions: *transactions,
		out: tabwriter.NewWriter(out, 0, 4, 2, ' ', 0),
	}
	s.build(*profile != "")
	defer func() { try.Check(s.out.Flush()) }()
	fmt.Fprintln(s.out, "FIGURE\tSTROPPY\tPEER\tRATIO\tWANTED")
	for _, p := range parts {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), p.name) {
			continue
		}
		p.measure(s)
	}
	if *profile != "" {
		s.mergeProfiles(*profile)
	}
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
func (s *suite) drive(workload string, args ...string) *result {
	return s.runWorkload(workload, append(args, "--duration="+s.seconds.String())...)
}

// runWorkload runs a workload and returns its result.json.
func (s *suite) runWorkload(workload string, args ...string) *result {
	return s.runChecked(workload, append([]string{"--no-check"}, args...)...)
}

// runChecked does the same with a run that is checked.
func (s *suite) runChecked(workload string, args ...string) *result {
	out := filepath.Join(s.dir, "run")
	defer os.RemoveAll(out)
	args = append([]string{"run", workload, "--json", "--out=" + out}, args...)
	command := exec.CommandContext(s.ctx, s.stroppy, args...)
	command.Env = append(os.Environ(), "CPU_PROFILES="+s.profiles)
	text := try.Output(command)
	var r result
	try.Check(json.Unmarshal(text, &r))
	return &r
}

// command runs stroppy.
func (s *suite) command(args ...string) { try.Output(exec.CommandContext(s.ctx, s.stroppy, args...)) }

// releaseProfile is where the profile lies by which releases are optimized (go build -pgo).
// It is not called default.pgo, because `go build` would take it unasked then, and compile
// all packages anew for it.
const releaseProfile = "cmd/stroppy/release.pgo"

// build builds the program as releases are, or one that writes profiles.
func (s *suite) build(profiled bool) {
	args := []string{"build", "-trimpath", "-o", s.stroppy}
	if profiled {
		s.profiles = filepath.Join(s.dir, "profiles")
		try.Check(os.Mkdir(s.profiles, 0o755))
		args = append(args, "-pgo=off", "-tags=profile,"+tags)
	} else {
		args = append(args, "-pgo="+releaseProfile, "-tags="+tags)
	}
	build := exec.CommandContext(s.ctx, "go", append(args, "./cmd/stroppy")...)
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	try.Output(build)
}

// mergeProfiles merges the profiles of all calls into one, weighted by processor time.
func (s *suite) mergeProfiles(into string) {
	all := try.Must(filepath.Glob(filepath.Join(s.profiles, "*.pprof")))
	if len(all) == 0 {
		try.Fail("no call wrote a profile: measure a part in which stroppy runs")
	}
	try.Output(exec.CommandContext(s.ctx, "go", append([]string{"tool", "pprof", "-proto", "-output=" + into}, all...)...))
}
