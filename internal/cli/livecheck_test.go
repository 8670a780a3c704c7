package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/report"
)

// TestLiveCheckOnPostgreSQLIsComplete checks that a check during a healthy run of any workload reads everything but
// the latest transactions, and reports no violation.
func TestLiveCheckOnPostgreSQLIsComplete(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	url := startPostgres(t).URL()
	for name, args := range map[string][]string{
		"bank":        {"bank", "--accounts", "300", "--isolation", "serializable", "--audits", "5"},
		"overwriting": {"bank", "--accounts", "20", "--isolation", "read committed", "--two-account-share", "0.5"},
		"predicates":  {"bank", "--accounts", "2000", "--isolation", "serializable", "--opening-share", "0.2", "--predicate-share", "0.2", "--low-balance-share", "0.1"},
		"tpcb":        {"tpcb", "--versions", "--isolation", "repeatable read"},
		"kv": {"kv", "--records", "500", "--isolation", "repeatable read", "--read-share", "0.3", "--update-share", "0.2",
			"--insert-share", "0.1", "--modify-share", "0.3", "--scan-share", "0.1", "--scan-length", "20"},
		"events": {"events", "--streams", "3", "--batch", "2"},
		"append": {"append", "--isolation", "serializable"},
		"ranges": {"append", "--isolation", "serializable", "--access", "predicate"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			all := append([]string{"run", args[0], "--db", url, "--clients", "8", "--rate", "120", "--duration", "7s", "--warmup", "0s", "--live-check", "--json", "--out", dir}, args[1:]...)
			code, stdout, stderr := call(t, all...)
			if code != 0 || strings.Contains(stderr, "violation of") {
				t.Fatalf("%v ended with %d:\n%s\n%s", all, code, stderr, stdout)
			}
			r := new(report.Result)
			if err := json.Unmarshal([]byte(stdout), r); err != nil {
				t.Fatal(err)
			}
			if l := r.Drive.LiveCheck; l == nil || l.Checked < r.Drive.Committed/4 || l.Skipped > 0 {
				t.Errorf("of %d committed transactions %+v", r.Drive.Committed, l)
			}
		})
	}
}
