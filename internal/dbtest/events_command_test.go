package dbtest

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/report"
)

// eventsCommand runs `stroppy run events` in this process. It returns the exit code, the result, the directory of the
// run and standard error.
func eventsCommand(t *testing.T, args ...string) (code int, r *report.Result, dir, complaints string) {
	t.Helper()
	dir = runDir(t)
	code, stdout, complaints := stroppy(append([]string{"run", "events", "--json", "--out", dir}, args...)...)
	if stdout == "" {
		return code, nil, dir, complaints
	}
	r, err := report.Parse([]byte(stdout))
	if err != nil {
		t.Fatalf("exit code %d: %v\n%s", code, err, complaints)
	}
	return code, r, dir, complaints
}

// TestEventsCommandRunsAndRepeats checks a run of the command, its verification, its report, a second run on the same
// data, and a repetition.
func TestEventsCommandRunsAndRepeats(t *testing.T) {
	t.Parallel()
	code, r, dir, complaints := eventsCommand(t, "--batch", "5", "--value-size", "100..300", "--clients", "4")
	if code != 0 || r.Verdict != "valid" {
		t.Fatalf("exit code %d: %s", code, complaints)
	}
	if r.Drive.Committed != 820 || r.Load.Accounts != 4 || r.Load.Things != "streams" {
		t.Errorf("%d commits to %d %s: the default is 4096 events, rounded up to whole batches", r.Drive.Committed, r.Load.Accounts, r.Load.Things)
	}
	if len(r.Tables) != 2 || len(r.Tables[0].Rows) != 2 || r.Tables[0].Rows[0][1] != "4100" {
		t.Errorf("the tables are %+v", r.Tables)
	}
	database := filepath.Join(dir, "events.db")
	if code, out, complaints := stroppy("check", dir); code != 0 || !strings.HasPrefix(out, "VALID") {
		t.Errorf("the check of the first run: exit code %d: %s", code, complaints)
	}
	if code, out, complaints := stroppy("report", dir, "--verbose"); code != 0 || !strings.Contains(out, "Events: time of one event") || !strings.Contains(out, "divided by 5,") {
		t.Errorf("the report of the first run: exit code %d: %s%s", code, out, complaints)
	}
	code, r, second, complaints := eventsCommand(t, "--db", "sqlite:"+database, "--no-load", "--count", "50")
	if code != 4 || !strings.Contains(complaints, "the log has 820 appends of run 1, whose recording was not given") {
		t.Fatalf("the second run, checked without the first: exit code %d: %s", code, complaints)
	}
	if r.Drive.Committed != 50 || r.Load.Accounts != 4 {
		t.Errorf("the second run: %d commits to %d streams", r.Drive.Committed, r.Load.Accounts)
	}
	if code, out, complaints := stroppy("check", dir, second, "--out", filepath.Join(t.TempDir(), "both")); code != 0 || !strings.HasPrefix(out, "VALID") {
		t.Errorf("the check of both runs: exit code %d: %s", code, complaints)
	}
	again := filepath.Join(t.TempDir(), "again")
	if code, _, complaints := stroppy("run", "events", "--scenario", filepath.Join(dir, "scenario.yaml"), "--out", again); code != 0 {
		t.Errorf("the repeated run: exit code %d: %s", code, complaints)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "take pipelined or interactive", []string{"--mode", "procedure"}},
		{2, "the log of events in this database has 4", []string{"--db", "sqlite:" + database, "--no-load", "--streams", "5"}},
		{4, "keeps nothing, so that there is no end state", []string{"--db", "noop:"}},
	} {
		if code, _, _, complaints := eventsCommand(t, c.args...); code != c.code || !strings.Contains(complaints, c.says) {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, complaints)
		}
	}
}

// TestEventsUnderFaults runs events on clusters with faults and checks the verdicts.
func TestEventsUnderFaults(t *testing.T) {
	needsTime(t)
	t.Parallel()
	for _, h := range []faultyRun{
		{
			name: "etcd: kill the leader", cluster: "etcd:3?memory=on", faults: []string{"kill leader at 1s for 2s"},
			args: []string{"--duration", "5s", "--batch", "3"},
		},
		{
			name: "synchronous PostgreSQL: kill the primary", cluster: "postgres:2?memory=on", faults: []string{"kill primary at 1s for 3s"},
			args: []string{"--duration", "10s", "--streams", "3", "--batch", "2"},
		},
		{
			name: "Redis: the replica cut off, the primary killed, the replica promoted", cluster: "redis:2?memory=on",
			faults: []string{"partition follower at 1s for 4s", "kill primary at 3s for 10s"},
			args:   []string{"--duration", "15s"}, code: 1, invalid: check.Durable,
		},
	} {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--cluster", h.cluster, "--clients", "8", "--seed", "7",
				"--retries", "100", "--rate", faultyRate}, h.args...)
			for _, f := range h.faults {
				args = append(args, "--nemesis", f)
			}
			code, r, _, complaints := eventsCommand(t, args...)
			if r == nil {
				if strings.Contains(complaints, "install the Debian package") || strings.Contains(complaints, "run as root") {
					t.Skipf("skipped engine: %s: %s", h.cluster, lastLine(complaints))
				}
				t.Fatalf("exit code %d: %s", code, complaints)
			}
			for _, f := range r.Faults {
				text, _ := json.Marshal(f)
				t.Logf("%s", text)
			}
			if code != h.code {
				t.Errorf("exit code %d, not %d: %s", code, h.code, complaints)
			}
			for _, c := range r.Checks {
				t.Logf("%s is %s (required %v): %s", c.Name, c.Status, c.Required, c.Detail)
			}
			i := slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == h.invalid })
			if h.invalid != "" && (i < 0 || r.Checks[i].Status != "invalid") {
				t.Errorf("check %s is not invalid", h.invalid)
			}
		})
	}
}
