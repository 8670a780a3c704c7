package dbtest

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestEventsCommandRunsAndRepeats checks a run of the command, its verification, its report, a second run on the same
// data, and a repetition.
func TestEventsCommandRunsAndRepeats(t *testing.T) {
	t.Parallel()
	code, r, complaints := program(t, "events", "--batch", "5", "--value-size", "100..300", "--clients", "4")
	if code != 0 || r.Verdict != "valid" {
		t.Fatalf("exit code %d: %s", code, complaints)
	}
	if r.Drive.Committed != 820 || r.Load.Accounts != 4 || r.Load.Things != "streams" {
		t.Errorf("%d commits to %d %s: the default is 4096 events, rounded up to whole batches", r.Drive.Committed, r.Load.Accounts, r.Load.Things)
	}
	if len(r.Tables) != 2 || len(r.Tables[0].Rows) != 2 || r.Tables[0].Rows[0][1] != "4100" {
		t.Errorf("the tables are %+v", r.Tables)
	}
	database := filepath.Join(r.dir, "events.db")
	if code, out, complaints := stroppy("check", r.dir); code != 0 || !strings.HasPrefix(out, "VALID") {
		t.Errorf("the check of the first run: exit code %d: %s", code, complaints)
	}
	if code, out, complaints := stroppy("report", r.dir, "--verbose"); code != 0 || !strings.Contains(out, "Events: time of one event") || !strings.Contains(out, "divided by 5,") {
		t.Errorf("the report of the first run: exit code %d: %s%s", code, out, complaints)
	}
	code, second, complaints := program(t, "events", "--db", "sqlite:"+database, "--no-load", "--count", "50")
	if code != 0 || second.Verdict != "valid" {
		t.Fatalf("the second run, checked without the first: exit code %d: %s", code, complaints)
	}
	if second.Drive.Committed != 50 || second.Load.Accounts != 4 {
		t.Errorf("the second run: %d commits to %d streams", second.Drive.Committed, second.Load.Accounts)
	}
	if code, out, complaints := stroppy("check", r.dir, second.dir, "--out", filepath.Join(t.TempDir(), "both")); code != 0 || !strings.HasPrefix(out, "VALID") {
		t.Errorf("the check of both runs: exit code %d: %s", code, complaints)
	}
	again := filepath.Join(t.TempDir(), "again")
	if code, _, complaints := stroppy("run", "events", "--scenario", filepath.Join(r.dir, "scenario.yaml"), "--out", again); code != 0 {
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
		if code, _, complaints := program(t, "events", c.args...); code != c.code || !strings.Contains(complaints, c.says) {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, complaints)
		}
	}
}
