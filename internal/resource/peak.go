package resource

import (
	"os"

	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// Resident returns the resident memory of this process in bytes; 0: not known.
func Resident() int64 {
	resident, _, err := residentMemory(&process.Process{Pid: int32(os.Getpid())})
	if err != nil {
		return 0
	}
	return resident
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
