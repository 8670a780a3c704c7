package server

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
)

func kind() clustertest.Kind {
	return clustertest.OnPostgreSQL(clustertest.Kind{
		Engine: "postgres", Supervised: true,
		Launch: clustertest.Launcher(StartCluster),
	})
}

func mustExecute(t *testing.T, url, sql string) [][]byte {
	t.Helper()
	rows, err := clustertest.Execute(clustertest.Within(t, clustertest.WaitLimit), url, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

func TestParamsRejectInvalidValues(t *testing.T) {
	clustertest.Params(t, parseParams, map[string]string{
		"fsync=off&set.work_mem=8MB":           "",
		"fsink=off":                            "the nearest is fsync",
		"fsync=no":                             `"no" is neither on nor off`,
		"set.Port=1":                           "cannot be changed",
		"set.dynamic_shared_memory_type=posix": "cannot be changed",
		"set.synchronous_standby_names=x":      "cannot be changed",
		"set.=1":                               "not the name of a setting",
		"set.a'b=1":                            "not the name of a setting",
		"set.work_mem=8MB%0Aport=1":            "one line",
	})
	p, err := parseParams(url.Values{"set.Work_Mem": {"8MB"}, "fsync": {"off"}})
	if err != nil || p.settings["work_mem"] != "8MB" || p.settings["fsync"] != "off" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestSingleNodeUsesSettingsAndRestarts(t *testing.T) {
	k := kind()
	k.Params = url.Values{"fsync": {"off"}, "set.work_mem": {"5MB"}}
	k.One(t, func(t *testing.T, c cluster.Local) {
		if got := mustExecute(t, c.URL(), "SELECT current_setting('fsync') || current_setting('work_mem')"); string(got[0]) != "off5MB" {
			t.Errorf("settings: %s", got[0])
		}
	})
}

func TestStopRemovesProcessesAndSharedMemory(t *testing.T) {
	dir := filepath.Join(clustertest.OpenDir(t), "cluster")
	c := kind().Start(t, cluster.Options{Nodes: 1, Dir: dir, Loopback: true})
	segments := sharedMemory(t, dir)
	if len(segments) != 1 {
		t.Fatalf("found the shared memory segments %v of one server", segments)
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

// sharedMemory returns the numbers of the shared memory segments of the servers below a folder.
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

// TestProgramsComeFromBinOrPath checks that the server comes from the named folder, or else from the first on PATH.
func TestProgramsComeFromBinOrPath(t *testing.T) {
	found, err := cluster.Options{}.FindAll(programs, DebianPackage, Folders...)
	clustertest.Need(t, "postgres", err)
	k := kind()
	k.Params = url.Values{"fsync": {"off"}}
	k.Programs(t, found["postgres"])
}

func TestStartRejectsInvalidOptions(t *testing.T) {
	kind().Refuses(t, nil,
		clustertest.Refusal{Query: "set.no_such_setting=1", Says: "no_such_setting"},
		clustertest.Refusal{Query: "fsync=maybe", Says: "parameter fsync: "})
}
