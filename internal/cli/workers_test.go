//go:build unix

package cli_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"stroppy/internal/report"
)

// TestWorkersGiveTheSameVerdict: what PostgreSQL keeps and what it breaks is the same whether
// one process has the clients or four do. A lost update needs two clients, which are mostly
// of two processes here.
func TestWorkersGiveTheSameVerdict(t *testing.T) {
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
			args := append([]string{"run", "bank", "--db", server.URL(), "--clients", "8", "--count", "2000", "--json", "--workers", strconv.Itoa(workers)}, c.args...)
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
