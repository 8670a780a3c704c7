//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/cli"
	"stroppy/internal/cluster/clustertest"
	postgres "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/run"
)

// TestCommandsAreFaults checks faults by commands on a server of the user: the probe sees them, the outputs are in the
// log without secrets, and a probe that sees nothing leaves the check of the faults open.
func TestCommandsAreFaults(t *testing.T) {
	t.Setenv("PGPASSWORD", "hunter2secret") // for the commands
	url := startPostgres(t).URL()
	mark := filepath.Join(t.TempDir(), "mark")
	attempt := func(probe string, more ...string) (code int, dir, stderr string) {
		dir = filepath.Join(t.TempDir(), "run")
		args := append([]string{"run", "bank", "--db", url, "--accounts", "100", "--clients", "2", "--duration", "4s", "--out", dir, "--yes",
			"--nemesis", fmt.Sprintf("exec 'echo password $PGPASSWORD; touch %s' 'rm %[1]s' at 500ms for 1s", mark), "--probe", probe}, more...)
		var errs bytes.Buffer
		code = cli.Main(args, []string{"PATH=" + os.Getenv("PATH"), "PGPASSWORD=hunter2secret"}, strings.NewReader(""), new(bytes.Buffer), &errs)
		return code, dir, errs.String()
	}
	code, dir, stderr := attempt("test -e " + mark)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	r, err := run.ReadResult(dir)
	clustertest.Must(t, err)
	if f := faultOf(t, r, "exec"); !strings.Contains(f.Verified, "the probe saw it") || !strings.Contains(f.Verified, "takes writes") {
		t.Errorf("the fault was seen by %q", f.Verified)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log.txt"))
	clustertest.Must(t, err)
	if !bytes.Contains(log, []byte("password xxxxx")) || bytes.Contains(log, []byte("hunter2secret")) || strings.Contains(stderr, "hunter2secret") {
		t.Errorf("the log is %s", log)
	}
	if !strings.Contains(stderr, "the run hurts servers that stroppy did not start, ") {
		t.Errorf("the run did not show what it hurts: %s", stderr)
	}
	if code, _, stderr := attempt("true"); code != 4 || !strings.Contains(stderr, "succeeds before the fault") {
		t.Errorf("a probe that always succeeds: exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the fault was not healed")
	}
}

// TestWrongInventoryEndsBeforeTheLoad checks inventories whose commands and queries fail: one sentence with file and
// line, and nothing is loaded.
func TestWrongInventoryEndsBeforeTheLoad(t *testing.T) {
	server := startPostgres(t)
	url := server.URL()
	const healthy, leader = "healthy: {query: SELECT true}\n", "leader: {query: SELECT NOT pg_is_in_recovery()}\n"
	for name, c := range map[string]struct {
		text string
		says string
	}{
		"hangs":       {"leader: {command: sleep 100}\n" + healthy, "staging.yaml:3: leader: it did not end in time and was killed: it had 1s"},
		"names none":  {"leader: {command: echo somebody}\n" + healthy, `staging.yaml:3: leader answered "somebody", which names no node`},
		"none leads":  {"leader: {query: SELECT false}\n" + healthy, "staging.yaml:3: leader: no node leads"},
		"fails":       {leader + "healthy: {command: 'echo broken >&2; exit 7'}\n", "staging.yaml:4: healthy: exit status 7: broken"},
		"unhealthy":   {leader + "healthy: {query: SELECT 1 = 2}\n", `staging.yaml:4: healthy: the query answered "f"`},
		"wrong query": {leader + "healthy: {query: SELECT nothing}\n", "staging.yaml:4: healthy: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			clustertest.Must(t, os.WriteFile("staging.yaml", []byte("url: "+url+"\ntimeout: 1s\n"+c.text+"nodes:\n  - url: "+url+"\n"), 0o644))
			code, _, stderr := call(t, "run", "bank", "--cluster", "own:staging.yaml", "--count", "10", "--out", "r")
			refused(t, code, 3, stderr, c.says)
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("it made %v: %v", left, err)
			}
		})
	}
}

// TestNextStartHealsFaultOfKilledRun checks that the next start runs the heal command of a killed run. A run that healed
// its fault leaves nothing.
func TestNextStartHealsFaultOfKilledRun(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	url := server.URL()
	state, mark := t.TempDir(), filepath.Join(t.TempDir(), "mark")
	args := []string{"run", "bank", "--db", url, "--accounts", "100", "--clients", "2", "--out", "r", "--yes"}
	p := startIn(t, state, append(args, "--duration", "60s", "--nemesis", "exec 'touch "+mark+"' 'rm "+mark+"' at 200ms for 50s")...)
	p.drives(t, "r")
	p.goesOn(t, func() bool { _, err := os.Stat(mark); return err == nil })
	p.signal(t, os.Kill)
	p.wait(t)
	again := []string{"run", "--db", "noop:", "--count", "10", "--clients", "1", "--no-check", "--out", filepath.Join(t.TempDir(), "r")}
	if code, out := called(t, state, again...); code != 0 || !strings.Contains(out, "cleared: the fault that this command heals: rm "+mark) {
		t.Errorf("the next run ended with %d: %s", code, out)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the fault was not healed")
	}
	args[len(args)-2] = filepath.Join(t.TempDir(), "r")
	code, out := called(t, state, append(args, "--duration", "2s", "--nemesis", "exec 'touch "+mark+"' 'rm "+mark+"' at 200ms for 500ms")...)
	if code != 0 {
		t.Fatalf("a run with a healed fault ended with %d: %s", code, out)
	}
	again[len(again)-1] = filepath.Join(t.TempDir(), "r")
	if code, out := called(t, state, again...); code != 0 || strings.Contains(out, "cleared:") {
		t.Errorf("the run after it ended with %d: %s", code, out)
	}
	t.Run("inventory", func(t *testing.T) { pausedByKilledRun(t, state, server) })
}

// pausedByKilledRun checks that the next start resumes a server that a killed run has paused by its inventory.
func pausedByKilledRun(t *testing.T, state string, server *postgres.Server) {
	pid := slices.Min(server.PIDs())
	inventory := filepath.Join(t.TempDir(), "one.yaml")
	clustertest.Must(t, os.WriteFile(inventory, fmt.Appendf(nil, "url: %s\nleader: none\nhealthy: {query: SELECT true}\nnodes:\n"+
		"  - {url: %[1]q, pause: kill -STOP %d, resume: kill -CONT %[2]d}\n", server.URL(), pid), 0o644))
	paused := func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(text), ") T ")
	}
	p := startIn(t, state, "run", "bank", "--cluster", "own:"+inventory, "--accounts", "100", "--clients", "2", "--out", "r", "--yes",
		"--duration", "60s", "--nemesis", "pause n0 at 200ms for 50s")
	p.drives(t, "r")
	p.goesOn(t, paused)
	p.signal(t, os.Kill)
	p.wait(t)
	code, out := called(t, state, "run", "--db", "noop:", "--count", "10", "--clients", "1", "--no-check", "--out", filepath.Join(t.TempDir(), "r"))
	if code != 0 || !strings.Contains(out, fmt.Sprintf("cleared: the fault that this command heals: kill -CONT %d", pid)) || paused() {
		t.Errorf("the next run ended with %d, and the server is paused: %v: %s", code, paused(), out)
	}
}
