package resource

import (
	"iter"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"
)

// Machine describes the properties of this machine that affect measurements. Zero values are not known or do
// not exist.
type Machine struct {
	Processor   string  // its model
	Cores       int     // of all processors
	Threads     int     // that they run at once
	Usable      int     // of these, by this process
	Memory      int64   // bytes
	System      string  // such as Debian GNU/Linux 12 (bookworm)
	Kernel      string  // its version
	Governor    string  // of the processors' frequency
	CPULimit    float64 // processors that the container may keep busy; 0: there is no limit
	MemoryLimit int64   // bytes that the container may have; 0: there is no limit
}

// ThisMachine returns the description of this machine.
func ThisMachine() Machine {
	m := Machine{Usable: runtime.NumCPU()}
	if infos, err := cpu.Info(); err == nil && len(infos) > 0 {
		m.Processor = strings.Join(strings.Fields(infos[0].ModelName), " ")
	}
	m.Cores, _ = cpu.Counts(false) // 0 where it is not known
	m.Threads, _ = cpu.Counts(true)
	if memory, err := mem.VirtualMemory(); err == nil {
		m.Memory = int64(memory.Total)
	}
	m.System, m.Kernel = system()
	m.Governor = governor("/sys/devices/system/cpu")
	m.CPULimit, m.MemoryLimit = limits("/proc/self/cgroup", "/sys/fs/cgroup")
	return m
}

// governor returns the governor of all processors, or several separated by commas.
func governor(cpus string) string {
	files, _ := filepath.Glob(filepath.Join(cpus, "cpu[0-9]*", "cpufreq", "scaling_governor")) // the pattern is right
	var found []string
	for _, file := range files {
		if name := line(file); name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// line returns the first line of a file, or an empty string if it cannot be read.
func line(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(first)
}

// groupDirs yields the folders of this process's control groups, given the file that lists them, and of the groups
// above (https://docs.kernel.org/admin-guide/cgroup-v2.html, and cgroup-v1). Each has the name of its controller,
// which is empty in version 2. In a container, whose files begin at its own group, the path does not exist, and the
// root is read.
func groupDirs(groups, root string) iter.Seq2[string, string] {
	return func(yield func(controller, dir string) bool) {
		data, _ := os.ReadFile(groups) // without the file there are no groups
		for entry := range strings.Lines(string(data)) {
			fields := strings.SplitN(strings.TrimSpace(entry), ":", 3)
			if len(fields) != 3 {
				continue
			}
			for controller := range strings.SplitSeq(fields[1], ",") {
				base := filepath.Join(root, fields[1])
				if !there(base) {
					base = filepath.Join(root, controller)
				}
				for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
					if !yield(controller, filepath.Join(base, group)) {
						return
					}
					if group == "/" {
						break
					}
				}
			}
		}
	}
}

func there(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// limits returns the smallest limits of this process's control groups and of those above. See groupDirs.
func limits(groups, root string) (processors float64, memory int64) {
	least := func(x float64) {
		if x > 0 && (processors == 0 || x < processors) {
			processors = x
		}
	}
	leastMemory := func(text string) {
		n, err := strconv.ParseInt(text, 10, 64)
		// Version 1 uses the largest number of whole pages for no limit.
		if err == nil && n > 0 && n < 1<<60 && (memory == 0 || n < memory) {
			memory = n
		}
	}
	for controller, dir := range groupDirs(groups, root) {
		switch controller {
		case "":
			quota, period, _ := strings.Cut(line(filepath.Join(dir, "cpu.max")), " ")
			least(ratio(quota, period))
			leastMemory(line(filepath.Join(dir, "memory.max")))
		case "cpu":
			least(ratio(line(filepath.Join(dir, "cpu.cfs_quota_us")), line(filepath.Join(dir, "cpu.cfs_period_us"))))
		case "memory":
			leastMemory(line(filepath.Join(dir, "memory.limit_in_bytes")))
		}
	}
	return processors, memory
}

// ratio returns a/b, and 0 if one is not a number, as for a quota of "max" or -1.
func ratio(a, b string) float64 {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err != nil || err2 != nil || x <= 0 || y <= 0 {
		return 0
	}
	return x / y
}

// Storage describes the storage of a folder. Empty values are not known.
type Storage struct {
	FileSystem string // its type, such as ext4
	Device     string // such as /dev/sda1
	Model      string // of the disk
	Rotating   *bool  // as the kernel knows it
}

// StorageOf returns the storage of a folder, which need not exist yet.
func StorageOf(dir string) (s Storage, known bool) {
	path, err := filepath.Abs(dir)
	for err == nil {
		var real string
		if real, err = filepath.EvalSymlinks(path); err == nil {
			path = real
			break
		}
		if !os.IsNotExist(err) || path == filepath.Dir(path) {
			return s, false
		}
		path, err = filepath.Dir(path), nil
	}
	mounts, err := disk.Partitions(true)
	if err != nil {
		return s, false
	}
	longest := -1
	for _, m := range mounts {
		within := m.Mountpoint == path || strings.HasPrefix(path, strings.TrimSuffix(m.Mountpoint, "/")+"/")
		if within && len(m.Mountpoint) >= longest { // of several at one place the last hides the others
			longest = len(m.Mountpoint)
			s = Storage{FileSystem: m.Fstype, Device: m.Device}
		}
	}
	if s.Device == s.FileSystem || s.Device == "none" { // of no device
		s.Device = ""
	}
	s.Model, s.Rotating = blockDevice(path)
	return s, longest >= 0
}

// Free returns the number of bytes that this process can still allocate: the machine's available memory, or
// the rest of the container's limit; 0: not known.
func Free() int64 {
	memory, err := mem.VirtualMemory()
	if err != nil {
		return 0
	}
	free := int64(memory.Available)
	if _, limit := limits("/proc/self/cgroup", "/sys/fs/cgroup"); limit > 0 {
		free = min(free, limit)
	}
	return free
}
