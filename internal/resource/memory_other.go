//go:build !linux

package resource

import "github.com/shirou/gopsutil/v4/process"

// residentMemory returns no shared memory, because only Linux reports it.
func residentMemory(p *process.Process) (resident, shared int64, err error) {
	info, err := p.MemoryInfo()
	if err != nil {
		return 0, 0, err
	}
	return int64(info.RSS), 0, nil
}
