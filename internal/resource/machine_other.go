//go:build !linux

package resource

import (
	"strings"

	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/process"
)

func system() (name, kernel string) {
	if platform, _, version, err := host.PlatformInformation(); err == nil {
		name = strings.TrimSpace(platform + " " + version)
	}
	kernel, _ = host.KernelVersion()
	return name, kernel
}

// blockDevice returns nothing, because this system does not report it.
func blockDevice(string) (model string, rotating *bool) { return "", nil }

// residentMemory returns no shared memory, because only Linux reports it.
func residentMemory(p *process.Process) (resident, shared int64, err error) {
	info, err := p.MemoryInfo()
	if err != nil {
		return 0, 0, err
	}
	return int64(info.RSS), 0, nil
}
