package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	systemd   = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	separate  = "11 32 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n12 33 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n20 41 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	together  = "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:13 - cgroup cgroup rw,cpu,cpuacct\n"
	container = "601 600 0:27 /docker/c0ffee /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
)

// TestFindControlGroupInEachCgroupVersion checks that the process's control group is found for versions 1 and 2, or the
// error names the cause.
func TestFindControlGroupInEachCgroupVersion(t *testing.T) {
	for name, c := range map[string]struct {
		own, mounts string
		want        Group
		err         string
	}{
		"version 2":                  {"0::/user.slice/user-0.slice/session-1.scope\n", systemd, Group{"/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope", true}, ""},
		"the root of version 2":      {"0::/\n", systemd, Group{"/sys/fs/cgroup", true}, ""},
		"version 1":                  {"4:cpu,cpuacct:/a:b\n0::/init.scope\n", together + systemd, Group{"/sys/fs/cgroup/cpu,cpuacct/a:b", false}, ""},
		"cpu alone":                  {"9:name=systemd:/\n3:cpuset:/x\n1:cpu:/\n0::/\n", separate, Group{"/sys/fs/cgroup/cpu", false}, ""},
		"version 2 beside others":    {"9:name=systemd:/\n3:cpuset:/x\n0::/\n", separate, Group{"/sys/fs/cgroup/unified", true}, ""},
		"in a container":             {"4:cpu,cpuacct:/docker/c0ffee/n\n", container, Group{"/sys/fs/cgroup/cpu,cpuacct/n", false}, ""},
		"of another container":       {"4:cpu,cpuacct:/docker/c0ffee2\n", container, Group{}, "/docker/c0ffee2 of cgroup, which is not mounted here"},
		"outside of the namespace":   {"0::/../other\n", systemd, Group{}, "/../other of cgroup2, which is not mounted here"},
		"without the controller":     {"9:name=systemd:/\n", separate, Group{}, "no control groups of processors"},
		"a line that is none":        {"cpu\n", separate, Group{}, "is not a valid line"},
		"none is mounted":            {"0::/\n", together, Group{}, "not mounted here: mount it below /sys/fs/cgroup"},
		"a mount with no separation": {"0::/\n", "35 24 0:30 / /x rw\n", Group{}, "not mounted here"},
	} {
		got, err := find(c.own, c.mounts)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// above returns the group of this process if another can be made below it.
func above(t *testing.T) Group {
	t.Helper()
	g, err := ByPID(os.Getpid())
	if err != nil {
		t.Skipf("skipped engine: control groups: %v", err)
	}
	trial := g.Child("test-" + strconv.Itoa(os.Getpid()))
	if err := trial.Make(1); err != nil {
		t.Skipf("skipped engine: control groups: %v", err)
	}
	if _, err := trial.Remove(); err != nil {
		t.Fatal(err)
	}
	return g
}

// sleeping starts a process that ends with the test.
func sleeping(t *testing.T) (pid int) {
	t.Helper()
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleep.Process.Kill(), sleep.Wait() })
	return sleep.Process.Pid
}

// weighs checks the weight of a group.
func weighs(t *testing.T, g Group, processors int) {
	t.Helper()
	name, want := shares, processors*oneShare
	if g.unified {
		name, want = weight, processors*oneWeight
	}
	if is, err := g.words(name); err != nil || strings.Join(is, " ") != strconv.Itoa(want) {
		t.Errorf("%s of %s is %v, want %d: %v", name, g.Dir(), is, want, err)
	}
}

// TestProcessMovesIntoControlGroup checks that a process moves into a new group, and that the group can be
// removed while the process runs. The groups are in a group of this test, because other tests change the settings
// of the process's group at the same time.
func TestProcessMovesIntoControlGroup(t *testing.T) {
	outer := above(t)
	g := outer.Child("above-" + strconv.Itoa(os.Getpid()))
	if err := g.Make(2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if was, err := g.Remove(); !was || err != nil {
			t.Errorf("removed: %v: %v", was, err)
		}
	})
	if outer.sessions() {
		weighs(t, g, 1)
	} else {
		weighs(t, g, 2)
	}
	pid := sleeping(t)
	if err := errors.Join(g.Add(sleeping(t)), g.Add(pid)); err != nil {
		t.Fatal(err)
	}
	before := settings(t, g)
	one, two := g.Child("one-"+strconv.Itoa(os.Getpid())), g.Child("two-"+strconv.Itoa(os.Getpid()))
	for _, x := range []Group{one, two} {
		if err := x.Make(2); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := x.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
	if err := one.Make(2); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second one of a name: %v", err)
	}
	weighs(t, one, 2)
	if err := one.Add(pid); err != nil {
		t.Fatal(err)
	}
	is := func(want Group) {
		t.Helper()
		if got, err := ByPID(pid); err != nil || got != want {
			t.Errorf("the process is in %+v, want %+v: %v", got, want, err)
		}
	}
	is(one)
	for _, was := range []bool{true, false} {
		if got, err := Removable(one.Dir()).Remove(); got != was || err != nil {
			t.Errorf("removed: %v, want %v: %v", got, was, err)
		}
	}
	is(g)
	if err := one.Add(pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into a group that was removed: %v", err)
	}
	if _, err := two.Remove(); err != nil {
		t.Error(err)
	}
	if after := settings(t, g); after != before {
		t.Errorf("the group above has %q, and had %q before", after, before)
	}
}

// settings returns the settings of a group that groups below it can change.
func settings(t *testing.T, g Group) (all string) {
	t.Helper()
	if !g.unified {
		return ""
	}
	for _, name := range []string{below, typeFile} {
		text, err := os.ReadFile(filepath.Join(g.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}

// TestControlGroupWithoutControllerIsRejected checks that a group of version 2 without a processor controller
// gives an error with advice. The groups are plain folders, so the test covers the parsing, not the kernel.
func TestControlGroupWithoutControllerIsRejected(t *testing.T) {
	folder := func(files map[string]string) Group {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return Group{dir, true}
	}
	for want, files := range map[string]map[string]string{
		"has no controller of processors: start this program by `systemd-run --scope -p Delegate=cpu`": {controllers: "memory pids\n", typeFile: "domain\n", below: ""},
		"have no controller of processors: `echo +cpu > ":                                              {controllers: "cpuset cpu memory\n", below: "memory\n"},
	} {
		g := folder(files)
		if err := g.Child("x").Make(2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
		if left, err := os.ReadDir(g.dir); err != nil || len(left) != len(files) {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	if was, err := Removable(filepath.Join(t.TempDir(), "stroppy-x")).Remove(); was || err != nil {
		t.Errorf("a group that is not there: %v, %v", was, err)
	}
}
