package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/db/sqlite"
)

// TestCheckFindsWhatWasLostSince checks that a check of the current data finds a loss after the run, although the
// directory has the end state of the run.
func TestCheckFindsWhatWasLostSince(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		workload, loses string
		flags           []string
	}{
		{"bank", "DELETE FROM stroppy_ledger WHERE transfer = (SELECT MAX(transfer) FROM stroppy_ledger)", nil},
		{"tpcb", "UPDATE pgbench_accounts SET abalance = abalance + 7 WHERE aid = 1", []string{"--ratio", "1:2:20"}},
		{"kv", "DELETE FROM stroppy_kv WHERE record_key IN (SELECT record_key FROM stroppy_kv LIMIT 1)", []string{"--records", "100"}},
		{"events", "DELETE FROM stroppy_events WHERE place > 2", nil},
	} {
		t.Run(test.workload, func(t *testing.T) {
			dir := t.TempDir()
			file, run := filepath.Join(dir, "now.db"), filepath.Join(dir, "run")
			args := append([]string{"run", test.workload, "--db", "sqlite:" + file, "--count", "200", "--out", run}, test.flags...)
			if code, _, stderr := call(t, args...); code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			database, err := sqlite.Open(t.Context(), "sqlite:"+file)
			if err == nil {
				err = database.Exec(t.Context(), test.loses)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := database.Close(); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := call(t, "check", run); code != 0 {
				t.Errorf("the state of then gives exit code %d: %s", code, stderr)
			}
			now := filepath.Join(dir, "verdict")
			if code, _, stderr := call(t, "check", run, "--db", "sqlite:"+file, "--out", now); code != 1 || !strings.Contains(stderr, "invalid") {
				t.Errorf("the state of now gives exit code %d: %s", code, stderr)
			}
			if code, _, stderr := call(t, "check", run, now, "--out", filepath.Join(dir, "again")); code != 1 {
				t.Errorf("both directories give exit code %d: %s", code, stderr)
			}
		})
	}
}

// TestCheckRefusesRecreatedTables checks that tables that `pgbench -i` has recreated after a run are refused. Their
// old metadata would accuse a healthy database.
func TestCheckRefusesRecreatedTables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, run := "sqlite:"+filepath.Join(dir, "anew.db"), filepath.Join(dir, "run")
	args := []string{"run", "tpcb", "--db", url, "--ratio", "1:2:20", "--count", "200", "--no-check", "--out", run}
	if code, _, stderr := call(t, args...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	database, err := sqlite.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"UPDATE pgbench_branches SET bbalance = 0", "UPDATE pgbench_tellers SET tbalance = 0",
		"UPDATE pgbench_accounts SET abalance = 0", "DELETE FROM pgbench_history",
	} {
		if err := database.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(t, "check", run, "--db", url)
	if code != 2 || !strings.Contains(stderr, "is not what run 1 left") || !strings.Contains(stderr, "has 0") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
