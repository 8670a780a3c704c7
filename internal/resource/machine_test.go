package resource

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// write creates files below a folder, by path.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestSmallestCgroupLimitCounts(t *testing.T) {
	for name, c := range map[string]struct {
		files      map[string]string
		processors float64
		memory     int64
	}{
		"none": {map[string]string{"groups": "0::/a"}, 0, 0},
		"version 2, that above is narrower": {map[string]string{
			"groups": "0::/a/b", "fs/a/b/cpu.max": "max 100000", "fs/a/b/memory.max": "8000000000", "fs/a/cpu.max": "150000 100000", "fs/a/memory.max": "max",
		}, 1.5, 8_000_000_000},
		"version 2 in a container": {map[string]string{"groups": "0::/../elsewhere", "fs/cpu.max": "50000 100000", "fs/memory.max": "1073741824"}, 0.5, 1 << 30},
		"version 1": {map[string]string{
			"groups":                            "4:memory:/m\n3:cpuset:/\n1:cpu,cpuacct:/c\n0::/",
			"fs/memory/m/memory.limit_in_bytes": "2147483648", "fs/memory/memory.limit_in_bytes": "9223372036854771712",
			"fs/cpu,cpuacct/c/cpu.cfs_quota_us": "200000", "fs/cpu,cpuacct/c/cpu.cfs_period_us": "100000", "fs/cpu,cpuacct/cpu.cfs_quota_us": "-1", "fs/cpu,cpuacct/cpu.cfs_period_us": "100000",
		}, 2, 2 << 30},
		"version 1, apart": {map[string]string{"groups": "1:cpu:/", "fs/cpu/cpu.cfs_quota_us": "250000", "fs/cpu/cpu.cfs_period_us": "100000"}, 2.5, 0},
		"damaged":          {map[string]string{"groups": "nonsense\n0::/", "fs/cpu.max": "a b", "fs/memory.max": "-3"}, 0, 0},
	} {
		root := write(t, c.files)
		if processors, memory := limits(filepath.Join(root, "groups"), filepath.Join(root, "fs")); processors != c.processors || memory != c.memory {
			t.Errorf("%s: %v processors and %d bytes, want %v and %d", name, processors, memory, c.processors, c.memory)
		}
	}
}

func TestGovernorsOfAllProcessorsAreListed(t *testing.T) {
	root := write(t, map[string]string{"cpu0/cpufreq/scaling_governor": "performance", "cpu1/cpufreq/scaling_governor": "powersave", "cpu12/cpufreq/scaling_governor": "performance", "cpufreq/boost": "1"})
	if got := governor(root); got != "performance, powersave" {
		t.Errorf("it is %q", got)
	}
	if got := governor(filepath.Join(root, "nothing")); got != "" {
		t.Errorf("without files it is %q", got)
	}
}

// TestMachineDescriptionMatchesSystemFiles checks that the description of this machine agrees with the files of
// the system.
func TestMachineDescriptionMatchesSystemFiles(t *testing.T) {
	m := ThisMachine()
	if release, err := os.ReadFile("/etc/os-release"); err == nil && (m.System == "" || !strings.Contains(string(release), m.System)) {
		t.Errorf("the system is %q", m.System)
	}
	if m.Usable != runtime.NumCPU() || m.Threads < m.Usable || m.Memory < 1<<26 {
		t.Errorf("the machine is %+v", m)
	}
	if release := line("/proc/sys/kernel/osrelease"); release != "" && m.Kernel != release {
		t.Errorf("the kernel is %q, want %q", m.Kernel, release)
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil && !strings.Contains(strings.Join(strings.Fields(string(info)), " "), m.Processor) {
		t.Errorf("the processor is %q", m.Processor)
	}
}

func TestMissingFolderHasStorageOfItsParent(t *testing.T) {
	here, known := StorageOf(t.TempDir())
	if !known || here.FileSystem == "" {
		t.Errorf("it is %+v, %v", here, known)
	}
	if later, known := StorageOf(filepath.Join(t.TempDir(), "not", "there")); !known || later.FileSystem != here.FileSystem {
		t.Errorf("of a folder that is not there yet it is %+v, %v", later, known)
	}
	if memory, known := StorageOf("/dev/shm"); runtime.GOOS == "linux" && known && memory.FileSystem == "tmpfs" && (memory.Device != "" || memory.Rotating != nil) {
		t.Errorf("of memory it is %+v", memory)
	}
	if proc, known := StorageOf("/proc"); runtime.GOOS == "linux" && (!known || proc.FileSystem != "proc" || proc.Device != "") {
		t.Errorf("of /proc it is %+v, %v", proc, known)
	}
}
