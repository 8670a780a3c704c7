// Command seeds carries out short seeded runs, to find false alarms. A seed decides everything.
// A run with faults has a cluster that fails over. Each kind of cluster suffers only what its
// promise covers, so that every run must be VALID. A run of scripts (-scripts) has no faults. It
// runs SQL of tools/seeds/scripts on one of five engines. It must be VALID, or MEASURED if nothing
// is checked.
//
//	go run ./tools/seeds [-scripts] [-from N] [-count N] [-parallel N] [-runs DIR] [-stroppy FILE] [-mysql DIR]
//	go run ./tools/seeds [-scripts] -list    prints the commands
//	go run ./tools/seeds [-scripts] -table   adds the runs in DIR to the page
//
// A seed that has run does not run again unless its folder is renamed to SEED.REASON, such as
// 17.overload. The table shows the outcome of such a folder and does not count it. The pages are
// docs/tables/seeds.md and docs/tables/scripts.md. data/seeds.json and data/scripts.json keep the
// runs of other folders and machines too. The recording of a right run of scripts is removed. Seeds
// of MySQL are skipped where there is no MySQL. The exit code is 1 when a run was not right.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"stroppy/tools/try"
)

// longest bounds one run, its cluster's start and end included.
const longest = 5 * time.Minute

func main() { try.Main("seeds", 1, run) }

func run() {
	isScripts := flag.Bool("scripts", false, "healthy runs of the workload script instead of runs with faults")
	from := flag.Int("from", 1, "the first seed")
	count := flag.Int("count", 0, "how many seeds (default: all that the plans are made for)")
	parallel := flag.Int("parallel", 2, "how many runs at once")
	runs := flag.String("runs", "", "the folder of the runs (default: stroppy-runs/seeds or stroppy-runs/scripts)")
	stroppy := flag.String("stroppy", "./stroppy", "the program")
	mysql := flag.String("mysql", "", "the folder of MySQL's programs (default: those on PATH)")
	list := flag.Bool("list", false, "print the commands only")
	table := flag.Bool("table", false, "write the page of the runs only")
	flag.Parse()
	b := faults
	if *isScripts {
		b = scripts
	}
	*count, *runs = cmp.Or(*count, b.count), cmp.Or(*runs, b.runs)
	switch {
	case *list:
		for seed := *from; seed < *from+*count; seed++ {
			fmt.Println(command(b.draw(seed), *mysql))
		}
		return
	case *table:
		b.write(*runs)
		return
	}
	program, err := exec.LookPath(*stroppy)
	if err != nil {
		try.Fail("find the program: %w: build it, or name it with -stroppy", err)
	}
	program = try.Must(filepath.Abs(program))
	try.Check(os.MkdirAll(*runs, 0o755))
	wrong := b.carryOutAll(program, *mysql, *runs, *from, *count, *parallel)
	b.write(*runs)
	if wrong > 0 {
		try.Fail("%d of %d runs were not right: look at their folders in %s", wrong, *count, *runs)
	}
}

// carryOutAll carries out the plans of seeds, and returns how many were not right.
func (b *book) carryOutAll(program, mysql, runs string, from, count, parallel int) int {
	without := ""
	if mysql == "" {
		without = lacksMySQL()
	}
	var wg sync.WaitGroup
	seeds, wrong := make(chan int), make(chan int, count)
	for range parallel {
		wg.Go(func() {
			for seed := range seeds {
				d := b.draw(seed)
				if d.needsMySQL() && without != "" {
					fmt.Printf("%d\tskipped engine: mysql: %s\n", seed, without)
				} else if !b.carryOut(program, mysql, filepath.Join(runs, strconv.Itoa(seed)), d) {
					wrong <- seed
				}
			}
		})
	}
	for seed := from; seed < from+count; seed++ {
		seeds <- seed
	}
	close(seeds)
	wg.Wait()
	return len(wrong)
}

// lacksMySQL says why no MySQL is on PATH; empty if one is.
func lacksMySQL() string {
	const advice = ": fetch one with scripts/versions.sh mysql-9.7, and name its folder of programs with -mysql"
	said, err := exec.Command("mysqld", "--no-defaults", "--version").CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "there is no mysqld on PATH" + advice
	case err != nil:
		return "mysqld does not say its version: " + err.Error()
	case strings.Contains(string(said), "MariaDB"):
		return "the mysqld on PATH is of MariaDB" + advice
	}
	return ""
}

// carryOut runs a plan in its folder unless it has run, prints its verdict, and reports whether it is right.
func (b *book) carryOut(program, mysql, dir string, d drawn) bool {
	var o outcome
	if err := try.Attempt(func() {
		var ended bool
		if o, ended = readOutcome(dir); !ended { // an interrupted run starts again
			try.Check(os.RemoveAll(dir))
			try.Check(os.MkdirAll(dir, 0o755))
			start(program, dir, d.arguments(mysql))
			o, _ = readOutcome(dir)
		}
		if b.short && o.Verdict == d.wants() {
			trim(dir)
		}
	}); err != nil {
		o = outcome{Verdict: "not run", Reason: err.Error()}
	}
	fmt.Printf("%d\t%s\t%s\n\t%s\n", d.entry().Seed, o.Verdict, command(d, mysql), o.Reason)
	return o.Verdict == d.wants()
}

// start runs the program in the folder and notes the exit code and the highest load
// of the machine. A run that fails is no error.
func start(program, dir string, arguments []string) {
	output := try.Must(os.Create(filepath.Join(dir, "output.txt")))
	defer output.Close()
	cmd := exec.Command(program, append(arguments, "--quiet", "--out", filepath.Join(dir, "run"))...)
	cmd.Stdout, cmd.Stderr = output, output
	try.Check(cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its exit code is in ProcessState
		close(ended)
	}()
	highest, timeout, end := 0.0, time.After(longest), os.Interrupt // after which it cleans up
	for {
		select {
		case <-ended:
			note := fmt.Sprintf("%d %.1f\n", cmd.ProcessState.ExitCode(), highest)
			try.Write(filepath.Join(dir, "ended.txt"), []byte(note))
			return
		case <-timeout:
			_ = cmd.Process.Signal(end) // of a process that has just ended it is no error
			timeout, end = time.After(longest), os.Kill
		case <-time.After(time.Second):
			highest = max(highest, machineLoad())
		}
	}
}

// machineLoad is how many processes have wanted a processor over the last minute.
func machineLoad() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	load, _ := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	return load
}
