package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"stroppy/internal/check"
	"stroppy/internal/cli"
	"stroppy/internal/cluster/cgroup"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/report"
	"stroppy/internal/sweep"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"stroppy": func() { os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs whole calls of stroppy as separate processes.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":     code,
			"lastline": lastline,
			"damage":   damage,
			"grown":    grown,
			"nowhere":  nowhere,
			"sqlite":   runSQLite,

			"witnesses": witnesses,
			"cause":     causeOf,
			"found":     found,
			"unswept":   unswept,
		},
		Setup: func(env *testscript.Env) error {
			if err := groups(); err != nil {
				env.Setenv("NO_GROUPS", err.Error())
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "groups" {
				return false, fmt.Errorf("the condition %s is not known", name)
			}
			return groups() == nil, nil
		},
	})
}

// runSQLite is the command `sqlite FILE STATEMENT`.
func runSQLite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sqlite FILE STATEMENT")
	}
	d, err := sqlite.Open(context.Background(), "sqlite:"+ts.MkAbs(args[0]))
	if err == nil {
		err = errors.Join(d.Exec(context.Background(), args[1]), d.Close())
	}
	ts.Check(err)
}

// groups returns the reason why this process cannot create a control group.
var groups = sync.OnceValue(func() error {
	above, err := cgroup.ByPID(os.Getpid())
	if err != nil {
		return err
	}
	group := above.Child("test-scripts-" + strconv.Itoa(os.Getpid()))
	if err := group.Make(runtime.NumCPU()); err != nil {
		return err
	}
	_, err = group.Remove()
	return err
})

// code is the command `code N COMMAND…`: the command must end with the exit code N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command …")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("%s ended with %s, not with exit code %s", args[1], got, args[0])
	}
}

// lastline is the command `lastline TEXT`: the last line on standard error must contain the text, or one of several
// texts separated by |.
func lastline(ts *testscript.TestScript, neg bool, args []string) {
	text := strings.TrimSuffix(ts.ReadFile("stderr"), "\n")
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if neg || len(args) != 1 || !slices.ContainsFunc(strings.Split(args[0], "|"), func(text string) bool { return strings.Contains(last, text) }) {
		ts.Fatalf("the last line on standard error is %q, which does not say %q", last, args)
	}
}

// damage is the command `damage FILE cut|flip PERCENT`: it truncates a file at this position, or alters a byte there.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: damage file cut|flip percent")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	percent, err := strconv.Atoi(args[2])
	ts.Check(err)
	at := len(data) * percent / 100
	if args[1] == "cut" {
		data = data[:at]
	} else {
		data[at] ^= 0x55
	}
	ts.Check(os.WriteFile(path, data, 0o666))
}

// unswept is the command `unswept DIR STEPS`: it removes all but the first steps from the book of a sweep, as if the
// sweep had ended there.
func unswept(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unswept dir steps")
	}
	dir := ts.MkAbs(args[0])
	book, err := sweep.Steps.Read(dir)
	ts.Check(err)
	steps, err := strconv.Atoi(args[1])
	ts.Check(err)
	book.Points, book.Finished = book.Points[:steps], false
	ts.Check(book.Save(dir))
}

// grown is the command `grown FILE BYTES`: it waits until a background process has written this number of bytes.
func grown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: grown file bytes")
	}
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if info, err := os.Stat(ts.MkAbs(args[0])); err == nil && info.Size() >= size {
			return
		}
	}
	ts.Fatalf("%s has not grown to %d bytes", args[0], size)
}

// witnesses is the command `witnesses RUN_DIR`: violations.jsonl must have the number of lines in the result. It must
// name every transaction that an invalid check names, and all that durable counts.
func witnesses(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: witnesses directory")
	}
	result, err := report.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	named, lines := map[[2]string]bool{}, map[string]int{}
	for line := range strings.Lines(ts.ReadFile(args[0] + "/" + result.Violations.File)) {
		var v struct{ Check, Transaction, What string }
		ts.Check(json.Unmarshal([]byte(line), &v))
		if v.What == "" {
			ts.Fatalf("%q says nothing", line)
		}
		named[[2]string{v.Check, v.Transaction}] = true
		lines[""]++
		lines[v.Check]++
	}
	if uint64(lines[""]) != result.Violations.Lines {
		ts.Fatalf("%d lines, and the result says %d", lines[""], result.Violations.Lines)
	}
	for _, c := range result.Checks {
		if (lines[c.Name] > 0) != (c.Status == "invalid") {
			ts.Fatalf("%s is %s and has %d lines", c.Name, c.Status, lines[c.Name])
		}
		for _, id := range c.Witness {
			if c.Status == "invalid" && c.Name != check.Strict && !named[[2]string{c.Name, id}] {
				ts.Fatalf("%s names %s, which has no line", c.Name, id)
			}
		}
		for _, f := range c.Findings {
			if c.Name == check.Durable && len(c.Findings) == 1 && f.Count != lines[c.Name] {
				ts.Fatalf("durable counts %d %s, and has %d lines", f.Count, f.Kind, lines[c.Name])
			}
		}
	}
}

// causeOf is the command `cause DIR KIND CULPRIT`: the result in the directory must have this cause and this culprit.
func causeOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: cause directory kind culprit")
	}
	result, err := report.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	k := result.Cause
	if k == nil || k.Kind != args[1] || k.Culprit != args[2] || k.CulpritText == "" || k.Cure == "" || k.Text != result.Reason {
		ts.Fatalf("the cause is %+v, not %s of the %s; the reason is %q", k, args[1], args[2], result.Reason)
	}
}

// found is the command `[!] found DIR CHECK STATUS [KIND...]`: the check in the result must have the status and a
// finding of each kind.
func found(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: [!] found directory check status [kind...]")
	}
	result, err := report.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	at := slices.IndexFunc(result.Checks, func(c report.Check) bool { return c.Name == args[1] })
	if at < 0 {
		ts.Fatalf("there is no check %s", args[1])
	}
	c := &result.Checks[at]
	holds := c.Status == args[2]
	for _, kind := range args[3:] {
		holds = holds && slices.ContainsFunc(c.Findings, func(f report.Finding) bool { return f.Kind == kind })
	}
	if holds == neg {
		ts.Fatalf("%s is %s with the findings %+v", c.Name, c.Status, c.Findings)
	}
}

// nowhere is the command `nowhere TEXT`: neither the last output nor a file below the script's directory may contain
// the text.
func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: nowhere text")
	}
	for _, stream := range []string{"stdout", "stderr"} {
		if strings.Contains(ts.ReadFile(stream), args[0]) {
			ts.Fatalf("%s contains %q", stream, args[0])
		}
	}
	root := os.DirFS(ts.MkAbs("."))
	ts.Check(walk(root, func(path string, data []byte) {
		if bytes.Contains(data, []byte(args[0])) {
			ts.Fatalf("the file %s contains %q", path, args[0])
		}
	}))
}
