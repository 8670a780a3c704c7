package postgres

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
)

// kind has a time-out that a busy machine keeps.
func kind() clustertest.Kind {
	return clustertest.OnPostgreSQL(clustertest.Kind{
		Engine: "postgres", Params: url.Values{"timeout": {"2s"}}, Supervised: true,
		Launch: clustertest.Launcher(StartCluster),
	})
}

// startCluster starts a cluster with parameters.
func startCluster(t *testing.T, nodes int, query string) *Cluster {
	t.Helper()
	params, err := url.ParseQuery(query)
	clustertest.Must(t, err)
	params.Set("timeout", "2s")
	return kind().Start(t, cluster.Options{Nodes: nodes, Params: params}).(*Cluster)
}

func mustExecute(t *testing.T, url, sql string) [][]byte {
	t.Helper()
	rows, err := clustertest.Execute(clustertest.Within(t, clustertest.WaitLimit), url, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

// roles returns the primary and another node.
func roles(t *testing.T, c *Cluster) (primary, standby *node) {
	t.Helper()
	n, others := clustertest.Leader(t, c)
	if len(others) > 0 {
		standby = others[len(others)-1].(*node)
	}
	return n.(*node), standby
}

// noted waits for an event after another.
func noted(t *testing.T, c *Cluster, from int, part string) {
	t.Helper()
	err := cluster.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error {
		for _, e := range c.Events()[from:] {
			if strings.Contains(e.Text, part) {
				return nil
			}
		}
		return fmt.Errorf("no event says %q: %v", part, c.Events()[from:])
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestParams(t *testing.T) {
	clustertest.Params(t, parseParams, map[string]string{
		"sync=off&fsync=off&set.work_mem=8MB&timeout=2s": "",
		"strict=on":                            "",
		"snyc=off":                             "the nearest is sync",
		"fsink=off":                            "the nearest is fsync",
		"sync=0":                               `"0" is neither on nor off`,
		"fsync=no":                             `"no" is neither on nor off`,
		"strict=on&sync=off":                   "leave out sync=off",
		"timeout=1":                            "from 200ms to 1m0s",
		"timeout=1ms":                          "from 200ms to 1m0s",
		"set.Port=1":                           "not for you to set",
		"set.dynamic_shared_memory_type=posix": "not for you to set",
		"set.synchronous_standby_names=x":      "not for you to set",
		"set.=1":                               "no name of a setting",
		"set.a'b=1":                            "no name of a setting",
		"set.work_mem=8MB%0Aport=1":            "one line",
	})
	p, err := parseParams(url.Values{"sync": {"off"}, "set.Work_Mem": {"8MB"}, "fsync": {"off"}})
	if err != nil || p.synchronous || p.settings["work_mem"] != "8MB" || p.settings["fsync"] != "off" || p.timeout != time.Second {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestOne(t *testing.T) {
	k := kind()
	k.Params = url.Values{"fsync": {"off"}, "set.work_mem": {"5MB"}}
	k.One(t, func(t *testing.T, c cluster.Local) {
		if got := mustExecute(t, c.URL(), "SELECT current_setting('fsync') || current_setting('work_mem')"); string(got[0]) != "off5MB" {
			t.Errorf("settings: %s", got[0])
		}
	})
}

func TestStopLeavesNothing(t *testing.T) {
	dir := filepath.Join(clustertest.OpenDir(t), "cluster")
	c := kind().Start(t, cluster.Options{Nodes: 2, Dir: dir, Loopback: true})
	segments := sharedMemory(t, dir)
	if len(segments) != 2 {
		t.Fatalf("found the shared memory segments %v of two servers", segments)
	}
	kind().Gone(t, c, dir)
	table, err := os.ReadFile("/proc/sysvipc/shm")
	clustertest.Must(t, err)
	for _, id := range segments {
		if strings.Contains(string(table), " "+id+" ") {
			t.Errorf("the shared memory segment %s is there yet", id)
		}
	}
}

// sharedMemory returns the numbers of the segments that the servers below a
// folder name as theirs.
func sharedMemory(t *testing.T, dir string) (ids []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "data", PIDFile))
	clustertest.Must(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		clustertest.Must(t, err)
		ids = append(ids, strings.Fields(strings.Split(string(text), "\n")[6])[1])
	}
	return ids
}

// TestPrograms sees that the server is that of the folder that was named, or else of the first
// on PATH, and that one alone needs no programs for standbys, which archives of the server lack.
func TestPrograms(t *testing.T) {
	found, err := findPrograms(cluster.Options{Nodes: 1})
	clustertest.Need(t, "postgres", err)
	k := kind()
	k.Params = url.Values{"fsync": {"off"}}
	k.Programs(t, found["postgres"])

	bin := clustertest.OpenDir(t)
	for _, name := range programs {
		clustertest.Must(t, os.Symlink(found[name], filepath.Join(bin, name)))
	}
	o := cluster.Options{Nodes: 1, Params: url.Values{"bin": {bin}}}
	if _, err := findPrograms(o); err != nil {
		t.Errorf("a server alone: %v", err)
	}
	o.Nodes = 2
	if _, err := findPrograms(o); err == nil || !strings.Contains(err.Error(), "has no pg_basebackup") {
		t.Errorf("two servers: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	kind().Refuses(t, nil,
		clustertest.Refusal{Query: "set.no_such_setting=1", Options: cluster.Options{Nodes: 2}, Says: "no_such_setting"},
		clustertest.Refusal{Query: "sync=maybe", Says: "parameter sync: "})
}
