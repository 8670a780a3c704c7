package dbtest

import (
	"strings"
	"testing"
)

// TestSecondRunHasVerdictOfItsOwn checks that runs on data that earlier runs have changed are decided without the
// recordings of these.
func TestSecondRunHasVerdictOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server func(t *testing.T) opener
		short  bool
	}{
		"sqlite": {onSQLite, true}, "postgres": {onPostgres, false}, "mariadb": {onMariaDB, false}, "etcd": {onEtcd, false},
		"redis": {onRedis("watch"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if !c.short && testing.Short() {
				t.Skip("starts a server")
			}
			open := c.server(t)
			for _, line := range []string{
				"bank --accounts 200", "kv --records 100", "kv --records 100 --preset ycsb-f", "tpcb --ratio 1:2:20", "events", "append",
			} {
				words := strings.Fields(line)
				_, url := open(t)
				code, verdict, last := driven(t, url, words[0], words[1:]...)
				for run := 2; run < 4 && code == 0; run++ {
					code, verdict, last = driven(t, url, words[0], "--no-load")
				}
				if code != 0 || verdict != "valid" {
					t.Errorf("%s: exit code %d, %s: %s", line, code, verdict, last)
				}
			}
		})
	}
}

// TestSecondRunFindsLostUpdates checks that the state at the start of a run hides no violation of the run.
func TestSecondRunFindsLostUpdates(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	url := newPostgresDatabase(t)
	if code, verdict, last := driven(t, url, "bank", "--accounts", "20"); code != 0 {
		t.Fatalf("the first run: exit code %d, %s: %s", code, verdict, last)
	}
	for try := 0; ; try++ {
		code, _, last := driven(t, url, "bank", "--no-load", "--update", "rmw", "--clients", "16", "--count", "2000", "--mode", "interactive")
		if code == 1 && strings.Contains(last, "lost update") {
			return
		}
		if code != 0 || try == 5 {
			t.Fatalf("exit code %d: %s", code, last)
		}
	}
}

// TestCampaignsRunOnTablesOfPgbench checks that each run of a sweep and of a comparison has a verdict on tables that
// pgbench has made.
func TestCampaignsRunOnTablesOfPgbench(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	url := newPostgresDatabase(t)
	pgbench(t, "-i", "-q", "-s", "1", url)
	for _, args := range [][]string{
		{"compare", "--vary", "clients=2,4", "--repeat", "2"},
		{"compare", "--vary", "prepare=true,false", "--repeat", "1"},
		{"sweep", "--over", "clients=1,2"},
	} {
		out := runDir(t)
		code, stdout, stderr := stroppy(append([]string{args[0], "tpcb", "--db", url, "--no-load", "--count", "100", "--out", out}, args[1:]...)...)
		if code != 0 {
			t.Errorf("%v: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
}
