package resource

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sys/unix"
)

// system returns the display name of the distribution and the kernel's version. gopsutil would run
// lsb_release for the name.
func system() (name, kernel string) {
	if name = prettyName("/etc/os-release"); name == "" {
		name = prettyName("/usr/lib/os-release")
	}
	var of unix.Utsname
	if unix.Uname(&of) == nil {
		kernel = unix.ByteSliceToString(of.Release[:])
	}
	return name, kernel
}

// prettyName returns the name in a file of os-release(5), whose values may be quoted.
func prettyName(file string) string {
	data, _ := os.ReadFile(file) // one that is not there names nothing
	for text := range strings.Lines(string(data)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(text), "PRETTY_NAME="); found {
			return strings.Trim(name, `"'`)
		}
	}
	return ""
}

// blockDevice returns the kernel's description of a file's disk, or nothing if the file is on none or on
// several.
func blockDevice(path string) (model string, rotating *bool) {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return "", nil
	}
	dev := uint64(stat.Dev)
	device, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(dev), unix.Minor(dev)))
	if err != nil {
		return "", nil
	}
	if _, err := os.Stat(filepath.Join(device, "partition")); err == nil {
		device = filepath.Dir(device)
	}
	if model = line(filepath.Join(device, "device", "model")); model == "" {
		return "", nil // a virtual disk, which the kernel reports as rotating
	}
	switch line(filepath.Join(device, "queue", "rotational")) {
	case "0":
		rotating = new(false)
	case "1":
		rotating = new(true)
	}
	return model, rotating
}

// residentMemory reads /proc/PID/statm; see proc_pid_statm(5). It returns the resident bytes, and how many of them
// belong to files and shared memory.
func residentMemory(p *process.Process) (resident, shared int64, err error) {
	info, err := p.MemoryInfoEx()
	if err != nil {
		return 0, 0, err
	}
	return int64(info.RSS), int64(info.Shared), nil
}
