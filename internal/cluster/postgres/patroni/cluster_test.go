package patroni

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

func kind() clustertest.Kind {
	return clustertest.OnPostgreSQL(clustertest.Kind{
		Engine: "postgres-patroni", LeaderOnly: true, Params: url.Values{},
		Launch: clustertest.Launcher(Start),
		// A paused primary may take Patroni's leader key back from the node that was promoted meanwhile. Version
		// 3.0.2 writes the key of a new lease without checking its owner (patroni/dcs/etcd3.py, _update_leader).
		Loses: []string{"pause the leader"},
	})
}

func startCluster(t *testing.T, nodes int, query string) *Cluster {
	t.Helper()
	params, err := url.ParseQuery(query)
	clustertest.Must(t, err)
	return kind().Start(t, cluster.Options{Nodes: nodes, Params: params}).(*Cluster)
}

func TestParamsRejectInvalidValues(t *testing.T) {
	clustertest.Params(t, parseParams, map[string]string{
		"synchronous=strict&ttl=30s&loop_wait=10s&retry_timeout=10s&failsafe_mode=on&maximum_lag_on_failover=0&store=3&fsync=off&set.work_mem=8MB": "",
		"synchronous=yes":                      "one of off, on, strict",
		"ttl=3":                                "from 3s to 1h0m0s",
		"ttl=3500ms":                           "whole seconds",
		"ttl=1s":                               "from 3s",
		"retry_timeout=1s":                     "from 2s",
		"ttl=6s&loop_wait=5s":                  "shorter than loop_wait and retry_timeout together (7s)",
		"ttl=6s&retry_timeout=6s":              "(7s)",
		"failsafe_mode=1":                      "neither on nor off",
		"maximum_lag_on_failover=-1":           "a number of bytes",
		"store=2":                              "one of 1, 3",
		"synchronos=on":                        "the nearest is synchronous",
		"set.wal_level=minimal":                "cannot be changed",
		"set.dynamic_shared_memory_type=posix": "cannot be changed",
		"set.max_connections=25&set.wal_keep_size=16MB&set.max_prepared_transactions=0": "",
		"set.wal_keep_size=1GB":       "",
		"set.wal_keep_size=16":        "",
		"set.max_connections=24":      "of at least 25, Patroni's minimum",
		"set.MAX_Connections=many":    "at least 25",
		"set.max_worker_processes=2s": "a whole number of at least 2",
		"set.wal_keep_size=1MB":       "at least 16MB",
		"set.wal_keep_size=much":      "at least 16MB",
		"failover=nobody":             "one of patroni",
	})
}

// TestTimesMustFitPatroniVersion checks the default times, and which given times a version of Patroni rejects or, from
// 3.1 on, would replace.
func TestTimesMustFitPatroniVersion(t *testing.T) {
	for _, c := range []struct{ version, query, want string }{
		{"3.0.2", "", "3s 1s 2s"},
		{"3.0.2", "loop_wait=5s", "parameter loop_wait: a ttl of 3s is shorter than loop_wait and retry_timeout together (7s)"},
		{"3.0.2", "retry_timeout=9s", "parameter retry_timeout: a ttl of 3s is shorter than loop_wait and retry_timeout together (10s)"},
		{"3.0.2", "ttl=20s&retry_timeout=9s&loop_wait=5s", "20s 5s 9s"},
		{"3.1.0", "", "20s 1s 3s"},
		{"4.0.4", "ttl=30s", "30s 1s 3s"},
		{"4.0.4", "loop_wait=5s", "20s 5s 3s"},
		{"4.0.4", "loop_wait=15s", "21s 15s 3s"},
		{"4.0.4", "retry_timeout=10s", "21s 1s 10s"},
		{"4.0.4", "ttl=20s&retry_timeout=3s", "20s 1s 3s"},
		{"4.0.4", "ttl=20s&retry_timeout=9s&loop_wait=2s", "20s 2s 9s"},
		{"4.0.4", "ttl=3s&loop_wait=1s&retry_timeout=2s", "parameter ttl: Patroni 4.0.4 takes no ttl below 20s and no retry_timeout below 3s: give ttl=20s&retry_timeout=3s,"},
		{"4.0.4", "ttl=3s", "parameter ttl: Patroni 4.0.4 takes no ttl below 20s: give ttl=20s,"},
		{"4.0.4", "retry_timeout=2s", "parameter retry_timeout: Patroni 4.0.4 takes no retry_timeout below 3s: give retry_timeout=3s,"},
		{"4.0.4", "ttl=20s&retry_timeout=9s&loop_wait=5s", "parameter ttl: Patroni 4.0.4 takes no ttl below 23s (loop_wait and twice retry_timeout): give ttl=23s,"},
		{"3.1.0", "ttl=19s&loop_wait=15s", "no ttl below 21s (loop_wait and twice retry_timeout): give ttl=21s,"},
		{"3.1.0", "ttl=19s&loop_wait=15s&retry_timeout=2s", "no ttl below 21s (loop_wait and twice retry_timeout) and no retry_timeout below 3s: give ttl=21s&retry_timeout=3s,"},
		{"4.0.4", "ttl=30s&retry_timeout=2s", "parameter retry_timeout: Patroni 4.0.4 takes no retry_timeout below 3s: give retry_timeout=3s,"},
		{"x", "", "not a version"},
	} {
		values, err := url.ParseQuery(c.query)
		clustertest.Must(t, err)
		p, err := parseParams(values)
		clustertest.Must(t, err)
		p, err = p.fit(c.version, values)
		got := fmt.Sprint(p.ttl, p.loopWait, p.retryTimeout)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("Patroni %s with %s: %s, want %s", c.version, c.query, got, c.want)
		}
	}
}

// TestDryRunUsesTimesOfInstalledPatroni checks that a dry run uses the times of the installed Patroni, and refuses
// times that it does not accept.
func TestDryRunUsesTimesOfInstalledPatroni(t *testing.T) {
	p, err := find(cluster.Options{})
	clustertest.Need(t, "postgres-patroni", err)
	const short = "ttl=3s&loop_wait=1s&retry_timeout=2s"
	for _, c := range []struct{ version, query, want string }{
		{"3.0.2", "", "(synchronous on, ttl 3s, loop_wait 1s, retry_timeout 2s, "},
		{"3.0.2", short, "(synchronous on, ttl 3s, loop_wait 1s, retry_timeout 2s, "},
		{"4.0.4", "", "(synchronous on, ttl 20s, loop_wait 1s, retry_timeout 3s, "},
		{"4.0.4", short, "Patroni 4.0.4 takes no ttl below 20s and no retry_timeout below 3s"},
	} {
		ownPatroni(t, p.python, "print('patroni "+c.version+"')")
		params, err := url.ParseQuery(c.query)
		clustertest.Must(t, err)
		_, err = Start(t.Context(), cluster.Options{Nodes: 3, DryRun: true, Params: params})
		got := fmt.Sprint(err)
		if planned, ok := errors.AsType[*cluster.PlannedError](err); ok {
			got = planned.Cluster.(*Cluster).Description()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("a dry run of Patroni %s with %q: %s, want %s", c.version, c.query, got, c.want)
		}
	}
}

// TestThreeNodesKeepPaymentsUnderAllFaults checks that a cluster of three nodes keeps all acknowledged payments
// through each kind of fault.
func TestThreeNodesKeepPaymentsUnderAllFaults(t *testing.T) {
	c := startCluster(t, 3, "")
	if len(c.Nodes()) != 3 || len(c.Witnesses()) != 1 || c.NodeURL(3) != "" || !strings.Contains(c.Description(), "by Patroni ") {
		t.Errorf("%d nodes, the hosts without data %v, %s", len(c.Nodes()), c.Witnesses(), c.Description())
	}
	kind().Hurt(t, c)
	t.Run("overwrite the leader key", func(t *testing.T) { testOverwrittenLeader(t, c) })
}

func TestStartRejectsInvalidOptions(t *testing.T) {
	k := kind()
	two := cluster.Options{Nodes: 2}
	k.Refuses(t, []string{"patroni", "postgresql", "etcd-server", "python3"},
		clustertest.Refusal{Query: "set.no_such_setting=1", Options: two, Says: "no_such_setting"},
		clustertest.Refusal{Query: "failover=nobody", Options: two, Says: "one of patroni"})
}

// ownPatroni puts a program patroni before the installed one on PATH.
func ownPatroni(t *testing.T, python, text string) {
	t.Helper()
	dir := clustertest.OpenDir(t)
	clustertest.Must(t, os.WriteFile(filepath.Join(dir, "patroni"), []byte("#!"+python+"\n"+text+"\n"), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// TestErrorContainsOutputOfEndedPatroni checks that the error contains, once, the output of a Patroni that ends at
// once. Its log is removed with the cluster.
func TestErrorContainsOutputOfEndedPatroni(t *testing.T) {
	p, err := find(cluster.Options{})
	clustertest.Need(t, "postgres-patroni", err)
	const text = "no module of this name"
	for name, program := range map[string]string{
		"asked for its version": "",
		"started":               "import sys\nif '--version' in sys.argv: sys.exit(print('patroni 3.0.2'))\n",
	} {
		ownPatroni(t, p.python, program+"raise SystemExit('"+text+"')")
		_, err := kind().Launch(clustertest.Within(t, clustertest.WaitLimit), cluster.Options{Nodes: 2})
		if err == nil || strings.Count(err.Error(), text) != 1 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if program == "" && !strings.HasSuffix(err.Error(), text+": repair that Patroni") {
			t.Errorf("%s: %v does not say what to do", name, err)
		}
	}
}

// TestMissingPythonModuleIsNamed checks the error for a Patroni whose Python lacks the module for etcd.
func TestMissingPythonModuleIsNamed(t *testing.T) {
	p, err := find(cluster.Options{})
	clustertest.Need(t, "postgres-patroni", err)
	python := filepath.Join(clustertest.OpenDir(t), "python")
	clustertest.Must(t, os.WriteFile(python, []byte("#!/bin/sh\nexec "+p.python+" -S \"$@\"\n"), 0o755))
	ownPatroni(t, python, "")
	_, err = find(cluster.Options{})
	const says = "the Python module etcd, which Patroni needs, is not on this machine: install the Debian packages patroni, python3-etcd and etcd-server"
	if missing, ok := errors.AsType[host.MissingError](err); !ok || !strings.HasPrefix(missing.Error(), says) {
		t.Errorf("%v", err)
	}
}

// TestHangingStoreIsReportedInTime checks that a store which hangs is reported within limits of its own, whenever
// it begins to hang. The start of the cluster has no limit.
func TestHangingStoreIsReportedInTime(t *testing.T) {
	p, err := find(cluster.Options{})
	clustertest.Need(t, "postgres-patroni", err)
	const never = "etcd, which keeps Patroni's state, had 8s to answer: see why it hangs"
	const anyMore = "has not answered for 5s: see why it hangs"
	for name, test := range map[string]struct {
		hangs func(ctx context.Context, client string) error // returns when the store must be paused
		says  []string                                       // one of these
	}{
		"from the beginning": {func(context.Context, string) error { return nil }, []string{never}},
		"before the nodes are started": {func(ctx context.Context, client string) error {
			if _, err := ask(ctx, client, "leader"); !errors.Is(err, errNoKey) {
				return err
			}
			return nil
		}, []string{anyMore, never}}, // the start may not have had its first answer
		"while the standby is started": {func(ctx context.Context, client string) error {
			_, err := ask(ctx, client, "leader")
			return err
		}, []string{anyMore}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := clustertest.OpenDir(t)
			begun := filepath.Join(folder, "begun")
			clustertest.Must(t, os.Chmod(folder, 0o777)) // for the servers' user
			clustertest.Must(t, os.WriteFile(filepath.Join(folder, "etcd"),
				fmt.Appendf(nil, "#!/bin/sh\necho $$ $* >%s.new && mv %[1]s.new %[1]s\nexec %s \"$@\"\n", begun, p.etcd), 0o755))
			t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
			ctx := clustertest.Within(t, clustertest.WaitLimit)
			paused := make(chan error, 1)
			go func() { paused <- pauseWhen(ctx, begun, test.hangs) }()
			c, err := kind().Launch(ctx, cluster.Options{Nodes: 2, InMemory: true, Loopback: true})
			clustertest.Must(t, <-paused)
			if err == nil {
				clustertest.Must(t, c.Stop())
				t.Fatal("a cluster whose store hangs was started")
			}
			says := func(text string) bool { return strings.Contains(err.Error(), text) }
			if ctx.Err() != nil || !slices.ContainsFunc(test.says, says) {
				t.Error(err)
			}
		})
	}
}

// pauseWhen pauses an etcd server, whose number and arguments are in a file, when it must hang.
func pauseWhen(ctx context.Context, file string, hangs func(ctx context.Context, client string) error) error {
	return wait.Retry(ctx, func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		words := strings.Fields(string(text))
		pid, err := strconv.Atoi(words[0])
		if err == nil {
			err = hangs(ctx, strings.TrimPrefix(words[slices.Index(words, "--listen-client-urls")+1], "http://"))
		}
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGSTOP)
	})
}

// TestProgramsComeFromBinOrPath checks that a node takes PostgreSQL's programs from the folder of bin, or else,
// like Patroni, from the first on PATH. It also checks a clean shutdown if Patroni does not end after its
// PostgreSQL.
func TestProgramsComeFromBinOrPath(t *testing.T) {
	p, err := find(cluster.Options{})
	clustertest.Need(t, "postgres-patroni", err)
	dir := clustertest.OpenDir(t)
	bin := filepath.Join(dir, "named")
	clustertest.Must(t, os.Symlink(p.bin, bin))
	if named, err := find(cluster.Options{Params: url.Values{"bin": {bin}}}); err != nil || named.bin != bin {
		t.Errorf("of bin=%s the programs are those of %s: %v", bin, named.bin, err)
	}
	clustertest.Must(t, os.WriteFile(filepath.Join(dir, "patroni"), fmt.Appendf(nil, `#!%s
import runpy, sys, time
if __name__ == "__main__": # and not where Patroni starts PostgreSQL by a process of its own
    try:
        runpy.run_path(%q, run_name="__main__")
    finally:
        while "--version" not in sys.argv:
            time.sleep(1)
`, p.python, p.patroni), 0o755))
	params := url.Values{"synchronous": {"off"}} // one node has no standby to wait for
	t.Setenv("PATH", strings.Join([]string{bin, dir, os.Getenv("PATH")}, string(os.PathListSeparator)))
	n := kind().Start(t, cluster.Options{Nodes: 1, Loopback: true, Params: params}).(*Cluster).servers()[0]
	var commands []string
	for _, pid := range n.PIDs() {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // a process that has ended has none
		commands = append(commands, strings.Split(string(command), "\x00")...)
	}
	for _, want := range []string{filepath.Join(bin, "postgres"), filepath.Join(dir, "patroni")} {
		if !slices.Contains(commands, want) {
			t.Errorf("the node's processes are %q, and none of them is %s", commands, want)
		}
	}
	clustertest.Must(t, n.Terminate(clustertest.Within(t, clustertest.WaitLimit)))
	said, err := exec.CommandContext(t.Context(), filepath.Join(p.bin, "pg_controldata"), n.pgdata()).Output()
	if err != nil || !strings.Contains(string(said), " shut down\n") {
		t.Errorf("%s was not shut down in good order: %v: %s", n.Name(), err, said)
	}
}
