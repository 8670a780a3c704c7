package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/fault"
	"stroppy/internal/report"
	"stroppy/internal/run"
)

// patroniScript starts PostgreSQL under Patroni by the script of these tests. It returns the beginning of a command of
// the script, and the URLs of the three servers.
func patroniScript(t *testing.T) (script string, urls []string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers")
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped engine: network namespaces: run as root")
	}
	for program, from := range map[string]string{"patroni": "patroni", "etcd": "etcd-server", "ip": "iproute2", "setpriv": "util-linux"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("skipped engine: patroni: install the Debian package %s", from)
		}
	}
	dir := clustertest.OpenDir(t)
	net := os.Getpid()%254 + 1
	clustertest.Must(t, os.WriteFile(filepath.Join(dir, "net"), fmt.Appendln(nil, net), 0o644))
	path, err := filepath.Abs("testdata/own/patroni.sh")
	clustertest.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			for i := range 3 {
				text, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("pg%d.log", i)))
				t.Logf("pg%d: %s", i, text[max(0, len(text)-3000):])
			}
		}
		if out, err := exec.Command(path, dir, "down").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	for _, what := range []string{"up", "ready"} {
		if out, err := exec.Command(path, dir, what).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", what, err, out)
		}
	}
	for i := range 3 {
		urls = append(urls, fmt.Sprintf("10.213.%d.2%d:5432", net, i))
	}
	return path + " " + dir, urls
}

// parameters are a part of all URLs, and writes finds the server that takes writes.
const parameters, writes = "/postgres?sslmode=disable&connect_timeout=1", "&target_session_attrs=read-write"

// inventoryOf writes the inventory of the servers of the script.
func inventoryOf(t *testing.T, script string, servers []string) string {
	t.Helper()
	text := "url: postgres://postgres@" + strings.Join(servers, ",") + parameters + writes + "\n" +
		"timeout: 60s\n" +
		"leader:\n  query: SELECT NOT pg_is_in_recovery()\n" +
		"healthy:\n  query: SELECT count(*) = 2 FROM pg_stat_replication WHERE state = 'streaming'\n" +
		"commands:\n"
	for _, action := range []string{"kill", "stop", "start", "pause", "resume", "isolate", "join", "isolated"} {
		text += "  " + action + ": " + script + " " + action + " {name}\n"
	}
	text += "  promote: " + script + " switchover {name}\nnodes:\n"
	for i, server := range servers {
		text += fmt.Sprintf("  - name: pg%d\n    url: postgres://postgres@%s%s\n", i, server, parameters)
	}
	path := filepath.Join(t.TempDir(), "staging.yaml")
	clustertest.Must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// faultOf returns the recorded fault that begins with a text. The test fails if the fault failed.
func faultOf(t *testing.T, r *report.Result, text string) fault.Record {
	t.Helper()
	for _, f := range r.Faults {
		if strings.HasPrefix(f.Fault, text) {
			if f.Failed() || f.Skipped != "" || f.Verified == "" || f.Healed == nil {
				t.Errorf("%s: %+v", text, f.Injection)
			}
			return f
		}
	}
	t.Fatalf("no fault %q: %+v", text, r.Faults)
	return fault.Record{}
}

// TestOwnServersAreHurt checks the faults of servers that a script of the user has started: each fault and its heal are
// seen, the outages are measured, and the verdict is the same as on a cluster of stroppy.
func TestOwnServersAreHurt(t *testing.T) {
	t.Parallel()
	script, servers := patroniScript(t)
	inventory := inventoryOf(t, script, servers)
	for _, c := range []struct {
		fault, seen string
		fails       bool // another server takes the lead
		rare        bool // it is tested where all faults are
	}{
		{"kill leader at 2s for 5s", "down; n", true, false},
		{"pause leader at 2s for 6s", "stopped where it is; n", true, true},
		{"partition leader at 2s for 7s", "isolated; n", true, false},
		{"move leader at 2s", "leads", true, true},
		{"stop standby at 2s for 2s", "up again", false, false},
	} {
		if c.rare && os.Getenv("STROPPY_TEST_FAULTS") == "" {
			continue
		}
		t.Run(c.fault, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			code, _, stderr := call(t, "run", "bank", "--cluster", "own:"+inventory, "--yes", "--accounts", "1000", "--clients", "4",
				"--nemesis", c.fault, "--duration", "13s", "--out", dir)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			r, err := run.ReadResult(dir)
			clustertest.Must(t, err)
			f := faultOf(t, r, c.fault[:4])
			if !strings.Contains(f.Verified, c.seen) {
				t.Errorf("it was seen by %q, want %q", f.Verified, c.seen)
			}
			if c.fails && (f.Outage == nil || *f.Outage == 0) {
				t.Errorf("the outage is %v", f.Outage)
			}
			if c.fails && (f.OutageLeader == "" || strings.HasPrefix(f.Target, f.OutageLeader)) {
				t.Errorf("the leader %s was followed by %q: %+v", f.Target, f.OutageLeader, r.ClusterEvents)
			}
			log, err := os.ReadFile(filepath.Join(dir, "log.txt"))
			clustertest.Must(t, err)
			if !regexp.MustCompile(`msg=command command="?[^"]*staging.yaml:\d+: \w+ of n\d \(pg\d\)`).Match(log) {
				t.Errorf("the log does not have the command: %s", log)
			}
		})
	}
	t.Run("fail-over of a provider", func(t *testing.T) {
		if out, err := exec.Command("sh", "-c", script+" ready").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		r := runs(t, 0, "run", "bank", "--db", "postgres://postgres@"+strings.Join(servers, ",")+parameters+writes, "--yes",
			"--accounts", "1000", "--clients", "4", "--nemesis", "exec '"+script+" switchover' at 2s", "--duration", "12s")
		f := faultOf(t, r, "exec")
		moved := regexp.MustCompile(`exit code 0; before: (\S+) takes writes, after: `).FindStringSubmatch(f.Verified)
		if moved == nil || f.Outage == nil || *f.Outage == 0 {
			t.Fatalf("the fail-over was seen by %q, and its outage is %v", f.Verified, f.Outage)
		}
		if f.OutageLeader == "" || f.OutageLeader == moved[1] {
			t.Errorf("%s took writes before, and %q after: %+v", moved[1], f.OutageLeader, r.ClusterEvents)
		}
	})
}

// TestTerminalIsAsked checks that a run asks on a terminal before it hurts servers of the user, and that only yes goes
// on. The server is not there, so that a run that goes on ends with exit code 3.
func TestTerminalIsAsked(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes of its own")
	}
	for answer, want := range map[string]int{"y\n": 3, "YES\n": 3, "n\n": 2, "\n": 2, "\x04": 2, "\x03": 3} {
		t.Run(fmt.Sprintf("%q", answer), func(t *testing.T) {
			t.Parallel()
			master, terminal := openTerminal(t)
			defer master.Close()
			cmd := exec.Command("stroppy", "run", "bank", "--db", "postgres://127.0.0.1:1/bank", "--nemesis", "exec 'true' at 1s", "--out", "r")
			cmd.Dir = t.TempDir()
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "TERM=xterm"}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			clustertest.Must(t, cmd.Start())
			terminal.Close()
			var shown strings.Builder
			buffer := make([]byte, 4096)
			for asked := false; ; {
				n, err := master.Read(buffer)
				if shown.Write(buffer[:n]); err != nil {
					break // the process has ended
				}
				if !asked && strings.Contains(shown.String(), "[y/N] ") {
					asked = true
					_, err := master.WriteString(answer)
					clustertest.Must(t, err)
				}
			}
			_ = cmd.Wait() // ProcessState reports how it ended
			text := shown.String()
			if code := cmd.ProcessState.ExitCode(); code != want || !strings.Contains(text, "servers that stroppy did not start") {
				t.Errorf("exit code %d, want %d: %s", code, want, text)
			}
			if want == 2 && !strings.Contains(text, "the run was not confirmed: nothing was touched") {
				t.Errorf("the output lacks the reason of its end: %s", text)
			}
		})
	}
}
