// Statements makes seeded runs on the memory: database, healthy ones and ones with a planted bug, and lets a
// separate program rebuild every statement of their reports from the files. Then it alters copies of
// the recordings and checks that an altered file neither accuses nor acquits.
//
//	go run ./tools/statements -runs 2000 -altered 3000
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"stroppy/internal/cli"
	"stroppy/tools/try"
)

func main() {
	runs := flag.Int("runs", 2000, "seeded runs")
	altered := flag.Int("altered", 3000, "altered copies of recordings")
	from := flag.Uint64("seed", 1, "of the first run")
	keep := flag.String("keep", "", "a directory for copies of the recordings that have a problem")
	flag.Parse()
	try.Main("statements", 1, func() {
		dir := try.Must(os.MkdirTemp("", "statements"))
		defer os.RemoveAll(dir)
		c := &campaign{dir: dir, keep: *keep, log: os.Stderr, verifier: verifierFile, call: inProcess}
		err := c.run(*runs, *altered, *from)
		fmt.Print(c.summary())
		try.Check(err)
	})
}

// verifierFile is the separate program, from the root of the repository.
const verifierFile = "docs/examples/verify_findings.py"

// campaign counts the recordings checked so far.
type campaign struct {
	dir, keep, verifier string
	call                caller
	log                 io.Writer // gets each problem at once

	mu       sync.Mutex
	verdicts [5]int         // runs by exit code
	right    map[string]int // statements that are so, by kind
	open     map[string]int // statements that the verifier does not rebuild, by kind
	copies   [5]int         // altered copies by exit code
	problems []string
}

// A caller runs the program and returns its exit code and the last line of its errors. Several may run at once.
type caller func(args []string) (code int, last string)

// inProcess runs a command of the program that this one was built with.
func inProcess(args []string) (code int, last string) {
	var errors bytes.Buffer
	code = cli.Main(args, nil, strings.NewReader(""), io.Discard, &errors)
	lines := strings.Split(strings.TrimSpace(errors.String()), "\n")
	return code, lines[len(lines)-1]
}

// kind is one combination of settings of a run.
type kind struct {
	workload string
	args     []string
}

func kinds() []kind {
	return []kind{
		{"bank", []string{"--accounts", "200"}}, {"bank", []string{"--accounts", "50", "--update", "rmw"}},
		{"bank", []string{"--accounts", "200", "--audits", "20"}},
		{"bank", []string{"--accounts", "60", "--opening-share", "0.3"}},
		{"tpcb", []string{"--ratio", "1:10:1000"}}, {"tpcb", []string{"--ratio", "2:5:50", "--versions"}},
		{"tpcb", []string{"--ratio", "1:2:20"}},
		{"kv", []string{"--records", "50"}}, {"kv", []string{"--preset", "ycsb-f", "--records", "20"}},
		{"kv", []string{"--preset", "ycsb-e", "--records", "60", "--scan-length", "20"}},
		{"kv", []string{"--records", "8", "--read-share", "0.4", "--update-share", "0.3", "--insert-share", "0.1",
			"--modify-share", "0.2"}},
		{"events", nil}, {"events", []string{"--batch", "3", "--streams", "2"}},
		{"append", nil}, {"append", []string{"--lists", "4", "--read-share", "0.7"}},
	}
}

// mutants are the planted bugs; the empty one is none.
func mutants() []string {
	return []string{"", "", "", "lost-update", "dirty-read", "read-skew", "write-skew", "long-fork", "stale-read",
		"lost-ack", "ghost", "double-apply", "torn", "phantom-money", "swap", "overdraft", "false-ack-on-crash",
		"unknown-lies"}
}

func (c *campaign) run(runs, altered int, from uint64) error {
	c.right, c.open = map[string]int{}, map[string]int{}
	const workers = 2
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < runs; i += workers {
				c.one(from+uint64(i), altered*(i+1)/max(runs, 1)-altered*i/max(runs, 1))
			}
		})
	}
	group.Wait()
	if len(c.problems) > 0 {
		return fmt.Errorf("%d problems, the first: %s", len(c.problems), c.problems[0])
	}
	return nil
}

// recording is a run that was made.
type recording struct {
	dir, command string
	args         []string // without the seed and the directory
	seed         uint64
	code         int    // the exit code of the run
	other        string // the directory of a run with the same settings and another seed; empty: none was made yet
}

// make makes a run into a directory.
func (c *campaign) make(args []string, seed uint64, dir string) (code int, last, command string) {
	args = append(slices.Clone(args), "--seed", strconv.FormatUint(seed, 10), "--out", dir, "-q")
	code, last = c.call(args)
	return code, last, "stroppy " + strings.Join(args, " ")
}

// one makes one run, verifies its statements, and checks so many altered copies of it.
func (c *campaign) one(seed uint64, altered int) {
	rng := rand.New(rand.NewPCG(seed, 47))
	k, mutant := kinds()[rng.IntN(len(kinds()))], mutants()[rng.IntN(len(mutants()))]
	url := "memory:"
	if mutant != "" {
		url += fmt.Sprintf("?mutant=%s&rate=%g", mutant, []float64{0.002, 0.02, 0.1}[rng.IntN(3)])
	}
	r := &recording{seed: seed, dir: filepath.Join(c.dir, strconv.FormatUint(seed, 10))}
	defer os.RemoveAll(r.dir)
	defer os.RemoveAll(r.dir + "-other")
	count := strconv.Itoa(300 + rng.IntN(1200))
	r.args = append([]string{"run", k.workload, "--db", url, "--count", count, "--clients", "8"}, k.args...)
	var out string
	r.code, out, r.command = c.make(r.args, seed, r.dir)
	c.count(&c.verdicts, r.code)
	switch {
	case r.code > 4 || r.code == 2 || r.code == 3:
		c.problem(r.dir, "%s: exit code %d: %s", r.command, r.code, out)
		return
	case mutant == "" && r.code != 0:
		c.problem(r.dir, "%s: a healthy run has exit code %d: %s", r.command, r.code, out)
	}
	c.verify(r)
	if code, out := c.call([]string{"check", r.dir, "-q"}); code != r.code {
		c.problem(r.dir, "%s: exit code %d, and the exit code of check is %d: %s", r.command, r.code, code, out)
	}
	for range altered {
		c.alter(rng, r)
	}
}

// other returns the directory of a run with the same settings and another seed.
func (c *campaign) other(r *recording) (dir string) {
	if r.other == "" {
		dir := r.dir + "-other"
		if code, out, command := c.make(r.args, r.seed+1<<32, dir); code != 0 && code != 1 && code != 4 {
			try.Fail("%s: exit code %d: %s", command, code, out)
		}
		r.other = dir
	}
	return r.other
}

// verify lets the separate program rebuild the statements of a run.
func (c *campaign) verify(r *recording) {
	printed, err := exec.Command("python3", "-B", c.verifier, r.dir).CombinedOutput()
	var found struct {
		Right      map[string]int    `json:"right"`
		Wrong      []json.RawMessage `json:"wrong"`
		NotRebuilt map[string]int    `json:"not_rebuilt"`
	}
	if json.Unmarshal(printed, &found) != nil {
		c.problem(r.dir, "%s: the verifier: %v: %s", r.command, err, printed)
		return
	}
	c.mu.Lock()
	for kind, n := range found.Right {
		c.right[kind] += n
	}
	for kind, n := range found.NotRebuilt {
		c.open[kind] += n
	}
	c.mu.Unlock()
	if len(found.Wrong) > 0 {
		c.problem(r.dir, "%s: %d statements are wrong, the first: %s", r.command, len(found.Wrong), found.Wrong[0])
	}
}

func (c *campaign) count(codes *[5]int, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if code < len(codes) {
		codes[code]++
	}
}

// problem notes a problem and keeps a copy of the directory that has it, unless that is empty.
func (c *campaign) problem(dir, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if c.keep != "" && dir != "" {
		kept := filepath.Join(c.keep, filepath.Base(dir)+"-"+strconv.Itoa(len(c.problems)))
		if err := os.CopyFS(kept, os.DirFS(dir)); err != nil {
			text += fmt.Sprintf(" (it could not be kept: %v)", err)
		}
	}
	c.problems = append(c.problems, text)
	fmt.Fprintln(c.log, text)
}

func (c *campaign) summary() string {
	var b strings.Builder
	sum := func(kinds map[string]int) (n int) {
		for _, count := range kinds {
			n += count
		}
		return n
	}
	fmt.Fprintf(&b, "runs: %d valid, %d invalid, %d unknown\n", c.verdicts[0], c.verdicts[1], c.verdicts[4])
	fmt.Fprintf(&b, "statements: %d rebuilt and right, of %d kinds; %d not rebuilt\n",
		sum(c.right), len(c.right), sum(c.open))
	for _, kind := range slices.Sorted(maps.Keys(c.open)) {
		fmt.Fprintf(&b, "  not rebuilt: %d of the kind %s, of which %d were\n", c.open[kind], kind, c.right[kind])
	}
	fmt.Fprintf(&b, "altered copies: %d refused, %d unknown, %d invalid by what was intact, %d valid\n",
		c.copies[3], c.copies[4], c.copies[1], c.copies[0])
	fmt.Fprintf(&b, "problems: %d\n", len(c.problems))
	return b.String()
}
