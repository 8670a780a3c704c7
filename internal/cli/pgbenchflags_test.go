//go:build unix

package cli_test

import (
	"strconv"
	"testing"
)

// TestEachTransactionConnects checks that a run with -C opens a session of the server for each transaction. The run
// must be valid, and its report has the time to connect.
func TestEachTransactionConnects(t *testing.T) {
	t.Parallel()
	url := startPostgres(t).URL()
	const count = 200
	for _, args := range [][]string{{"bank", "--accounts", "100"}, {"tpcb", "--scale", "1", "--mode", "interactive"}} {
		before := sessions(t, url)
		r := runs(t, 0, append([]string{"run", args[0], "--db", url, "--clients", "4", "--count", strconv.Itoa(count), "-C", "--max-tries", "5",
			"--latency-limit", "60000"}, args[1:]...)...)
		if opened := sessions(t, url) - before; opened < count {
			t.Errorf("%s: %d sessions for %d transactions", args[0], opened, count)
		}
		d := r.Drive
		if d.Connect == nil || d.Connect.P50 <= 0 || d.Limit == nil || d.Limit.LimitMS != 60000 || d.Limit.Over != 0 || d.Reconnects != 0 {
			t.Errorf("%s: to connect %+v, limit %+v, %d reconnects", args[0], d.Connect, d.Limit, d.Reconnects)
		}
	}
	runs(t, 0, "run", "bank", "--clients", "2", "--count", "100", "-C", "--accounts", "100")
}

// sessions returns how many sessions the server has had; its own statistics are written when a session ends.
func sessions(t *testing.T, url string) int {
	t.Helper()
	n, err := strconv.Atoi(queryText(t, url, "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLatencyLimitCounts checks that a run at a rate beyond its database skips late transactions, and counts slow ones.
func TestLatencyLimitCounts(t *testing.T) {
	t.Parallel()
	_, r := result(t, "run", "bank", "--clients", "1", "--accounts", "100", "--rate", "1000000", "--duration", "1s", "--latency-limit", "1")
	if l := r.Drive.Limit; l == nil || l.Skipped == 0 || l.Skipped > r.Drive.Shed || r.Drive.Committed == 0 {
		t.Errorf("%+v of %d shed and %d committed", l, r.Drive.Shed, r.Drive.Committed)
	}
}
