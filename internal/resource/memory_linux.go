package resource

import "github.com/shirou/gopsutil/v4/process"

// residentMemory reads /proc/PID/statm; see proc_pid_statm(5). It returns the resident bytes, and how many of them
// belong to files and shared memory.
func residentMemory(p *process.Process) (resident, shared int64, err error) {
	info, err := p.MemoryInfoEx()
	if err != nil {
		return 0, 0, err
	}
	return int64(info.RSS), int64(info.Shared), nil
}
