//go:build unix

package cli_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stroppy/internal/report"
)

// TestWorkersGiveTheSameVerdict checks that the verdicts on PostgreSQL are the same for one process and for four. A
// lost update needs two clients, which are mostly in two processes here.
func TestWorkersGiveTheSameVerdict(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	for _, c := range []struct {
		name    string
		verdict string
		invalid []string // checks
		args    []string
	}{
		{"lost updates", "invalid", []string{"total", "ledger", "serializable"}, []string{"--isolation", "read committed", "--update", "rmw", "--accounts", "20"}},
		{"no lost updates", "valid", nil, []string{"--isolation", "repeatable read", "--update", "rmw", "--accounts", "20", "--retries", "100"}},
		{"serializable", "valid", nil, []string{"--isolation", "serializable", "--accounts", "50", "--two-account-share", "0.4", "--retries", "100"}},
	} {
		for _, workers := range []int{0, 4} {
			args := append([]string{"run", "bank", "--db", server.URL(), "--clients", "8", "--count", "800", "--json", "--workers", strconv.Itoa(workers)}, c.args...)
			_, stdout, stderr := start(t, args...).wait(t)
			r := new(report.Result)
			if err := json.Unmarshal([]byte(stdout), r); err != nil {
				t.Fatalf("%s, %d workers: %v: %s", c.name, workers, err, stderr)
			}
			if r.Verdict != c.verdict {
				t.Errorf("%s, %d workers: the verdict is %s: %s", c.name, workers, r.Verdict, r.Reason)
			}
			for _, name := range c.invalid {
				if got := status(r, name); got != "invalid" {
					t.Errorf("%s, %d workers: %s is %s", c.name, workers, name, got)
				}
			}
			if r.Drive.Workers != workers || len(r.Client.Workers) != workers || r.Drive.Committed == 0 || r.Drive.Clients != 8 {
				t.Errorf("%s, %d workers: the load phase is %+v of %+v", c.name, workers, r.Drive, r.Client)
			}
		}
	}
}

// TestJoinedWorkersGiveTheSameVerdict checks that workers that join by themselves give the verdict of one process.
// They have clocks of their own if the machine allows that, and a healthy database is never accused.
func TestJoinedWorkersGiveTheSameVerdict(t *testing.T) {
	server := startPostgres(t)
	t.Setenv("TMPDIR", t.TempDir()) // in which nobody else has workers
	for _, c := range []struct {
		name, verdict string
		invalid       []string // checks
		args          []string
	}{
		{"lost updates", "invalid", []string{"total", "ledger", "serializable"}, []string{"--isolation", "read committed", "--update", "rmw", "--accounts", "20"}},
		{"serializable", "valid", nil, []string{"--isolation", "serializable", "--accounts", "50", "--two-account-share", "0.4", "--retries", "100"}},
		{"kv", "valid", nil, []string{"--isolation", "serializable", "--records", "20", "--retries", "100"}},
	} {
		workload := "bank"
		if c.name == "kv" {
			workload = "kv"
		}
		token := filepath.Join(t.TempDir(), "token")
		out := filepath.Join(t.TempDir(), "out")
		at := freeAddress(t)
		args := append([]string{"run", workload, "--db", server.URL(), "--clients", "6", "--count", "1000", "--json", "--workers", "3", "--out", out,
			"--workers-listen", at, "--workers-token-file", token}, c.args...)
		p := start(t, args...)
		p.goesOn(t, func() bool { return strings.Contains(read(t, p.stderr), "waiting for 3 workers") })
		info, err := os.Stat(token)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: the token has the mode %v: %v", c.name, info, err)
		}
		secret := strings.TrimSpace(read(t, token))
		var workers []*process
		for i := range 3 {
			command := []string{"worker", "--join", at, "--token-file", token, "--index", strconv.Itoa(i)}
			workers = append(workers, startWith(t, clockOfItsOwn(i), command...))
		}
		code, stdout, stderr := p.wait(t)
		for i, w := range workers {
			if code, _, said := w.wait(t); code != 0 || !strings.Contains(said, "joined the run at "+at+" as worker "+strconv.Itoa(i+1)) {
				t.Errorf("%s: worker %d ends with %d: %s", c.name, i, code, said)
			}
		}
		r := new(report.Result)
		if err := json.Unmarshal([]byte(stdout), r); err != nil {
			t.Fatalf("%s: %d, %v: %s", c.name, code, err, stderr)
		}
		// Two checks of kv depend on real time. On a busy machine the clocks may be too inexact to decide them.
		if r.Verdict != c.verdict && (workload != "kv" || r.Verdict != "unknown" || !clocksDecide(r)) {
			t.Errorf("%s: the verdict is %s: %s", c.name, r.Verdict, r.Reason)
		}
		for _, name := range c.invalid {
			if got := status(r, name); got != "invalid" {
				t.Errorf("%s: %s is %s", c.name, name, got)
			}
		}
		for _, name := range []string{"strict", "linearizable", "fresh"} {
			if got := status(r, name); len(c.invalid) == 0 && got == "invalid" {
				t.Errorf("%s: %s is %s", c.name, name, got)
			}
		}
		if r.Drive.Workers != 3 || len(r.Client.Workers) != 3 || r.Client.Workers[0].CPUSeconds == nil {
			t.Errorf("%s: the load phase is %+v of %+v", c.name, r.Drive, r.Client)
		}
		if clocks, err := os.ReadFile(filepath.Join(out, "history", "clocks.json")); clockOfItsOwn(0) != nil && (err != nil || !strings.Contains(string(clocks), `"clock": 2`)) {
			t.Errorf("%s: the clocks are %s: %v", c.name, clocks, err)
		}
		left, _ := filepath.Glob(filepath.Join(os.TempDir(), "stroppy-worker-*"))
		if _, err := os.Stat(token); !os.IsNotExist(err) || len(left) > 0 {
			t.Errorf("%s: the token is still there (%v), and %v", c.name, err, left)
		}
		_ = filepath.WalkDir(out, func(path string, d os.DirEntry, _ error) error {
			if !d.IsDir() && strings.Contains(read(t, path), secret) {
				t.Errorf("%s: %s has the token", c.name, path)
			}
			return nil
		})
		if strings.Contains(stderr, secret) {
			t.Errorf("%s: the token was printed", c.name)
		}
	}
}

// clockOfItsOwn returns a command that starts another command with a different clock. It returns nil if this is not
// possible, or if the worker must use the clock of this machine.
func clockOfItsOwn(number int) []string {
	path, err := exec.LookPath("unshare")
	if err != nil || number == 2 || exec.Command(path, "--time", "--fork", "true").Run() != nil {
		return nil
	}
	return []string{path, "--time", "--monotonic", strconv.Itoa(200 * (number + 1)), "--fork", "--kill-child"}
}

// freeAddress returns a local address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// clocksDecide reports whether every unknown check is unknown because of the clocks.
func clocksDecide(r *report.Result) bool {
	for _, c := range r.Checks {
		if c.Required && c.Status == "unknown" && !strings.Contains(c.Detail, "clocks") {
			return false
		}
	}
	return true
}
