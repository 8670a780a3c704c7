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
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

func main() {
	stroppy := flag.String("stroppy", "", "the program; empty: it is built")
	runs := flag.Int("runs", 2000, "seeded runs")
	altered := flag.Int("altered", 3000, "altered copies of recordings")
	from := flag.Uint64("seed", 1, "of the first run")
	flag.Parse()
	dir, err := os.MkdirTemp("", "statements")
	if err == nil {
		defer os.RemoveAll(dir)
		c := &campaign{stroppy: *stroppy, dir: dir, verifier: filepath.Join("docs", "examples", "verify_findings.py"), right: map[string]int{}}
		err = c.run(*runs, *altered, *from)
		fmt.Print(c.summary())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "statements:", err)
		os.RemoveAll(dir)
		os.Exit(1)
	}
}

// campaign is what was done so far.
type campaign struct {
	stroppy, dir, verifier string

	mu       sync.Mutex
	verdicts [5]int         // runs by exit code
	right    map[string]int // statements that are so, by kind
	open     int            // statements that the verifier does not rebuild
	copies   [5]int         // altered copies by exit code
	problems []string
}

// kind is one combination of settings of a run.
type kind struct {
	workload string
	args     []string
}

func kinds() []kind {
	return []kind{
		{"bank", []string{"--accounts", "200"}}, {"bank", []string{"--accounts", "50", "--update", "rmw"}},
		{"bank", []string{"--accounts", "200", "--audits", "20"}}, {"tpcb", nil}, {"kv", []string{"--records", "50"}},
		{"events", nil}, {"append", nil},
	}
}

// mutants are the planted bugs; the empty one is none.
func mutants() []string {
	return []string{"", "", "", "lost-update", "dirty-read", "read-skew", "write-skew", "long-fork", "stale-read", "lost-ack", "ghost",
		"double-apply", "torn", "phantom-money", "swap", "overdraft", "false-ack-on-crash", "unknown-lies"}
}

func (c *campaign) run(runs, altered int, from uint64) error {
	if c.stroppy == "" {
		c.stroppy = filepath.Join(c.dir, "stroppy")
		if out, err := exec.Command("go", "build", "-o", c.stroppy, "./cmd/stroppy").CombinedOutput(); err != nil {
			return fmt.Errorf("build the program: %w\n%s", err, out)
		}
	}
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

// one makes one run, verifies its statements, and checks so many altered copies of it.
func (c *campaign) one(seed uint64, altered int) {
	rng := rand.New(rand.NewPCG(seed, 47))
	k, mutant := kinds()[rng.IntN(len(kinds()))], mutants()[rng.IntN(len(mutants()))]
	url := "memory:"
	if mutant != "" {
		url += fmt.Sprintf("?mutant=%s&rate=%g", mutant, []float64{0.002, 0.02, 0.1}[rng.IntN(3)])
	}
	dir := filepath.Join(c.dir, strconv.FormatUint(seed, 10))
	defer os.RemoveAll(dir)
	args := append([]string{"run", k.workload, "--db", url, "--count", strconv.Itoa(300 + rng.IntN(1200)), "--clients", "8",
		"--seed", strconv.FormatUint(seed, 10), "--out", dir, "-q"}, k.args...)
	code, out := c.call(args)
	command := "stroppy " + strings.Join(args, " ")
	c.count(&c.verdicts, code)
	switch {
	case code > 4 || code == 2 || code == 3:
		c.problem("%s: exit code %d: %s", command, code, out)
		return
	case mutant == "" && code != 0:
		c.problem("%s: a healthy run has exit code %d: %s", command, code, out)
	}
	c.verify(dir, command)
	for range altered {
		c.alter(rng, dir, code, command)
	}
}

// call runs the program and returns its exit code and the last line of its errors.
func (c *campaign) call(args []string) (code int, last string) {
	cmd := exec.Command(c.stroppy, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	var errors bytes.Buffer
	cmd.Stderr = &errors
	err := cmd.Run()
	lines := strings.Split(strings.TrimSpace(errors.String()), "\n")
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode(), lines[len(lines)-1]
	}
	if err != nil {
		return 99, err.Error()
	}
	return 0, lines[len(lines)-1]
}

// verify lets the separate program rebuild the statements of a run.
func (c *campaign) verify(dir, command string) {
	printed, err := exec.Command("python3", c.verifier, dir).CombinedOutput()
	var found struct {
		Right      map[string]int    `json:"right"`
		Wrong      []json.RawMessage `json:"wrong"`
		NotRebuilt map[string]int    `json:"not_rebuilt"`
	}
	if json.Unmarshal(printed, &found) != nil {
		c.problem("%s: the verifier: %v: %s", command, err, printed)
		return
	}
	c.mu.Lock()
	for kind, n := range found.Right {
		c.right[kind] += n
	}
	for _, n := range found.NotRebuilt {
		c.open += n
	}
	c.mu.Unlock()
	if len(found.Wrong) > 0 {
		c.problem("%s: %d statements are wrong, the first: %s", command, len(found.Wrong), found.Wrong[0])
	}
}

func (c *campaign) count(codes *[5]int, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if code < len(codes) {
		codes[code]++
	}
}

func (c *campaign) problem(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (c *campaign) summary() string {
	var b strings.Builder
	right := 0
	for _, n := range c.right {
		right += n
	}
	fmt.Fprintf(&b, "runs: %d valid, %d invalid, %d unknown\n", c.verdicts[0], c.verdicts[1], c.verdicts[4])
	fmt.Fprintf(&b, "statements: %d rebuilt and right, of %d kinds; %d not rebuilt\n", right, len(c.right), c.open)
	fmt.Fprintf(&b, "altered copies: %d refused, %d unknown, %d invalid by what was intact, %d valid\n", c.copies[3], c.copies[4], c.copies[1], c.copies[0])
	fmt.Fprintf(&b, "problems: %d\n", len(c.problems))
	return b.String()
}
