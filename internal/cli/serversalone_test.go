package cli_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/cluster/postgres/patroni"
	"stroppy/internal/cluster/redis"
	"stroppy/internal/nemesis"
	"stroppy/internal/report"
)

// startNodes starts a cluster for a test that uses its URL, and stops it after the test.
func startNodes[C cluster.Cluster](t *testing.T, start func(context.Context, cluster.Options) (C, error), nodes int, params url.Values) C {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers")
	}
	c, err := start(t.Context(), cluster.Options{Nodes: nodes, InMemory: true, Loopback: true, Params: params})
	if missing := (host.MissingError{}); errors.As(err, &missing) {
		t.Skipf("skipped engine: install the Debian package %s", missing.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// replicas returns the check of the servers' states.
func replicas(t *testing.T, r *report.Result) report.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == "replicas" {
			return c
		}
	}
	t.Fatalf("the nodes were not compared: %+v", r.Checks)
	return report.Check{}
}

// TestServersOfAURLAreCompared checks that servers that the user names are compared like the nodes of a cluster.
func TestServersOfAURLAreCompared(t *testing.T) {
	t.Parallel()
	for kind, start := range map[string]func(*testing.T) (url string, nodes string){
		"etcd":  func(t *testing.T) (string, string) { return startNodes(t, etcd.Start, 3, nil).URL(), "3 nodes" },
		"redis": func(t *testing.T) (string, string) { return startNodes(t, redis.StartCluster, 2, nil).URL(), "2 nodes" },
		"galera": func(t *testing.T) (string, string) {
			return startNodes(t, mysqlcluster.StartGalera, 3, nil).URL(), "3 nodes"
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			address, nodes := start(t)
			c := replicas(t, runs(t, 0, "run", "bank", "--db", address, "--accounts", "200", "--clients", "4", "--count", "400"))
			if c.Status != "valid" || !c.Required || !strings.HasPrefix(c.Detail, nodes+" were read one by one") {
				t.Errorf("%+v", c)
			}
		})
	}
}

// startApart starts a primary and a standby. Patroni checks only once a minute whether another program has promoted a
// standby. With its default, the two primaries would disappear before a busy machine has finished the run.
func startApart(t *testing.T) *patroni.Cluster {
	t.Helper()
	return startNodes(t, patroni.Start, 2, url.Values{"synchronous": {"off"}, "loop_wait": {"1m"}, "ttl": {"3m"}})
}

// TestDifferingServersAreReported checks that a late standby leaves the check open, and that a diverged one is named
// with its differences.
func TestDifferingServersAreReported(t *testing.T) {
	t.Parallel()
	c := startApart(t)
	leader, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	standby := c.NodeURL(1 - leader)
	// Patroni would resume the replay that this test pauses.
	if err := c.Nodes()[1-leader].(nemesis.Agented).Agent().Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute := func(sql string) {
		t.Helper()
		if _, err := clustertest.Execute(t.Context(), standby, sql); err != nil {
			t.Fatal(err)
		}
	}
	drive := func(want int) report.Check {
		t.Helper()
		return replicas(t, runs(t, want, "run", "bank", "--db", c.URL(), "--no-load", "--clients", "4", "--count", "400"))
	}
	names := hostOf(t, standby) + " holds another state than " + hostOf(t, c.NodeURL(leader)) + ": "
	first := replicas(t, runs(t, 0, "run", "bank", "--db", c.URL(), "--accounts", "200", "--clients", "4", "--count", "400"))
	if first.Status != "valid" || !strings.HasPrefix(first.Detail, "2 nodes were read one by one") {
		t.Errorf("%+v", first)
	}
	execute("SELECT pg_wal_replay_pause()")
	late := drive(4)
	if late.Status != "unknown" || !strings.Contains(late.Detail, names) || !strings.Contains(late.Detail, "did not catch up while it was waited for") {
		t.Errorf("%+v", late)
	}
	execute("SELECT pg_wal_replay_resume()")
	if again := drive(0); again.Status != "valid" {
		t.Errorf("%+v", again)
	}
	execute("SELECT pg_promote()")
	execute("UPDATE stroppy_account SET balance = balance + 1, version = version + 100 WHERE ban = (SELECT min(ban) FROM stroppy_account)")
	different := drive(1)
	if different.Status != "invalid" || !strings.Contains(different.Detail, names) || !strings.Contains(different.Detail, " on "+hostOf(t, standby)+" and ") {
		t.Errorf("%+v", different)
	}
}

// TestTwoPrimariesAreReported checks that the report has the time in which two servers accepted writes, and the lost
// transactions. A standby is promoted while the primary continues, and half of the clients connect to it.
func TestTwoPrimariesAreReported(t *testing.T) {
	t.Parallel()
	c := startApart(t)
	leader, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	primary, standby := c.NodeURL(leader), c.NodeURL(1-leader)
	hosts := [2]string{hostOf(t, standby), hostOf(t, primary)}
	address := strings.Replace(standby, hosts[0], hosts[0]+","+hosts[1], 1) + "&target_session_attrs=read-write"
	p := start(t, "run", "bank", "--db", address, "--accounts", "2000", "--clients", "8", "--rate", "250", "--duration", "8s", "--out", "run")
	p.drives(t, "run")
	time.Sleep(2 * time.Second)
	_, promoting := clustertest.Execute(t.Context(), standby, "SELECT pg_promote()")
	_, ending := clustertest.Execute(t.Context(), primary,
		"SELECT pg_terminate_backend(pid) FROM (SELECT pid, row_number() OVER () AS n FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS s WHERE n % 2 = 0")
	dir := filepath.Join(p.dir, "run")
	code, stdout, stderr := p.wait(t)
	if err := errors.Join(promoting, ending); err != nil || code != 1 {
		t.Fatalf("code %d, %v: %s", code, err, stderr)
	}
	if !strings.Contains(stdout, "Two nodes took writes for ") {
		t.Errorf("the report is %s", stdout)
	}
	r, err := report.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := r.Acknowledgements
	if a == nil || !a.OnePrimary || len(a.Overlaps) == 0 {
		t.Fatalf("%+v", a)
	}
	both := slices.MaxFunc(a.Overlaps, func(a, b report.Overlap) int {
		return cmp.Compare(a.ToSeconds-a.FromSeconds, b.ToSeconds-b.FromSeconds)
	})
	if both.ToSeconds-both.FromSeconds < 0.5 || both.FromSeconds < 1 || len(both.Servers) != 2 {
		t.Errorf("%+v", both)
	}
	// The end state comes from one server. It lacks the writes of the other server, except writes in the first tenth
	// of a second before the promotion.
	kept := 0
	for _, s := range both.Servers {
		if s.Acknowledged == 0 || s.Lost == nil || *s.Lost != 0 && *s.Lost < s.Acknowledged/2 {
			t.Errorf("%s acknowledged %s", s.Server, stdout)
		} else if *s.Lost == 0 {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("%d of two servers kept all", kept)
	}
	before, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	code, _, stderr = call(t, "check", dir) // as another machine finds it
	again, err := report.Read(dir)
	if err != nil || code != 1 {
		t.Fatalf("code %d, %v: %s", code, err, stderr)
	}
	if after, err := json.Marshal(again.Acknowledgements); err != nil || string(after) != string(before) {
		t.Errorf("%s is not %s: %v", after, before, err)
	}
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
