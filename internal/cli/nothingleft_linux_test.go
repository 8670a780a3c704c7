package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

// traces lists the objects on the machine that belong to a running cluster.
type traces struct {
	pids     []string
	folders  []string // below /dev/shm, or the folder for temporary ones
	spaces   []string // network namespaces
	segments []string // of memory of System V
}

// tracesOf returns the traces of a process and its descendants.
func tracesOf(t *testing.T, root int, state string) (found traces) {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/net")
	clustertest.Must(t, err)
	folder := regexp.MustCompile(`(/dev/shm|` + regexp.QuoteMeta(state) + `)/stroppy-[^/\x00]+`)
	for next := []string{strconv.Itoa(root)}; len(next) > 0; next = next[1:] {
		children, _ := filepath.Glob("/proc/" + next[0] + "/task/*/children")
		for _, path := range children {
			text, _ := os.ReadFile(path)
			next = append(next, strings.Fields(string(text))...)
		}
		if next[0] == strconv.Itoa(root) {
			continue
		}
		found.pids = append(found.pids, next[0])
		line, _ := os.ReadFile("/proc/" + next[0] + "/cmdline")
		at, _ := os.Readlink("/proc/" + next[0] + "/cwd") // Redis writes over its command
		found.folders = append(found.folders, folder.FindAllString(string(line)+"\x00"+at, -1)...)
		if space, err := os.Readlink("/proc/" + next[0] + "/ns/net"); err == nil && space != own {
			found.spaces = append(found.spaces, space)
		}
	}
	for _, s := range segments() {
		// One that nobody has is of an earlier process with this number.
		if slices.Contains(found.pids, s.maker) && s.users != "0" {
			found.segments = append(found.segments, s.id)
		}
	}
	return found
}

// segment is a row of /proc/sysvipc/shm.
type segment struct{ id, maker, users string }

func segments() (list []segment) {
	memory, _ := os.ReadFile("/proc/sysvipc/shm")
	for _, row := range strings.Split(string(memory), "\n")[1:] {
		if c := strings.Fields(row); len(c) > 6 {
			list = append(list, segment{id: c[1], maker: c[4], users: c[6]})
		}
	}
	return list
}

// left returns an error that lists the remaining traces, or nil. A process with a reused number does not count,
// because its command has no folder of the cluster.
func (f traces) left() error {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		line, _ := os.ReadFile(p + "/cmdline")
		space, _ := os.Readlink(p + "/ns/net")
		at, _ := os.Readlink(p + "/cwd")
		has := func(folder string) bool { return strings.Contains(string(line)+at, folder) }
		if slices.ContainsFunc(f.folders, has) || slices.Contains(f.spaces, space) {
			return fmt.Errorf("the process %s is there: %q", filepath.Base(p), line)
		}
	}
	for _, folder := range f.folders {
		if _, err := os.Stat(folder); err == nil {
			return fmt.Errorf("the folder %s is there", folder)
		}
	}
	for _, s := range segments() {
		if slices.Contains(f.segments, s.id) {
			return fmt.Errorf("the segment %s of System V is there, made by %s", s.id, s.maker)
		}
	}
	return nil
}

// TestNothingLeft checks that runs leave no process, folder, namespace or memory segment, however they end. The next
// run clears the leftovers of kill -9.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	type kind struct {
		cluster, needs string
		segments       bool // its servers make some
	}
	kinds := []kind{{"postgres:2", "patroni", true}, {"redis:2", "redis-server", false}}
	all := os.Getenv("STROPPY_TEST_FAULTS") != ""
	if all {
		kinds = []kind{
			{"postgres:3", "patroni", true}, {"postgres:1?pooler=transaction", "pgbouncer", true}, {"redis:3", "redis-server", false},
			{"galera:3", "mariadbd", false}, {"etcd:3", "etcd", false},
		}
		if mysql := clustertest.Fetched("mysql"); mysql != nil {
			kinds = append(kinds, kind{"mysql:3?" + mysql.Encode(), filepath.Join(mysql.Get("bin"), "mysqld"), false})
		} else {
			t.Run("mysql:3", func(t *testing.T) {
				t.Skip("skipped engine: mysql: no folder of it in " + clustertest.VersionsVariable)
			})
		}
	}
	for _, kind := range kinds {
		for name, end := range map[string]struct {
			signal os.Signal
			args   []string
		}{
			"success": {nil, []string{"--duration", "4s"}},
			"failure": {nil, []string{"--duration", "4s", "--threshold", "p99<1ns"}},
			"Ctrl-C":  {os.Interrupt, []string{"--duration", "60s"}},
			"kill -9": {os.Kill, []string{"--duration", "60s"}},
		} {
			// A run that ends by itself stops the cluster as after Ctrl-C, and Patroni's takes long to start.
			if kind.needs == "patroni" && end.signal == nil && !all {
				continue
			}
			t.Run(kind.cluster+" "+name, func(t *testing.T) {
				t.Parallel()
				if _, err := host.Find(kind.needs, kind.needs); err != nil {
					t.Skip("skipped engine: " + kind.cluster + ": " + err.Error())
				}
				leavesNothing(t, kind.cluster, kind.segments, end.signal, end.args)
			})
		}
	}
}

// leavesNothing starts a run on a cluster, ends it, and checks that its traces are gone.
func leavesNothing(t *testing.T, kind string, segments bool, signal os.Signal, args []string) {
	state := clustertest.OpenDir(t)
	p := startIn(t, state, append([]string{"run", "--cluster", kind, "--accounts", "100", "--clients", "2", "--rate", "50", "--out", "r"}, args...)...)
	p.begins(t, "r")
	f := tracesOf(t, p.cmd.Process.Pid, state)
	if len(f.pids) < 3 || len(f.folders) == 0 || segments != (len(f.segments) > 0) {
		t.Fatalf("of the run nothing is seen, so this test proves nothing: %+v", f)
	}
	if signal != nil {
		p.signal(t, signal)
	}
	p.wait(t)
	if signal == os.Kill {
		called(t, state, "run", "--db", "noop:", "--count", "10", "--clients", "1", "--no-check", "--out", filepath.Join(t.TempDir(), "r"))
	}
	clustertest.Must(t, wait.RetryEvery(clustertest.Within(t, clustertest.WaitLimit), 100*time.Millisecond, f.left))
}
