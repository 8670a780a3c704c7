package cli_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/redis"
	"stroppy/internal/cluster/wait"
)

// TestFailoverClusterErrorsAreExplained checks the errors of a cluster with fail-over that cannot start as requested.
// A dry run returns the same errors, and shows the plan with a missing program.
func TestFailoverClusterErrorsAreExplained(t *testing.T) {
	if testing.Short() {
		t.Skip("looks for the programs of clusters")
	}
	empty := clustertest.OpenDir(t)
	own, err := exec.LookPath("stroppy")
	clustertest.Must(t, err)
	for cluster, want := range map[string]struct {
		path string // where programs are looked for; empty: where they are
		code int
		says string
	}{
		"postgres:3?ttl=1s":               {"", 2, "the cluster's parameter ttl: it must be a time from 3s to 1h0m0s"},
		"postgres:3?retry_timeout=1s":     {"", 2, "the cluster's parameter retry_timeout: it must be a time from 2s"},
		"postgres:1?ttl=5s":               {"", 2, "the cluster's parameter ttl: it is a setting of Patroni, and one server has no standby to fail over to: use at least 2 nodes"},
		"postgres:3?failover=ideal":       {"", 2, "the cluster's parameter failover: stroppy's own supervisor was removed: leave it out to use Patroni"},
		"postgres:3?sync=off":             {"", 2, "the cluster's parameter sync: it belonged to stroppy's own supervisor, which was removed: use Patroni's synchronous=off|on|strict"},
		"redis:3?failover=ideal":          {"", 2, "the cluster's parameter failover: stroppy's own supervisor was removed: use failover=sentinel"},
		"postgres:3?bin=" + empty:         {"", 2, empty + " has no initdb"},
		"redis:3?bin=" + empty:            {"", 2, empty + " has no redis-server"},
		"redis:3?down-after=0s":           {"", 2, "the cluster's parameter down-after: "},
		"redis:1?wait=1":                  {"", 2, "the cluster's parameter wait: one server has no replica: use at least 2 nodes"},
		"redis:1?min-replicas-to-write=1": {"", 2, "the cluster's parameter min-replicas-to-write: one server has no replica"},
		"redis:3":                         {filepath.Dir(own), 3, "the program redis-server is not on this machine: install the Debian package redis-server"},
		"postgres:3":                      {filepath.Dir(own), 3, "install the Debian packages patroni, python3-etcd and etcd-server"},
	} {
		t.Run(cluster, func(t *testing.T) {
			if want.path != "" {
				t.Setenv("PATH", want.path)
			}
			code, out := called(t, clustertest.OpenDir(t), "run", "--cluster", cluster, "--duration", "1s", "--out", filepath.Join(t.TempDir(), "r"))
			lines := strings.Split(strings.TrimSpace(out), "\n")
			last := lines[len(lines)-1]
			if strings.Contains(last, "the Debian package postgresql") {
				t.Skip("skipped engine: postgres: install the Debian package postgresql")
			}
			if code != want.code || !strings.Contains(last, want.says) {
				t.Errorf("exit code %d and %q, want %d and %q", code, last, want.code, want.says)
			}
			planned, plan := called(t, clustertest.OpenDir(t), "run", "--cluster", cluster, "--dry-run")
			expected := want.code
			if want.path != "" { // another machine may have the programs
				expected = 0
			}
			if planned != expected || !strings.Contains(plan, want.says) {
				t.Errorf("a dry run: exit code %d and %q, want %d and %q", planned, plan, expected, want.says)
			}
		})
	}
}

// TestRedisWithoutReplicasIsRefused checks that a run is refused if it needs replicas and the server has none, with
// and without a Sentinel.
func TestRedisWithoutReplicasIsRefused(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	c, err := redis.Start(t.Context(), cluster.Alone(nil))
	server := started(t, "redis", c, err)
	address, err := url.Parse(server.URL())
	clustertest.Must(t, err)
	plain, sentinel := "redis://"+address.Host+"/0", "redis://"+watch(t, address)+"/0?sentinel=bank"
	own := goredis.NewClient(&goredis.Options{Addr: address.Host})
	defer own.Close()
	run := func(args ...string) (int, string) {
		return called(t, clustertest.OpenDir(t), append(args, "--accounts", "100", "--clients", "2", "--count", "300", "--out", filepath.Join(t.TempDir(), "r"))...)
	}
	for _, test := range []struct {
		least string // min-replicas-to-write of the server
		code  int
		says  string
		args  []string
	}{
		{"0", 2, "0 replicas follow the Redis server " + address.Host + ", and wait=1 asks for more", []string{"run", "--db", plain + "?wait=1"}},
		{"0", 2, "knows 0 replicas of bank, and wait=1 asks for more", []string{"run", "--db", sentinel + "&wait=1"}},
		{"1", 3, "or lower its min-replicas-to-write", []string{"run", "--db", plain}},
		{"0", 3, "knows no replica of bank, so that none can take over from the Redis server " + address.Host + ": start replicas of it", []string{"run", "--db", sentinel}},
		{"0", 3, "or name that server itself without sentinel=bank", []string{"run", "--db", sentinel}},
		{"0", 0, "VALID", []string{"run", "--db", plain}},
		{"0", 0, "VALID", []string{"run", "--cluster", "redis:1"}},
		{"0", 0, ", fail-over by nobody: a lost primary is waited for None", []string{"run", "--cluster", "redis:2?failover=off"}},
		{"0", 2, "cannot hand its lead over in good order", []string{"run", "--cluster", "redis:1", "--nemesis", "move leader at 1s"}},
	} {
		clustertest.Must(t, own.ConfigSet(t.Context(), "min-replicas-to-write", test.least).Err())
		began := time.Now()
		code, out := run(test.args...)
		if took := time.Since(began); test.code != 0 && took > 20*time.Second { // 3 s on a machine at rest; it took 23 s once
			t.Errorf("%v is refused after %v", test.args, took)
		}
		said := strings.Join(strings.Fields(out), " ")
		if code != 0 {
			lines := strings.Split(strings.TrimSpace(out), "\n")
			said = lines[len(lines)-1]
		}
		if code != test.code || !strings.Contains(said, test.says) {
			t.Errorf("%v, min-replicas-to-write %s: exit code %d and %q, want %d and %q", test.args, test.least, code, out, test.code, test.says)
		}
		if test.args[2] == "redis:1" && strings.Contains(said, "fail-over by") {
			t.Errorf("of a server alone it is said who fails over: %s", out)
		}
		if test.args[2] == plain && strings.Contains(said, "No replica") {
			t.Errorf("a server alone, of which nobody asks for a replica: %s", out)
		}
	}
	for _, args := range [][]string{{"pop", "--db", sentinel, "--accounts", "100"}, {"cleanup", "--db", sentinel}} {
		if code, out := called(t, clustertest.OpenDir(t), args...); code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, out)
		}
	}
}

// watch starts a Sentinel that watches the server as bank, and returns its address.
func watch(t *testing.T, server *url.URL) string {
	t.Helper()
	program, err := cluster.Options{}.Find("redis-server", "redis-server")
	clustertest.Must(t, err)
	port, err := host.FreePort(t.Context())
	clustertest.Must(t, err)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	clustertest.Must(t, os.WriteFile(conf, fmt.Appendf(nil, "bind 127.0.0.1\nport %d\nsentinel monitor bank %s %s 1\n", port, server.Hostname(), server.Port()), 0o600))
	process, err := host.StartProcess(exec.Command(program, conf, "--sentinel"), syscall.SIGKILL)
	clustertest.Must(t, err)
	t.Cleanup(func() { clustertest.Must(t, process.Kill()) })
	at := fmt.Sprintf("127.0.0.1:%d", port)
	client := goredis.NewClient(&goredis.Options{Addr: at})
	defer client.Close()
	clustertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error { return client.Ping(t.Context()).Err() }))
	return at
}
